"""Questions with a few shots, in the templates of BloombergGPT's Table 7 and with the splits of its appendix B.

Shots are drawn anew for each example, from the training part; every model sees the same text.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from finpile.errors import InputError
from finpile_trainer.evaluation.outcomes import TaskItem

#: Between the shots of a prompt, which the paper leaves open.
BETWEEN_SHOTS = "\n\n"
#: Share of the test part (§5.1).
TEST_SHARE = 0.2


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
    pools: Mapping[str, Sequence[Example]] = field(init=False, repr=False, compare=False)
    """The examples of `train` by category."""

    def __post_init__(self) -> None:
        pools: dict[str, list[Example]] = {}
        for example in self.train:
            pools.setdefault(example.category, []).append(example)
        object.__setattr__(self, "pools", pools)

    @property
    def num_items(self) -> int:
        return len(self.test)


T = TypeVar("T", bound=FewShotTask)


def prompt_of(task: FewShotTask, example: Example, seed: int = 0) -> str:
    """The text before the answer: shots of the example's category, drawn for it, and its question."""
    pool = task.pools.get(example.category, ())
    if example.document:
        pool = [other for other in pool if other.document != example.document]
    generator = random.Random(f"{seed}/{task.name}/{example.key}/{example.category}")
    shots = generator.sample(pool, min(task.num_shots, len(pool)))
    return BETWEEN_SHOTS.join([*(f"{shot.prompt} {shot.answer}" for shot in shots), example.prompt])


def sizes(task: FewShotTask) -> dict[str, Any]:
    """The name and the numbers of a result; parts have as many sentences."""
    numbers = {
        f"num_{name}": len({one.key for one in part}) for name, part in (("train", task.train), ("test", task.test))
    }
    return {"task": task.name, "num_shots": task.num_shots, **numbers}


def task_items(task: FewShotTask) -> list[TaskItem]:
    """The item of each test example."""
    return [TaskItem(task.name, example.key, example.texts or (example.prompt,)) for example in task.test]


def parts(name: str, examples: Sequence[Example]) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """The training and the test part of a task without an official split: a fifth of the sentences, rounded up.

    Which ones the paper took is not known; here they are those with the smallest hashes.
    """
    test = _smallest(name, examples, math.ceil(TEST_SHARE * len({example.key for example in examples})))
    first, second = (tuple(one for one in examples if (one.key in test) == is_test) for is_test in (False, True))
    return first, second


def limited(task: T, limit: int | None) -> T:
    """The task with the test examples of at most `limit` sentences, those with the smallest hashes.

    Raises: InputError for a task without a test example.
    """
    if not task.test:
        raise InputError(f"TASK {task.name}: its files have no example to test on; expected the published ones")
    if limit is None:
        return task
    kept = _smallest(task.name, task.test, limit)
    return replace(task, test=tuple(example for example in task.test if example.key in kept))


def _smallest(name: str, examples: Sequence[Example], number: int) -> set[str]:
    """The keys of the smallest hashes."""

    def digest(key: str) -> bytes:
        return hashlib.blake2b(f"{name}/{key}".encode(), digest_size=8).digest()

    return set(sorted({example.key for example in examples}, key=digest)[:number])
