"""Counts for the report tables: documents, characters, bytes and tokens of a documents shard, by split and year."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def count_documents(table: pa.Table, num_tokens: pa.Array) -> dict[str, Any]:
    """Documents, characters, bytes and tokens of one documents shard, by split and year."""
    return sum_sizes(table["dataset"][0].as_py(), table["source"][0].as_py(), [document_sizes(table, num_tokens)])


def document_sizes(table: pa.Table, num_tokens: pa.Array) -> pa.Table:
    """One row for each document: characters, bytes, tokens, split, year and day."""
    columns = {
        "split": table["split"],
        "year": pc.year(table["timestamp"]),
        "day": pc.floor_temporal(table["timestamp"], unit="day"),
        "num_chars": pc.utf8_length(table["text"]),
        "num_bytes": pc.binary_length(table["text"]),
        "num_tokens": num_tokens,
    }
    return pa.table(columns)


def sum_sizes(dataset: str, source: str, sizes: Iterable[pa.Table]) -> dict[str, Any]:
    """What `count_documents` counts of a documents shard, from the sizes of all of its documents."""
    sums = [
        ("num_chars", "sum"),
        ("num_bytes", "sum"),
        ("num_tokens", "sum"),
        ("day", "min"),
        ("day", "max"),
        ([], "count_all"),
    ]
    groups = pa.concat_tables(sizes).group_by(["split", "year"]).aggregate(sums).to_pylist()
    return {
        "dataset": dataset,
        "source": source,
        "groups": [_group(row) for row in sorted(groups, key=lambda row: (row["split"], row["year"] or 0))],
    }


def _group(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "split": row["split"],
        "year": row["year"],
        "num_docs": row["count_all"],
        "num_chars": row["num_chars_sum"],
        "num_bytes": row["num_bytes_sum"],
        "num_tokens": row["num_tokens_sum"],
        "first_day": _iso(row["day_min"]),
        "last_day": _iso(row["day_max"]),
    }


def _iso(day: Any) -> str | None:
    return None if day is None else date(day.year, day.month, day.day).isoformat()
