"""Classification by likelihood, scored in the three ways of BloombergGPT §5.1.

    regular          the answer of the highest p(answer | context)
    calibration      p(answer | context) / p(answer | "Answer:")
    normalization    the mean log-likelihood of the answer's tokens, as in Brown et al. 2020, which §5.1 follows; as
                     printed, p(answer | context) / len(answer), a probability of two tokens would count half

The paper reports the best of the three for each model and task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from finpile_trainer.evaluation.few_shot import Example, FewShotTask, limited, parts, prompt_of, sizes, task_items
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.outcomes import Indices, Outcomes, of_score
from finpile_trainer.evaluation.task import Advance

METHODS = ("regular", "calibration", "normalization")
#: The context of the calibration (§5.1).
EMPTY_CONTEXT = "Answer:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Classification(FewShotTask):
    """A task whose answers are a few words."""

    choices: tuple[str, ...]

    def evaluate(self, model: LanguageModel, advance: Advance) -> tuple[dict[str, Any], Outcomes]:
        """Weighted F1 by each method, the best of them, the sizes, and the number of prompts that are cut."""
        outcomes = {
            method: classification_outcomes(self, found) for method, found in predict(model, self, advance).items()
        }
        scores = {method: found.score_of(np.arange(len(self.test))) for method, found in outcomes.items()}
        best = max(METHODS, key=lambda method: scores[method])
        result = {
            **sizes(self),
            "num_truncated": sum(_is_cut(model, self, prompt_of(self, example)) for example in self.test),
            "scores": scores,
            "best_method": best,
            "score": scores[best],
        }
        return result, outcomes[best]


def split_classification(
    name: str, choices: tuple[str, ...], examples: Sequence[Example], limit: int | None
) -> Classification:
    """A task without an official split (`parts`), with at most `limit` test sentences."""
    train, test = parts(name, examples)
    return limited(Classification(name=name, choices=choices, train=train, test=test), limit)


def predict(model: LanguageModel, task: Classification, advance: Advance) -> dict[str, list[str]]:
    """The answers to the test part by each method; of equal scores, the first choice."""
    answers = [f" {choice}" for choice in task.choices]
    empty = [found.nats for found in model.log_likelihoods([(EMPTY_CONTEXT, answer) for answer in answers])]
    predictions: dict[str, list[str]] = {method: [] for method in METHODS}
    for example in task.test:
        context = prompt_of(task, example)
        found = model.log_likelihoods([(context, answer) for answer in answers])
        scores = {
            "regular": [one.nats for one in found],
            "calibration": [one.nats - base for one, base in zip(found, empty, strict=True)],
            "normalization": [one.nats / one.num_tokens for one in found],
        }
        for method, values in scores.items():
            predictions[method].append(task.choices[values.index(max(values))])
        advance(1)
    return predictions


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
        return weighted_f1(counts.reshape(-1, len(codes), len(codes)))

    return of_score(task.name, "weighted F1", task_items(task), score_of)


def weighted_f1(counts: npt.NDArray[np.int64]) -> float:
    """F1 of each answer, weighted by its number; the mean over categories.

    `counts` has the number of examples by [category, right answer, prediction].
    """
    counts = counts[counts.sum(axis=(1, 2)) > 0]
    expected, predicted = counts.sum(axis=2), counts.sum(axis=1)
    both = np.maximum(expected + predicted, 1)
    f1 = 2 * np.diagonal(counts, axis1=1, axis2=2) / both
    return float(((f1 * expected).sum(axis=1) / expected.sum(axis=1)).mean())


def _is_cut(model: LanguageModel, task: Classification, prompt: str) -> bool:
    """Whether the model cannot read a prompt with each answer; the last token of an answer is not read."""
    return max(model.num_tokens(f"{prompt} {choice}") for choice in task.choices) > model.max_length + 1
