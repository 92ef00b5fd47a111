"""One training: where it works, how, whom it tells, and how its steps are found again by the next run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam

from finpile import storage
from finpile.config import TokenizerConfig
from finpile_pipelines.exchange.tasks import Gather
from finpile_pipelines.runner.engine import Engine


@dataclass(frozen=True, slots=True)
class StepEvent:
    """Told to the caller as a training goes on."""

    step: str
    state: str
    """`running`, `done` (now) or `found` (done by an earlier run)."""
    seconds: float = 0.0
    detail: str = ""


Listener = Callable[[StepEvent], None]
Outcomes = list[dict[str, Any]]


def _ignore(event: StepEvent) -> None:
    del event


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingRun:
    """Where and how. All files below `folder` may go when the training is done."""

    engine: Engine
    config: TokenizerConfig
    folder: str
    listen: Listener = _ignore

    def url(self, *names: str) -> str:
        """A path below the run's folder."""
        return storage.join(self.folder, *names)

    def parts(self, *works: float) -> list[TrainingRun]:
        """The run for each of a sequence of steps, by their work: see `Engine.parts`."""
        return [replace(self, engine=engine) for engine in self.engine.parts(*works)]

    def step(
        self,
        name: str,
        construct: Callable[[beam.Pipeline], beam.PCollection[dict[str, Any]]],
        describe: Callable[[Outcomes], str],
    ) -> Outcomes:
        """Runs a pipeline and keeps the outcomes of its tasks as `NAME.json`; where those are, runs nothing.

        That file is written after all that the tasks write, so it says that they are there.
        """
        url = self.url(f"{name}.json")
        is_done = storage.exists(url)
        began = time.monotonic()
        if not is_done:
            self.listen(StepEvent(name, "running"))

            def whole(pipeline: beam.Pipeline) -> None:
                _ = construct(pipeline) | Gather(url)

            self.engine.run(f"tokenizer: {name}", whole)
            storage.remove_tree(self.exchange_folder)
        outcomes: Outcomes = storage.read_json(url)
        self.listen(StepEvent(name, "found" if is_done else "done", time.monotonic() - began, describe(outcomes)))
        return outcomes

    @property
    def exchange_folder(self) -> str:
        """For a step's exchanges; emptied after each step."""
        return self.url("exchange")

    def narrowed(self, num_tasks: int) -> tuple[TrainingRun, int]:
        """The run with no more workers than tasks, and the threads for each task: starting workers takes seconds, which
        tell where a pipeline is run for each pass over the text."""
        if self.engine.runner != "local":
            return self, 1
        num_workers = max(1, min(self.engine.num_workers, num_tasks))
        engine = replace(self.engine, num_workers=num_workers)
        return replace(self, engine=engine), max(1, self.engine.num_workers // num_workers)
