"""Finds the documents of earlier snapshots that share keys with new and changed ones, by the index below `OUT/index`.

    keys of documents --by range of keys--> the index: places with the same keys --by shard--> rows of earlier shards

In the same pass, the keys of new documents are written as this snapshot's part of the index.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile import storage
from finpile.dedup.order import UNDATED, ends
from finpile.dedup.plan import KEY_SCHEMA, Index
from finpile.output import key_index
from finpile.output.key_index import ENTRY_SCHEMA, PLACE_SCHEMA, Generation
from finpile.output.work_folder import WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.dedup.removals import NO_ROWS
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, by_range, split_by_partition
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.executors.shard_documents import ShardDocuments
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import RemovalFolder, Rows, ShardRef, read_clean_rows

_I32 = npt.NDArray[np.int32]
#: Rows of earlier shards, by shard, ascending.
Found = Mapping[int, _I32]
_SENT_SCHEMA = ENTRY_SCHEMA.append(pa.field("is_entry", pa.bool_()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """Documents whose keys are looked for. It is pickled for the workers."""

    refs: Sequence[ShardRef]
    removals: tuple[RemovalFolder, ...]
    rows: Rows
    """Documents of the shards `refs`; only those that `removals` leave have keys."""
    not_before: int | None = None
    """Documents whose `end` is before this second are left out."""
    is_new: bool = False
    """Whether their keys become entries of the index."""

    def of(self, ref: ShardRef) -> "Asking":
        """The documents of one shard."""
        return replace(self, refs=(ref,), rows={ref.index: self.rows.get(ref.index, NO_ROWS)})


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What was found."""

    rows: Found
    """Of earlier shards: documents that share a key with one of the requested ones."""
    asked: Found
    """The requested documents, but for those of new shards."""
    first_end: int
    """The smallest `end` of those."""
    footers: tuple[str | None, ...]
    """Of the parts that were written (`Generation.footers`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KeySearch:
    """Searches in the index of one pass. The rows and removals of `documents` are those of `Asking`."""

    engine: Engine
    documents: ShardDocuments
    keys: Index
    index: str
    """The folder of the index."""
    generations: tuple[Generation, ...]
    scratch: WorkFolder

    def run(self, name: str, asking: Sequence[Asking], num_parts: int, writes: int | None = None) -> Answer:
        """Looks for the keys of the documents of `asking`, and writes those that are new as generation `writes`."""
        engine, scratch = self.engine, self.scratch / "keys"
        found, asked, parts = (scratch.file(f"{name}.json") for name in ("found", "asked", "parts"))
        steps = _Steps(self.documents, self.keys, self.index, self.generations, scratch, num_parts, writes)
        tasks = [(one.of(ref), ref) for one in asking for ref in one.refs]

        def construct(pipeline: graph.Pipeline) -> None:
            transport = engine.exchange_transport

            def exchange(label: str, share: float, schema: pa.Schema, partitions: int) -> ExchangeByPartition:
                return ExchangeByPartition(transport, scratch, label, share, schema=schema, partitions=partitions)

            sent = pipeline | Tasks(list(enumerate(tasks)), 0.6, note="keys") | "Keys" >> graph.Map(steps.send)
            _ = sent | "Asked" >> graph.item(0, dict[str, Any]) | "GatherAsked" >> Gather(asked)
            keys = sent | "Sent" >> graph.item(1, PartitionedTables)
            by_range = keys | exchange("KeysByRange", 0.3 / num_parts, _SENT_SCHEMA, num_parts)
            searched = by_range | "Search" >> graph.Map(steps.search)
            _ = searched | "Parts" >> graph.item(0, dict[str, Any]) | "GatherParts" >> Gather(parts)
            places = searched | "Places" >> graph.item(1, PartitionedTables)
            by_shard = places | exchange("PlacesByShard", 0.1, PLACE_SCHEMA, 0)
            _ = by_shard | "Write" >> graph.Map(steps.write) | "GatherFound" >> Gather(found)

        engine.run(name, construct)
        told = storage.read_json(asked)
        written = {one["part"]: one["footer"] for one in storage.read_json(parts)}
        answer = Answer(
            rows={one["shard"]: steps.read("found", one["shard"]) for one in storage.read_json(found)},
            asked=union(
                *({one["shard"]: steps.read(f"asked-{one['task']}", one["shard"])} for one in told if one["old"])
            ),
            first_end=min((one["first_end"] for one in told), default=UNDATED),
            footers=tuple(written.get(part) for part in range(num_parts)),
        )
        scratch.remove()
        return answer


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of a search. It is pickled for the workers."""

    documents: ShardDocuments
    keys: Index
    index: str
    generations: tuple[Generation, ...]
    scratch: WorkFolder
    num_parts: int
    writes: int | None

    def send(self, task: tuple[int, tuple[Asking, ShardRef]]) -> tuple[dict[str, Any], PartitionedTables]:
        """The keys of documents of a shard, and which documents these are."""
        number, (asking, ref) = task
        rows, first_end = self._selected(asking, ref)
        tables = [KEY_SCHEMA.empty_table()]
        if rows is None or len(rows):
            documents = replace(self.documents, removals=asking.removals, rows={ref.index: rows})
            tables += map(self.keys.keys, documents.pieces(ref, self.keys.reads))
        found = pa.concat_tables(tables)
        report_progress(len(rows) if rows is not None else 0, found.nbytes)
        is_old = rows is not None
        if is_old:
            file = self.scratch.numbered(f"asked-{number}", ref.index)
            storage.write_parquet(file, pa.table({"row": rows}), durable=False)
        size = found.num_rows
        columns = [
            found["key"].combine_chunks(),
            pa.array(np.full(size, ref.index, np.int32)),
            found["row"].combine_chunks(),
            pa.array(np.full(size, asking.is_new)),
        ]
        table = pa.Table.from_arrays(columns, schema=_SENT_SCHEMA)
        parts = split_by_partition(table, by_range(table["key"].to_numpy(), self.num_parts))
        told = {"task": number, "shard": ref.index, "old": is_old, "first_end": first_end}
        return told, PartitionedTables(f"{number:06d}", parts)

    def search(self, received: tuple[int, pa.Table]) -> tuple[dict[str, Any], PartitionedTables]:
        """The places of earlier documents with the keys of a range; writes those of new documents."""
        part, sent = received
        footer, places = None, self._places(sent)
        if self.writes is not None:
            entries = sent.filter(sent["is_entry"]).select(ENTRY_SCHEMA.names).combine_chunks()
            folder = key_index.generation_folder(self.index, self.writes)
            footer = key_index.write_part(folder, part, self.num_parts, entries)
        distinct = places.group_by(["shard", "row"], use_threads=False).aggregate([]).combine_chunks()
        tables_by_shard = split_by_partition(distinct, distinct["shard"].to_numpy())
        return {"part": part, "footer": footer}, PartitionedTables(f"{part:06d}", tables_by_shard)

    def _places(self, sent: pa.Table) -> pa.Table:
        """The places of earlier documents with one of the keys."""
        if not self.generations:
            return PLACE_SCHEMA.empty_table()
        keys = np.unique(sent["key"].to_numpy())
        return pa.concat_tables([key_index.search(self.index, generation, keys) for generation in self.generations])

    def write(self, received: tuple[int, pa.Table]) -> dict[str, Any]:
        """Writes the places that were found in a shard."""
        shard, places = received
        rows = np.unique(places["row"].to_numpy())
        storage.write_parquet(self.scratch.numbered("found", shard), pa.table({"row": rows}), durable=False)
        return {"shard": shard, "rows": len(rows)}

    def read(self, kind: str, shard: int) -> _I32:
        return np.asarray(storage.read_parquet(self.scratch.numbered(kind, shard))["row"].to_numpy())

    def _selected(self, asking: Asking, ref: ShardRef) -> tuple[_I32 | None, int]:
        """The requested rows of a shard, None for all, and their smallest `end`."""
        rows = asking.rows.get(ref.index, NO_ROWS)
        selected, first_end = [NO_ROWS], UNDATED
        for first, batch in read_clean_rows(ref, rows, ["timestamp"]):
            end = ends(batch["timestamp"])
            if rows is not None:
                mine = rows[(rows >= first) & (rows < first + batch.num_rows)]
                end = end[mine - first]
                if asking.not_before is not None:
                    mine, end = mine[end >= asking.not_before], end[end >= asking.not_before]
                selected.append(mine)
            first_end = min(first_end, int(end.min(initial=UNDATED)))
        return None if rows is None else np.concatenate(selected), first_end


def union(*found: Mapping[int, _I32]) -> Found:
    """The rows of several, by shard."""
    shards = sorted({shard for one in found for shard in one})
    return {shard: np.unique(np.concatenate([one.get(shard, NO_ROWS) for one in found])) for shard in shards}


def without(found: Mapping[int, _I32], other: Mapping[int, _I32]) -> Found:
    """The rows of one that are not in the other, by shard; without shards of which none is left."""
    left = {shard: np.setdiff1d(rows, other.get(shard, NO_ROWS)) for shard, rows in found.items()}
    return {shard: rows for shard, rows in left.items() if len(rows)}
