"""How much of a pipeline's work is done, counted by its tasks and by the partitions of its exchanges.

`Tasks` and `ExchangeByPartition` give each element a share of the pipeline's work. A step that yields an element goes
on only when all steps fused with it have processed the element: then its share is done. A long task also reports which
part of itself is done.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from finpile_pipelines.local import report_note, report_progress

Element = TypeVar("Element")
#: Of a task.
_LEAST_PART = 0.01


@dataclass(slots=True)
class _Task:
    """The element that a thread is working on."""

    share: float
    reported: float = 0.0
    """Of the share."""


class _OfThread(threading.local):
    task: _Task | None = None


_CURRENT = _OfThread()


def shares_of(sizes: Sequence[int], whole: float = 1.0) -> list[float]:
    """The share of each task in `whole`, by its size; equal shares where no task has a size.

    >>> shares_of([1, 3]), shares_of([0, 0], 0.5)
    ([0.25, 0.75], [0.25, 0.25])
    """
    total = sum(sizes)
    return [whole * size / total for size in sizes] if total else [whole / max(1, len(sizes))] * len(sizes)


def counted(share: float, elements: Iterable[Element]) -> Iterator[Element]:
    """Yields the elements of one task, and reports its share when they are processed."""
    outer = _CURRENT.task
    _CURRENT.task = task = _Task(share)
    try:
        yield from elements
    finally:
        _CURRENT.task = outer
    if share:
        report_progress(0, 0, share - task.reported)


def report_part(part: float, note: str = "") -> None:
    """Called inside a task, often: the part of it that is done, 0 to 1, and in a few words what it does now.

    Parts below a hundredth of the task wait for the next call, so that a call costs nothing.
    """
    task = _CURRENT.task
    if note:
        report_note(note)
    if task is not None and task.share * (min(1.0, part) - _LEAST_PART) >= task.reported:
        reported, task.reported = task.reported, task.share * min(1.0, part)
        report_progress(0, 0, task.reported - reported)
