"""The rows and counts of the pages, from one pass over the published files, source by source and stage by stage.

Memory holds the rows of one source, or of one stage, without their texts (about 300 bytes a row), and a part of one
file. Rows are sorted by what the pages filter by, so that a filter is some ranges of rows:

documents    source, split, month, id
removals     stage, reason, source, month, id, start

A month is a number of months since January 1970; rows without a date come last. An id is a digest, so the first rows of
a cell are a sample of it that depends on nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.document import Label
from finpile.documents.labels import host_of
from finpile.documents.ledger import LEDGER_SCHEMA
from finpile.documents.split import HELDOUT
from finpile.explorer.facts import facts_of
from finpile.explorer.ids import ID, packed
from finpile.output.layout import row_of, values_in_path
from finpile.output.published_files import Advance, PublishedFile, PublishedFiles
from finpile.plugins import stages

#: Bytes of decoded texts in memory.
_PART_BYTES = 64 << 20
_EPOCH_YEAR = 1970
#: Bins of lengths per doubling.
BINS_PER_DOUBLING = 2

DOCUMENT_ROWS = pa.schema(
    [
        ("id", ID),
        ("source", pa.int32()),
        ("split", pa.int32()),
        ("day", pa.int32()),
        ("bytes", pa.int64()),
        ("copies", pa.int32()),
        ("origin", pa.string()),
        ("host", pa.string()),
        ("license", pa.string()),
        ("locator", pa.string()),
        ("title", pa.string()),
        ("facts", pa.string()),
        ("file", pa.int32()),
        ("row", pa.int32()),
    ]
)
REMOVAL_ROWS = pa.schema(
    [
        ("id", ID),
        ("reason", pa.int32()),
        ("source", pa.int32()),
        ("day", pa.int32()),
        ("bytes", pa.int64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("duplicate_of", ID),
        ("duplicate_offset", pa.int64()),
        ("passage", pa.string()),
        ("detail", pa.string()),
        ("locator", pa.string()),
        ("file", pa.int32()),
        ("row", pa.int32()),
    ]
)
DOCUMENT_CELLS = ["source", "split", "month"]
REMOVAL_CELLS = ["reason", "source", "month"]
#: Columns of `documents/` that are read; `title` and `url` are optional there.
_DOCUMENT_COLUMNS = ["id", "text", "timestamp", "timestamp_origin", "locator", "url", "title", "license", "num_copies"]
_REMOVAL_COLUMNS = [name for name in LEDGER_SCHEMA.names if name != "stage"]


@dataclass(kw_only=True)
class Names:
    """The names that rows have as numbers."""

    sources: dict[Label, int] = field(default_factory=dict)
    reasons: list[tuple[str, str]] = field(default_factory=list)
    """(stage, reason), in the order of the stages, then of the alphabet."""
    files: list[str] = field(default_factory=list)
    """Paths below OUT."""

    def source(self, dataset: str, source: str) -> int:
        return self.sources.setdefault((dataset, source), len(self.sources))

    def file(self, path: str) -> int:
        self.files.append(path)
        return len(self.files) - 1


def scan_documents(
    files: PublishedFiles,
    places: Mapping[str, str],
    names: Names,
    copies: pa.Table,
    facts: Collection[str],
    advance: Advance,
) -> Iterator[pa.Table]:
    """The rows of each source, sorted, as `DOCUMENT_ROWS`; with the `facts` of these keys of `meta`."""
    from finpile.output.snapshots import with_copies

    columns = [*_DOCUMENT_COLUMNS, "split", *(["meta"] if facts else [])]

    for row, group in groupby(sorted(files.below("documents"), key=_row_of), _row_of):
        number, parts = names.source(*row), [DOCUMENT_ROWS.empty_table()]
        for file in group:
            place, first = names.file(places[file.path]), 0
            for part in file.parts(columns, size_bytes=_PART_BYTES):
                counted = with_copies(part, copies)
                parts.append(_document_rows(counted, number, place, first, facts))
                first += part.num_rows
            advance(file.record.size_bytes)
        yield _sorted(pa.concat_tables(parts), ["split", "month", "id"])


def _row_of(file: PublishedFile) -> Label:
    return row_of(file.path)


def _document_rows(part: pa.Table, source: int, file: int, first: int, facts: Collection[str]) -> pa.Table:
    size = part.num_rows
    return pa.table(
        {
            "id": packed(part["id"]),
            "source": _all(source, size),
            "split": pc.equal(part["split"], HELDOUT).cast(pa.int32()),
            "day": _days(part["timestamp"]),
            "bytes": pc.binary_length(part["text"]).cast(pa.int64()),
            "copies": part["num_copies"],
            "origin": part["timestamp_origin"],
            "host": _hosts(part["url"]),
            "license": part["license"],
            "locator": part["locator"],
            "title": part["title"],
            "facts": facts_of(part["meta"].to_pylist(), facts) if facts else pa.nulls(size, pa.string()),
            "file": _all(file, size),
            "row": pa.array(np.arange(first, first + size, dtype=np.int32)),
        },
        schema=DOCUMENT_ROWS,
    )


def scan_removals(
    files: PublishedFiles, places: Mapping[str, str], names: Names, advance: Advance
) -> Iterator[pa.Table]:
    """The rows of each stage, sorted, as `REMOVAL_ROWS`; rows of equal `passage` cut the same text."""
    by_stage: dict[str, list[PublishedFile]] = {}
    for file in files.below("removed"):
        by_stage.setdefault(values_in_path(file.path)["stage"], []).append(file)
    for stage in stages.names():
        parts, reasons = [], set[str]()
        for file in by_stage.get(stage, ()):
            place, first = names.file(places[file.path]), 0
            for part in file.parts(_REMOVAL_COLUMNS, size_bytes=_PART_BYTES):
                reasons |= set(pc.unique(part["reason"]).to_pylist())
                parts.append(_removal_rows(part, names, place, first))
                first += part.num_rows
            advance(file.record.size_bytes)
        if not parts:
            continue
        before = len(names.reasons)
        names.reasons += [(stage, reason) for reason in sorted(reasons)]
        known = pa.array([reason for _, reason in names.reasons[before:]], pa.string())
        rows = pa.concat_tables(parts)
        coded = pc.add(pc.index_in(rows["reason"], known), before).cast(pa.int32())
        rows = rows.set_column(rows.schema.get_field_index("reason"), "reason", coded)
        rows = _sorted(rows, ["reason", "source", "month", "id", "start"])
        yield rows.select(REMOVAL_ROWS.names).cast(REMOVAL_ROWS)


def _removal_rows(part: pa.Table, names: Names, file: int, first: int) -> pa.Table:
    """`REMOVAL_ROWS` with the reasons' names."""
    size = part.num_rows
    keys = zip(part["dataset"].to_pylist(), part["source"].to_pylist(), strict=True)
    spans = pc.fill_null(pc.greater(part["end"], part["start"]), False)
    return pa.table(
        {
            "id": packed(part["id"]),
            "reason": part["reason"].cast(pa.string()),
            "source": pa.array([names.source(*key) for key in keys], pa.int32()),
            "day": _days(part["timestamp"]),
            "bytes": pc.binary_length(part["removed_text"]).cast(pa.int64()),
            "start": part["start"],
            "end": part["end"],
            "duplicate_of": packed(part["duplicate_of"]),
            "duplicate_offset": part["duplicate_offset"],
            "passage": _passages(part["removed_text"], spans),
            "detail": part["detail"],
            "locator": part["locator"],
            "file": _all(file, size),
            "row": pa.array(np.arange(first, first + size, dtype=np.int32)),
        }
    )


def _passages(texts: pa.ChunkedArray, spans: pa.ChunkedArray) -> pa.Array:
    """A 64-bit digest of each text of a span, in hex digits; null for other rows."""
    found = [
        hashlib.blake2b(text.as_buffer(), digest_size=8).hexdigest() if span else None
        for text, span in zip(texts, spans.to_pylist(), strict=True)
    ]
    return pa.array(found, pa.string())


def month_of(days: pa.ChunkedArray) -> pa.ChunkedArray:
    """Months since January 1970 of days since 1970-01-01.

    >>> month_of(pa.chunked_array([pa.array([0, 31, -1, None], pa.int32())])).to_pylist()
    [0, 1, -1, None]
    """
    dates = days.cast(pa.date32())
    years = pc.multiply(pc.subtract(pc.year(dates), _EPOCH_YEAR), 12)
    return pc.subtract(pc.add(years, pc.month(dates)), 1).cast(pa.int32())


def counted(rows: pa.Table, keys: Sequence[str], sums: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """The number of rows, `rows`, and the sums of columns by `keys`, in the order of the keys; nulls come last."""
    columns = {key: month_of(rows["day"]) if key == "month" else rows[key] for key in keys}
    table = pa.table({**columns, **sums})
    groups = table.group_by(list(keys)).aggregate([([], "count_all"), *((name, "sum") for name in sums)])
    groups = groups.rename_columns({"count_all": "rows", **{f"{name}_sum": name for name in sums}})
    return groups.sort_by([(key, "ascending") for key in keys]).select([*keys, "rows", *sums])


def length_bins(sizes: pa.ChunkedArray) -> pa.Array:
    """The bin of each length: bin n begins at 2 ** (n / 2) bytes."""
    values = np.maximum(sizes.to_numpy(), 1)
    return pa.array(np.floor(BINS_PER_DOUBLING * np.log2(values)).astype(np.int32))


def _sorted(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    with_month = rows.append_column("month", month_of(rows["day"]))
    order = pc.sort_indices(with_month, [(key, "ascending") for key in keys])
    return rows.take(order).combine_chunks()


def _days(timestamps: pa.ChunkedArray) -> pa.ChunkedArray:
    return (
        pc.floor_temporal(timestamps.cast(pa.timestamp("s", tz="UTC")), unit="day").cast(pa.date32()).cast(pa.int32())
    )


def _hosts(urls: pa.ChunkedArray) -> pa.Array:
    return pa.array(map(host_of, urls.to_pylist()), pa.string())


def _all(value: int, size: int) -> pa.Array:
    return pa.array(np.full(size, value, np.int32))


def columns_of(table: pa.Table) -> dict[str, list[Any]]:
    """The columns of a table as lists, ids in hex digits."""
    return {name: _plain(table[name]) for name in table.column_names}


def _plain(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if pa.types.is_fixed_size_binary(column.type):
        return [None if value is None else value.hex() for value in values]
    return values
