"""Memory and time of a group of near duplicates against its documents: all of one template, received from a file.

    python -m benchmarks.suite.large_groups FOLDER [--documents 1000 10000 100000] [--words 100] [--checkouts DIR ...]

Each text has the words of the template with one word in fifty changed, so that nearly all are removed for the first.
Pairs are those of one large bucket: a star and a chain. A scratch file of an exchange has the documents as 64 origins
send them; the receiver and `finpile.dedup.near.groups.resolve_groups` run in a process of their own. Memory is the
largest size of its anonymous pages (`RssAnon`), seen every 20 ms, above that before the file is read: pages of mapped
files can be dropped and read again. A digest of the removals is compared between checkouts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.common.checkouts import environment_of
from benchmarks.common.report import RESULTS, ROOT, Report, say, table

_ORIGINS = 64


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, nargs="+", default=(1000, 10_000, 100_000))
    parser.add_argument("--words", type=int, nargs="+", default=(100,))
    parser.add_argument("--checkouts", type=Path, nargs="*", default=[])
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(_measure(options.folder, options.documents[0], options.words[0])))
        return
    rows = []
    for words in options.words:
        for documents in options.documents:
            for checkout in (ROOT, *options.checkouts):
                say(f"{documents:,} documents of {words} words, {checkout}")
                found = _run(checkout, options.folder, documents, words)
                sizes = [f"{found[name] / 2**20:,.0f}" for name in ("text_bytes", "memory_bytes")]
                cells = [f"{found['cpu_seconds']:.2f}", f"{found['removed']:,}", found["digest"]]
                rows.append([f"{documents:,}", str(words), checkout.resolve().name, *sizes, *cells])
    report = Report(options.results, "large_groups", "Memory of large groups", ("pyarrow", "numba", "rapidfuzz"))
    head = ("documents", "words", "checkout", "text MiB", "memory MiB", "CPU s", "removed", "digest")
    report.add(table(head, rows))


def _run(checkout: Path, folder: Path, documents: int, words: int) -> dict[str, Any]:
    command = [sys.executable, __file__, str(folder), "--one", "--documents", str(documents), "--words", str(words)]
    done = subprocess.run(command, cwd=ROOT, env=environment_of(checkout), stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _measure(folder: Path, documents: int, words: int) -> dict[str, Any]:
    import numpy as np
    import pyarrow as pa
    from finpile_pipelines.exchange import partition
    from finpile_pipelines.exchange.partition import PartitionedTables
    from finpile_pipelines.exchange.segments import Segments, directories

    from finpile.config import NearConfig
    from finpile.dedup.near import clusters, groups, warmup
    from finpile.output.work_folder import WorkFolder

    scratch = folder / f"group-{os.getpid()}"
    shutil.rmtree(scratch, ignore_errors=True)
    warmup.compile_pairs()
    text_bytes, sent = 0, []
    send = partition._SendFiles(Segments(None), WorkFolder(str(scratch)), holds_tables=False)
    receive = partition._ReceiveFiles(Segments(None), WorkFolder(str(scratch)))
    bounds = np.linspace(0, documents, _ORIGINS + 1).astype(int).tolist()
    for origin, (first, last) in enumerate(pairwise(bounds)):
        part = _documents(first, last, words)
        text_bytes += part["text"].nbytes
        sent += [block for _, block in send.send(PartitionedTables(f"{origin:06d}", {0: part}))]
    numbers = np.arange(documents, dtype=np.int64)
    star = np.stack([np.zeros(documents - 1, np.int64), numbers[1:]], axis=1)
    ends = np.unique(np.concatenate([star, np.stack([numbers[:-1], numbers[1:]], axis=1)]), axis=0)
    columns = [pa.array(ends[:, 0]), pa.array(ends[:, 1]), pa.array([True] * len(ends)), pa.array(ends[:, 0] * 0)]
    name = pa.field("group", pa.int64(), nullable=False)
    pairs = pa.Table.from_arrays(columns, schema=clusters.PAIR_SCHEMA.append(name))
    before, highest, ended = _anonymous(), [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            highest[0] = max(highest[0], _anonymous())

    watching = threading.Thread(target=watch)
    watching.start()
    began = time.process_time()
    ((_, received),) = receive((0, list(directories(sent))))
    removals, _ = groups.resolve_groups(received, pairs, NearConfig())
    cpu_seconds = time.process_time() - began
    ended.set()
    watching.join()
    rows = json.dumps(removals.to_pylist()).encode()
    shutil.rmtree(scratch)
    return {
        "cpu_seconds": cpu_seconds,
        "memory_bytes": max(highest[0], _anonymous()) - before,
        "text_bytes": text_bytes,
        "removed": removals.num_rows,
        "digest": hashlib.blake2b(rows, digest_size=4).hexdigest(),
    }


def _documents(first: int, last: int, words: int) -> Any:
    """Documents of the template, each with a few words of its own."""
    import numpy as np
    import pyarrow as pa

    draw = np.random.default_rng(first)
    template = ["word" + "".join("abcdefghij"[int(digit)] for digit in str(number % 997)) for number in range(words)]
    texts = []
    for number in range(first, last):
        own = list(template)
        for at in draw.integers(words, size=max(1, words // 50)).tolist():
            own[at] = f"own{'abcdefgh'[number % 8]}"
        texts.append(" ".join(own))
    size = last - first
    numbers = np.arange(first, last)
    return pa.table(
        {
            "id": pa.array([f"{number:032x}" for number in numbers.tolist()]),
            "timestamp": pa.array(numbers, pa.timestamp("s", tz="UTC")),
            "digest": pa.array([number.to_bytes(16, "big") for number in numbers.tolist()], pa.binary(16)),
            "priority": pa.array(np.zeros(size, np.int32)),
            "shard": pa.array(np.full(size, first, np.int32)),
            "row": pa.array(numbers.astype(np.int32)),
            "text": pa.array(texts, pa.large_string()),
            "number": pa.array(numbers),
            "group": pa.array(np.zeros(size, np.int64)),
        }
    )


def _anonymous() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main()
