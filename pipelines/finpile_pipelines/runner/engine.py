"""Runs one Beam pipeline: options for each runner, and the same ending for all of them.

A pipeline ends in `Gather`: every task's outcome, a small JSON object, is written into one sorted file. That works on
any runner, whereas a driver's memory does not travel.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from finpile.errors import ConfigError
from finpile_pipelines.exchange.partition import Transport
from finpile_pipelines.progress import Progress, Watch
from finpile_pipelines.runner import local

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
    transport: Transport | None = None
    """How exchanges travel; None: files where workers share the disk (local), else the runner's shuffle."""
    watch: Watch | None = field(default=None, compare=False)
    """Called now and then with the stage's label and its progress (local runner only)."""
    span: tuple[float, float] = field(default=(0.0, 1.0), compare=False)
    """Where the next pipeline's work begins and ends in that of its stage, whose work is 0 to 1."""

    def __post_init__(self) -> None:
        if self.num_workers < 1:
            raise ConfigError(f"--workers is {self.num_workers}: expected at least 1")

    @property
    def exchange_transport(self) -> Transport:
        return self.transport or ("files" if self.runner == "local" else "shuffle")

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

    def _watch_stage(self, label: str, progress: Progress) -> None:
        begin, end = self.span
        if self.watch is not None:
            self.watch(label, replace(progress, share=begin + progress.pass_share * (end - begin)))


def _job_name(label: str) -> str:
    """As strict as the strictest engine: lower-case letters, digits and hyphens."""
    return "finpile-" + re.sub(r"[^a-z0-9]+", "-", label.lower())
