"""Finds the documents that are to be taken down: in clean shards, and in the ledger of what `clean` removed before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.clean.clean import BEFORE_FILTERS
from finpile.digest import multiset_digest
from finpile.document import text_views
from finpile.layout import read_published
from finpile.ledger import SpanBytes, mask_bytes, restore
from finpile.manifest import published
from finpile.takedowns import TAKEDOWN_SCHEMA, Wanted, read_list, takedown_rows
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef, read_clean_rows
from finpile_pipelines.snapshots.base import Base

_Label = tuple[str, str]
_EARLY = ("ingest", "clean")


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents that a snapshot takes down, and what the counts of `clean` lose with them."""

    rows: pa.Table
    """`TAKEDOWN_SCHEMA`."""
    digests: Mapping[_Label, int] = field(default_factory=dict)
    digests_before: Mapping[_Label, int] = field(default_factory=dict)
    """Of their texts after `clean` and before its filters, by dataset and source."""


def select(base: Base, engine: Engine, wanted: Wanted, why: str, known: pa.Table) -> Selection:
    """The wanted documents of a snapshot, without those that are `known` to be taken down."""
    number = base.number + 1
    scratch = storage.join(base.layout.snapshot_work(number).root, "selection")
    find = _Find(wanted, why, number, frozenset(known["id"].to_pylist()), scratch)
    url = storage.join(scratch, "found.json")

    def construct(pipeline: beam.Pipeline) -> None:
        _ = pipeline | Tasks(base.refs, note="select") | "Find" >> beam.Map(find.in_shard) | Gather(url)

    engine.run("select", construct)
    shards = [one["shard"] for one in storage.read_json(url) if one["found"]]
    tables = [read_list(find.url(shard)) for shard in sorted(shards)]
    cleaned = _Cleaned(base, wanted, why, number, find.known)
    rows = pa.concat_tables([TAKEDOWN_SCHEMA.empty_table(), *tables, cleaned.rows])
    cleaned.read_spans(rows["id"])
    digests: dict[_Label, int] = {}
    before: dict[_Label, int] = dict(cleaned.digests_before)
    for table in tables:
        for identifier, label, text in _texts(base, table):
            digests[label] = digests.get(label, 0) + multiset_digest([identifier], [text])
            unfiltered = restore(text, cleaned.spans.get(identifier, ()))
            before[label] = before.get(label, 0) + multiset_digest([identifier], [unfiltered])
    storage.remove_tree(scratch)
    return Selection(rows.sort_by("id"), digests, before)


@dataclass(frozen=True, slots=True)
class _Find:
    """Finds documents in clean shards. It is pickled for the workers."""

    wanted: Wanted
    why: str
    number: int
    known: frozenset[str]
    scratch: str

    def in_shard(self, ref: ShardRef) -> dict[str, Any]:
        """Writes the wanted documents of a shard, if there are any."""
        tables = []
        for first, batch in read_clean_rows("", ref.name, None):
            documents = pa.Table.from_batches([batch]).drop_columns(["text"])
            report_progress(batch.num_rows, documents.nbytes)
            documents = documents.append_column(
                "row", pa.array(np.arange(first, first + batch.num_rows, dtype=np.int32))
            )
            chosen = documents.take(pa.array(self.wanted.find(documents)))
            tables.append(takedown_rows(_without(chosen, self.known), self.why, self.number, ref.index))
        found = pa.concat_tables([TAKEDOWN_SCHEMA.empty_table(), *tables])
        if found.num_rows:
            storage.write_parquet(self.url(ref.index), found, durable=False)
        return {"shard": ref.index, "found": found.num_rows}

    def url(self, shard: int) -> str:
        return storage.join(self.scratch, f"{shard:06d}.parquet")


class _Cleaned:
    """What the ledger says of documents that `ingest` or `clean` removed, and of spans that filters removed."""

    def __init__(self, base: Base, wanted: Wanted, why: str, number: int, known: frozenset[str]) -> None:
        self._base = base
        self.spans: dict[str, list[SpanBytes]] = {}
        self.digests_before: dict[_Label, int] = {}
        found = [TAKEDOWN_SCHEMA.empty_table()]
        for stage, table in self._tables():
            whole = table.filter(pc.is_null(table["start"]))
            chosen = _without(whole.take(pa.array(wanted.find(whole))), known)
            found.append(takedown_rows(chosen, why, number))
            for row in chosen.to_pylist() if stage == "clean" else ():
                if row["reason"] not in BEFORE_FILTERS:
                    label = (row["dataset"], row["source"])
                    digest = multiset_digest([row["id"]], [row["removed_text"]])
                    self.digests_before[label] = self.digests_before.get(label, 0) + digest
        self.rows = _distinct(pa.concat_tables(found))

    def read_spans(self, ids: pa.ChunkedArray) -> None:
        """Reads the spans that filters removed from documents that they kept."""
        names = ids.combine_chunks()
        for stage, table in self._tables():
            if stage == "clean":
                cut = table.filter(pc.and_(pc.is_in(table["id"], names), pc.is_valid(table["start"])))
                for row in cut.to_pylist():
                    if row["end"] > row["start"]:
                        span = (row["start"], row["end"], row["removed_text"], mask_bytes(row["detail"]))
                        self.spans.setdefault(row["id"], []).append(span)

    def _tables(self) -> Iterator[tuple[str, pa.Table]]:
        for path in published(self._base.manifest, "removed"):
            for stage in _EARLY:
                if path.startswith(f"removed/stage={stage}/"):
                    yield stage, read_published(storage.join(self._base.layout.root, path))


def _texts(base: Base, rows: pa.Table) -> Iterator[tuple[str, _Label, bytes]]:
    """The id, dataset and source, and text of documents of one shard."""
    ref = base.refs[rows["shard"][0].as_py()]
    wanted = rows["row"].to_numpy()
    for first, batch in read_clean_rows("", ref.name, wanted):
        mine = wanted[(wanted >= first) & (wanted < first + batch.num_rows)]
        part = pa.Table.from_batches([batch]).take(pa.array(mine - first)).combine_chunks()
        owners = (part[name].to_pylist() for name in ("id", "dataset", "source"))
        for identifier, dataset, source, view in zip(*owners, text_views(part), strict=True):
            yield identifier, (dataset, source), bytes(view)


def _without(documents: pa.Table, ids: frozenset[str]) -> pa.Table:
    return documents.filter(pc.invert(pc.is_in(documents["id"], pa.array(sorted(ids), pa.string()))))


def _distinct(rows: pa.Table) -> pa.Table:
    """The first row of each id."""
    _, first = np.unique(np.array(rows["id"].to_pylist(), object), return_index=True)
    return rows.take(pa.array(first))
