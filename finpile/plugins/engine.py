"""Engines: what runs pipelines. The built-in ones are the modules of `finpile_pipelines.engines`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from finpile.plugins.registry import Registry

#: The engine that runs pipelines if no other one is named.
LOCAL = "local"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One pipeline to be run to its end."""

    label: str
    """Of its stage; error messages begin with it."""
    steps: Any
    """What is to be run, a `finpile_pipelines.graph.Pipeline`."""
    construct: Callable[[Any], None]
    """Adds the steps to an empty `beam.Pipeline`."""
    job_name: str
    """Lower-case letters, digits and hyphens."""
    num_workers: int
    threads: bool
    """Whether workers on this machine may be threads."""
    beam_args: tuple[str, ...]
    """Beam's own options, after those of the engine."""
    watch: Callable[[str, Any], None] | None = None
    """Called at intervals with the label and a `finpile_pipelines.progress.Progress`, by an engine that has it."""


@dataclass(frozen=True, kw_only=True)
class EngineType(ABC):
    """A kind of engine, under the name that `--runner` gives."""

    name: str
    parts: tuple[Any, ...] = ()
    """The private parts of Beam that it uses (`finpile_pipelines.runner.beam_parts.Part`)."""
    is_local: bool = False
    """Whether its workers run on this machine and end with the launcher; else a pipeline is a job, which takes up to
    minutes to start and may go on without its launcher."""
    cancel: str = ""
    """The command that cancels a job, of an engine whose jobs go on when it cannot be asked: a run is then refused."""

    def check(self, beam_args: Sequence[str]) -> None:
        """Raises: ConfigError if no pipeline can run here, or with these options of Beam."""
        del beam_args

    @abstractmethod
    def run(self, run: Run) -> Any:
        """Runs a pipeline to its end; returns Beam's result, with the metrics of a job.

        Raises: RunError if it fails, WorkerDied if a process of this machine is lost.
        """

    def endpoint(self, beam_args: Sequence[str]) -> str:
        """The address of a server that keeps jobs when this process has ended; empty if there is none."""
        del beam_args
        return ""

    def end_jobs(self, endpoint: str, run: str, beam_args: Sequence[str]) -> tuple[list[str], list[str]]:
        """Cancels the jobs whose names end with `run`; returns those that ended, and those that do not."""
        del endpoint, run, beam_args
        return [], []


ENGINES: Registry[EngineType] = Registry(
    "--runner", package="finpile_pipelines.engines", attribute="ENGINE", group="finpile.engines"
)
