"""What a model did on each item of a task, so that parts of the task can be scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from finpile_trainer.evaluation.intervals import Interval, bootstrap, wilson

Indices = npt.NDArray[np.int64]


class TaskItem(NamedTuple):
    """A question of a task, without the template around it."""

    task: str
    item: str
    """Its name in the task; several examples may be about one item."""
    texts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcomes:
    """The examples of a task in one metric. `score_of` is the score of chosen examples, of at least one."""

    task: str
    metric: str
    items: tuple[TaskItem, ...]
    """Of each example."""
    score_of: Callable[[Indices], float]
    interval_of: Callable[[Indices], Interval]
    """The interval of 95% of `score_of`."""


def of_flags(task: str, metric: str, items: Sequence[TaskItem], right: Sequence[bool]) -> Outcomes:
    """The score is the share of right examples, with Wilson's interval."""
    flags = np.array(right, bool)
    return Outcomes(
        task=task,
        metric=metric,
        items=tuple(items),
        score_of=lambda chosen: float(flags[chosen].mean()),
        interval_of=lambda chosen: wilson(int(flags[chosen].sum()), len(chosen)),
    )


def of_score(task: str, metric: str, items: Sequence[TaskItem], score_of: Callable[[Indices], float]) -> Outcomes:
    """A score that is not a share, with the interval of a bootstrap over examples."""
    return Outcomes(
        task=task,
        metric=metric,
        items=tuple(items),
        score_of=score_of,
        interval_of=lambda chosen: bootstrap(lambda drawn: score_of(chosen[drawn]), len(chosen)),
    )
