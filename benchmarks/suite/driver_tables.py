"""Memory of the launcher's tables, and bytes of a pipeline's job request, for a corpus of very many shards.

    python -m benchmarks.suite.driver_tables [--shards 100000] [--results FOLDER]

The tables are made up, in the form that a build reads them: outcomes of ingest tasks, references to shards, the list of
tasks of one pass, the seals of one stage with a file for each shard. Memory is what Python's allocator counts.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
from finpile_pipelines import graph
from finpile_pipelines.exchange.tasks import Tasks
from finpile_pipelines.runner.on_beam import add_steps
from finpile_pipelines.shard_refs import shard_refs

from benchmarks.common.report import RESULTS, Report, table
from finpile.output.work_folder import Seal, WorkFolder

_SHARDS_PER_TASK = 3
_MIB = 1 << 20
#: Shards of 16 MiB that hold 10^9 documents of 4 kB.
_BILLION_SHARDS = 250_000


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=100_000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    found: list[tuple[str, int]] = []
    outcomes, size = _measured(lambda: _outcomes(options.shards))
    found.append(("outcomes of ingest tasks", size))
    refs, size = _measured(lambda: shard_refs(outcomes, WorkFolder("s3://bucket/out/.work/clean/0123456789ab")))
    found.append(("references to shards", size))
    tasks, size = _measured(lambda: Tasks(refs))
    found.append(("tasks of one pass", size))
    _, size = _measured(lambda: _seals(options.shards))
    found.append(("seals of one stage", size))
    found.append(("job request of one pass (serialized)", _request_bytes(tasks)))
    _report(options.results, found, options.shards)


def _outcomes(num_shards: int) -> list[dict[str, Any]]:
    """As `corpus.ingest.ingest_task` returns them."""
    evidence = {"num_documents": 4096, "found": {"text": 4096}, "dates": [], "names": ["id", "url"]}
    return [
        {
            "dataset": "FinPile",
            "source": "News",
            "entry": 0,
            "files": 1,
            "documents": 12_000 + first,
            "text_bytes": (48 << 20) + first,
            "removed": {"broken_json": 1},
            "structure": {"white_space": 3},
            "shards": [f"{first:06d}-{part:04d}" for part in range(_SHARDS_PER_TASK)],
            "evidence": {**evidence, "found": {"text": 4096}},
        }
        for first in range(num_shards // _SHARDS_PER_TASK)
    ]


def _seals(num_shards: int) -> list[Seal]:
    return [
        Seal(path=f"documents/{number:06d}-0000.arrow", size_bytes=(9 << 20) + number, crc32=number * 2_654_435_761)
        for number in range(num_shards)
    ]


def _measured(make: Callable[[], Any]) -> tuple[Any, int]:
    """What `make` returns, and the bytes that it holds."""
    tracemalloc.start()
    made = make()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return made, size


def _request_bytes(tasks: Tasks) -> int:
    steps, pipeline = graph.Pipeline(), beam.Pipeline()
    _ = steps | tasks | graph.Map(repr)
    add_steps(steps, pipeline)
    return int(pipeline.to_runner_api().ByteSize())


def _report(folder: Path, found: Sequence[tuple[str, int]], num_shards: int) -> None:
    report = Report(folder, "driver_tables", "Tables of the launcher", ("apache-beam",))
    report.add(
        f"{num_shards:,} shards, three for each ingest task. 10^9 documents of 4 kB are {_BILLION_SHARDS:,} shards "
        "of 16 MiB; all tables grow in proportion to the shards."
    )
    rows = [
        (name, f"{size / _MIB:.1f}", f"{size / num_shards:.0f}", f"{size / num_shards * _BILLION_SHARDS / _MIB:.0f}")
        for name, size in found
    ]
    report.add(table(("table", "MiB", "bytes per shard", "MiB for 10^9 documents"), rows))


if __name__ == "__main__":
    main()
