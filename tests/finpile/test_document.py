"""Document batches: ids, digests, builders, and views of texts wherever Arrow has put them."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.documents.document import (
    DOCUMENT_FOLDERS,
    DOCUMENT_SCHEMA,
    HTML,
    PLAIN,
    PUBLISHED_SCHEMA,
    RAW_SCHEMA,
    DocumentBuilder,
    OrderedTexts,
    RawDocument,
    document_id,
    text_buffers,
    text_digest,
    text_views,
    without,
)

#: Whole characters of 1 to 4 bytes, NUL and the empty text among the texts.
TEXTS = st.lists(st.text(st.sampled_from("ab\0é€𝄞\n"), max_size=6), max_size=8)


@given(source=st.text(max_size=10), locator=st.text(max_size=20))
def test_id_is_blake2b_of_source_and_locator(source: str, locator: str) -> None:
    digest = hashlib.blake2b(digest_size=16)
    for part in (source.encode(), b"\x00", locator.encode()):
        digest.update(part)
    assert document_id(source, locator) == digest.hexdigest()


def test_id_is_the_same_for_ever() -> None:
    """Ids are part of published ledgers. These two were computed with b2sum -l 128."""
    assert document_id("News", "news/a.jsonl#0") == "69032672d3bcb0c7ddccd128a6be37bc"
    assert document_id("Web", "web/ß.warc#17") == "6a594d56a1302f9965203e37386b6994"


def test_id_separates_source_and_locator() -> None:
    assert document_id("ab", "c") != document_id("a", "bc")


@given(st.binary(max_size=40))
def test_digest_is_blake2b_of_bytes_or_view(text: bytes) -> None:
    assert text_digest(text) == text_digest(memoryview(text)) == hashlib.blake2b(text, digest_size=16).digest()


def column(texts: list[str], kind: pa.DataType, before: int, after: int) -> pa.Array:
    """The texts as a slice out of a longer array."""
    padded = ["padding €"] * before + texts + ["more"] * after
    return pa.array(padded, kind)[before : before + len(texts)]


@given(texts=TEXTS, before=st.integers(0, 3), after=st.integers(0, 3), binary=st.booleans())
def test_buffers_of_a_slice_point_at_its_own_texts(texts: list[str], before: int, after: int, binary: bool) -> None:
    array = column(texts, pa.large_string(), before, after)
    offsets, data = text_buffers(array.cast(pa.large_binary()) if binary else array)
    assert len(offsets) == len(texts) + 1
    found = [bytes(data[offsets[index] : offsets[index + 1]]) for index in range(len(texts))]
    assert found == [text.encode() for text in texts]


@given(texts=TEXTS, before=st.integers(0, 3), after=st.integers(0, 3))
def test_views_of_a_sliced_batch_are_its_texts(texts: list[str], before: int, after: int) -> None:
    padded = pa.RecordBatch.from_arrays(
        [pa.array(["x €"] * before + texts + ["y"] * after, pa.large_string())], names=["text"]
    )
    views = list(text_views(padded.slice(before, len(texts))))
    assert [bytes(view) for view in views] == [text.encode() for text in texts]


@given(st.lists(TEXTS, max_size=4), st.integers(0, 3), st.integers(0, 8))
def test_views_of_a_chunked_and_sliced_table_are_its_texts(chunks: list[list[str]], start: int, length: int) -> None:
    chunked = pa.chunked_array([column(texts, pa.large_string(), 1, 1) for texts in chunks], pa.large_string())
    table = pa.table({"text": chunked}).slice(start, length)
    expected = [text.encode() for texts in chunks for text in texts][start : start + length]
    assert [bytes(view) for view in text_views(table)] == expected


@given(st.lists(TEXTS, max_size=4), st.integers(0, 3), st.integers(0, 8), st.randoms())
def test_ordered_texts_are_those_of_the_rows(chunks: list[list[str]], start: int, length: int, draw: Any) -> None:
    arrays = [column(texts, pa.large_string(), 1, 1) for texts in chunks]
    texts = pa.chunked_array(arrays, pa.large_string()).slice(start, length)
    rows = draw.sample(range(len(texts)), len(texts))
    found = OrderedTexts(texts, np.array(rows[:1], np.int64)).of(np.array(rows, np.int64))
    assert list(found) == [texts[row].as_py().encode() for row in rows]


def test_views_copy_nothing() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["oil", "gold"], pa.large_string())], names=["text"])
    address = batch.column("text").buffers()[2].address
    first, second = text_views(batch)
    assert pa.py_buffer(first).address == address
    assert pa.py_buffer(second).address == address + 3


def test_builder_fills_every_column() -> None:
    builder = DocumentBuilder("FinPile", "News")
    moment = datetime(2022, 8, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    builder.append(
        RawDocument(
            locator="news/a.jsonl#0",
            text="<p>Öl</p>",
            media_type=HTML,
            timestamp=moment,
            timestamp_origin="field",
            raw_timestamp="1 Aug 2022",
            url="https://example.com/a",
            title="Oil",
            license="CC0-1.0",
            meta={"z": 1, "a": ["ö"]},
        )
    )
    builder.append(RawDocument(locator="news/a.jsonl#1", text=""))
    assert (len(builder), builder.size_bytes) == (2, len("<p>Öl</p>".encode()))
    batch = builder.flush()
    assert batch.schema == RAW_SCHEMA
    first, second = batch.to_pylist()
    assert first == {
        "id": document_id("News", "news/a.jsonl#0"),
        "dataset": "FinPile",
        "source": "News",
        "text": "<p>Öl</p>",
        "timestamp": datetime(2022, 7, 31, 23, 30, tzinfo=UTC),
        "timestamp_origin": "field",
        "locator": "news/a.jsonl#0",
        "url": "https://example.com/a",
        "title": "Oil",
        "license": "CC0-1.0",
        "num_copies": 1,
        "meta": '{"a": ["ö"], "z": 1}',
        "media_type": HTML,
        "raw_timestamp": "1 Aug 2022",
    }
    nulls = {name for name, value in second.items() if value is None}
    assert nulls == {"timestamp", "url", "title", "license", "raw_timestamp"}
    assert (second["timestamp_origin"], second["media_type"], json.loads(second["meta"])) == ("none", PLAIN, {})


def test_builder_is_empty_after_flush() -> None:
    builder = DocumentBuilder("FinPile", "News")
    builder.append(RawDocument(locator="a", text="Oil rose."))
    builder.flush()
    assert (len(builder), builder.size_bytes) == (0, 0)
    empty = builder.flush()
    assert (empty.num_rows, empty.schema) == (0, RAW_SCHEMA)


def test_naive_moment_is_read_as_utc() -> None:
    builder = DocumentBuilder("FinPile", "News")
    builder.append(RawDocument(locator="a", text="", timestamp=datetime(2020, 2, 29, 12, 0, 0)))
    assert builder.flush()["timestamp"].to_pylist() == [datetime(2020, 2, 29, 12, 0, 0, tzinfo=UTC)]


def test_schemas_differ_by_their_own_columns_and_those_of_folders() -> None:
    assert RAW_SCHEMA.names == [*DOCUMENT_SCHEMA.names, "media_type", "raw_timestamp"]
    assert PUBLISHED_SCHEMA.names == [*without(DOCUMENT_SCHEMA, DOCUMENT_FOLDERS).names, "split"]
    assert DOCUMENT_FOLDERS == ("dataset", "source")
    nullable = {entry.name for entry in PUBLISHED_SCHEMA if entry.nullable}
    assert nullable == {"timestamp", "url", "title", "license"}
    assert DOCUMENT_SCHEMA.field("text").type == pa.large_string()  # 64-bit offsets: a batch may exceed 2 GiB


@pytest.mark.parametrize("name", DOCUMENT_SCHEMA.names)
def test_published_column_has_the_type_of_the_contract(name: str) -> None:
    kinds = {"text": pa.large_string(), "timestamp": pa.timestamp("s", tz="UTC"), "num_copies": pa.int32()}
    assert DOCUMENT_SCHEMA.field(name).type == kinds.get(name, pa.string())
