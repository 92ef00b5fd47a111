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
from dataclasses import KW_ONLY, dataclass
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


@dataclass(eq=False)
class Tasks(graph.PTransform):
    """A list of tasks as elements, distributed over the workers. Together they are `share` of the pipeline's work.

    Unlike `graph.Create(tasks, reshuffle=True)` it reports the share of each task as progress when the task and all
    steps fused with it are done. `note` is shown as the current step while the tasks run. `after` delays the tasks.
    """

    tasks: Iterable[Any]
    share: float = 1.0
    sizes: Sequence[int] = ()
    _: KW_ONLY
    after: After | None = None
    note: str = ""

    def expand(self, pipeline: graph.Pipeline) -> graph.PCollection[Any]:
        numbered, after = _with_shares(list(self.tasks), self.share, self.sizes), self.after
        tasks = task_list(numbered, current_job())
        if after is None and (compared := compared_versions()) is not None:
            after = After(compared)
        if after is None:
            return _distributed(pipeline | graph.Impulse() | graph.FlatMap(lambda _: tasks.read()), self.note)
        return _distributed(_released(pipeline, lambda _: tasks.read(), after), self.note)


@dataclass(eq=False)
class PlannedTasks(graph.PTransform):
    """As `Tasks`, for tasks that `plan` lists from the summary of the earlier pass."""

    plan: Callable[[Any], Iterable[Any]]
    share: float = 1.0
    _: KW_ONLY
    after: After
    note: str = ""

    def expand(self, pipeline: graph.Pipeline) -> graph.PCollection[Any]:
        plan, share = self.plan, self.share
        tasks = _released(pipeline, lambda passed: _with_shares(list(plan(passed.summary)), share), self.after)
        return _distributed(tasks, self.note)


_Numbered = tuple[int, tuple[float, Any]]


def _with_shares(tasks: Sequence[Any], share: float, sizes: Sequence[int] = ()) -> list[_Numbered]:
    """The tasks, numbered, each with its part of `share`."""
    shares = shares_of(sizes or [1] * len(tasks), share)
    return list(enumerate(zip(shares, tasks, strict=True)))


def _released(
    pipeline: graph.Pipeline, plan: Callable[[Passed], Sequence[_Numbered]], after: After
) -> graph.PCollection[_Numbered]:
    """Tasks that `plan` lists from the end of an earlier pass; none if the pass is skipped."""
    is_met, end = after.is_met(), graph.AsSingleton(after.gathered)
    return pipeline | graph.Impulse() | graph.FlatMap(lambda _, passed: plan(passed) if is_met(passed) else [], end)


def _distributed(numbered: graph.PCollection[_Numbered], note: str) -> graph.PCollection[Any]:
    """Assigns tasks to workers: a runner assigns each group of a `GroupByKey` to any worker."""
    return numbered | graph.GroupByKey() | "Task" >> graph.FlatMap(_counted, note, current_job())


@dataclass(eq=False)
class Gather(graph.PTransform):
    """Writes task outcomes (JSON objects) to one file, sorted by their text: the order of work has no effect.

    Its output is one element with `summary(outcomes)`, by default their number; the file exists when it is there. If
    the pass is skipped by `after`, which is that of its tasks, no file is written and the element says so.
    """

    file: storage.File
    summary: Callable[[Outcomes], Any] = len
    _: KW_ONLY
    after: After | None = None

    def expand(self, outcomes: graph.PCollection[Mapping[str, Any]]) -> graph.PCollection[Passed]:
        file, summary, after, job = self.file, self.summary, self.after, current_job()

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


@dataclass(eq=False)
class RemoveFolder(graph.PTransform):
    """Removes a folder when a pass is complete; its input is the output of the pass's `Gather`. It has no elements."""

    folder: WorkFolder

    def expand(self, gathered: graph.PCollection[Passed]) -> graph.PCollection[int]:
        folder, job = self.folder, current_job()

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
