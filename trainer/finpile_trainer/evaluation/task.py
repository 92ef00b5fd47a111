"""Evaluation tasks. The built-in ones are the modules of `finpile_trainer.tasks`, each with its `TASK`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from finpile.errors import InputError
from finpile.plugins.registry import Registry

if TYPE_CHECKING:
    from finpile.report.table import Table
    from finpile_trainer.evaluation.language_model import LanguageModel
    from finpile_trainer.evaluation.outcomes import Outcomes

#: Called with a number of items that are done.
Advance: TypeAlias = Callable[[float], object]


class TaskData(Protocol):
    """The items of a task."""

    @property
    def num_items(self) -> int: ...

    def evaluate(self, model: LanguageModel, advance: Advance) -> tuple[dict[str, Any], Outcomes]:
        """The result, and what the model did on each item. Calls `advance` until all items are done.

        The result is an object of JSON; its `score`, from 0 to 1, is what win rates compare.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """An evaluation task, under the name that `finpile model tasks` takes."""

    name: str
    read: Callable[[Path, int | None], TaskData]
    """`read(folder, limit)`: its items, at most `limit` of each set. Raises: InputError if files are absent or have
    another format."""
    unit: str = "examples"
    """What its items are called."""
    table: Callable[[Sequence[Mapping[str, Any]]], Table]
    """The table of the results of all chosen tasks that have this function."""
    order: int = 100
    """Its place in tables and lists, before tasks of a greater number."""


TASKS: Registry[Task] = Registry("TASK", package="finpile_trainer.tasks", attribute="TASK", group="finpile.tasks")


def in_order(names: Iterable[str]) -> list[Task]:
    """The tasks of these names, by `order` and name. Raises: ConfigError as `TASKS.get`."""
    return sorted(map(TASKS.get, names), key=lambda task: (task.order, task.name))


def task_files(folder: Path, pattern: str) -> list[Path]:
    """The files of a pattern in a folder, sorted.

    Raises: InputError if there are none.
    """
    found = sorted(folder.glob(pattern))
    if not found:
        raise InputError(f"{folder}: has no {pattern}")
    return found


def task_text(path: Path) -> str:
    """The text of a file of a task, with its line ends. Raises: InputError if it is not UTF-8."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 ({error}): copy the published file again, or convert it") from error
