"""Builds of documents alone: what evaluations read of a build."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from finpile import storage
from finpile.documents.document import PUBLISHED_SCHEMA, Label
from finpile.output.layout import document_part

_DEFAULTS = {"num_copies": 1, "locator": "x", "meta": "{}", "timestamp_origin": "none"}


def write_build(
    root: Path, records: Iterable[Mapping[str, Any]], num_shards: int = 1, schema: pa.Schema = PUBLISHED_SCHEMA
) -> str:
    """Writes each source (default: News of FinPile) as `num_shards` files; returns the URL of the build."""
    by_row: defaultdict[Label, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        row = (record.get("dataset", "FinPile"), record.get("source", "News"))
        by_row[row].append({**dict.fromkeys(schema.names), **_DEFAULTS, **record})
    for row, mine in by_row.items():
        for shard in range(num_shards):
            path = root / document_part(*row, "train", shard, num_shards)
            storage.write_parquet(str(path), pa.Table.from_pylist(mine[shard::num_shards], schema=schema))
    return str(root)
