"""Classification by likelihood with a few shots, scored in the three ways of BloombergGPT §5.1.

    regular          the answer of the highest p(answer | context)
    calibration      p(answer | context) / p(answer | "Answer:")
    normalization    the mean log-likelihood of the answer's tokens, as in Brown et al. 2020, which §5.1 follows; as
                     printed, p(answer | context) / len(answer), a probability of two tokens would count half

The paper reports the best of the three for each model and task. Shots are drawn anew for each example, from the
training part; every model sees the same text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from finpile.errors import ConfigError
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.outcomes import Indices, Outcomes, TaskItem, of_score

METHODS = ("regular", "calibration", "normalization")
#: The context of the calibration (§5.1).
EMPTY_CONTEXT = "Answer:"
#: Between the shots of a prompt, which the paper leaves open.
BETWEEN_SHOTS = "\n\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One question with its answer."""

    key: str
    """Its identity; decides its part and its shots."""
    prompt: str
    """The template up to `Answer:`."""
    answer: str
    category: str = ""
    """A task's F1 is the mean of those of its categories."""
    document: str = ""
    """The document that it is about, if several examples may be; its shots are about other documents."""
    texts: tuple[str, ...] = ()
    """Its own texts, without the template; empty: its prompt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FewShotTask:
    """Questions, and examples for their prompts."""

    name: str
    train: tuple[Example, ...]
    test: tuple[Example, ...]
    num_shots: int = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Classification(FewShotTask):
    """A task whose answers are a few words."""

    choices: tuple[str, ...]


def prompt_of(task: FewShotTask, example: Example, seed: int = 0) -> str:
    """The text before the answer: shots of the example's category, drawn for it, and its question."""
    pool = [
        other
        for other in task.train
        if other.category == example.category and (not example.document or other.document != example.document)
    ]
    generator = random.Random(f"{seed}/{task.name}/{example.key}/{example.category}")
    shots = generator.sample(pool, min(task.num_shots, len(pool)))
    return BETWEEN_SHOTS.join([*(f"{shot.prompt} {shot.answer}" for shot in shots), example.prompt])


def predict(
    model: LanguageModel, task: Classification, seed: int = 0, on_example: Callable[[], object] | None = None
) -> dict[str, list[str]]:
    """The answers to the test part by each method; of equal scores, the first choice."""
    answers = [f" {choice}" for choice in task.choices]
    empty = [found.nats for found in model.log_likelihoods([(EMPTY_CONTEXT, answer) for answer in answers])]
    predictions: dict[str, list[str]] = {method: [] for method in METHODS}
    for example in task.test:
        context = prompt_of(task, example, seed)
        found = model.log_likelihoods([(context, answer) for answer in answers])
        scores = {
            "regular": [one.nats for one in found],
            "calibration": [one.nats - base for one, base in zip(found, empty, strict=True)],
            "normalization": [one.nats / one.num_tokens for one in found],
        }
        for method, values in scores.items():
            predictions[method].append(task.choices[values.index(max(values))])
        if on_example:
            on_example()
    return predictions


def evaluate_classification(
    model: LanguageModel, task: Classification, seed: int = 0, on_example: Callable[[], object] | None = None
) -> dict[str, Any]:
    """Weighted F1 by each method, the best of them, the sizes of the task, and the number of prompts that are cut."""
    return classification_report(model, task, predict(model, task, seed, on_example), seed)


def classification_report(
    model: LanguageModel, task: Classification, predictions: Mapping[str, Sequence[str]], seed: int = 0
) -> dict[str, Any]:
    """The result of `evaluate_classification` for these predictions."""
    scores = {method: weighted_f1(task.test, found) for method, found in predictions.items()}
    best = max(METHODS, key=lambda method: scores[method])
    return {
        "task": task.name,
        "num_shots": task.num_shots,
        "num_train": len({example.key for example in task.train}),
        "num_test": len({example.key for example in task.test}),
        "num_truncated": sum(_is_cut(model, task, prompt_of(task, example, seed)) for example in task.test),
        "scores": scores,
        "best_method": best,
        "score": scores[best],
    }


def classification_outcomes(task: Classification, predictions: Sequence[str]) -> Outcomes:
    """The weighted F1 of each example's answer."""
    codes = {choice: code for code, choice in enumerate(task.choices)}
    right, found = (
        np.array([codes[answer] for answer in answers])
        for answers in ([example.answer for example in task.test], predictions)
    )
    categories = np.unique([example.category for example in task.test], return_inverse=True)[1]

    def score_of(chosen: Indices) -> float:
        cells = (categories[chosen] * len(codes) + right[chosen]) * len(codes) + found[chosen]
        counts = np.bincount(cells, minlength=(categories.max() + 1) * len(codes) ** 2)
        return _f1_of_counts(counts.reshape(-1, len(codes), len(codes)))

    return of_score(task.name, "weighted F1", task_items(task), score_of)


def _f1_of_counts(counts: npt.NDArray[np.int64]) -> float:
    """`weighted_f1` of the number of examples by [category, right answer, prediction]."""
    counts = counts[counts.sum(axis=(1, 2)) > 0]
    expected, predicted = counts.sum(axis=2), counts.sum(axis=1)
    both = np.maximum(expected + predicted, 1)
    f1 = 2 * np.diagonal(counts, axis1=1, axis2=2) / both
    return float(((f1 * expected).sum(axis=1) / expected.sum(axis=1)).mean())


def task_items(task: FewShotTask) -> list[TaskItem]:
    """The item of each test example."""
    return [TaskItem(task.name, example.key, example.texts or (example.prompt,)) for example in task.test]


def _is_cut(model: LanguageModel, task: Classification, prompt: str) -> bool:
    """Whether the model cannot read a prompt with each answer; the last token of an answer is not read."""
    return max(model.num_tokens(f"{prompt} {choice}") for choice in task.choices) > model.max_length + 1


def classification_metrics() -> Any:
    """The module `sklearn.metrics`. Raises: ConfigError if scikit-learn is not installed."""
    try:
        from sklearn import metrics
    except ImportError as error:
        raise ConfigError('this task needs scikit-learn: pip install "finpile[eval]"') from error
    return metrics


def weighted_f1(examples: Sequence[Example], predictions: Sequence[str]) -> float:
    """F1 of each answer, weighted by its number; the mean over categories.

    Raises: ConfigError if scikit-learn is not installed.
    """
    f1_score = classification_metrics().f1_score
    pairs: dict[str, tuple[list[str], list[str]]] = {}
    for example, prediction in zip(examples, predictions, strict=True):
        right, found = pairs.setdefault(example.category, ([], []))
        right.append(example.answer)
        found.append(prediction)
    values = [f1_score(right, found, average="weighted", zero_division=0) for right, found in pairs.values()]
    return float(sum(values) / len(values))
