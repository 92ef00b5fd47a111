"""Answers that a model writes, greedily: an answer is the generated line.

`entity_f1` is the F1 of entities over all sentences; `exact_match` compares answers character by character.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from finpile_trainer.evaluation.few_shot import FewShotTask, prompt_of, sizes, task_items
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.named_entities import match_entities, read_entities, score_entities
from finpile_trainer.evaluation.outcomes import Indices, Outcomes, of_flags, of_score
from finpile_trainer.evaluation.task import Advance

_END = "\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation(FewShotTask):
    """A task whose answers are generated."""

    metric: Literal["entity_f1", "exact_match"]
    max_tokens: int
    """Tokens of an answer, at most."""

    def evaluate(self, model: LanguageModel, advance: Advance) -> tuple[dict[str, Any], Outcomes]:
        """The task's metric, its sizes, and the number of prompts that the model cannot read whole."""
        answers = answer_questions(model, self, advance)
        longest = model.max_length - _max_tokens(model, self)
        result = {
            **sizes(self),
            "num_truncated": sum(model.num_tokens(prompt_of(self, example)) > longest for example in self.test),
            "metric": self.metric,
            **grade(self, answers),
        }
        return result, generation_outcomes(self, answers)


def answer_questions(model: LanguageModel, task: Generation, advance: Advance) -> list[str]:
    """The generated line of each test example. A prompt that is too long loses its beginning: its first shots."""
    found = []
    for example in task.test:
        line = model.generate(prompt_of(task, example), stop=[_END], max_tokens=_max_tokens(model, task))
        found.append(line.strip())
        advance(1)
    return found


def _max_tokens(model: LanguageModel, task: Generation) -> int:
    return min(task.max_tokens, model.max_length // 2)


def generation_outcomes(task: Generation, answers: Sequence[str]) -> Outcomes:
    """The task's metric of each example's answer."""
    items = task_items(task)
    expected = [example.answer for example in task.test]
    if task.metric == "exact_match":
        right = [answer == other for answer, other in zip(answers, expected, strict=True)]
        return of_flags(task.name, "exact match", items, right)
    matches = _matches(expected, answers)

    def score_of(chosen: Indices) -> float:
        return score_entities(np.concatenate([matches[number] for number in chosen]))["score"]

    return of_score(task.name, "entity F1", items, score_of)


def grade(task: Generation, answers: Sequence[str]) -> dict[str, Any]:
    """The score of answers to the test part, and the counts that it comes from."""
    expected = [example.answer for example in task.test]
    if task.metric == "exact_match":
        right = sum(answer == other for answer, other in zip(answers, expected, strict=True))
        return {"score": right / len(expected), "num_right": right}
    matches = np.concatenate(_matches(expected, answers))
    num_expected, num_found = matches.sum(axis=0).tolist()
    counts = {"num_right": int(matches.all(axis=1).sum()), "num_expected": num_expected, "num_found": num_found}
    return {**score_entities(matches), **counts}


def _matches(expected: Sequence[str], answers: Sequence[str]) -> list[npt.NDArray[np.bool_]]:
    pairs = zip(expected, answers, strict=True)
    return [match_entities(read_entities(one), read_entities(other)) for one, other in pairs]
