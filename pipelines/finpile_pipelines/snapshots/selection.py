"""Finds the documents that are to be taken down: in clean shards, and in the ledger of what `clean` removed before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.counts.stages import EARLY, Counts, StageCounts
from finpile.counts.texts import TextCounts
from finpile.documents.document import CLEAN_SCHEMA, Label, text_views
from finpile.documents.ledger import LEDGER_SCHEMA, count_removed
from finpile.output.takedowns import TAKEDOWN, TAKEDOWN_SCHEMA, Wanted, read_list, takedown_rows
from finpile.output.work_folder import WorkFile, WorkFolder
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef, read_clean_rows
from finpile_pipelines.snapshots.base import Base

_RECORD = ("dataset", "source", "locator")
#: The last part of a locator: `/attachment-1`, `#scanned`.
_CONTINUED = "[/#][^/#]*$"
_WITHOUT_TEXT = [name for name in CLEAN_SCHEMA.names if name != "text"]


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents that a snapshot takes down."""

    rows: pa.Table = field(default_factory=TAKEDOWN_SCHEMA.empty_table)
    """`TAKEDOWN_SCHEMA`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the manifest of the snapshot says about them."""
    changes: StageCounts = field(default_factory=StageCounts)
    """What the counts of `ingest` and `clean` gain; what they lose is negative."""


def select(base: Base, engine: Engine, wanted: Wanted, why: str, known: pa.Table) -> Selection:
    """The wanted documents of a snapshot, without those that are `known` to be taken down."""
    number = base.number + 1
    scratch = WorkFolder(base.layout.snapshot_work(number).root) / "selection"
    find = _Find(wanted, why, number, frozenset(known["id"].to_pylist()), scratch)
    outcomes = engine.run_tasks("select", base.refs, find.in_shard, scratch.file("found.json"), "select")
    shards = [one["shard"] for one in outcomes if one["found"]]
    tables = [read_list(find.file(shard)) for shard in sorted(shards)]
    early = _EarlyLedger(base)
    rows = pa.concat_tables([*tables, early.find(wanted, why, number, find.known)])
    rows = pa.concat_tables([rows, early.parts_of(rows, why, number, find.known)]).sort_by("id")
    dropped = early.rows_about(rows["id"])
    changes = _changes(dropped)
    texts = TextCounts()
    texts.add_spans(dropped["clean"])
    for row in dropped["clean"].filter(pc.is_null(dropped["clean"]["start"])).to_pylist():
        texts.add_removed(row)
    for table in tables:
        for identifier, label, text in _texts(base, table):
            texts.add(label, identifier, text)
            changes.change("clean", label, Counts(text_bytes=len(text)), -1)
    changes.merge(texts.counts, -1)
    scratch.remove()
    return Selection(rows=rows, changes=changes)


@dataclass(frozen=True, slots=True)
class _Find:
    """Finds documents in clean shards. It is pickled for the workers."""

    wanted: Wanted
    why: str
    number: int
    known: frozenset[str]
    scratch: WorkFolder

    def in_shard(self, ref: ShardRef) -> dict[str, Any]:
        """Writes the wanted documents of a shard, if there are any."""
        tables = []
        for first, batch in read_clean_rows(ref, None, _WITHOUT_TEXT):
            documents = pa.Table.from_batches([batch])
            report_progress(batch.num_rows, documents.nbytes)
            documents = documents.append_column(
                "row", pa.array(np.arange(first, first + batch.num_rows, dtype=np.int32))
            )
            chosen = documents.take(pa.array(self.wanted.find(documents)))
            tables.append(takedown_rows(_without(chosen, self.known), self.why, self.number, ref.index))
        found = pa.concat_tables([TAKEDOWN_SCHEMA.empty_table(), *tables])
        if found.num_rows:
            storage.write_parquet(self.file(ref.index), found, durable=False)
        return {"shard": ref.index, "found": found.num_rows}

    def file(self, shard: int) -> WorkFile:
        return self.scratch.file(f"{shard:06d}.parquet")


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

    def parts_of(self, documents: pa.Table, why: str, number: int, known: frozenset[str]) -> pa.Table:
        """The rows of `ingest` about what the documents do not have of their records, such as attachments of mail, as
        `TAKEDOWN_SCHEMA`: their locators continue those of the documents."""
        owners = set(zip(*(documents[name].to_pylist() for name in _RECORD), strict=True))
        locators, ids = documents["locator"].combine_chunks(), known | set(documents["id"].to_pylist())
        found = [TAKEDOWN_SCHEMA.empty_table()]
        for file in self._base.published.below("removed/stage=ingest"):
            rows, mine = _without(file.table(), ids), set()
            left = rows["locator"]
            while pc.any(pc.match_substring_regex(left, _CONTINUED)).as_py():
                left = pc.replace_substring_regex(left, _CONTINUED, "")
                for row in pc.indices_nonzero(pc.is_in(left, locators)).to_pylist():
                    owner = (rows["dataset"][row].as_py(), rows["source"][row].as_py(), left[row].as_py())
                    mine |= {row} if owner in owners else set()
            found.append(takedown_rows(rows.take(pa.array(sorted(mine), pa.int64())), why, number))
        return pa.concat_tables(found)

    def rows_about(self, ids: pa.ChunkedArray) -> dict[str, pa.Table]:
        """All rows about documents, by stage."""
        names = ids.combine_chunks()
        found = {stage: [LEDGER_SCHEMA.empty_table()] for stage in EARLY}
        for stage, table in self._tables():
            about = table.filter(pc.is_in(table["id"], names))
            found[stage].append(about.select(LEDGER_SCHEMA.names).cast(LEDGER_SCHEMA))
        return {stage: pa.concat_tables(tables) for stage, tables in found.items()}

    def _tables(self) -> Iterator[tuple[str, pa.Table]]:
        for stage in EARLY:
            for file in self._base.published.below(f"removed/stage={stage}"):
                yield stage, file.table()


def _changes(dropped: Mapping[str, pa.Table]) -> StageCounts:
    """What the counts gain if rows of the ledger are replaced by tombstones: documents that `ingest` or `clean` had
    removed now pass it."""
    changes = StageCounts()
    for stage, rows in dropped.items():
        counted = count_removed(rows)
        changes.add_removed(stage, counted, -1)
        changes.add_removed(TAKEDOWN, [{**row, "num_bytes": 0, "num_spans": 0} for row in counted])
    return changes


def _texts(base: Base, rows: pa.Table) -> Iterator[tuple[str, Label, bytes]]:
    """The id, dataset and source, and text of documents of one shard."""
    ref = base.refs[rows["shard"][0].as_py()]
    wanted = rows["row"].to_numpy()
    for first, batch in read_clean_rows(ref, wanted):
        mine = wanted[(wanted >= first) & (wanted < first + batch.num_rows)]
        part = pa.Table.from_batches([batch]).take(pa.array(mine - first)).combine_chunks()
        owners = (part[name].to_pylist() for name in ("id", "dataset", "source"))
        for identifier, dataset, source, view in zip(*owners, text_views(part), strict=True):
            yield identifier, (dataset, source), bytes(view)


def _without(documents: pa.Table, ids: frozenset[str]) -> pa.Table:
    return documents.filter(pc.invert(pc.is_in(documents["id"], pa.array(sorted(ids), pa.string()))))
