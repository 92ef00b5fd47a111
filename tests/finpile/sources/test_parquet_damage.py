"""Damaged Parquet files: the loss from a damaged column, and the accounting of the file's bytes."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.sources import Account, list_inputs, read_file
from tests.support.reading import read_folder

NUM_ROWS, GROUP_ROWS = 60, 20
COLUMNS: dict[str, Any] = {
    "text": [f"text {number}" for number in range(NUM_ROWS)],
    "timestamp": [f"2022-03-{1 + number % 28:02}" for number in range(NUM_ROWS)],
    "title": [f"title {number}" for number in range(NUM_ROWS)],
    "price": [number / 7 for number in range(NUM_ROWS)],
    "doc": [{"link": f"http://x/{number}", "rank": number} for number in range(NUM_ROWS)],
    "embedding": [[0.5, float(number)] for number in range(NUM_ROWS)],
}


def source(**fields: str) -> SourceConfig:
    return SourceConfig(name="News", dataset="FinPile", format="parquet", paths=("*.parquet",), fields=fields)


def table_bytes(columns: dict[str, Any] = COLUMNS, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=GROUP_ROWS, compression="zstd", **options)
    return sink.getvalue()


def chunk(data: bytes, group: int, path: str) -> slice:
    """Where a column of a row group is."""
    columns = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(group)
    for index in range(columns.num_columns):
        column = columns.column(index)
        if column.path_in_schema == path:
            start = column.dictionary_page_offset or column.data_page_offset
            return slice(start, start + column.total_compressed_size)
    raise KeyError(path)


def damaged(data: bytes, group: int, path: str) -> bytes:
    """The file with one column of one row group overwritten."""
    span = chunk(data, group, path)
    return data[: span.start] + b"\xff" * (span.stop - span.start) + data[span.stop :]


def read(folder: Path, data: bytes, config: SourceConfig) -> tuple[list[RawDocument], list[Removal], Account]:
    (folder / "a.parquet").write_bytes(data)
    documents, rows, [account] = read_folder(config, folder)
    assert account.decompressed_bytes == len(data)
    return documents, rows, account


@pytest.mark.parametrize("path", ["price", "title", "doc.link"])
def test_a_damaged_column_that_no_document_needs_costs_itself_alone(tmp_path: Path, path: str) -> None:
    data = table_bytes()
    documents, [row], account = read(tmp_path, damaged(data, 1, path), source(url="doc.link"))
    assert [document.text for document in documents] == COLUMNS["text"]
    assert (row.reason, row.locator) == ("corrupt_file", f"a.parquet#row-group-1/{path}")
    span = chunk(data, 1, path)
    assert f"column {path} of rows 20 to 39" in row.detail and f"({span.stop - span.start} bytes)" in row.detail
    assert account.ledger_bytes == span.stop - span.start
    for number, document in enumerate(documents):
        is_whole = not 20 <= number < 40
        assert (document.title is not None) == (is_whole or path != "title")
        assert (document.url is not None) == (is_whole or path != "doc.link")
        assert ("price" in document.meta) == (is_whole or path != "price")
        assert document.meta["doc"] == {"rank": number}


@pytest.mark.parametrize("path", ["text", "timestamp"])
def test_a_damaged_column_that_documents_need_costs_its_row_group(tmp_path: Path, path: str) -> None:
    data = table_bytes()
    documents, [row], account = read(tmp_path, damaged(data, 1, path), source())
    assert [document.text for document in documents] == COLUMNS["text"][:20] + COLUMNS["text"][40:]
    assert [document.locator for document in documents[19:21]] == ["a.parquet#19", "a.parquet#40"]
    assert f"rows 20 to 39 (20) are lost with column {path}" in row.detail
    assert account.ledger_bytes == chunk(data, 1, path).stop - chunk(data, 1, path).start


def test_damage_to_a_column_that_is_not_read_is_not_noticed(tmp_path: Path) -> None:
    data = table_bytes()
    documents, rows, account = read(tmp_path, damaged(data, 0, "embedding.list.element"), source())
    assert len(documents) == NUM_ROWS and rows == []
    unread = ("doc.link", "doc.rank", "embedding.list.element")
    spans = [chunk(data, group, path) for group in range(3) for path in unread]
    assert account.structure["parquet_column"] == sum(span.stop - span.start for span in spans)


def test_the_columns_that_are_read_are_the_record_bytes(tmp_path: Path) -> None:
    data = table_bytes()
    _, _, account = read(tmp_path, data, source())
    spans = [chunk(data, group, path) for group in range(3) for path in ("text", "timestamp", "title", "price")]
    assert account.record_bytes == sum(span.stop - span.start for span in spans)
    assert account.structure.keys() == {"parquet_column", "parquet_footer"}


def test_a_flipped_bit_anywhere_is_found_if_pages_have_checksums(tmp_path: Path) -> None:
    """And costs no row of another row group."""
    data = table_bytes({name: COLUMNS[name] for name in ("text", "timestamp")}, write_page_checksum=True)
    draw = random.Random(3)
    for _ in range(60):
        group = draw.randrange(3)
        span = chunk(data, group, "text")
        flipped = bytearray(data)
        flipped[draw.randrange(span.start, span.stop)] ^= 1 << draw.randrange(8)
        documents, rows, _ = read(tmp_path, bytes(flipped), source())
        others = [text for number, text in enumerate(COLUMNS["text"]) if number // GROUP_ROWS != group]
        found = [document.text for document in documents]
        assert set(found) <= set(COLUMNS["text"]) and set(others) <= set(found)
        assert rows or found == COLUMNS["text"]


@pytest.mark.parametrize("kind", [pa.timestamp("s", "Mars/Olympus"), pa.timestamp("ns", "Mars/Olympus")])
def test_a_zone_that_is_not_known_is_no_obstacle(tmp_path: Path, kind: pa.DataType) -> None:
    """Parquet's moments are UTC, whatever their zone."""
    second = 10**9 if kind.unit == "ns" else 1
    moments = pa.array([1_600_000_000 * second, 0], kind)
    documents, [], _ = read(tmp_path, table_bytes({"text": ["one", "two"], "timestamp": moments}), source())
    found = [document.timestamp.isoformat() for document in documents if document.timestamp]
    assert found == ["2020-09-13T12:26:40+00:00", "1970-01-01T00:00:00+00:00"]


def test_a_moment_that_no_calendar_holds_is_one_documents_problem(tmp_path: Path) -> None:
    moments = pa.array([0, 2**62, 10**12], pa.timestamp("us", "UTC"))
    columns = {"text": ["one", "two", "three"], "timestamp": moments, "other": moments}
    documents, rows, _ = read(tmp_path, table_bytes(columns), source())
    assert {"one", "three"} <= {document.text for document in documents}
    assert len(documents) + len(rows) == 3


def test_a_large_parquet_member_is_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack_tar: Callable[[dict[str, bytes]], bytes]
) -> None:
    """Counted: reads of the member are blocks, never all of it."""
    from finpile.sources.bytes.streams import BLOCK_BYTES, ByteStream
    from finpile.sources.formats import parquet

    sizes: list[int] = []
    plain = ByteStream.read

    def counted(self: ByteStream, size: int | None = -1, /) -> bytes:
        data = plain(self, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(ByteStream, "read", counted)
    monkeypatch.setattr(parquet, "_SPOOL_BYTES", 1)
    data = table_bytes({"text": [random.Random(number).randbytes(3000).hex() for number in range(100)]})
    (tmp_path / "a.tar").write_bytes(pack_tar({"a.parquet": data}))
    config = SourceConfig(name="News", dataset="FinPile", format="parquet", paths=("a.tar",))
    [file] = list_inputs(config, str(tmp_path))
    assert len(list(read_file(file, config))) == 100
    assert max(sizes) <= BLOCK_BYTES < len(data)
