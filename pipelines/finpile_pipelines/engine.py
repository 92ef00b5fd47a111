"""Runs one Beam pipeline: options for each runner, and the same ending for all of them.

A pipeline ends in `Gather`: every task's outcome, a small JSON object, is written into one sorted file. That works on
any runner, whereas a driver's memory does not travel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from finpile import shards
from finpile.errors import ConfigError
from finpile_pipelines import local
from finpile_pipelines.exchange import Carrier
from finpile_pipelines.shares import counted, shares_of

RUNNERS = {"local": "FnApiRunner", "spark": "PortableRunner", "flink": "PortableRunner", "dataflow": "DataflowRunner"}
RunnerName = Literal["local", "spark", "flink", "dataflow"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """Where pipelines run."""

    runner: RunnerName = "local"
    num_workers: int = 1
    """Workers of the local runner; other runners take theirs from `beam_args`."""
    threads: bool = False
    """Whether these are threads of this process: nothing to start, but Python's own work goes one thread at a time."""
    beam_args: tuple[str, ...] = ()
    """Beam's own options, handed on as they are."""
    carrier: Carrier | None = None
    """How exchanges travel; None: files where workers share the disk (local), else the runner's shuffle."""
    watch: local.Watch | None = field(default=None, compare=False)
    """Called now and then with the stage's label and its progress (local runner only)."""
    span: tuple[float, float] = field(default=(0.0, 1.0), compare=False)
    """Where the next pipeline's work begins and ends in that of its stage, whose work is 0 to 1."""

    def __post_init__(self) -> None:
        if self.num_workers < 1:
            raise ConfigError(f"--workers is {self.num_workers}: expected at least 1")

    @property
    def exchange_carrier(self) -> Carrier:
        return self.carrier or ("files" if self.runner == "local" else "shuffle")

    def part(self, begin: float, end: float) -> Engine:
        """For pipelines that do the work from `begin` to `end` (of 0 to 1) of what this engine's pipelines are to do.

        Shares are estimates, by what steps took on real corpora; they show in progress and nowhere else.
        """
        first, last = self.span
        return replace(self, span=(first + begin * (last - first), first + end * (last - first)))

    def parts(self, *works: float) -> list[Engine]:
        """One for each pipeline of a sequence, by the work of each."""
        ends = [sum(works[: index + 1]) / sum(works) for index in range(len(works))]
        return [self.part(begin, end) for begin, end in zip([0.0, *ends], ends, strict=False)]

    def run(self, label: str, construct: Callable[[beam.Pipeline], None]) -> None:
        """Builds the pipeline by `construct` and waits for its end.

        Raises: RunError where a task failed, WorkerDied where a local worker process was lost.
        """
        if self.runner == "local":
            watch = self._watch_stage if self.watch is not None else None
            local.run(label, construct, self.num_workers, self.threads, self.beam_args, watch)
            return
        options = PipelineOptions(list(self.beam_args), runner=RUNNERS[self.runner], job_name=_job_name(label))
        with beam.Pipeline(options=options) as pipeline:
            construct(pipeline)

    def _watch_stage(self, label: str, progress: local.Progress) -> None:
        begin, end = self.span
        if self.watch is not None:
            self.watch(label, replace(progress, share=begin + progress.pass_share * (end - begin)))


class Tasks(beam.PTransform):
    """A list of tasks as elements, spread over the workers. Together they are `share` of the pipeline's work."""

    def __init__(self, tasks: Iterable[Any], share: float = 1.0, sizes: Sequence[int] = ()) -> None:
        super().__init__()
        listed = list(tasks)
        shares = shares_of(sizes or [1] * len(listed), share)
        self._tasks = list(enumerate(zip(shares, listed, strict=True)))

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[Any]:
        tasks = self._tasks

        def numbered(_: bytes) -> Iterable[tuple[int, tuple[float, Any]]]:
            return tasks

        grouped = pipeline | beam.Impulse() | beam.FlatMap(numbered) | beam.GroupByKey()  # a group goes to any worker
        return grouped | "Task" >> beam.FlatMap(_counted)


class Gather(beam.PTransform):
    """Task outcomes (JSON objects) into one file, sorted by their text, so that no order of work shows."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def expand(self, outcomes: beam.PCollection[Mapping[str, Any]]) -> beam.PCollection[None]:
        url = self._url

        def write(told: tuple[None, Iterable[str]]) -> None:
            lines = sorted(line for line in told[1] if line)
            shards.write_json(url, [json.loads(line) for line in lines])

        nothing = outcomes.pipeline | beam.Impulse() | "Nothing" >> beam.Map(_nothing)
        said = outcomes | "ToText" >> beam.Map(_to_text)
        return (said, nothing) | beam.Flatten() | beam.GroupByKey() | "Write" >> beam.Map(write)


def _counted(group: tuple[int, Iterable[tuple[float, Any]]]) -> Iterator[Any]:
    for share, task in group[1]:
        yield from counted(share, [task])


def _nothing(_: bytes) -> tuple[None, str]:
    return None, ""


def _to_text(outcome: Mapping[str, Any]) -> tuple[None, str]:
    return None, json.dumps(outcome, sort_keys=True)


def _job_name(label: str) -> str:
    """As strict as the strictest engine: lower-case letters, digits and hyphens."""
    return "finpile-" + re.sub(r"[^a-z0-9]+", "-", label.lower())
