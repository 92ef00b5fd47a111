"""The document batch: the record type of all stages.

A batch is a `pyarrow.RecordBatch` of `DOCUMENT_SCHEMA`. The order of its rows has no meaning; `id` identifies a row.
Between ingest and clean, a batch has two more columns (`RAW_SCHEMA`): the media type of the text, and the date string
of the record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.filings.facts import FACTS

_U8 = npt.NDArray[np.uint8]
_I64 = npt.NDArray[np.int64]
_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)

Label = tuple[str, str]
"""Dataset and source of a document: the two levels of Table 1."""

#: Sources of a document's date, most reliable first; `none` if the timestamp is null.
TIMESTAMP_ORIGINS = ("field", "header", "html", "url", "filename", "none")

#: Key in `meta` of a date that could not be read and is neither text nor a number; only until `clean`.
UNREADABLE_TIMESTAMP = "unreadable_timestamp"

PLAIN = "text/plain"
HTML = "text/html"

#: Bytes of ids and digests of texts.
DIGEST_BYTES = 16

DOCUMENT_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("timestamp", pa.timestamp("s", tz="UTC")),
        pa.field("timestamp_origin", pa.string(), nullable=False),
        pa.field("locator", pa.string(), nullable=False),
        pa.field("url", pa.string()),
        pa.field("title", pa.string()),
        pa.field("license", pa.string()),
        pa.field("num_copies", pa.int32(), nullable=False),
        pa.field("meta", pa.string(), nullable=False),
    ]
)

RAW_SCHEMA = DOCUMENT_SCHEMA.append(pa.field("media_type", pa.string(), nullable=False)).append(
    pa.field("raw_timestamp", pa.string())
)

#: Documents as the stage `clean` leaves them: each with its facts of Inline XBRL, which are published in files of their
#: own, and the digest (`text_digest`) of its text, which every later stage compares, orders or partitions by. It is not
#: published.
CLEAN_SCHEMA = DOCUMENT_SCHEMA.append(FACTS).append(pa.field("digest", pa.binary(DIGEST_BYTES), nullable=False))

#: Columns that are in the folder names `documents/dataset=D/source=S`.
DOCUMENT_FOLDERS = ("dataset", "source")


def without(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """The schema of a file in folders `name=value`: the schema without the columns `names`.

    Readers infer the types of these columns in different ways (pyarrow: strings, dictionaries or integers) and refuse
    files that have the columns in another type.
    """
    return pa.schema([entry for entry in schema if entry.name not in names])


#: The schema of the published shards: a document and its side of the temporal split.
PUBLISHED_SCHEMA = without(DOCUMENT_SCHEMA.append(pa.field("split", pa.string(), nullable=False)), DOCUMENT_FOLDERS)


#: The column of a part of a source (site, outlet, form, channel) in published shards. Those of a build have it
#: if a source of its corpus file has a rule for it.
SUB_SOURCE = pa.field("sub_source", pa.string())


def label_of(row: Mapping[str, Any]) -> Label:
    """The label in a row of documents, of files or of counts."""
    return row["dataset"], row["source"]


def document_id(source: str, locator: str) -> str:
    """The id of a document, 32 hex digits: BLAKE2b-128 of `source \\0 locator`."""
    return hashlib.blake2b(f"{source}\0{locator}".encode(), digest_size=DIGEST_BYTES).hexdigest()


def text_digest(text: bytes | memoryview) -> bytes:
    """The digest of a text, 16 bytes (BLAKE2b-128), for equality and for an order that depends only on content."""
    return hashlib.blake2b(text, digest_size=DIGEST_BYTES).digest()


def digest_bits(digests: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.uint64]:
    """The first 64 bits of 16-byte digests, as numbers whose order is the digests' order."""
    chunk = digests.combine_chunks() if isinstance(digests, pa.ChunkedArray) else digests
    if len(chunk) == 0:
        return np.empty(0, dtype=np.uint64)
    data = np.frombuffer(chunk.buffers()[1], dtype=">u8").reshape(-1, 2)
    return data[chunk.offset : chunk.offset + len(chunk), 0].astype(np.uint64)


@dataclass(kw_only=True, slots=True)  # not frozen: one is made for each record, and a frozen one takes longer
class RawDocument:
    """A record as read: its text without cleaning, and the metadata of its format."""

    locator: str
    """Path relative to the corpus root, then `#` and the record's byte offset or ordinal if a file has several."""
    text: str
    media_type: str = PLAIN
    timestamp: datetime | None = None
    timestamp_origin: str = "none"
    raw_timestamp: str | None = None
    """The value of the record's date field if it is text or a number: its order of day and month is resolved later."""
    fields_found: tuple[str, ...] = field(default=(), compare=False)
    """The document fields that the record has, with any value."""
    url: str | None = None
    title: str | None = None
    license: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    row: str | None = None
    """The source, if its entry of the corpus file has several."""


def check_storable(document: RawDocument) -> None:
    """Raises the error of a document that cannot become a row of `RAW_SCHEMA`: UnicodeError, TypeError, ..."""
    for text in (document.text, document.locator, document.url, document.title, document.license):
        if text is not None and not text.isascii():
            text.encode()
    if not all(name.isascii() and is_storable(value) for name, value in document.meta.items()):
        _meta(document).encode()
    _utc(document.timestamp)


def is_storable(value: Any) -> bool:
    """Whether a value is surely valid JSON in UTF-8. A fast check: False does not mean that the value is invalid."""
    return value is None or type(value) is int or (type(value) is str and value.isascii())


#: Shared, because the constructor takes longer than one call.
_META = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


def _meta(document: RawDocument) -> str:
    return _META.encode(document.meta) if document.meta else "{}"


#: Columns of which documents give the values, in the order in which the builder collects them.
_COLLECTED = (
    "id", "source", "text", "timestamp", "timestamp_origin", "locator", "url", "title", "license", "meta", "media_type",
    "raw_timestamp",
)  # fmt: skip


class DocumentBuilder:
    """Collects documents of one source into batches of at most `max_bytes` of text. A document may name its own row.

    >>> builder = DocumentBuilder("FinPile", "News")
    >>> builder.append(RawDocument(locator="a.txt", text="Oil rose."))
    >>> builder.flush().num_rows
    1
    """

    def __init__(self, dataset: str, source: str) -> None:
        self._dataset = dataset
        self._source = source
        # Tuples of strings, numbers and moments, not documents: the garbage collector visits none of them twice.
        self._rows: list[tuple[Any, ...]] = []
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, document: RawDocument) -> None:
        """Adds one document."""
        text, source = document.text, document.row or self._source
        row = (
            document_id(source, document.locator), source, text, _utc(document.timestamp), document.timestamp_origin,
            document.locator, document.url, document.title, document.license, _meta(document), document.media_type,
            document.raw_timestamp,
        )  # fmt: skip
        self._rows.append(row)
        self.size_bytes += len(text) if text.isascii() else len(text.encode())

    def flush(self) -> pa.RecordBatch:
        """The documents collected so far as a batch of `RAW_SCHEMA`; the builder is empty afterwards."""
        size = len(self)
        columns = zip(*self._rows, strict=True) if size else [()] * len(_COLLECTED)
        named = dict(zip(_COLLECTED, columns, strict=True))
        self._rows, self.size_bytes = [], 0
        same = {"dataset": [self._dataset] * size, "num_copies": [1] * size}
        return pa.RecordBatch.from_pydict({**named, **same}, schema=RAW_SCHEMA)


def with_column(rows: _Rows, name: str, values: pa.Array | pa.ChunkedArray) -> _Rows:
    """The rows with other values in a column, whose type and place stay."""
    at = rows.schema.get_field_index(name)
    field = rows.schema.field(at)
    return rows.set_column(at, field, values.cast(field.type))


def text_views(batch: pa.RecordBatch | pa.Table) -> Iterator[memoryview]:
    """The UTF-8 bytes of each text, without copying and without making Python strings."""
    array = batch.column("text")
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        offsets, data = text_buffers(chunk)
        for start, end in pairwise(offsets):
            yield data[start:end]


class OrderedTexts(Sequence[bytes]):
    """The UTF-8 bytes of the texts of a large_string column in another order; each is copied when it is read."""

    def __init__(self, column: pa.ChunkedArray, rows: _I64) -> None:
        self._chunks = [text_arrays(chunk) for chunk in column.chunks]
        self._ends = np.cumsum([len(chunk) for chunk in column.chunks])
        self._rows = rows

    def of(self, rows: _I64) -> OrderedTexts:
        """Other rows of the column."""
        found = copy(self)
        found._rows = rows
        return found

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: Any) -> Any:
        row = self._rows[at]
        chunk = int(np.searchsorted(self._ends, row, side="right"))
        data, offsets = self._chunks[chunk]
        place = int(row - (self._ends[chunk] - (len(offsets) - 1)))
        return data[offsets[place] : offsets[place + 1]].tobytes()


def text_buffers(array: pa.Array) -> tuple[list[int], memoryview]:
    """The offsets (`len + 1`, in bytes) and the data of a large_string or large_binary array."""
    _, offsets, data = array.buffers()
    begin = array.offset * 8
    size = (len(array) + 1) * 8
    values = memoryview(offsets)[begin : begin + size].cast("q").tolist() if len(array) else [0]
    return values, memoryview(data or b"")


def text_arrays(texts: pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray) -> tuple[_U8, _I64]:
    """The bytes and offsets of strings, binaries or a column `text`, as NumPy arrays for kernels.

    Read-only; not copied if the array is one chunk of large_string or large_binary.
    """
    array = texts.column("text") if isinstance(texts, (pa.RecordBatch, pa.Table)) else texts
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    # An empty array can lack both buffers; eight zero bytes replace its only offset and the data, which is not read.
    content, bounds = np.frombuffer(data or bytes(8), np.uint8), np.frombuffer(offsets or bytes(8), np.int64)
    content.flags.writeable = bounds.flags.writeable = False  # kernels are compiled for read-only arrays alone
    return content, bounds[array.offset : array.offset + len(array) + 1]


def _utc(moment: datetime | None) -> datetime | None:
    """The moment in UTC; a naive moment is read as UTC."""
    if moment is None or moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
