"""CPU time per byte of the exchange of documents to published files, by the number of files.

    python -m benchmarks.suite.document_exchange FOLDER [--partitions 8 64 512 4096 32768] [--shards 64] [--mib 16]
        [--bytes 3300] [--segments N ...] [--range-mib 32] [--rounds 1] [--checkouts DIR ...]

A build of 64 MiB shards and files of 128 MiB has 4,096 files at 512 GiB. Here each of a few shards sends its documents
to as many partitions, so that a segment has as few documents as there, and the work for each byte is as in the large
build, but for what does not grow with bytes: files to open and to write. `--segments` are the most that a shard has,
if not those of the code for shards of this size; 0 for one of each partition. `--range-mib` are the bytes of a range
above which its segments are split in files, in parts of this size: to see what that costs, it has to be smaller than
what a range has here.

Each measurement runs in a process of its own; `--checkouts` runs the code of other checkouts, too, in turns. The table
has the median of the rounds by CPU time, which is that of the exchange alone: documents are made before, and their rows
are not read.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.checkouts import environment_of
from benchmarks.common.report import RESULTS, ROOT, Report, say, table


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--partitions", type=int, nargs="+", default=(8, 64, 512, 4096, 32768))
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--mib", type=int, default=16, help="text of a shard")
    parser.add_argument("--bytes", type=int, default=3300, help="text of a document, on average")
    parser.add_argument("--segments", type=int, nargs="+", default=(None,))
    parser.add_argument("--range-mib", type=float, default=32)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--checkouts", type=Path, nargs="*", default=[])
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    if options.one:
        found = measure(
            options.folder,
            options.partitions[0],
            options.segments[0],
            num_shards=options.shards,
            shard_bytes=options.mib << 20,
            document_bytes=options.bytes,
            range_bytes=int(options.range_mib * 2**20),
        )
        print(json.dumps(found))
        return
    rows: list[list[str]] = []
    first: dict[tuple[str, int | None], float] = {}
    for partitions in options.partitions:
        for segments in options.segments:
            checkouts = (ROOT, *options.checkouts)
            rounds = [
                [_run(checkout, options, partitions, segments) for checkout in checkouts] for _ in range(options.rounds)
            ]
            for checkout, measured in zip(checkouts, zip(*rounds, strict=True), strict=True):
                found = sorted(measured, key=lambda one: float(one["cpu_seconds"]))[options.rounds // 2]
                name = checkout.resolve().name
                per_gb = found["cpu_seconds"] / found["text_bytes"] * 1e9
                base = first.setdefault((name, segments), per_gb)
                cells = [f"{found['segments']:,}", f"{per_gb:.1f}", f"{per_gb / base:.2f}"]
                asked = "" if segments is None else f"{segments:,}"
                rows.append([f"{partitions:,}", name, asked, *cells, f"{found['peak_bytes'] / 2**20:,.0f}"])
                say(" ".join(rows[-1]))
    report = Report(options.results, "document_exchange", "Exchange of documents to files", ("pyarrow", "numpy"))
    head = ("partitions", "checkout", "most segments", "segments", "CPU s/GB", "growth", "peak MiB")
    report.add(table(head, rows))


def _run(checkout: Path, options: argparse.Namespace, partitions: int, segments: int | None) -> dict[str, Any]:
    command = [sys.executable, __file__, str(options.folder), "--one", "--partitions", str(partitions)]
    command += ["--shards", str(options.shards), "--mib", str(options.mib), "--bytes", str(options.bytes)]
    command += ["--range-mib", str(options.range_mib)]
    command += [] if segments is None else ["--segments", str(segments)]
    done = subprocess.run(command, cwd=ROOT, env=environment_of(checkout), stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(
    folder: Path,
    partitions: int,
    most: int | None,
    *,
    num_shards: int = 64,
    shard_bytes: int = 16 << 20,
    document_bytes: int = 3300,
    range_bytes: int = 32 << 20,
) -> dict[str, Any]:
    """CPU seconds of one exchange in this process, its text, segments and rows, and the most resident memory."""
    import psutil
    from finpile_pipelines.exchange import partition
    from finpile_pipelines.exchange.partition import PartitionedTables, by_range
    from finpile_pipelines.exchange.segments import Segments, directories

    from finpile.documents.document import digest_bits
    from finpile.output.work_folder import WorkFolder
    from finpile.storage import sizes

    setattr(sizes, "RANGE_BYTES", range_bytes)  # noqa: B010
    if most is None:
        of_code = getattr(sizes, "most_document_segments", None)  # other checkouts have one for each partition
        most = of_code(shard_bytes) if of_code else 0
    scratch = folder / f"exchange-{os.getpid()}"
    shutil.rmtree(scratch, ignore_errors=True)
    segments = Segments(None, partitions, most)
    send = partition._SendFiles(segments, WorkFolder(str(scratch)), holds_tables=False)
    receive = partition._ReceiveFiles(segments, WorkFolder(str(scratch)))
    cpu_seconds, text_bytes, blocks = 0.0, 0, []
    process, highest = psutil.Process(), 0
    for shard in range(num_shards):
        rows = _documents(shard, shard_bytes, document_bytes)
        text_bytes += rows["text"].nbytes
        began = time.process_time()
        of = by_range(digest_bits(rows["digest"]), partitions)
        sent = PartitionedTables(f"{shard:06d}", partition.split_by_partition(rows, of))
        blocks += [block for _, block in send.send(sent)]
        cpu_seconds += time.process_time() - began
    began, num_rows = time.process_time(), 0
    for directory in directories(blocks):
        for _, received in receive((directory.number, [directory])):
            num_rows += received.num_rows
            highest = max(highest, process.memory_info().rss)
    cpu_seconds += time.process_time() - began
    shutil.rmtree(scratch)
    return {
        "cpu_seconds": cpu_seconds,
        "text_bytes": text_bytes,
        "segments": sum(len(block.numbers) for block in blocks),
        "rows": num_rows,
        "peak_bytes": highest,
    }


def _documents(shard: int, size_bytes: int, mean_bytes: int) -> Any:
    """Documents of all columns that a cleaned one has; their texts are no language, which the exchange does not see."""
    import numpy as np
    import pyarrow as pa

    from finpile.documents.document import CLEAN_SCHEMA

    draw = np.random.default_rng(shard)
    number = size_bytes // mean_bytes
    lengths = draw.integers(mean_bytes // 2, mean_bytes * 3 // 2, number)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    content = draw.integers(97, 123, int(offsets[-1]), np.uint8)
    known = {
        "text": pa.Array.from_buffers(pa.large_string(), number, [None, pa.py_buffer(offsets), pa.py_buffer(content)]),
        "digest": pa.array([draw.bytes(16) for _ in range(number)], pa.binary(16)),
        "id": pa.array([draw.bytes(16).hex() for _ in range(number)]),
        "locator": pa.array([f"documents/{shard:06d}.parquet#{row}" for row in range(number)]),
        "timestamp": pa.array(draw.integers(0, 1 << 30, number), pa.timestamp("s", tz="UTC")),
        "num_copies": pa.array(np.ones(number, np.int32)),
        "meta": pa.array(['{"language":"en"}'] * number),
    }
    columns = []
    for field in CLEAN_SCHEMA:
        other = pa.array([[]] * number, field.type) if pa.types.is_list(field.type) else pa.nulls(number, field.type)
        if pa.types.is_string(field.type) and not field.nullable:
            other = pa.array(["Generated"] * number)
        columns.append(known.get(field.name, other))
    return pa.Table.from_arrays(columns, schema=CLEAN_SCHEMA).append_column("split", pa.array(["train"] * number))


if __name__ == "__main__":
    main()
