"""The documents of a batch as rows that the clean stage changes, and a batch of those that it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.documents.digest import text_digests
from finpile.documents.document import CLEAN_SCHEMA, DOCUMENT_SCHEMA
from finpile.filings.facts import FACTS, no_facts


class Row(NamedTuple):
    """The fields of one document that the stage reads and may change."""

    number: int
    """The row of the batch."""
    id: str
    text: str
    timestamp: datetime | None
    timestamp_origin: str
    locator: str
    url: str | None
    title: str | None
    meta: str
    media_type: str
    raw_timestamp: str | None
    is_part: bool = False
    """Whether it is a part of the document that was read."""
    facts: Sequence[Mapping[str, Any]] = ()
    """Values of the fields of `finpile.filings.facts.FACTS`."""


_COLUMNS = (
    "id", "text", "timestamp", "timestamp_origin", "locator", "url", "title", "meta", "media_type", "raw_timestamp",
)  # fmt: skip
_CHANGED = ("id", "locator", "text", "timestamp", "timestamp_origin", "title", "meta")


def rows_of(batch: pa.RecordBatch, numbers: npt.NDArray[np.int64]) -> Iterator[Row]:
    """The documents of a batch of `RAW_SCHEMA` in rows of these numbers, which ascend."""
    chosen = batch if len(numbers) == batch.num_rows else batch.take(pa.array(numbers))
    columns = [chosen.column(name).to_pylist() for name in _COLUMNS]
    return (Row(*values) for values in zip(numbers.tolist(), *columns, strict=True))


def batch_of(batch: pa.RecordBatch, kept: Sequence[Row]) -> pa.RecordBatch:
    """The kept documents as a batch of `CLEAN_SCHEMA`; what the stage does not change is that of `batch`."""
    rest = batch.take(pa.array([row.number for row in kept], pa.int64()))
    columns = [
        pa.array([getattr(row, entry.name) for row in kept], entry.type)
        if entry.name in _CHANGED
        else rest.column(entry.name)
        for entry in DOCUMENT_SCHEMA
    ]
    facts = pa.array([row.facts for row in kept], FACTS.type)
    return as_clean(pa.RecordBatch.from_arrays(columns, schema=DOCUMENT_SCHEMA), facts)


def as_clean(documents: pa.RecordBatch, facts: pa.Array | None = None) -> pa.RecordBatch:
    """Documents of `DOCUMENT_SCHEMA` as `CLEAN_SCHEMA`, with these facts or without any."""
    found = no_facts(documents.num_rows) if facts is None else facts
    return pa.RecordBatch.from_arrays([*documents.columns, found, text_digests(documents)], schema=CLEAN_SCHEMA)
