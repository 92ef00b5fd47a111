"""Decides the documents of a stage that new and changed documents touch; the decisions about all others stay.

    ask       keys of new and changed documents, as they are and as they were; which earlier documents share them
    widen     those documents ask in turn, as far as the stage's rule reaches (`Neighbours.reach`)
    decide    the stage itself, given these documents alone
    join      its decisions replace those about the documents that may be decided otherwise

The index that this needs is made by the first snapshot, from all documents, and grows with each later one.

Decision: docs/decisions/0061-an-index-of-keys.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from finpile import key_index, stage_record, storage
from finpile.dedup.substring.spans import SPAN_SCHEMA
from finpile.key_index import Generation
from finpile.version import __version__
from finpile_pipelines.dedup.remaining import NO_ROWS
from finpile_pipelines.dedup.removals import (
    REMOVAL_SCHEMA,
    read_removals,
    read_spans,
    spans_url,
    write_removals,
)
from finpile_pipelines.exchange.tasks import Gather, Tasks, sum_of
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import RemovalFolder, ShardRef
from finpile_pipelines.snapshots.base import Base
from finpile_pipelines.snapshots.inputs import changed_inputs, earlier_removals
from finpile_pipelines.snapshots.neighbours import Answer, Asking, Found, KeySearch, union, without
from finpile_pipelines.stage import Context, Neighbours, Outcome, Stage

#: In the counts of a stage: it decided some documents again, and its removals are in the folder of this name.
DECIDED = "decided"
#: The folder in which the stage itself works.
_AGAIN = "again"


def from_index(stage: Stage, base: Base) -> Stage:
    """The stage as a snapshot after `base` runs it: with the index if it has neighbours, else as a build does."""
    return replace(stage, run=partial(_run, stage, base), removal_folders=partial(_removal_folders, stage))


def _removal_folders(stage: Stage, folder: str, counts: Mapping[str, Any]) -> Sequence[str]:
    return [storage.join(folder, DECIDED)] if DECIDED in counts else stage.removal_folders(folder, counts)


def _run(stage: Stage, base: Base, context: Context) -> Outcome:
    neighbours = stage.neighbours(context.config)
    if neighbours is None or stage.settings(context) is None or stage.name not in base.records:
        return stage.run(context)
    return _Again(stage, neighbours, base, context).run()


class _Again:
    def __init__(self, stage: Stage, neighbours: Neighbours, base: Base, context: Context) -> None:
        self._stage = stage
        self._neighbours = neighbours
        self._base = base
        self._context = context
        self._removals = context.earlier_removals
        self._removals_before = earlier_removals(base, context)
        self._asking, self._deciding, self._joining = context.engine.parts(3, 6, 1)

    def run(self) -> Outcome:
        context, base = self._context, self._base
        changed = changed_inputs(base, context)
        found, decided = self._reached(changed.now, changed.before)
        new = {ref.index: None for ref in context.refs if ref.index >= len(base.refs)}
        counts: Mapping[str, Any] = base.records[self._stage.name].counts
        folders: Sequence[str] = ()
        if found or new:
            part = replace(context, engine=self._deciding, rows={**found, **new}, part=_AGAIN)
            counts = self._stage.run(part).counts
            folders = self._stage.removal_folders(part.folder, counts)
        join = _Join(
            before=self._folders_before(),
            after=tuple(folders),
            replaced=union(decided, changed.before),
            num_before=len(base.refs),
            folder=storage.join(context.folder, DECIDED),
        )
        removed = join.run(self._joining, context.refs, f"{self._stage.name}: join")
        storage.remove_tree(storage.join(context.folder, _AGAIN))
        sizes = {"read": _size(found), "again": _size(decided)}
        return Outcome(counts={**counts, "removed": removed, DECIDED: sizes})

    def _reached(self, now: Found, before: Found) -> tuple[Found, Found]:
        """The earlier documents that the stage has to be given, and those of them that may be decided otherwise."""
        context, base, neighbours = self._context, self._base, self._neighbours
        generations = self._generations()
        search = self._search(generations)
        new = tuple(ref for ref in context.refs if ref.index >= len(base.refs))
        asking = [
            Asking(refs=new, removals=self._removals, rows={ref.index: None for ref in new}, is_new=True),
            self._asking_for(now, is_new=True),
            replace(self._asking_for(before), removals=self._removals_before),
        ]
        num_new = context.text_bytes() - sum(row["text_bytes"] for row in base.counts("clean")["sources"])
        num_parts = key_index.num_parts(num_new // neighbours.bytes_of_key)
        first, more = self._asking.parts(1, 1)
        storage.remove_tree(key_index.generation_folder(self._index, base.number + 1))
        answer = search(first, asking, num_parts, base.number + 1)
        generation = Generation(
            number=base.number + 1, mark=self._mark(), after=generations[0].mark, entries=answer.entries
        )
        key_index.write_generation(self._index, generation)
        if neighbours.reach == "equal":
            reached = union(answer.rows, now)
            return reached, reached
        if neighbours.reach == "connected":
            return self._connected(partial(search, more), union(answer.rows, now), now)
        return self._shared(partial(search, more), answer, now)

    def _connected(self, search: Callable[..., Answer], reached: Found, asked: Found) -> tuple[Found, Found]:
        while frontier := without(reached, asked):
            asked = union(asked, frontier)
            reached = union(reached, search([self._asking_for(frontier)], 1).rows)
        return reached, reached

    def _shared(self, search: Callable[..., Answer], answer: Answer, now: Found) -> tuple[Found, Found]:
        is_causal = self._context.config.dedup.order == "time"
        asking = self._asking_for(without(answer.rows, now))
        if is_causal:
            asking = replace(asking, not_before=answer.first_end)
        second = search([asking], 1)
        decided = union(now, second.asked)
        return union(decided, answer.rows, second.rows), decided

    def _asking_for(self, rows: Found, is_new: bool = False) -> Asking:
        refs = tuple(ref for ref in self._base.refs if ref.index in rows)
        return Asking(refs=refs, removals=self._removals, rows=rows, is_new=is_new)

    def _generations(self) -> list[Generation]:
        """The index of the documents of the snapshot before, which is made if it is not there."""
        base, context, name = self._base, self._context, self._stage.name
        mark = base.records[name].fingerprint
        found = key_index.generations(self._index, base.number, mark)
        if found is not None:
            return found
        size = sum(row["text_bytes"] for row in base.counts("clean")["sources"])
        num_parts = key_index.num_parts(size // self._neighbours.bytes_of_key)
        rows = {ref.index: None for ref in base.refs}
        asking = Asking(refs=base.refs, removals=self._removals_before, rows=rows, is_new=True)
        storage.remove_tree(key_index.generation_folder(self._index, base.number))
        answer = self._search([])(context.engine.part(0, 1), [asking], num_parts, base.number)
        generation = Generation(number=base.number, mark=mark, after=None, entries=answer.entries)
        key_index.write_generation(self._index, generation)
        return [generation]

    def _search(self, generations: Sequence[Generation]) -> Callable[..., Answer]:
        context, name = self._context, self._stage.name

        def search(engine: Engine, asking: Sequence[Asking], num_parts: int, writes: int | None = None) -> Answer:
            found = KeySearch(
                engine,
                context.config,
                context.clean_folder,
                self._neighbours.keys,
                index=self._index,
                generations=generations,
                scratch=storage.join(context.folder, "scratch"),
            )
            return found.run(f"{name}: keys", asking, num_parts, writes)

        return search

    @property
    def _index(self) -> str:
        return self._base.layout.index(self._stage.name)

    def _mark(self) -> str:
        """The fingerprint that the record of the stage will have."""
        context = self._context
        before = [record.fingerprint for record in context.records.values()][-1:]
        return stage_record.fingerprint(__version__, self._stage.name, self._stage.settings(context), before)

    def _folders_before(self) -> tuple[RemovalFolder, ...]:
        """Where the stage left its removals in the snapshot before."""
        return self._base.context(self._context).removal_folders[self._stage.name]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Join:
    """Writes the decisions about all documents. It is pickled for the workers."""

    before: tuple[RemovalFolder, ...]
    after: tuple[RemovalFolder, ...]
    replaced: Found
    """Documents of earlier shards whose decisions are those of `after`, if it has some; those of others stay."""
    num_before: int
    folder: str

    def run(self, engine: Engine, refs: Sequence[ShardRef], name: str) -> int:
        """Returns the number of documents that are removed."""
        url = storage.join(self.folder, "joined.json")

        def construct(pipeline: beam.Pipeline) -> None:
            _ = (
                pipeline
                | Tasks([ref.index for ref in refs], note="join")
                | "Join" >> beam.Map(self._join)
                | Gather(url)
            )

        engine.run(name, construct)
        return sum_of("removed")(storage.read_json(url))

    def _join(self, shard: int) -> dict[str, int]:
        removals = self._joined(shard, read_removals, REMOVAL_SCHEMA)
        if removals.num_rows:
            write_removals(self.folder, shard, removals)
        spans = self._joined(shard, read_spans, SPAN_SCHEMA)
        if spans.num_rows:
            order = [(name, "ascending") for name in ("row", "start", "end")]
            storage.write_parquet(spans_url(self.folder, shard), spans.sort_by(order))
        return {"shard": shard, "removed": removals.num_rows}

    def _joined(self, shard: int, read: Callable[[RemovalFolder, int], pa.Table], schema: pa.Schema) -> pa.Table:
        after = pa.concat_tables([schema.empty_table(), *(read(folder, shard) for folder in self.after)])
        if shard >= self.num_before:
            return after
        replaced = self.replaced.get(shard, NO_ROWS)
        before = pa.concat_tables([schema.empty_table(), *(read(folder, shard) for folder in self.before)])
        return pa.concat_tables([_of_rows(before, replaced, other=True), _of_rows(after, replaced)])


def _of_rows(table: pa.Table, rows: Any, other: bool = False) -> pa.Table:
    """The decisions about the rows, or about all other ones."""
    return table.filter(pa.array(np.isin(table["row"].to_numpy(), rows) ^ other))


def _size(found: Found) -> int:
    return sum(map(len, found.values()))
