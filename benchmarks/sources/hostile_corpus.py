"""Writes a corpus of inputs made to stop or exhaust a build: bombs, nesting, attributes, huge records, broken dates.

    python -m benchmarks.sources.hostile_corpus FOLDER [--expanded-mib 10240]

Each hostile input is named with the reasons that its ledger rows may have; intact documents are among them in every
source. `--expanded-mib` is the size to which each decompression bomb expands.
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
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import lz4.frame
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
import zstandard

MIB = 1 << 20
_WORDS = ["oil", "bank", "yield", "rose", "fell", "bond", "after", "report", "said", "price", "share", "market", "rate"]
#: Unpacked size of a part of a bomb; parts are written one behind the other.
_PART = 32 * MIB
NUM_INTACT = 12


@dataclass(frozen=True, slots=True)
class Hostile:
    """One hostile input, and what becomes of it."""

    name: str
    """The file, and behind `#` or `!` the record or member: its rows have this locator, or one that continues it."""
    reasons: tuple[str, ...]
    """Its rows have one of these; if empty, it may be kept without a row."""

    def is_at(self, locator: str) -> bool:
        """Whether a row or a document of that locator comes from this input."""
        rest = locator.removeprefix(self.name)
        return rest != locator and (not rest or rest[0] in "#!.")


def text(seed: int) -> str:
    """A document of three sentences, different for each seed."""
    draw = random.Random(seed)
    return " ".join(" ".join(draw.choices(_WORDS, k=12)).capitalize() + f" {seed}." for _ in range(3))


def write(folder: Path, expanded_mib: int) -> list[Hostile]:
    """Writes the files and `corpus.yaml`; returns what is hostile in them."""
    folder.mkdir(parents=True, exist_ok=True)
    hostile = [
        entry
        for make in (_bombs, _json_lines, _archives, _parquet, _pages, _texts, _stories, _filings)
        for entry in make(folder, expanded_mib)
    ]
    (folder / "corpus.yaml").write_text(yaml.safe_dump(_config(), sort_keys=False))
    return hostile


def _config() -> dict[str, object]:
    sources: list[dict[str, object]] = [
        {"name": "Lines", "format": "jsonl", "paths": ["lines/*"], "fields": {"timestamp": "date"}},
        {"name": "Archives", "format": "text", "paths": ["archives/*"]},
        {"name": "Columns", "format": "parquet", "paths": ["columns/*"], "fields": {"timestamp": "date"}},
        {"name": "Web", "format": "warc", "paths": ["web/*"]},
        {"name": "Texts", "format": "text", "paths": ["texts/*"], "clean": {"html": "never"}},
        {"name": "Stories", "format": "sgml", "paths": ["stories/*"]},
        {"name": "Filings", "format": "edgar", "paths": ["filings/*"]},
    ]
    return {
        "name": "hostile",
        "sources": [{"dataset": "FinPile", **source} for source in sources],
        "tokenizer": {"vocab_size": 400, "chunks": 2, "chunk_vocab_size": 350},
        "tokens": {"sequence_length": 64},
    }


def _file(folder: Path, name: str, data: bytes) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)


def _intact_lines(first: int, count: int = NUM_INTACT) -> bytes:
    rows = [{"text": text(seed), "date": f"2021-03-{seed % 28 + 1:02}"} for seed in range(first, first + count)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _bombs(folder: Path, expanded_mib: int) -> Iterator[Hostile]:
    """Streams of one letter: kilobytes that expand to gigabytes, in each compression, and twice compressed."""
    packs: dict[str, Callable[[bytes], bytes]] = {
        "gz": lambda data: gzip.compress(data, mtime=0),
        "zst": zstandard.ZstdCompressor().compress,
        "xz": lambda data: lzma.compress(data, preset=0),
        "bz2": bz2.compress,
        "lz4": lz4.frame.compress,
    }
    num_parts = max(1, expanded_mib * MIB // _PART)
    for suffix, pack in packs.items():
        part = pack(b"a" * _PART)
        _file(folder, f"lines/bomb.jsonl.{suffix}", part * num_parts)
        yield Hostile(f"lines/bomb.jsonl.{suffix}", ("decompression_bomb", "too_large"))
    twice = zstandard.ZstdCompressor().compress(gzip.compress(b"a" * _PART, mtime=0) * num_parts)
    _file(folder, "lines/twice.jsonl.gz.zst", twice)
    yield Hostile("lines/twice.jsonl.gz.zst", ("decompression_bomb", "too_large"))


def _json_lines(folder: Path, expanded_mib: int) -> Iterator[Hostile]:
    good = {"text": text(0), "date": "2021-03-15"}
    lines: list[tuple[str, tuple[str, ...]]] = [
        ('{"a":' * 490 + "1" + "}" * 490, ("no_text", "broken_json", "reader_error")),
        ("[" * 100_000, ("broken_json", "reader_error")),
        ('{"text": "' + text(1) + '", "m": ' + "[" * 100_000 + "]" * 100_000 + "}", ("broken_json", "reader_error")),
        (json.dumps({"text": text(2), "m": _nested(480)}), ("broken_json",)),
        (json.dumps({"text": text(3), "date": "9" * 400}), ("unreadable_timestamp",)),
        ('{"text": "' + text(4) + '", "date": ' + "9" * 400 + "}", ("unreadable_timestamp",)),
        ('{"text": "' + text(5) + '", "date": ' + "9" * 5000 + "}", ("broken_json", "reader_error")),
        (json.dumps({"text": text(6), "date": "Fri, 31 Dec 9999 23:59:59 -0100"}), ("unreadable_timestamp",)),
        ('{"text": "' + text(7) + '", "date": 1e400}', ("unreadable_timestamp", "")),
        (json.dumps({"text": "\u200b\ufeff\u00ad\u3164 \n"}), ("empty_text",)),
        ('{"text": "\\ud800"}', ("undecodable",)),
        (json.dumps({**good, "text": text(8), "\ud800": 1}), ("", "reader_error")),
        (json.dumps({"text": "a" + "\u0300\u0316" * 100_000}), ("too_complex",)),
        (json.dumps({"text": "x" + "." * 1_000_000 + "y"}), ("", "near_duplicate")),
        (json.dumps({"text": ["a"]}), ("wrong_type",)),
        ("\x00" * 1000, ("broken_json",)),
    ]
    data, offset = [_intact_lines(100)], len(_intact_lines(100))
    for line, reasons in lines:
        encoded = line.encode("utf-8", "surrogatepass") + b"\n"
        data.append(encoded)
        yield Hostile(f"lines/records.jsonl#{offset}", reasons)
        offset += len(encoded)
    _file(folder, "lines/records.jsonl", b"".join(data) + _intact_lines(200))
    # One line as long as the bombs, of a ratio below the limit: 64 KiB of noise again and again.
    noise = random.Random(1).randbytes(48 * 1024).hex().encode()
    part = zstandard.ZstdCompressor(level=1).compress(noise * (_PART // len(noise)))
    line = zstandard.ZstdCompressor().compress(b'{"text": "') + part * max(9, expanded_mib // 320)
    _file(folder, "lines/line.jsonl.zst", line + zstandard.ZstdCompressor().compress(b'"}\n' + _intact_lines(300)))
    yield Hostile("lines/line.jsonl.zst", ("too_large",))


def _nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def _archives(folder: Path, expanded_mib: int) -> Iterator[Hostile]:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("first.txt", text(1000))
        with archive.open("bomb.txt", "w", force_zip64=True) as member:
            for _ in range(min(expanded_mib, 512)):
                member.write(b"a" * MIB)
        archive.writestr("last.txt", text(1001))
    _file(folder, "archives/bomb.zip", bomb.getvalue())
    yield Hostile("archives/bomb.zip!bomb.txt", ("decompression_bomb", "too_large"))
    _file(folder, "archives/overlap.zip", _overlapping(200, 4 * MIB))
    yield Hostile("archives/overlap.zip", ("decompression_bomb", "exact_duplicate"))
    deep = text(1002).encode()
    for level in range(60):
        deep = _tar({f"{level}.tar" if level else "a.txt": deep})
    _file(folder, "archives/deep.tar", deep)
    yield Hostile("archives/deep.tar", ("corrupt_archive", "unreadable_file", ""))
    layers = text(1003).encode()
    for _ in range(60):
        layers = gzip.compress(layers, mtime=0)
    _file(folder, "archives/layers.txt" + ".gz" * 60, layers)
    yield Hostile("archives/layers.txt", ("unreadable_file", "corrupt_file", ""))
    _file(
        folder, "archives/intact.tar", _tar({f"{seed}.txt": text(1100 + seed).encode() for seed in range(NUM_INTACT)})
    )


def _overlapping(num_members: int, size: int) -> bytes:
    """A zip whose directory names one compressed content many times."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b"a" * size) + packer.flush()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0.txt", b"a" * size)
        first = archive.filelist[0]
        for number in range(1, num_members):
            entry = zipfile.ZipInfo(f"{number}.txt")
            entry.compress_type, entry.CRC = zipfile.ZIP_DEFLATED, first.CRC
            entry.compress_size, entry.file_size, entry.header_offset = len(packed), size, first.header_offset
            archive.filelist.append(entry)
            archive.NameToInfo[entry.filename] = entry
    return buffer.getvalue()


def _tar(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _parquet(folder: Path, expanded_mib: int) -> Iterator[Hostile]:
    (folder / "columns").mkdir(exist_ok=True)
    intact = [text(2000 + seed) for seed in range(NUM_INTACT)]
    pq.write_table(pa.table({"text": intact, "date": ["2021-03-15"] * NUM_INTACT}), folder / "columns/intact.parquet")
    zoned = pa.array([0], pa.timestamp("us", tz="Mars/Olympus"))
    pq.write_table(pa.table({"text": [text(2100)], "date": zoned}), folder / "columns/zone.parquet")
    yield Hostile("columns/zone.parquet", ("", "unreadable_timestamp", "reader_error"))
    far = pa.array([2**62], pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"text": [text(2101)], "date": far}), folder / "columns/far.parquet")
    yield Hostile("columns/far.parquet", ("unreadable_timestamp", "implausible_timestamp", "reader_error"))
    blank = pa.table({"text": ["\u200b\u2060", "\u3164"]})
    pq.write_table(blank, folder / "columns/blank.parquet")
    yield Hostile("columns/blank.parquet", ("empty_text",))


def pages() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Hostile HTML pages by name, and the reasons that their rows may have."""
    body = f"<p>{text(3000)}</p>"
    simplified = ("simplified_html",)
    return {
        "divs": ("<div>" * 30_000 + body, simplified),
        "million-divs": ("<div>" * 1_000_000 + body, ("too_complex",)),
        "attributes": ("<p " + " ".join(f"a{n}=1" for n in range(40_000)) + ">" + text(3001), simplified),
        "meta": ("<meta " * 500_000 + ">" + text(3002), ("too_complex", "empty_text", "simplified_html")),
        "formatting": ("".join(f"<p><font size={n}>" for n in range(5_000)) + text(3003), simplified),
        "options": ("<select>" + "<option>x" * 50_000 + "</select>" + text(3004), simplified),
        "names": ("".join(f"<n{n}></n{n}>" for n in range(50_000)) + text(3005), simplified),
        "links": ("<a><div>" * 20_000 + text(3006), simplified),
        "svg": ("<svg>" + "<g>" * 50_000 + "</zz>" * 50_000 + text(3007), simplified),
        "tables": ("<table><tr><td>" * 20_000 + text(3008), simplified),
        "cells": ("<table><tr>" + "<td></td>" * 100_000 + "<td>" + text(3009), ("", "simplified_html")),
        "json-ld": ('<script type="application/ld+json">' * 20_000 + body, ("empty_text",)),
        "json-ld-deep": (f'<script type="application/ld+json">{"[" * 200_000}</script><p>{text(3011)}', ("",)),
        "itemprop": ("<a itemprop=datePublished" * 50_000 + ">" + text(3010), ("too_complex", "simplified_html")),
        "comments": ("<!--" * 100_000 + body, ("empty_text",)),
        "blank": ("<p>&#8203;&shy;&#xfeff;</p>", ("empty_text",)),
        "many-tags": ("<p>x" * 1_500_000, simplified),
    }


def _pages(folder: Path, expanded_mib: int) -> Iterator[Hostile]:
    records, offset = [], 0

    def add(record: bytes) -> int:
        nonlocal offset
        records.append(record)
        offset += len(record)
        return offset - len(record)

    for seed in range(NUM_INTACT):
        add(_response(f"intact-{seed}", f"<p>{text(3100 + seed)}</p>".encode()))
    for name, (page, reasons) in pages().items():
        yield Hostile(f"web/pages.warc#{add(_response(name, page.encode()))}", reasons)
    bomb = gzip.compress(b"<p>" + b"a" * 256 * MIB, mtime=0)
    at = add(_response("gzip-bomb", bomb, "Content-Encoding: gzip\r\n"))
    yield Hostile(f"web/pages.warc#{at}", ("too_large", "decompression_bomb", "unreadable_record"))
    at = add(b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 99999999999999999999\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx")
    yield Hostile(f"web/pages.warc#{at}", ("unreadable_record", "truncated_file", "too_large"))
    _file(folder, "web/pages.warc", b"".join(records))
    _file(folder, "web/intact.warc", _response("intact", f"<p>{text(3200)}</p>".encode()))


def _response(name: str, body: bytes, headers: str = "") -> bytes:
    http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{headers}\r\n".encode() + body
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.com/{name}\r\n"
        f"WARC-Date: 2021-03-15T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(http)}\r\n\r\n"
    )
    return head.encode() + http + b"\r\n\r\n"


def _texts(folder: Path, expanded_mib: int) -> Iterator[Hostile]:
    for seed in range(NUM_INTACT):
        _file(folder, f"texts/{seed}.txt", text(4000 + seed).encode())
    for name, data, reason in (
        ("zero-width.txt", "\u200b\u200d\ufeff\u2060".encode() * 1000, "empty_text"),
        ("marks.txt", ("a" + "\u0300\u0316" * 500_000).encode(), "too_complex"),
        ("controls.txt", bytes(range(1, 9)) * 1000, "empty_text"),
        ("surrogates.txt", b"\xed\xa0\x80" * 1000, "undecodable"),
    ):
        _file(folder, f"texts/{name}", data)
        yield Hostile(f"texts/{name}", (reason,))


def _stories(folder: Path, expanded_mib: int) -> Iterator[Hostile]:
    story = '<REUTERS NEWID="{}"><DATE>26-FEB-1987</DATE><TEXT><BODY>{}</BODY></TEXT></REUTERS>\n'
    stories = [story.format(seed, text(5000 + seed)) for seed in range(NUM_INTACT)]
    hostile = [
        story.format(1, "\u200b"),
        story.format(2, "<BODY>" * 100_000),
        story.format(3, "&#" + "9" * 10_000 + ";"),
    ]
    offset = sum(map(len, stories))
    for entry, reasons in zip(hostile, [("empty_text",), ("unreadable_record",), ("", "reader_error")], strict=True):
        yield Hostile(f"stories/a.sgm#{offset}", reasons)
        offset += len(entry.encode())
    _file(folder, "stories/a.sgm", "".join(stories + hostile).encode())


def _filings(folder: Path, expanded_mib: int) -> Iterator[Hostile]:
    document = "<DOCUMENT>\n<TYPE>{}\n<TEXT>\n{}\n</TEXT>\n</DOCUMENT>\n"
    head = "<SEC-DOCUMENT>1.txt : 20210315\n<SEC-HEADER>\nFILED AS OF DATE: 20210315\n</SEC-HEADER>\n"
    intact = [document.format("10-K", text(6000 + seed)) for seed in range(NUM_INTACT)]
    deep = document.format("10-K", "<html>" + "<div>" * 200_000 + "</html>")
    _file(folder, "filings/a.txt", (head + "".join(intact) + deep + "</SEC-DOCUMENT>\n").encode())
    yield Hostile(f"filings/a.txt#{len(head) + sum(map(len, intact))}", ("too_complex",))


def main() -> None:
    """Writes the corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--expanded-mib", type=int, default=10 * 1024)
    arguments = parser.parse_args()
    for entry in write(arguments.folder, arguments.expanded_mib):
        print(entry.name, "->", " or ".join(reason or "kept" for reason in entry.reasons))


if __name__ == "__main__":
    main()
