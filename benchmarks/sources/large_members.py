"""Archives with one large member: peak memory of ingesting it, and whether each record arrives.

    python -m benchmarks.sources.large_members [--size-mb 1000] [--only NAME] [--results FOLDER]

The member is a file of JSON Lines whose records differ by their number. Each container is ingested by one task, as in a
build, in a process of its own: documents go to shards, rows to the ledger. `whole` is yes if the shards have each
number once and in order, the ledger has no row, and the account adds up to the member's bytes.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import multiprocessing
import resource
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import zstandard
from finpile_pipelines.corpus.ingest import find_inputs, ingest_task, plan
from finpile_pipelines.shard_refs import shard_file

from benchmarks.common.report import RESULTS, Report, say, table
from finpile import storage
from finpile.config import CorpusConfig, SourceConfig
from finpile.output.work_folder import WorkFolder

_WORDS = "the bank said that yields of its bonds rose after the report on oil, and shares of the market fell again"
_RECORD = '{"number": %d, "text": "Record %d. ' + " ".join([_WORDS] * 15) + '."}\n'
_BLOCK_RECORDS = 1000


def blocks(size_bytes: int) -> Iterator[bytes]:
    """The member's bytes: the first records that have `size_bytes` together."""
    number = written = 0
    while written < size_bytes:
        block = "".join(_RECORD % (at, at) for at in range(number, number + _BLOCK_RECORDS)).encode()
        number, written = number + _BLOCK_RECORDS, written + len(block)
        yield block


class _Stream:
    """The blocks as a file, for `tarfile`."""

    def __init__(self, size_bytes: int) -> None:
        self._blocks = blocks(size_bytes)
        self._left = b""

    def read(self, size: int = -1, /) -> bytes:
        while len(self._left) < size and (block := next(self._blocks, b"")):
            self._left += block
        piece, self._left = self._left[:size], self._left[size:]
        return piece


def _compressed(opened: Callable[[Path], Any]) -> Callable[[Path, int], None]:
    def write(path: Path, size_bytes: int) -> None:
        with opened(path) as file:
            for block in blocks(size_bytes):
                file.write(block)

    return write


def _write_tar(path: Path, size_bytes: int) -> None:
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("member.jsonl")
        member.size = sum(map(len, blocks(size_bytes)))
        archive.addfile(member, cast(IO[bytes], _Stream(size_bytes)))


def _write_zip(path: Path, size_bytes: int) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("member.jsonl", "w", force_zip64=True) as file,
    ):
        for block in blocks(size_bytes):
            file.write(block)


CONTAINERS: dict[str, tuple[str, Callable[[Path, int], None]]] = {
    "gz": ("member.jsonl.gz", _compressed(partial(gzip.open, mode="wb", compresslevel=1))),
    "zst": ("member.jsonl.zst", _compressed(partial(zstandard.open, mode="wb"))),
    "bz2": ("member.jsonl.bz2", _compressed(partial(bz2.open, mode="wb", compresslevel=1))),
    "tar": ("archive.tar", _write_tar),
    "zip": ("archive.zip", _write_zip),
}
"""By name: the file's name, and what writes it."""


@dataclass(frozen=True, slots=True)
class Found:
    """What ingesting a container gave."""

    num_documents: int
    member_bytes: int
    is_whole: bool
    peak_bytes: int
    """Resident memory of the process at its highest."""
    before_bytes: int
    """The same before the file was opened."""
    cpu_seconds: float


def ingest(container: str, folder: Path, size_bytes: int) -> Found:
    """Writes the container into `folder`, and ingests it."""
    name, write = CONTAINERS[container]
    write(folder / name, size_bytes)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        outcome = pool.apply(_ingest, (str(folder), name))
    numbers = 0
    is_whole = not outcome["removed"] and outcome["record_bytes"] == sum(map(len, blocks(size_bytes)))
    for shard in outcome["shards"]:
        for batch in storage.read_ipc(shard_file(WorkFolder(str(folder)), shard)):
            for text in batch["text"].to_pylist():
                is_whole = is_whole and text.startswith(f"Record {numbers}. ")
                numbers += 1
    is_whole = is_whole and numbers == outcome["documents"]
    return Found(numbers, outcome["record_bytes"], is_whole, *outcome["cost"])


def _ingest(folder: str, name: str) -> dict[str, Any]:
    source = SourceConfig(name="N", dataset="D", format="jsonl", paths=(name,))
    config = CorpusConfig(name="c", root=folder, sources=(source,))
    [task] = plan(config, find_inputs(config))
    before, start = _peak_bytes(), time.process_time()
    [outcome] = ingest_task(task, WorkFolder(folder))
    return {**outcome, "cost": (_peak_bytes(), before, time.process_time() - start)}


def measured(container: str, size_bytes: int) -> Found:
    """`ingest`, in a folder of its own."""
    say(container)
    with tempfile.TemporaryDirectory() as folder:
        return ingest(container, Path(folder), size_bytes)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size-mb", type=int, default=1000)
    parser.add_argument("--only", choices=CONTAINERS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    names = [arguments.only] if arguments.only else list(CONTAINERS)
    with ProcessPoolExecutor(len(names), multiprocessing.get_context("spawn")) as pool:
        all_found = dict(
            zip(names, pool.map(partial(measured, size_bytes=arguments.size_mb * 1_000_000), names), strict=True)
        )
    rows = [
        [
            name,
            f"{found.member_bytes:,}",
            f"{found.num_documents:,}",
            "yes" if found.is_whole else "NO",
            f"{found.peak_bytes / 1e6:.0f}",
            f"{found.before_bytes / 1e6:.0f}",
            f"{found.member_bytes / 1e6 / found.cpu_seconds:.0f}",
        ]
        for name, found in all_found.items()
    ]
    report = Report(arguments.results, "large_members", "Archives with one large member", ["finpile", "pyarrow"])
    report.add((__doc__ or "").split("\n\n", 2)[2].strip() + " Speed is that of CPU time; the machine had other work.")
    head = ["container", "bytes of the member", "documents", "whole", "peak memory, MB", "before, MB", "MB/s"]
    report.add(table(head, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
