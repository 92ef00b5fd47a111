"""Decides the documents of a stage that new and changed documents touch; the decisions about all others stay.

    ask       keys of new and changed documents, as they are and as they were; which earlier documents share them
    widen     those documents ask in turn, as far as the stage's rule reaches (`Step.reach`)
    decide    the step itself, given these documents alone
    join      its decisions replace those about the documents that may be decided otherwise

The index that this needs is made by the first snapshot, from all documents, and grows with each later one.

Decision: docs/decisions/0061-an-index-of-keys.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from finpile import key_index, stage_record, storage
from finpile.key_index import Generation
from finpile.version import __version__
from finpile_pipelines.dedup.removals import (
    NO_ROWS,
    read_removals,
    read_spans,
    spans_url,
    write_removals,
)
from finpile_pipelines.exchange.tasks import Gather, Tasks, sum_of
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import RemovalFolder, ShardRef
from finpile_pipelines.snapshots.base import Base
from finpile_pipelines.snapshots.inputs import changed_inputs, earlier_removals, shards_to_compare
from finpile_pipelines.snapshots.neighbours import Answer, Asking, Found, KeySearch, union, without
from finpile_pipelines.stage import Context, Outcome, Stage, Step

#: In the counts of a stage: it decided some documents again, and its removals are in the folder of this name.
DECIDED = "decided"
#: The folder in which the stage itself works.
_AGAIN = "again"


def from_index(stage: Stage, base: Base) -> Stage:
    """The stage as a snapshot after `base` runs it: by steps if it has some, else as a build does."""
    return replace(stage, run=partial(_run, stage, base), removal_folders=partial(_removal_folders, stage))


def _removal_folders(stage: Stage, folder: str, counts: Mapping[str, Any]) -> Sequence[str]:
    if DECIDED not in counts:
        return stage.removal_folders(folder, counts)
    return [storage.join(folder, DECIDED, step) for step in counts[DECIDED]]


def _run(stage: Stage, base: Base, context: Context) -> Outcome:
    steps = stage.steps(context.config)
    if not steps or stage.settings(context) is None or stage.name not in base.records:
        return stage.run(context)
    before = _before(stage, steps, base, context)
    earlier = earlier_removals(base, context)
    shards = shards_to_compare(base, context)
    decided: dict[str, dict[str, int]] = {}
    step_removals: tuple[RemovalFolder, ...] = ()
    for number, (step, engine) in enumerate(zip(steps, context.engine.parts(*[1] * len(steps)), strict=True)):
        again = _Again(
            stage=stage,
            step=step,
            base=base,
            context=replace(context, engine=engine, step_removals=step_removals),
            removals_before=(*earlier, *before[:number]),
            own_before=before[number],
        )
        decided[step.name], changed = again.run(shards)
        shards |= changed
        step_removals = (*step_removals, again.folder)
    removed = sum(counts["removed"] for counts in decided.values())
    return Outcome(counts={**base.records[stage.name].counts, "removed": removed, DECIDED: decided})


def _before(stage: Stage, steps: Sequence[Step], base: Base, context: Context) -> list[RemovalFolder]:
    """The folders in which the steps left removals in the snapshot before, in the order of the steps."""
    folders = list(base.context(context).removal_folders[stage.name])
    decided = list(base.records[stage.name].counts.get(DECIDED, ()))  # a record has them sorted by name
    return [folders[decided.index(step.name)] for step in steps] if decided else folders


@dataclass(frozen=True, kw_only=True)
class _Again:
    """One step."""

    stage: Stage
    step: Step
    base: Base
    context: Context
    removals_before: tuple[RemovalFolder, ...]
    """What earlier stages and steps removed in the snapshot before."""
    own_before: RemovalFolder
    """What this step removed then."""

    @property
    def folder(self) -> str:
        """Where the decisions about all documents are."""
        return storage.join(self.context.folder, DECIDED, self.step.name)

    def run(self, shards: Iterable[int]) -> tuple[dict[str, int], set[int]]:
        """Returns the numbers of documents that are removed, read and decided again, and the shards of the last.

        Of the earlier `shards`, documents may have changed.
        """
        context, base = self.context, self.base
        asking, deciding, joining = context.engine.parts(3, 6, 1)
        changed = changed_inputs(self.removals_before, context.earlier_removals, shards)
        found, decided = self._reached(asking, changed.now, changed.before)
        new = {ref.index: None for ref in context.refs if ref.index >= len(base.refs)}
        part = replace(context, engine=deciding, rows={**found, **new}, part=storage.join(_AGAIN, self.step.name))
        join = _Join(
            before=self.own_before,
            after=self.step.run(part) if found or new else part.folder,
            replaced=union(decided, changed.before),
            num_before=len(base.refs),
            folder=self.folder,
        )
        removed = join.run(joining, context.refs, f"{self.stage.name}: join")
        storage.remove_tree(storage.join(context.folder, _AGAIN))
        return {"removed": removed, "read": _size(found), "again": _size(decided)}, set(join.replaced)

    def _reached(self, engine: Engine, now: Found, before: Found) -> tuple[Found, Found]:
        """The earlier documents that the step has to be given, and those of them that may be decided otherwise."""
        context, base = self.context, self.base
        generations = self._generations()
        search = self._search(generations)
        new = tuple(ref for ref in context.refs if ref.index >= len(base.refs))
        asking = [
            Asking(refs=new, removals=self._removals, rows={ref.index: None for ref in new}, is_new=True),
            self._asking_for(now, is_new=True),
            replace(self._asking_for(before), removals=self.removals_before),
        ]
        num_parts = self._num_parts(context.text_bytes() - _text_bytes(base))
        first, more = engine.parts(1, 1)
        number = base.number + 1
        storage.remove_tree(key_index.generation_folder(self._index, number))
        answer = search(first, asking, num_parts, number)
        added = Generation(number=number, mark=self._mark(), after=generations[0].mark, entries=answer.entries)
        key_index.write_generation(self._index, added)
        if self.step.reach == "equal":
            reached = union(answer.rows, now)
            return reached, reached
        if self.step.reach == "connected":
            return self._connected(partial(search, more), union(answer.rows, now), now)
        return self._shared(partial(search, more), answer, now)

    def _connected(self, search: Callable[..., Answer], reached: Found, asked: Found) -> tuple[Found, Found]:
        while frontier := without(reached, asked):
            asked = union(asked, frontier)
            reached = union(reached, search([self._asking_for(frontier)], 1).rows)
        return reached, reached

    def _shared(self, search: Callable[..., Answer], answer: Answer, now: Found) -> tuple[Found, Found]:
        asking = self._asking_for(without(answer.rows, now))
        if self.step.is_causal:
            asking = replace(asking, not_before=answer.first_end)
        second = search([asking], 1)
        decided = union(now, second.asked)
        return union(decided, answer.rows, second.rows), decided

    def _asking_for(self, rows: Found, is_new: bool = False) -> Asking:
        refs = tuple(ref for ref in self.base.refs if ref.index in rows)
        return Asking(refs=refs, removals=self._removals, rows=rows, is_new=is_new)

    def _generations(self) -> list[Generation]:
        """The index of the documents of the snapshot before, which is made if it is not there."""
        base = self.base
        number, mark = base.number, base.records[self.stage.name].fingerprint
        found = key_index.generations(self._index, number, mark)
        if found is not None:
            return found
        rows = {ref.index: None for ref in base.refs}
        asking = Asking(refs=base.refs, removals=self.removals_before, rows=rows, is_new=True)
        storage.remove_tree(key_index.generation_folder(self._index, number))
        num_parts = self._num_parts(_text_bytes(base))
        answer = self._search([])(self.context.engine.part(0, 1), [asking], num_parts, number)
        generation = Generation(number=number, mark=mark, after=None, entries=answer.entries)
        key_index.write_generation(self._index, generation)
        return [generation]

    def _search(self, generations: Sequence[Generation]) -> Callable[..., Answer]:
        context = self.context

        def search(engine: Engine, asking: Sequence[Asking], num_parts: int, writes: int | None = None) -> Answer:
            found = KeySearch(
                engine,
                context.config,
                context.clean_folder,
                self.step.keys,
                index=self._index,
                generations=generations,
                scratch=storage.join(context.folder, "scratch"),
            )
            return found.run(f"{self.stage.name}: keys", asking, num_parts, writes)

        return search

    @property
    def _removals(self) -> tuple[RemovalFolder, ...]:
        return self.context.earlier_removals

    @property
    def _index(self) -> str:
        return self.base.layout.index(self.stage.name, self.step.name)

    def _num_parts(self, text_bytes: int) -> int:
        return key_index.num_parts(text_bytes // self.step.bytes_of_key)

    def _mark(self) -> str:
        """The fingerprint that the record of the stage will have."""
        before = [record.fingerprint for record in self.context.records.values()][-1:]
        return stage_record.fingerprint(__version__, self.stage.name, self.stage.settings(self.context), before)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Join:
    """Writes the decisions about all documents. It is pickled for the workers."""

    before: RemovalFolder
    after: str
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
        removals = self._joined(shard, read_removals)
        if removals.num_rows:
            write_removals(self.folder, shard, removals)
        spans = self._joined(shard, read_spans)
        if spans.num_rows:
            order = [(name, "ascending") for name in ("row", "start", "end")]
            storage.write_parquet(spans_url(self.folder, shard), spans.sort_by(order))
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


def _text_bytes(base: Base) -> int:
    return sum(row["text_bytes"] for row in base.counts("clean")["sources"])


def _size(found: Found) -> int:
    return sum(map(len, found.values()))
