"""Runs one pipeline on the engine that the caller chose."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from finpile import storage
from finpile.errors import ConfigError
from finpile.plugins.engine import ENGINES, LOCAL, EngineType, Run
from finpile_pipelines import graph
from finpile_pipelines.exchange.jobs import Lease, job_of
from finpile_pipelines.exchange.partition import Transport
from finpile_pipelines.exchange.task_lists import remove_task_lists
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import Progress, Watch
from finpile_pipelines.runner.usage import add_usage


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """The runner of pipelines and its workers."""

    runner: str = LOCAL
    """The name of an `EngineType`."""
    num_workers: int = 1
    """Workers of the local runner, or cores that an embedded Spark or Flink uses. Clusters have their own number."""
    threads: bool = False
    """Workers are threads of this process: no start-up cost, but Python code runs in one thread at a time."""
    beam_args: tuple[str, ...] = ()
    """Beam's own options, passed on unchanged."""
    transport: Transport | None = None
    """Transport of exchanges; None: files for the local runner, whose workers share a disk, else shuffle."""
    watch: Watch | None = field(default=None, compare=False)
    """Called at intervals with the stage's label and its progress, by an engine that knows it."""
    span: tuple[float, float] = field(default=(0.0, 1.0), compare=False)
    """The part of the stage's work, 0 to 1, that the next pipeline does: its begin and its end."""
    lease: Lease | None = field(default=None, compare=False)
    """The right of jobs to write into OUT (`runner.owner`)."""

    def __post_init__(self) -> None:
        if self.num_workers < 1:
            raise ConfigError(f"--workers is {self.num_workers}: expected at least 1")
        self.type.check(self.beam_args)

    @property
    def type(self) -> EngineType:
        """Raises: ConfigError for an unknown name."""
        return ENGINES.get(self.runner)

    @property
    def runs_jobs(self) -> bool:
        """Whether a pipeline is a job of a cluster, which takes up to minutes to start."""
        return not self.type.is_local

    @property
    def exchange_transport(self) -> Transport:
        if self.type.is_local and self.transport != "shuffle":
            return "local"
        return self.transport or "shuffle"

    def part(self, begin: float, end: float) -> Engine:
        """An engine whose pipelines do the part from `begin` to `end` (0 to 1) of this engine's part of the stage.

        Parts are estimates from the times of steps on real corpora. They affect the shown progress only.
        """
        first, last = self.span
        return replace(self, span=(first + begin * (last - first), first + end * (last - first)))

    def parts(self, *works: float) -> list[Engine]:
        """One engine for each pipeline of a sequence, from the work of each."""
        ends = [sum(works[: index + 1]) / sum(works) for index in range(len(works))]
        return [self.part(begin, end) for begin, end in zip([0.0, *ends], ends, strict=False)]

    def run(self, label: str, construct: Callable[[graph.Pipeline], None]) -> None:
        """Adds steps with `construct` to a pipeline, runs it and waits for its end.

        Raises: RunError if a task fails or a job server is lost, WorkerDied if a local worker process is lost.
        """
        versions = (self.runner, self.beam_args)

        steps = graph.Pipeline()
        if self.type.is_local:
            construct(steps)
        else:
            with job_of(self.lease, steps, compares=versions not in _COMPARED):
                construct(steps)
        run = Run(
            label=label,
            steps=steps,
            construct=partial(_add_to_beam, steps),
            job_name=_job_name(label, self.lease.run if self.lease else ""),
            num_workers=self.num_workers,
            threads=self.threads,
            beam_args=self.beam_args,
            watch=self._watch_stage if self.watch is not None else None,
        )
        try:
            result = self.type.run(run)
        finally:
            if self.runs_jobs and self.lease is not None:
                remove_task_lists(self.lease.url)
        if not self.type.is_local:
            add_usage(result)
            _COMPARED.add(versions)

    def run_one(self, label: str, transform: graph.PTransform) -> None:
        """Runs a pipeline of one transform that begins with its own elements; raises as `run`."""

        def construct(pipeline: graph.Pipeline) -> None:
            _ = pipeline | transform

        self.run(label, construct)

    def run_tasks(
        self,
        label: str,
        tasks: Iterable[Any],
        work: Callable[[Any], Mapping[str, Any]],
        file: storage.File,
        note: str = "",
        sizes: Sequence[int] = (),
    ) -> list[dict[str, Any]]:
        """Runs a pipeline that does `work` on each task; returns the outcomes, which it writes to `file`.

        Raises: as `run`.
        """

        def construct(pipeline: graph.Pipeline) -> None:
            _ = pipeline | Tasks(tasks, sizes=sizes, note=note) | "Work" >> graph.Map(work) | Gather(file)

        self.run(label, construct)
        outcomes: list[dict[str, Any]] = storage.read_json(file)
        return outcomes

    def _watch_stage(self, label: str, progress: Progress) -> None:
        begin, end = self.span
        if self.watch is not None:
            self.watch(label, replace(progress, share=begin + progress.pass_share * (end - begin)))


#: Runners and options of jobs whose workers have the versions of this process.
_COMPARED: set[tuple[str, tuple[str, ...]]] = set()


def _add_to_beam(steps: graph.Pipeline, pipeline: Any) -> None:
    from finpile_pipelines.runner.on_beam import add_steps  # Beam, which a run in this process does not need

    add_steps(steps, pipeline)


def _job_name(label: str, run: str) -> str:
    """A name that every runner accepts: lower-case letters, digits and hyphens. It ends with the name of the run."""
    return "-".join(["finpile", re.sub(r"[^a-z0-9]+", "-", label.lower()), *filter(None, [run])])
