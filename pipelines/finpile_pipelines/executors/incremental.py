"""Runs a plan on the documents that new and changed ones touch; the decisions about all others stay.

    ask       keys of new and changed documents, as they are and as they were; which earlier documents share them
    widen     those documents ask in turn, as far as the pass's rule reaches (`Index.reach`)
    decide    the pass itself, given these documents alone
    join      its decisions replace those about the documents that may be decided otherwise

The index that this needs is made by the first snapshot, from all documents, and grows with each later one.

Decision: docs/decisions/0061-an-index-of-keys.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from finpile import storage
from finpile.dedup.plan import Index, Pass
from finpile.output import key_index
from finpile.output.key_index import Generation
from finpile.output.layout import Layout
from finpile.output.stage_record import StageRecord
from finpile.output.work_folder import WorkFolder
from finpile.plugins.stages import Algorithm
from finpile_pipelines.dedup.removals import (
    NO_ROWS,
    read_removals,
    read_spans,
    spans_file,
    write_removals,
)
from finpile_pipelines.executors import stage as whole
from finpile_pipelines.executors.changed_inputs import changed_inputs, shards_to_compare
from finpile_pipelines.executors.neighbours import Answer, Asking, Found, KeySearch, union, without
from finpile_pipelines.executors.shards import PlanOverShards
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import FinishedFolder, RemovalFolder, ShardRef
from finpile_pipelines.stage import Context, Outcome, Stage

#: In the counts of a stage: it decided some documents again.
DECIDED = "decided"
#: The folder in which a pass works.
_AGAIN = "again"


@dataclass(frozen=True, kw_only=True, slots=True)
class Before:
    """The snapshot before the one that is made."""

    number: int
    refs: tuple[ShardRef, ...]
    """All clean shards."""
    records: Mapping[str, StageRecord]
    """Of the dedup stages."""
    removal_folders: Mapping[str, Sequence[FinishedFolder]]
    """Where they left removals and spans."""
    text_bytes: int
    """Of clean text."""
    layout: Layout


def stage_of(algorithm: Algorithm, before: Before) -> Stage:
    """The stage as a snapshot runs it: on what new documents touch if its plan has an index, else as a build does."""
    return replace(whole.stage_of(algorithm), run=partial(_run, before))


def _run(before: Before, context: Context) -> Outcome:
    name, prepared = context.info.name, whole.prepared_of(context)
    if prepared is None or name not in before.records:
        return whole.run(context)
    passes = [(one, one.index) for one in prepared.plan.passes if one.index is not None]
    if len(passes) < len(prepared.plan.passes):
        return whole.run(context)
    plan = whole.over_shards(context, prepared)
    earlier = [folder for stage in context.removal_folders for folder in before.removal_folders.get(stage, ())]
    own = [_folder_of(one, before.removal_folders[name]) for one, _ in passes]
    shards = shards_to_compare(before.records, context.records, context.removal_folders, len(before.refs))
    decided: dict[str, dict[str, int]] = {}
    engines = context.engine.parts(*[1] * len(passes))
    for number, (one, index) in enumerate(passes):
        again = _Again(
            one=one,
            index=index,
            plan=replace(plan, engine=engines[number]),
            context=context,
            before=before,
            removals_before=(*earlier, *own[:number]),
            own_before=own[number],
        )
        decided[one.name], changed = again.run(shards)
        shards |= changed
        documents = replace(plan.documents, removals=(*plan.documents.removals, again.folder))
        plan = replace(plan, documents=documents)
    removed = sum(counts["removed"] for counts in decided.values())
    return Outcome(counts={**before.records[name].counts, "removed": removed, DECIDED: decided})


def _folder_of(one: Pass, folders: Sequence[FinishedFolder]) -> FinishedFolder:
    """The folder in which a pass left removals and spans; it is missing if it left none."""
    found = (folder for folder in folders if folder.path.name == one.name)
    return next(found, FinishedFolder(WorkFolder(one.name), {}))


@dataclass(frozen=True, kw_only=True)
class _Again:
    """One pass."""

    one: Pass
    index: Index
    plan: PlanOverShards
    """With the removals of earlier stages and passes."""
    context: Context
    before: Before
    removals_before: tuple[RemovalFolder, ...]
    """What earlier stages and passes removed in the snapshot before."""
    own_before: RemovalFolder
    """What this pass removed then."""

    @property
    def folder(self) -> WorkFolder:
        """Where the decisions about all documents are."""
        return self.plan.folder_of(self.one)

    def run(self, shards: Iterable[int]) -> tuple[dict[str, int], set[int]]:
        """Returns the numbers of documents that are removed, read and decided again, and the shards of the last.

        Of the earlier `shards`, documents may have changed.
        """
        plan, before = self.plan, self.before
        asking, deciding, joining = plan.engine.parts(3, 6, 1)
        changed = changed_inputs(self.removals_before, self._removals, shards)
        found, decided = self._reached(asking, changed.now, changed.before)
        rows = {**found, **{ref.index: None for ref in plan.refs if ref.index >= len(before.refs)}}
        part = replace(
            plan,
            refs=tuple(ref for ref in plan.refs if ref.index in rows),
            documents=replace(plan.documents, rows=rows),
            folder=plan.folder / _AGAIN,
            engine=deciding,
        )
        join = _Join(
            before=self.own_before,
            after=part.run_pass(self.one) if rows else part.folder_of(self.one),
            replaced=union(decided, changed.before),
            num_before=len(before.refs),
            folder=self.folder,
        )
        removed = join.run(joining, plan.refs, f"{plan.stage}: join")
        part.folder.remove()
        return {"removed": removed, "read": _size(found), "again": _size(decided)}, set(join.replaced)

    def _reached(self, engine: Engine, now: Found, before: Found) -> tuple[Found, Found]:
        """The earlier documents that the step has to be given, and those of them that may be decided otherwise."""
        known, generations = self.before, self._generations()
        search = self._search(generations)
        new = tuple(ref for ref in self.plan.refs if ref.index >= len(known.refs))
        asking = [
            Asking(refs=new, removals=self._removals, rows={ref.index: None for ref in new}, is_new=True),
            self._asking_for(now, is_new=True),
            replace(self._asking_for(before), removals=self.removals_before),
        ]
        num_parts = self._num_parts(self.context.text_bytes() - known.text_bytes)
        first, more = engine.parts(1, 1)
        number = known.number + 1
        storage.remove_tree(key_index.generation_folder(self._folder_of_index, number))
        answer = search(first, asking, num_parts, number)
        added = Generation(number=number, mark=self.context.mark, after=generations[0].mark, footers=answer.footers)
        key_index.write_generation(self._folder_of_index, added)
        if self.index.reach == "equal":
            reached = union(answer.rows, now)
            return reached, reached
        if self.index.reach == "connected":
            return self._connected(partial(search, more), union(answer.rows, now), now)
        return self._shared(partial(search, more), answer, now)

    def _connected(self, search: Callable[..., Answer], reached: Found, asked: Found) -> tuple[Found, Found]:
        while frontier := without(reached, asked):
            asked = union(asked, frontier)
            reached = union(reached, search([self._asking_for(frontier)], 1).rows)
        return reached, reached

    def _shared(self, search: Callable[..., Answer], answer: Answer, now: Found) -> tuple[Found, Found]:
        asking = self._asking_for(without(answer.rows, now))
        if self.index.is_causal:
            asking = replace(asking, not_before=answer.first_end)
        second = search([asking], 1)
        decided = union(now, second.asked)
        return union(decided, answer.rows, second.rows), decided

    def _asking_for(self, rows: Found, is_new: bool = False) -> Asking:
        refs = tuple(ref for ref in self.before.refs if ref.index in rows)
        return Asking(refs=refs, removals=self._removals, rows=rows, is_new=is_new)

    def _generations(self) -> list[Generation]:
        """The index of the documents of the snapshot before, which is made if it is not there."""
        before = self.before
        number, mark = before.number, before.records[self.plan.stage].fingerprint
        found = key_index.generations(self._folder_of_index, number, mark)
        if found is not None:
            return found
        rows = {ref.index: None for ref in before.refs}
        asking = Asking(refs=before.refs, removals=self.removals_before, rows=rows, is_new=True)
        storage.remove_tree(key_index.generation_folder(self._folder_of_index, number))
        num_parts = self._num_parts(before.text_bytes)
        answer = self._search([])(self.plan.engine.part(0, 1), [asking], num_parts, number)
        generation = Generation(number=number, mark=mark, after=None, footers=answer.footers)
        key_index.write_generation(self._folder_of_index, generation)
        return [generation]

    def _search(self, generations: Sequence[Generation]) -> Callable[..., Answer]:
        plan = self.plan
        # Documents that are taken down now had keys before.
        documents = replace(plan.documents, sees_removed=self.one.sees_removed, takedowns=())

        def search(engine: Engine, asking: Sequence[Asking], num_parts: int, writes: int | None = None) -> Answer:
            found = KeySearch(
                engine=engine,
                documents=documents,
                keys=self.index,
                index=self._folder_of_index,
                generations=tuple(generations),
                scratch=plan.folder / "scratch",
            )
            return found.run(f"{plan.stage}: keys", asking, num_parts, writes)

        return search

    @property
    def _removals(self) -> tuple[RemovalFolder, ...]:
        return self.plan.documents.removals

    @property
    def _folder_of_index(self) -> str:
        return self.before.layout.index(self.plan.stage, self.one.name)

    def _num_parts(self, text_bytes: int) -> int:
        return key_index.num_parts(text_bytes // self.index.bytes_of_key)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Join:
    """Writes the decisions about all documents. It is pickled for the workers."""

    before: RemovalFolder
    after: WorkFolder
    replaced: Found
    """Documents of earlier shards whose decisions are those of `after`, if it has some; those of others stay."""
    num_before: int
    folder: WorkFolder

    def run(self, engine: Engine, refs: Sequence[ShardRef], name: str) -> int:
        """Returns the number of documents that are removed."""
        file = self.folder.file("joined.json")
        outcomes = engine.run_tasks(name, [ref.index for ref in refs], self._join, file, "join")
        return sum(outcome["removed"] for outcome in outcomes)

    def _join(self, shard: int) -> dict[str, int]:
        removals = self._joined(shard, read_removals)
        if removals.num_rows:
            write_removals(self.folder, shard, removals)
        spans = self._joined(shard, read_spans)
        if spans.num_rows:
            order = [(name, "ascending") for name in ("row", "start", "end")]
            storage.write_parquet(spans_file(self.folder, shard), spans.sort_by(order))
        return {"shard": shard, "removed": removals.num_rows}

    def _joined(self, shard: int, read: Callable[[RemovalFolder, int], pa.Table]) -> pa.Table:
        after = read(self.after, shard)
        if shard >= self.num_before:
            return after
        replaced = self.replaced.get(shard, NO_ROWS)
        return pa.concat_tables([_of_rows(read(self.before, shard), replaced, other=True), _of_rows(after, replaced)])


def _of_rows(table: pa.Table, rows: Any, other: bool = False) -> pa.Table:
    """The decisions about the rows, or about all other ones."""
    return table.filter(pa.array(np.isin(table["row"].to_numpy(), rows) ^ other))


def _size(found: Found) -> int:
    return sum(map(len, found.values()))
