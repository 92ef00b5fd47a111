"""CPU time of a pipeline apart from its work: in-process runner and Beam's `FnApiRunner`.

    python -m benchmarks.suite.pipeline_overhead [--rounds 20] [--results FOLDER]

The pipeline has the shape of a request/reply shuffle: nine tasks, two exchanges by partition, and two lists of
outcomes. Its steps do no work. Variants take turns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from finpile_pipelines import graph
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.runner import in_process
from finpile_pipelines.runner.on_beam import add_steps

from benchmarks.common.report import RESULTS, Report, table
from finpile.output.work_folder import WorkFolder

_NUM_TASKS = 9
_ROWS = pa.table({"row": [1, 2, 3]})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    variants: dict[str, Callable[[str], tuple[float, float]]] = {
        "FnApiRunner": _with_beam,
        "in process": _in_process,
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds + 1):
            for name, run in variants.items():
                times[name].append(run(folder))
    _report(options.results, {name: found[1:] for name, found in times.items()})


def _construct(folder: str) -> graph.Pipeline:
    pipeline = graph.Pipeline()
    sent = pipeline | Tasks(range(_NUM_TASKS)) | "Send" >> graph.Map(_send)
    _ = sent | "Size" >> graph.Map(_size) | "Sizes" >> Gather(f"{folder}/sizes.json")
    replies = sent | ExchangeByPartition("files", WorkFolder(folder), "ByHash") | "Reply" >> graph.Map(_reply)
    received = replies | ExchangeByPartition("files", WorkFolder(folder), "ByShard")
    _ = received | "Write" >> graph.Map(_outcome) | Gather(f"{folder}/outcomes.json")
    return pipeline


def _send(task: int) -> PartitionedTables:
    return PartitionedTables(f"s{task}", {task: _ROWS})


def _reply(group: tuple[int, pa.Table]) -> PartitionedTables:
    return PartitionedTables(f"p{group[0]}", {group[0]: group[1]})


def _size(sent: PartitionedTables) -> dict[str, str]:
    return {"origin": sent.origin}


def _outcome(group: tuple[int, pa.Table]) -> dict[str, int]:
    return {"partition": group[0], "rows": group[1].num_rows}


def _with_beam(folder: str) -> tuple[float, float]:
    """CPU seconds of construction and of execution."""
    began = time.process_time()
    pipeline = beam.Pipeline(FnApiRunner(), PipelineOptions(["--direct_num_workers=1"]))
    add_steps(_construct(folder), pipeline)
    constructed = time.process_time()
    pipeline.run().wait_until_finish()
    return constructed - began, time.process_time() - constructed


def _in_process(folder: str) -> tuple[float, float]:
    began = time.process_time()
    steps = _construct(folder)
    constructed = time.process_time()
    in_process.run(steps)
    return constructed - began, time.process_time() - constructed


def _report(folder: Path, times: dict[str, list[tuple[float, float]]]) -> None:
    report = Report(
        folder, "pipeline_overhead", "CPU time of a pipeline apart from its work", ("apache-beam", "pyarrow")
    )
    head = ("runner", "construction, CPU ms (median)", "execution, CPU ms (median)", "smallest and largest sum, ms")
    rows = []
    for name, found in times.items():
        sums = [1000 * sum(pair) for pair in found]
        medians = [1000 * statistics.median(values) for values in zip(*found, strict=True)]
        rows.append((name, *(f"{value:.0f}" for value in medians), f"{min(sums):.0f} {max(sums):.0f}"))
    report.add(table(head, rows))


if __name__ == "__main__":
    main()
