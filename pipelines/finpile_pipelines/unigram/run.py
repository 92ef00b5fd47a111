"""The context of one training: engine, settings, working folder, listener, and the records of finished steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from finpile import storage
from finpile.config import TokenizerConfig
from finpile.output.work_folder import WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.exchange.tasks import Gather, Outcomes
from finpile_pipelines.runner.engine import Engine


@dataclass(frozen=True, slots=True)
class StepEvent:
    """Progress event passed to the listener of a training."""

    step: str
    state: str
    """`running`, `done` (by this run) or `found` (done by an earlier run)."""
    seconds: float = 0.0
    detail: str = ""


Listener = Callable[[StepEvent], None]


def _ignore(event: StepEvent) -> None:
    del event


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingRun:
    """The context of one training. All files below `folder` may be deleted after the training."""

    engine: Engine
    config: TokenizerConfig
    folder: WorkFolder
    listen: Listener = _ignore

    def parts(self, *works: float) -> list[TrainingRun]:
        """One run per step of a sequence, with the relative work of each step: see `Engine.parts`."""
        return [replace(self, engine=engine) for engine in self.engine.parts(*works)]

    def step(
        self,
        name: str,
        construct: Callable[[graph.Pipeline], graph.PCollection[dict[str, Any]]],
        describe: Callable[[Outcomes], str],
    ) -> Outcomes:
        """Runs a pipeline and writes the outcomes of its tasks to `NAME.json`. If that file exists, runs nothing.

        The file is written after all output of the tasks, so its existence implies that their output is complete.
        """
        file = self.folder.file(f"{name}.json")
        is_done = file.exists()
        began = time.monotonic()
        if not is_done:
            self.listen(StepEvent(name, "running"))

            def whole(pipeline: graph.Pipeline) -> None:
                _ = construct(pipeline) | Gather(file)

            self.engine.run(f"tokenizer: {name}", whole)
            self.exchange_folder.remove()
        outcomes: Outcomes = storage.read_json(file)
        self.listen(StepEvent(name, "found" if is_done else "done", time.monotonic() - began, describe(outcomes)))
        return outcomes

    @property
    def exchange_folder(self) -> WorkFolder:
        """The folder for a step's exchanges; deleted after each step."""
        return self.folder / "exchange"

    def narrowed(self, num_tasks: int) -> tuple[TrainingRun, int]:
        """The run with at most one worker per task, and the number of threads per task.

        Workers take seconds to start, which is significant if each pass over the text runs a pipeline.
        """
        if self.engine.runs_jobs:
            return self, 1
        num_workers = max(1, min(self.engine.num_workers, num_tasks))
        engine = replace(self.engine, num_workers=num_workers)
        return replace(self, engine=engine), max(1, self.engine.num_workers // num_workers)
