"""The first and the last step of every pipeline: a list of tasks as elements, and their outcomes in one sorted file.

Each task's outcome is a small JSON object. A file works with every runner; workers cannot return results to the
driver's memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam

from finpile import storage
from finpile_pipelines.progress import counted, shares_of


class Tasks(beam.PTransform):
    """A list of tasks as elements, distributed over the workers. Together they are `share` of the pipeline's work.

    Unlike `beam.Create(tasks, reshuffle=True)` it reports the share of each task as progress when the task and all
    steps fused with it are done.
    """

    def __init__(self, tasks: Iterable[Any], share: float = 1.0, sizes: Sequence[int] = ()) -> None:
        super().__init__()
        listed = list(tasks)
        shares = shares_of(sizes or [1] * len(listed), share)
        self._tasks = list(enumerate(zip(shares, listed, strict=True)))

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[Any]:
        tasks = self._tasks

        def numbered(_: bytes) -> Iterable[tuple[int, tuple[float, Any]]]:
            return tasks

        # A runner assigns each group to any worker.
        grouped = pipeline | beam.Impulse() | beam.FlatMap(numbered) | beam.GroupByKey()
        return grouped | "Task" >> beam.FlatMap(_counted)


class Gather(beam.PTransform):
    """Writes task outcomes (JSON objects) to one file, sorted by their text: the order of work has no effect."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def expand(self, outcomes: beam.PCollection[Mapping[str, Any]]) -> beam.PCollection[None]:
        url = self._url

        def write(group: tuple[None, Iterable[str]]) -> None:
            lines = sorted(line for line in group[1] if line)
            storage.write_json(url, [json.loads(line) for line in lines])

        nothing = outcomes.pipeline | beam.Impulse() | "Nothing" >> beam.Map(_nothing)
        texts = outcomes | "ToText" >> beam.Map(_to_text)
        return (texts, nothing) | beam.Flatten() | beam.GroupByKey() | "Write" >> beam.Map(write)


def _counted(group: tuple[int, Iterable[tuple[float, Any]]]) -> Iterator[Any]:
    for share, task in group[1]:
        yield from counted(share, [task])


def _nothing(_: bytes) -> tuple[None, str]:
    return None, ""


def _to_text(outcome: Mapping[str, Any]) -> tuple[None, str]:
    return None, json.dumps(outcome, sort_keys=True)
