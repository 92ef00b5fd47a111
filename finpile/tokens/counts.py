"""Counts for the report tables: documents, characters, bytes and tokens of a documents shard, by split and year.

If the shard has sub-sources, also those of training documents by sub-source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.document import SUB_SOURCE
from finpile.documents.split import TRAIN

#: Sub-sources of one shard that are counted by name, those with most tokens; the others are counted together.
MAX_SUB_SOURCES = 10_000
#: Their name.
OTHERS = "others"
#: The columns of documents that `document_sizes` reads, if they are there.
COUNTED_COLUMNS = ("text", "timestamp", "split", SUB_SOURCE.name)

_COUNTS = ("num_chars", "num_bytes", "num_tokens")


def count_documents(table: pa.Table, num_tokens: pa.Array | None) -> dict[str, Any]:
    """Documents, characters, bytes and tokens of one documents shard, by split and year; no tokens without them."""
    return sum_sizes(table["dataset"][0].as_py(), table["source"][0].as_py(), [document_sizes(table, num_tokens)])


def document_sizes(table: pa.Table, num_tokens: pa.Array | None) -> pa.Table:
    """One row for each document: characters, bytes, tokens, split, year and day; its sub-source if there are any."""
    columns = {
        "split": table["split"],
        "year": pc.year(table["timestamp"]),
        "day": pc.floor_temporal(table["timestamp"], unit="day"),
        "num_chars": pc.utf8_length(table["text"]),
        "num_bytes": pc.binary_length(table["text"]),
        **({} if num_tokens is None else {"num_tokens": num_tokens}),
    }
    if SUB_SOURCE.name in table.column_names:
        columns[SUB_SOURCE.name] = table[SUB_SOURCE.name]
    return pa.table(columns)


def sum_sizes(dataset: str, source: str, sizes: Iterable[pa.Table]) -> dict[str, Any]:
    """What `count_documents` counts of a documents shard, from the sizes of all of its documents."""
    table = pa.concat_tables(sizes)
    counted = [(name, "sum") for name in _COUNTS if name in table.column_names]
    sums = [*counted, ("day", "min"), ("day", "max"), ([], "count_all")]
    groups = table.group_by(["split", "year"]).aggregate(sums).to_pylist()
    parts = {"sub_sources": _by_sub_source(table)} if SUB_SOURCE.name in table.column_names else {}
    return {
        "dataset": dataset,
        "source": source,
        "groups": [_group(row) for row in sorted(groups, key=lambda row: (row["split"], row["year"] or 0))],
        **parts,
    }


def _by_sub_source(table: pa.Table) -> list[dict[str, Any]]:
    """Counts of the training documents of each sub-source, null for those that have none; most tokens first, or most
    characters without tokens."""
    names = [name for name in _COUNTS if name in table.column_names]
    sums = [*((name, "sum") for name in names), ([], "count_all")]
    train = table.filter(pc.equal(table["split"], TRAIN))
    rows = train.group_by([SUB_SOURCE.name]).aggregate(sums).to_pylist()
    order = f"{'num_tokens' if 'num_tokens' in names else 'num_chars'}_sum"
    rows.sort(key=lambda row: (-row[order], row[SUB_SOURCE.name] or ""))
    found = [
        {
            SUB_SOURCE.name: row[SUB_SOURCE.name],
            "num_docs": row["count_all"],
            **{name: row[f"{name}_sum"] for name in names},
        }
        for row in rows
    ]
    if len(found) <= MAX_SUB_SOURCES:
        return found
    rest = found[MAX_SUB_SOURCES:]
    return [
        *found[:MAX_SUB_SOURCES],
        {SUB_SOURCE.name: OTHERS, **{name: sum(row[name] for row in rest) for name in ("num_docs", *names)}},
    ]


def _group(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "split": row["split"],
        "year": row["year"],
        "num_docs": row["count_all"],
        **{name: row[f"{name}_sum"] for name in _COUNTS if f"{name}_sum" in row},
        "first_day": _iso(row["day_min"]),
        "last_day": _iso(row["day_max"]),
    }


def _iso(day: Any) -> str | None:
    return None if day is None else date(day.year, day.month, day.day).isoformat()
