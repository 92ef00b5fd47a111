"""Documents that were taken down: removed from a finished build on request.

The list of a snapshot is `snapshots/000002-takedowns.parquet`: the documents that it and all earlier ones took down,
with reasons and without texts. Their rows in the ledger are tombstones: stage `takedown`, and no text. No other row of
the ledger is about them. A corpus as of a day has the tombstones and the list of the documents of that day.

Decision: docs/decisions/0062-takedowns.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.documents.conditions import Condition, fulfilling
from finpile.documents.ledger import LEDGER_SCHEMA
from finpile.filings.facts import FACTS
from finpile.output.layout import Layout
from finpile.output.manifest import file_of_list
from finpile.output.published_files import PublishedFiles

#: The end of the name of a list.
LIST_SUFFIX = "-takedowns.parquet"
#: The name of the stage.
TAKEDOWN = "takedown"
#: `reason` of a tombstone; its `detail` is what the user said.
REASON = "taken_down"
#: A document, why and by which snapshot it was taken down, and its place in the clean shards: -1 if `ingest` or `clean`
#: had removed it.
TAKEDOWN_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("locator", pa.string(), nullable=False),
        pa.field("timestamp", pa.timestamp("s", tz="UTC")),
        pa.field("why", pa.string(), nullable=False),
        pa.field("snapshot", pa.int32(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("row", pa.int32(), nullable=False),
    ]
)
_OWNER = ("id", "dataset", "source", "locator", "timestamp")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Which documents are to be taken down: those that fulfil all conditions that are given."""

    ids: frozenset[str] | None = None
    dataset: str | None = None
    source: str | None = None
    where: tuple[Condition, ...] = ()

    def find(self, documents: pa.Table) -> npt.NDArray[np.int64]:
        """The rows of the wanted documents. Without the column of a condition, there are none."""
        mask = fulfilling(documents, self.where, dataset=self.dataset, source=self.source)
        if self.ids is not None:
            ids = pa.array(sorted(self.ids), pa.string())
            mask &= np.asarray(pc.is_in(documents["id"], ids))
        return np.flatnonzero(mask)


def takedown_rows(documents: pa.Table, why: str, snapshot: int, shard: int = -1) -> pa.Table:
    """`TAKEDOWN_SCHEMA` of documents with the columns of their origin, and a column `row` unless `shard` is -1."""
    size = documents.num_rows
    columns = {
        **{name: documents[name] for name in _OWNER},
        "why": pa.array([why] * size, pa.string()),
        "snapshot": pa.array(np.full(size, snapshot, np.int32)),
        "shard": pa.array(np.full(size, shard, np.int32)),
        "row": pa.array(np.full(size, -1, np.int32)) if shard < 0 else documents["row"],
    }
    return pa.table(columns).cast(TAKEDOWN_SCHEMA)


def tombstones(takedowns: pa.Table) -> pa.Table:
    """The rows of the ledger of documents that were taken down, as `LEDGER_SCHEMA`."""
    size = takedowns.num_rows
    columns = {
        **{name: takedowns[name] for name in _OWNER},
        "stage": pa.array([TAKEDOWN] * size, pa.string()),
        "reason": pa.array([REASON] * size, pa.string()),
        "detail": takedowns["why"],
        "duplicate_of": pa.nulls(size, pa.string()),
        **{name: pa.nulls(size, pa.int64()) for name in ("duplicate_offset", "start", "end")},
        "removed_text": pa.array([b""] * size, pa.large_binary()),
    }
    return pa.table(columns).select(LEDGER_SCHEMA.names).cast(LEDGER_SCHEMA)


def without_texts(table: pa.Table, mask: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Documents or rows of the ledger, of which those in `mask` have no text, nothing made from it, and no URL."""
    # An array keeps the bytes of values that a mask makes null: so none is null here.
    blank: dict[str, Any] = {"text": "", "url": "", "title": "", "meta": "{}", "removed_text": b"", "detail": ""}
    blank[FACTS.name] = []
    for place, column in enumerate(table.schema):
        if column.name in blank:
            value = pa.scalar(blank[column.name], column.type)
            table = table.set_column(place, column, pc.if_else(mask, value, table[column.name]))
    return table


def by_shard(takedowns: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The documents that are in a clean shard, by the shard's number, ascending."""
    shards = takedowns["shard"].to_numpy()
    for shard in np.unique(shards[shards >= 0]).tolist():
        yield shard, takedowns.filter(pa.array(shards == shard))


def list_path(snapshot: int) -> str:
    """The path of the list of a snapshot, relative to OUT; that of a corpus as of a day has the number 0."""
    return f"snapshots/{snapshot:06d}{LIST_SUFFIX}"


def read_takedowns(layout: Layout, manifest: Mapping[str, Any]) -> pa.Table:
    """The documents that a snapshot and those before it took down, as `TAKEDOWN_SCHEMA`, by id; of a corpus as of a
    day, those of that day."""
    file = file_of_list(manifest)
    return read_list(PublishedFiles(layout, manifest)[file["path"]].buffer()) if file else TAKEDOWN_SCHEMA.empty_table()


def read_list(source: storage.Source) -> pa.Table:
    """The table in a file, as `TAKEDOWN_SCHEMA`; Parquet has no timestamps in seconds."""
    return storage.read_parquet(source).cast(TAKEDOWN_SCHEMA)
