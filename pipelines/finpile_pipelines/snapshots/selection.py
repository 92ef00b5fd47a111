"""Finds the documents that are to be taken down: in clean shards, and in the ledger of what `clean` removed before."""

from __future__ import annotations

from collections import Counter
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
from finpile.ledger import LEDGER_SCHEMA, SpanBytes, count_removed, mask_bytes, restore
from finpile.takedowns import TAKEDOWN_SCHEMA, Wanted, read_list, takedown_rows
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef, read_clean_rows
from finpile_pipelines.snapshots.base import Base

_Label = tuple[str, str]
_EARLY = ("ingest", "clean")


@dataclass(frozen=True, slots=True)
class Losses:
    """What the counts of a stage lose with documents that are taken down, by dataset and source."""

    sums: dict[_Label, Counter[str]] = field(default_factory=dict)
    """By name of the count; what is gained is negative."""
    removed: dict[_Label, Counter[str]] = field(default_factory=dict)
    """Documents that the stage had removed, by reason."""

    def add(self, label: _Label, **sums: int) -> None:
        self.sums.setdefault(label, Counter()).update(sums)

    def from_row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The counts of a source without what is lost. Digests are numbers."""
        label = (row["dataset"], row["source"])
        counts = {name: row[name] - lost for name, lost in self.sums.get(label, {}).items()}
        removed = Counter(row["removed"])
        removed.subtract(self.removed.get(label, {}))
        return {**row, **counts, "removed": {reason: number for reason, number in sorted(removed.items()) if number}}


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents that a snapshot takes down."""

    rows: pa.Table = field(default_factory=TAKEDOWN_SCHEMA.empty_table)
    """`TAKEDOWN_SCHEMA`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the manifest of the snapshot says about them."""
    losses: Mapping[str, Losses] = field(default_factory=lambda: {stage: Losses() for stage in _EARLY})
    """Of `ingest` and `clean`, by stage."""


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
    early = _EarlyLedger(base)
    rows = pa.concat_tables(
        [TAKEDOWN_SCHEMA.empty_table(), *tables, early.find(wanted, why, number, find.known)]
    ).sort_by("id")
    dropped = early.rows_about(rows["id"])
    losses = _losses(dropped)
    spans = _spans(dropped["clean"])
    for table in tables:
        for identifier, label, text in _texts(base, table):
            before = restore(text, spans.get(identifier, ()))
            losses["clean"].add(
                label,
                text_bytes=len(text),
                digest=multiset_digest([identifier], [text]),
                digest_before_filters=multiset_digest([identifier], [before]),
            )
    storage.remove_tree(scratch)
    return Selection(rows=rows, losses=losses)


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
        for first, batch in read_clean_rows("", ref, None):
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


class _EarlyLedger:
    """The rows of the stages before deduplication."""

    def __init__(self, base: Base) -> None:
        self._base = base

    def find(self, wanted: Wanted, why: str, number: int, known: frozenset[str]) -> pa.Table:
        """The wanted documents that these stages removed, as `TAKEDOWN_SCHEMA`."""
        found = [TAKEDOWN_SCHEMA.empty_table()]
        for _, table in self._tables():
            whole = table.filter(pc.is_null(table["start"]))
            chosen = whole.take(pa.array(wanted.find(whole)))
            found.append(takedown_rows(_without(chosen, known), why, number))
        return pa.concat_tables(found)

    def rows_about(self, ids: pa.ChunkedArray) -> dict[str, pa.Table]:
        """All rows about documents, by stage."""
        names = ids.combine_chunks()
        found = {stage: [LEDGER_SCHEMA.empty_table()] for stage in _EARLY}
        for stage, table in self._tables():
            about = table.filter(pc.is_in(table["id"], names))
            found[stage].append(about.select(LEDGER_SCHEMA.names).cast(LEDGER_SCHEMA))
        return {stage: pa.concat_tables(tables) for stage, tables in found.items()}

    def _tables(self) -> Iterator[tuple[str, pa.Table]]:
        for stage in _EARLY:
            for file in self._base.published.below(f"removed/stage={stage}"):
                yield stage, file.table()


def _losses(dropped: Mapping[str, pa.Table]) -> dict[str, Losses]:
    """What the counts lose with rows of the ledger. Documents that a stage had removed now pass it."""
    losses = {stage: Losses() for stage in _EARLY}
    for stage, rows in dropped.items():
        for row in count_removed(rows):
            label = (row["dataset"], row["source"])
            losses[stage].removed.setdefault(label, Counter())[row["reason"]] += row["num_docs"]
            losses[stage].add(label, removed_bytes=row["num_bytes"])
            for passed in _EARLY[_EARLY.index(stage) :]:
                losses[passed].add(label, documents=-row["num_docs"])
            if stage == "clean":
                losses[stage].add(label, spans=row["num_spans"])
    whole = dropped["clean"].filter(pc.is_null(dropped["clean"]["start"]))
    for row in whole.to_pylist():
        if row["reason"] not in BEFORE_FILTERS:
            digest = multiset_digest([row["id"]], [row["removed_text"]])
            losses["clean"].add((row["dataset"], row["source"]), digest_before_filters=digest)
    return losses


def _spans(rows: pa.Table) -> dict[str, list[SpanBytes]]:
    """The spans that filters removed, by document."""
    found: dict[str, list[SpanBytes]] = {}
    for row in rows.filter(pc.is_valid(rows["start"])).to_pylist():
        if row["end"] > row["start"]:
            span = (row["start"], row["end"], row["removed_text"], mask_bytes(row["detail"]))
            found.setdefault(row["id"], []).append(span)
    return found


def _texts(base: Base, rows: pa.Table) -> Iterator[tuple[str, _Label, bytes]]:
    """The id, dataset and source, and text of documents of one shard."""
    ref = base.refs[rows["shard"][0].as_py()]
    wanted = rows["row"].to_numpy()
    for first, batch in read_clean_rows("", ref, wanted):
        mine = wanted[(wanted >= first) & (wanted < first + batch.num_rows)]
        part = pa.Table.from_batches([batch]).take(pa.array(mine - first)).combine_chunks()
        owners = (part[name].to_pylist() for name in ("id", "dataset", "source"))
        for identifier, dataset, source, view in zip(*owners, text_views(part), strict=True):
            yield identifier, (dataset, source), bytes(view)


def _without(documents: pa.Table, ids: frozenset[str]) -> pa.Table:
    return documents.filter(pc.invert(pc.is_in(documents["id"], pa.array(sorted(ids), pa.string()))))
