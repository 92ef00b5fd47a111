"""The first and the last step of a pass over tasks: a list of tasks as elements, and their outcomes in one sorted file.

A pipeline may have several passes: the tasks of a pass begin when the outcomes of an earlier pass are complete, and may
depend on a summary of these outcomes (`After`). So passes need no pipeline of their own.

Each task's outcome is a small JSON object. A file works with every runner; workers cannot return results to the
driver's memory.

Decision: docs/decisions/0033-few-jobs.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from finpile import storage
from finpile.output.work_folder import WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.exchange.jobs import Job, compared_versions, current_job, working
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.task_lists import task_list
from finpile_pipelines.progress import counted, report_note, shares_of

Outcomes = list[dict[str, Any]]


def _always(summary: Any) -> bool:
    del summary
    return True


@dataclass(frozen=True, slots=True)
class After:
    """A condition for a pass: it begins when an earlier pass is complete, or is skipped."""

    gathered: graph.PCollection[Passed]
    """The output of the earlier pass's `Gather`."""
    when: Callable[[Any], bool] = _always
    """Whether the pass runs, given the summary in `gathered`. If the earlier pass is skipped, so is this one."""

    def is_met(self) -> Callable[[Passed], bool]:
        """The function from the element of `gathered`; unlike this object it can be pickled."""
        when = self.when
        return lambda passed: passed.ran and when(passed.summary)


class Tasks(graph.PTransform):
    """A list of tasks as elements, distributed over the workers. Together they are `share` of the pipeline's work.

    Unlike `graph.Create(tasks, reshuffle=True)` it reports the share of each task as progress when the task and all
    steps fused with it are done. `note` is shown as the current step while the tasks run. `after` delays the tasks.
    """

    def __init__(
        self,
        tasks: Iterable[Any],
        share: float = 1.0,
        sizes: Sequence[int] = (),
        *,
        after: After | None = None,
        note: str = "",
    ) -> None:
        super().__init__()
        self._tasks = _with_shares(list(tasks), share, sizes)
        self._after = after
        self._note = note

    def expand(self, pipeline: graph.Pipeline) -> graph.PCollection[Any]:
        tasks, after = task_list(self._tasks, current_job()), self._after
        if after is None and (compared := compared_versions()) is not None:
            after = After(compared)
        if after is None:
            return pipeline | graph.Impulse() | graph.FlatMap(lambda _: tasks.read()) | _Distributed(self._note)
        return pipeline | _Released(lambda _: tasks.read(), after) | _Distributed(self._note)


class PlannedTasks(graph.PTransform):
    """As `Tasks`, for tasks that `plan` lists from the summary of the earlier pass."""

    def __init__(
        self, plan: Callable[[Any], Iterable[Any]], share: float = 1.0, *, after: After, note: str = ""
    ) -> None:
        super().__init__()
        self._plan = plan
        self._share = share
        self._after = after
        self._note = note

    def expand(self, pipeline: graph.Pipeline) -> graph.PCollection[Any]:
        plan, share = self._plan, self._share
        released = _Released(lambda passed: _with_shares(list(plan(passed.summary)), share), self._after)
        return pipeline | released | _Distributed(self._note)


_Numbered = tuple[int, tuple[float, Any]]


def _with_shares(tasks: Sequence[Any], share: float, sizes: Sequence[int] = ()) -> list[_Numbered]:
    """The tasks, numbered, each with its part of `share`."""
    shares = shares_of(sizes or [1] * len(tasks), share)
    return list(enumerate(zip(shares, tasks, strict=True)))


class _Released(graph.PTransform):
    """Tasks that `plan` lists from the end of an earlier pass; none if the pass is skipped."""

    def __init__(self, plan: Callable[[Passed], Sequence[_Numbered]], after: After) -> None:
        super().__init__()
        self._plan = plan
        self._after = after

    def expand(self, pipeline: graph.Pipeline) -> graph.PCollection[_Numbered]:
        plan, is_met = self._plan, self._after.is_met()
        return (
            pipeline
            | graph.Impulse()
            | graph.FlatMap(
                lambda _, passed: plan(passed) if is_met(passed) else [],
                graph.AsSingleton(self._after.gathered),
            )
        )


class _Distributed(graph.PTransform):
    """Assigns tasks to workers: a runner assigns each group of a `GroupByKey` to any worker."""

    def __init__(self, note: str) -> None:
        super().__init__()
        self._note = note

    def expand(self, numbered: graph.PCollection[_Numbered]) -> graph.PCollection[Any]:
        return numbered | graph.GroupByKey() | "Task" >> graph.FlatMap(_counted, self._note, current_job())


class Gather(graph.PTransform):
    """Writes task outcomes (JSON objects) to one file, sorted by their text: the order of work has no effect.

    Its output is one element with `summary(outcomes)`, by default their number; the file exists when it is there. If
    the pass is skipped by `after`, which is that of its tasks, no file is written and the element says so.
    """

    def __init__(
        self, file: storage.File, summary: Callable[[Outcomes], Any] = len, *, after: After | None = None
    ) -> None:
        super().__init__()
        self._file = file
        self._summary = summary
        self._after = after

    def expand(self, outcomes: graph.PCollection[Mapping[str, Any]]) -> graph.PCollection[Passed]:
        file, summary, after, job = self._file, self._summary, self._after, current_job()

        def write(group: tuple[int, Iterable[str]]) -> Passed:
            lines = sorted(line for line in group[1] if line)
            gathered = [json.loads(line) for line in lines]
            with job.working() if job else nullcontext():
                storage.write_json(file, gathered)
                return Passed(True, summary(gathered))

        keyed = tuple[int, str]
        nothing = outcomes.pipeline | graph.Impulse() | "Nothing" >> graph.Map(_nothing).with_output_types(keyed)
        texts = outcomes | "ToText" >> graph.Map(_to_text).with_output_types(keyed)
        grouped = (texts, nothing) | graph.Flatten() | graph.GroupByKey()
        if after is None:
            return grouped | "Write" >> graph.Map(write).with_output_types(Passed)
        is_met = after.is_met()
        written = graph.Map(
            lambda group, earlier: write(group) if is_met(earlier) else Passed(False),
            graph.AsSingleton(after.gathered),
        )
        return grouped | "Write" >> written.with_output_types(Passed)


class RemoveFolder(graph.PTransform):
    """Removes a folder when a pass is complete; its input is the output of the pass's `Gather`. It has no elements."""

    def __init__(self, folder: WorkFolder) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, gathered: graph.PCollection[Passed]) -> graph.PCollection[int]:
        folder, job = self._folder, current_job()

        def remove(_: Passed) -> Iterator[int]:
            with job.working() if job else nullcontext():
                folder.remove()
            yield from ()

        return gathered | graph.FlatMap(remove)


def sum_of(name: str) -> Callable[[Outcomes], int]:
    """A summary: the sum of the outcomes' counts of that name."""

    def summary(outcomes: Outcomes) -> int:
        return sum(outcome.get(name, 0) for outcome in outcomes)

    return summary


def _counted(group: tuple[int, Iterable[tuple[float, Any]]], note: str, job: Job | None) -> Iterator[Any]:
    if note:
        report_note(note)
    for share, task in group[1]:
        yield from working(job, counted(share, [task]))


def _nothing(_: bytes) -> tuple[int, str]:
    return 0, ""


def _to_text(outcome: Mapping[str, Any]) -> tuple[int, str]:
    return 0, json.dumps(outcome, sort_keys=True)
