"""Records of web archives: the same as FastWARC's, no byte between them, and one damaged bit costs one record."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator

from finpile.sources.bytes.streams import ByteStream
from finpile.sources.formats.warc.records import Damaged, Found, WebRecord, read_records
from tests.support.real_data import find

LIMIT = 1 << 28


def found_in(data: bytes, limit: int = LIMIT, block_bytes: int = 1 << 16) -> list[Found]:
    """All that the archive holds; the spans cover it without gap or overlap."""
    blocks = (data[start : start + block_bytes] for start in range(0, len(data), block_bytes))
    found = list(read_records(ByteStream(blocks), limit))
    assert [one.start for one in found] == [0, *(one.end for one in found)][: len(found)]
    assert (found[-1].end if found else 0) == len(data)
    return found


def records_in(data: bytes, limit: int = LIMIT) -> list[WebRecord]:
    return [one for one in found_in(data, limit) if isinstance(one, WebRecord)]


def damaged_in(data: bytes, limit: int = LIMIT) -> list[Damaged]:
    return [one for one in found_in(data, limit) if isinstance(one, Damaged)]


def warc(block: bytes, length: object = None, version: str = "WARC/1.0", end: bytes = b"\r\n") -> bytes:
    head = [version, "WARC-Type: response", "WARC-Target-URI: http://a.com/", "Content-Type: application/http"]
    lines = [
        *(line.encode() for line in head),
        b"Content-Length: %s" % str(len(block) if length is None else length).encode(),
    ]
    return end.join([*lines, b"", b""]) + block + end * 2


def arc(block: bytes, url: str = "http://a.com/x y", version: int = 1, length: int | None = None) -> bytes:
    more = " 200 checksum - 77 a.arc" if version == 2 else ""
    line = f"{url} 127.0.0.1 20080430204825 text/html{more} {len(block) if length is None else length}\n"
    return line.encode() + block + b"\n"


BLOCKS = [b"one\r\n", b"two\n\nWARC/1.0 is a version", b"", b"three " * 1000]


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 16])
def test_blocks_are_those_that_were_written(end: bytes, block_bytes: int) -> None:
    data = b"".join(warc(block, end=end) for block in BLOCKS)
    found = found_in(data, block_bytes=block_bytes)
    assert [one.block for one in found if isinstance(one, WebRecord)] == BLOCKS


@pytest.mark.parametrize("version", [1, 2])
def test_arc_records_are_those_that_were_written(version: int) -> None:
    head = arc(b"1 1 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n", "filedesc://a.arc")
    found = records_in(head + b"".join(arc(block, version=version) for block in BLOCKS))
    assert [one.header.kind for one in found] == ["filedesc", *["response"] * len(BLOCKS)]
    assert [one.block for one in found[1:]] == BLOCKS
    assert {one.header.url for one in found[1:]} == {"http://a.com/x y"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: record.replace(b"WARC/1.0", b"WERC/1.0"),
        lambda record: record.replace(b"Content-Length: 3", b"Content-Length: x"),
        lambda record: record.replace(b"Content-Length: 3", b"Content-Length: 2"),
        lambda record: record.replace(b"Content-Length: 3", b"Content-Length: 3000"),
        lambda record: record.replace(b"Content-Length: 3", b"Content-Length: 999999999999"),
        lambda record: record.replace(b"WARC-Type", b"WARC-Tipe"),
        lambda record: record[:40],
        lambda record: b"\0" * 5000,
    ],
)
def test_a_damaged_record_costs_that_record(damage: Callable[[bytes], bytes]) -> None:
    parts = [warc(b"a%02d" % number) for number in range(19)]
    parts[7] = damage(parts[7])
    found = found_in(b"".join(parts))
    assert [one.block for one in found if isinstance(one, WebRecord)] == [b"a%02d" % n for n in range(19) if n != 7]
    assert b"".join(one.data for one in found if isinstance(one, Damaged)).strip() in (parts[7].strip(), parts[7])


def test_damaged_line_ends_between_records_cost_none() -> None:
    data = warc(b"one")[:-2] + b"\r\x0b" + warc(b"two")
    assert [one.block for one in records_in(data)] == [b"one", b"two"]


def test_a_record_over_the_limit_is_passed_over() -> None:
    data = warc(b"one") + warc(b"x" * 5000) + warc(b"two")
    assert [one.block for one in records_in(data, limit=1000)] == [b"one", b"two"]
    (row,) = damaged_in(data, limit=1000)
    assert (row.reason, row.end - row.start) == ("too_large", len(warc(b"x" * 5000)))


def test_a_length_that_no_file_can_have_costs_that_record() -> None:
    data = warc(b"one") + warc(b"two", length=10**17) + warc(b"three")
    assert [one.block for one in records_in(data)] == [b"one", b"three"]


def test_damage_larger_than_a_ledger_row_may_be_is_several() -> None:
    rows = damaged_in(warc(b"one") + b"\nx" * (2 << 20) + b"\n" + warc(b"two"), limit=3 << 20)
    assert len(rows) > 1
    assert all(len(row.data) == row.end - row.start <= 3 << 20 for row in rows)


def real_archives() -> Iterator[Path]:
    folder = find("webarchive")
    yield from sorted(folder.rglob("*.gz"))


def test_real_archives_have_the_records_that_fastwarc_reads() -> None:
    for path in real_archives():
        data = gzip.decompress(path.read_bytes())
        found = found_in(data)
        assert not [one for one in found if isinstance(one, Damaged)]
        if "warc" in path.name:
            archive = ArchiveIterator(io.BytesIO(data), parse_http=False, auto_decode="none")
            expected = [(one.headers.get("WARC-Type"), one.reader.read()) for one in archive]
            assert [(one.header.kind, one.block) for one in found if isinstance(one, WebRecord)] == expected
        else:
            assert sum(isinstance(one, WebRecord) for one in found) == 300  # lines `URL IP date type length`, by grep


def test_one_bit_in_a_real_archive_costs_one_record() -> None:
    draw = random.Random(11)
    for path in real_archives():
        data = gzip.decompress(path.read_bytes())[:200_000]
        intact = records_in(data)
        headers = [(one.start, one.end - len(one.block)) for one in intact]
        for trial in range(40):
            low, high = draw.choice(headers) if trial % 2 else (0, len(data))  # half of them where it matters
            position = draw.randrange(low, high)
            damaged = bytearray(data)
            damaged[position] ^= 1 << draw.randrange(8)
            left = {one.block for one in records_in(bytes(damaged))}
            assert len({one.block for one in intact} - left) <= 1 + path.name.endswith(".arc.gz")
