"""Records recovered from damaged containers: one bit is flipped at many places, and intact records are counted.

    python -m benchmarks.sources.damage [--places 500] [--seed 1] [--only NAME] [--results FOLDER]

The result file defines intact, recovered and altered.
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
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from benchmarks.common.report import RESULTS, Report, say, table
from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
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


def warc(records: list[str], compress: Callable[[bytes], bytes] | None) -> Container:
    """Texts extracted from web pages (WET), as Common Crawl has them: each record is compressed on its own."""
    data, units = b"", []
    for number, record in enumerate(records):
        content = record.encode()
        head = (
            f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://example.com/{number}\r\n"
            f"WARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{number:032x}>\r\n"
            f"Content-Type: text/plain\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        stored = head.encode() + content + b"\r\n\r\n"
        stored = compress(stored) if compress else stored
        units.append((len(data), len(data) + len(stored), number, number + 1))
        data += stored
    name, suffix = ("warc.gz", ".warc.gz") if compress else ("warc", ".warc")
    return Container(name, suffix, "warc", data, tuple(units))


def parquet(records: list[str]) -> Container:
    """Row groups of 20 records; the footer belongs to all of them."""
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"text": records}), sink, row_group_size=UNIT_RECORDS, compression="zstd", write_page_checksum=True
    )
    meta = pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata
    units = []
    for group in range(meta.num_row_groups):
        chunk = meta.row_group(group).column(0)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        first = group * UNIT_RECORDS
        units.append((start, start + chunk.total_compressed_size, first, first + UNIT_RECORDS))
    data = sink.getvalue()
    units.append((units[-1][1], len(data), 0, len(records)))
    return Container("parquet", ".parquet", "parquet", data, tuple(units))


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
        warc(records, None),
        warc(records, gz),
        parquet(records),
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one damaged container."""

    num_intact: int
    """Records whose unit has no flipped bit."""
    num_recovered: int
    """Those of them that were read, unchanged."""
    num_altered: int
    """Documents that were read, of a text that is not a record's."""
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
            yield Outcome(len(intact), len(intact & read), len(read - set(records)), rows)


_ABOUT = (
    "{places} damaged copies of each container of {records} records, one bit of each flipped. Intact are the records "
    "of which no unit (compressed frame, archive member, row group, web record) holds the bit; recovered are those of "
    "them that are read, unchanged. Altered in silence are documents of another text than any record's for which the "
    "ledger has no row: of containers without checksums."
)
_HEAD = ["container", "entered again", "bytes", "intact", "recovered", "share", "altered in silence"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    records = texts(options.seed)
    rows = []
    for container in containers(records):
        if options.only not in container.name:
            continue
        say(container.name)
        outcomes = list(measure(container, records, options.places, options.seed))
        intact, recovered = sum(one.num_intact for one in outcomes), sum(one.num_recovered for one in outcomes)
        altered = sum(one.num_altered for one in outcomes if not one.num_rows)
        entered = "yes" if container.can_be_entered else "no"
        share = f"{recovered / intact:.2%}" if intact else "-"
        rows.append([container.name, entered, *(f"{n:,}" for n in (len(container.data), intact, recovered)), share,
                     f"{altered:,}"])  # fmt: skip
    packages = ["finpile", "zstandard", "lz4", "pyarrow"]
    report = Report(options.results, "damage", "Records recovered from damaged containers", packages)
    report.add(_ABOUT.format(places=options.places, records=len(records)), table(_HEAD, rows))


if __name__ == "__main__":
    main()
