"""Records recovered from damaged containers: one bit is flipped at many places, and intact records are counted.

    python benchmarks/damage.py [--places 500] [--seed 1] [--only NAME]

A container holds 400 records as JSON Lines, or 400 members of one record each. After one flipped bit, a record is
intact where the flipped bit is none of its own compressed unit (member, frame, block): the place of the flip tells
which records it may have taken. Recovered is a record that comes out of `read_file` with its text unchanged.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import lzma
import random
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import lz4.frame
import zstandard

from finpile.config import SourceConfig
from finpile.document import RawDocument
from finpile.sources import list_inputs, read_file

NUM_RECORDS = 400
#: Records that are compressed together, where a container has several units.
UNIT_RECORDS = 20
_WORDS = ["the", "bank", "bond", "yield", "price", "oil", "share", "market", "rose", "fell", "after", "report", "said"]


@dataclass(frozen=True, slots=True)
class Container:
    """A file of records, and what a reader makes of it."""

    name: str
    suffix: str
    format: str
    data: bytes
    units: tuple[tuple[int, int, int, int], ...]
    """Byte span of each unit that can be decoded on its own, and the ordinals of its records."""
    can_be_entered: bool = True
    """Whether the format lets a reader begin behind a damaged unit."""


def texts(seed: int = 1) -> list[str]:
    """Distinct records of varied length."""
    draw = random.Random(seed)
    return [
        f"{n} " + " ".join(draw.choices(_WORDS, k=draw.randint(20, 120))) + f" {draw.random()}"
        for n in range(NUM_RECORDS)
    ]


def lines(records: list[str]) -> list[bytes]:
    return [json.dumps({"text": record}).encode() + b"\n" for record in records]


def framed(name: str, suffix: str, records: list[str], size: int, compress: Callable[[bytes], bytes]) -> Container:
    """Frames of `size` records each, one after the other."""
    rows = lines(records)
    data, units = b"", []
    for first in range(0, len(rows), size):
        frame = compress(b"".join(rows[first : first + size]))
        units.append((len(data), len(data) + len(frame), first, min(first + size, len(rows))))
        data += frame
    return Container(name, suffix, "jsonl", data, tuple(units), len(units) > 1)


def tar(records: list[str]) -> Container:
    data = io.BytesIO()
    units = []
    with tarfile.open(fileobj=data, mode="w") as archive:
        for number, record in enumerate(records):
            info = tarfile.TarInfo(f"news/{number:04}.txt")
            content = record.encode()
            info.size = len(content)
            start = data.tell()
            archive.addfile(info, io.BytesIO(content))
            units.append((start, data.tell(), number, number + 1))
    return Container("tar", ".tar", "text", data.getvalue(), tuple(units))


def zip_(records: list[str]) -> Container:
    data = io.BytesIO()
    units = []
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, record in enumerate(records):
            start = data.tell()
            archive.writestr(zipfile.ZipInfo(f"news/{number:04}.txt"), record.encode(), zipfile.ZIP_DEFLATED)
            units.append((start, data.tell(), number, number + 1))
    return Container("zip", ".zip", "text", data.getvalue(), tuple(units))


def containers(records: list[str]) -> list[Container]:
    """All that are measured."""

    def zst(data: bytes) -> bytes:
        return zstandard.ZstdCompressor(write_checksum=True).compress(data)

    def gz(data: bytes) -> bytes:
        return gzip.compress(data, mtime=0)

    def lz(data: bytes) -> bytes:
        return bytes(lz4.frame.compress(data, content_checksum=True))

    return [
        framed("gz, members", ".jsonl.gz", records, UNIT_RECORDS, gz),
        framed("gz, one member", ".jsonl.gz", records, NUM_RECORDS, gz),
        framed("zst, frames", ".jsonl.zst", records, UNIT_RECORDS, zst),
        framed("zst, one frame", ".jsonl.zst", records, NUM_RECORDS, zst),
        framed("xz, streams", ".jsonl.xz", records, UNIT_RECORDS, lzma.compress),
        framed("xz, one stream", ".jsonl.xz", records, NUM_RECORDS, lzma.compress),
        framed("bz2, streams", ".jsonl.bz2", records, UNIT_RECORDS, bz2.compress),
        framed("lz4, frames", ".jsonl.lz4", records, UNIT_RECORDS, lz),
        tar(records),
        zip_(records),
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one damaged container."""

    num_intact: int
    """Records whose unit has no flipped bit."""
    num_recovered: int
    """Those of them that were read, unchanged."""
    num_rows: int


def measure(container: Container, records: list[str], places: int, seed: int = 1) -> Iterator[Outcome]:
    """One outcome for each of `places` flipped bits, drawn evenly over the file."""
    draw = random.Random(seed)
    config = SourceConfig(name="News", dataset="D", format=container.format, paths=("*",))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a{container.suffix}")
        for number in range(places):
            at = (2 * number + 1) * len(container.data) // (2 * places)
            damaged = bytearray(container.data)
            damaged[at] ^= 1 << draw.randrange(8)
            path.write_bytes(damaged)
            found = [item for file in list_inputs(config, folder) for item in read_file(file, config)]
            read = {item.text for item in found if isinstance(item, RawDocument)}
            intact = set(records)
            for start, end, first, last in container.units:
                if start <= at < end:
                    intact -= set(records[first:last])
            rows = sum(not isinstance(item, RawDocument) for item in found)
            yield Outcome(len(intact), len(intact & read), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    records = texts(options.seed)
    print("| container | can be entered again | bytes | intact | recovered | | without a ledger row |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for container in containers(records):
        if options.only and options.only not in container.name:
            continue
        outcomes = list(measure(container, records, options.places, options.seed))
        intact, recovered = sum(o.num_intact for o in outcomes), sum(o.num_recovered for o in outcomes)
        silent = sum(o.num_rows == 0 for o in outcomes)
        share = f"{recovered / intact:.2%}" if intact else "-"
        print(f"| {container.name} | {'yes' if container.can_be_entered else 'no'} | {len(container.data):,} | "
              f"{intact:,} | {recovered:,} | {share} | {silent} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
