"""A list of tasks as the elements of a pipeline, and the tasks' outcomes as one sorted file.

Every pipeline ends in `Gather`: each task's outcome, a small JSON object, is written into one file. That works on any
runner, whereas results held in the driver's memory do not leave the driver.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam

from finpile import storage
from finpile_pipelines.progress import counted, shares_of


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
            storage.write_json(url, [json.loads(line) for line in lines])

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
