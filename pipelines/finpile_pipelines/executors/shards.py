"""Runs a plan over the shards of a build.

As many passes as possible are one pipeline, in which each waits for the one before it. The launcher looks how far a
pipeline came, and goes on: hashes with too many rows are refined, and candidate pairs that exceed the memory of a task
are connected, by pipelines of their own. A pass of several rounds is a pipeline for each round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from finpile import storage
from finpile.dedup.plan import Counted, Inputs, Pass, Plan
from finpile.output.work_folder import WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After
from finpile_pipelines.executors.groups import GroupsOverShards
from finpile_pipelines.executors.one_round import OneRound, Tables, table_file
from finpile_pipelines.executors.shard_documents import ShardDocuments
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef
from finpile_pipelines.stage import Sizes

_CUT_BYTES = "cut_bytes"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanOverShards:
    """A plan, the documents, and where the results are written.

    `folder/PASS`, or `folder/PASS-N` after N rounds, has the removals and spans of a pass.
    """

    stage: str
    plan: Plan
    inputs: Inputs
    refs: tuple[ShardRef, ...]
    documents: ShardDocuments
    """Those that earlier stages left."""
    folder: WorkFolder
    engine: Engine
    sizes: Sizes

    def run(self) -> dict[str, Any]:
        """Runs all passes; returns the counts of the stage."""
        tables = self._tables()
        found: dict[str, list[Counted]] = {}
        folders: list[WorkFolder] = []
        groups = self.plan.pipelines
        works = [sum(one.share * (1 + one.is_repeated) for one in group) for group in groups]
        for number, (group, engine) in enumerate(zip(groups, self.engine.parts(*works), strict=True)):
            label = self.stage if number == 0 else f"{self.stage}: {group[0].name}"
            if group[0].after_cuts and not _has_cut(found[groups[number - 1][-1].name]):
                continue
            run = self._repeat if group[0].is_repeated else self._together
            for name, rounds, folder in run(label, engine, group, _after(self.documents, folders), tables):
                found[name] = rounds
                folders.append(folder)
        return self.plan.counts(found, tables.opened)

    def run_pass(self, one: Pass) -> WorkFolder:
        """Runs one round of a pass alone; returns the folder with its removals and spans."""
        first = self._round(one, self.documents, self._tables())
        self._run(self.stage, self.engine, [_Unit(first)])
        return first.folder

    def _together(
        self, label: str, engine: Engine, passes: Sequence[Pass], documents: ShardDocuments, tables: Tables
    ) -> Iterator[tuple[str, list[Counted], WorkFolder]]:
        """Runs passes of one round each; yields name, counts and folder of those that ran."""
        units: list[_Unit] = []
        for number, one in enumerate(passes):
            needs_cut = one.after_cuts and number > 0  # before the first, `run` has looked
            unit = _Unit(self._round(one, documents, tables), number - 1 if number else None, needs_cut=needs_cut)
            documents = _after(documents, [unit.round.folder])
            units.append(unit)
        for one, unit, counted in zip(passes, units, self._run(label, engine, units), strict=True):
            if counted is not None:
                yield one.name, [counted], unit.round.folder

    def _repeat(
        self, label: str, engine: Engine, passes: Sequence[Pass], documents: ShardDocuments, tables: Tables
    ) -> Iterator[tuple[str, list[Counted], WorkFolder]]:
        """Runs the rounds of a pass, each as a pipeline, and one more that only counts."""
        (one,) = passes
        rounds: list[Counted] = []
        previous = None
        for number, part in zip(count(1), _parts(engine, one.rounds), strict=False):
            measures = number - 1 == one.rounds
            given = documents if previous is None else _after(documents, [previous])
            unit = _Unit(self._round(one, given, tables, number=number, previous=previous, measures=measures))
            rounds += [counted for counted in self._run(label, part, [unit]) if counted is not None]
            if measures or not _has_cut(rounds[-1:]):
                unit.round.folder.remove()
                break
            if previous is not None:
                previous.remove()
            previous = unit.round.folder
        yield one.name, rounds, previous or self.folder_of(one)

    def _run(self, label: str, engine: Engine, units: list[_Unit]) -> list[Counted | None]:
        """Runs all units; returns their counts, None for those that are skipped."""
        counted: list[Counted | None] = []
        while len(counted) < len(units):
            engine.run(label, partial(self._construct, engine, units, len(counted)))
            engine = engine.part(1, 1)
            while len(counted) < len(units):
                unit = units[len(counted)]
                before = counted[unit.waits_for] if unit.waits_for is not None else None
                if unit.needs_cut and not _has_cut([before] if before else []):
                    counted.append(None)
                elif (rest := self._rest(unit, engine)) is not None:
                    units[len(counted)] = rest
                    break
                else:
                    counted.append(self._groups(unit, engine).counted() if unit.has_groups else unit.round.counted())
        return counted

    def _construct(self, engine: Engine, units: Sequence[_Unit], begin: int, pipeline: graph.Pipeline) -> None:
        """Adds the units from `begin` on to a pipeline."""
        ends: dict[int, graph.PCollection[Passed]] = {}
        works = sum(unit.round.one.share for unit in units[begin:])
        for number, unit in enumerate(units[begin:], begin):
            before = ends.get(unit.waits_for) if unit.waits_for is not None else None
            after = None if before is None else After(before, _is_positive) if unit.needs_cut else After(before)
            work = unit.round.one.share / works
            if unit.has_groups:
                steps = partial(self._groups(unit, engine).construct, work, after, unit.are_connected)
            else:
                steps = partial(unit.round.construct, engine.exchange_transport, work, after, unit.first)
            ends[number] = pipeline | f"{unit.round.one.name}{unit.round.number}" >> _Steps(steps)

    def _rest(self, unit: _Unit, engine: Engine) -> _Unit | None:
        """What is left of a unit that ended early, when pipelines of its own have removed the cause; None if it is
        complete."""
        stopped = unit.round
        if unit.has_groups:
            groups = self._groups(unit, engine)
            if unit.are_connected or not groups.has_too_many_pairs():
                return None
            groups.connect(engine)
            return replace(unit, are_connected=True)
        for number in range(unit.first, len(stopped.exchanges)):
            while stopped.is_crowded(number):
                stopped = replace(stopped, level=stopped.level + 1)
                label = f"{self.stage}: {stopped.exchanges[number].name}{stopped.level}"
                engine.run_one(label, stopped.refinement(engine.exchange_transport, number))
            if stopped is not unit.round:
                return replace(unit, round=stopped, first=number + 1)
        return None

    def _round(
        self,
        one: Pass,
        documents: ShardDocuments,
        tables: Tables,
        *,
        number: int = 1,
        previous: WorkFolder | None = None,
        measures: bool = False,
    ) -> OneRound:
        return OneRound(
            stage=self.stage,
            one=one,
            refs=self.refs,
            documents=replace(documents, sees_removed=one.sees_removed),
            folder=self.folder_of(one, number),
            previous=previous,
            number=number,
            measures=measures,
            tables=tables,
        )

    def folder_of(self, one: Pass, number: int = 1) -> WorkFolder:
        """The folder of a round."""
        return self.folder / (f"{one.name}-{number}" if number > 1 else one.name)

    def _groups(self, unit: _Unit, engine: Engine) -> GroupsOverShards:
        return GroupsOverShards(unit.round, engine, self.sizes)

    def _tables(self) -> Tables:
        """Writes the tables that the plan reads."""
        folder = self.folder / "tables"
        checksums = []
        for name, table in sorted(self.inputs.tables.items()):
            file = table_file(folder, name)
            storage.write_parquet(file, table)
            checksums.append((name, file.seal()))
        return Tables(folder, tuple(checksums), self.plan.open)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A round as a part of a pipeline."""

    round: OneRound
    waits_for: int | None = None
    """The number of the unit after which it begins."""
    needs_cut: bool = False
    """Whether it runs only if that one cut text."""
    first: int = 0
    """The exchange with which it begins."""
    are_connected: bool = False
    """Whether it begins after the connected components."""

    @property
    def has_groups(self) -> bool:
        return self.round.groups is not None


@dataclass(eq=False)
class _Steps(graph.PTransform):
    """Steps that begin with elements of their own."""

    construct: Callable[[graph.Pipeline], graph.PCollection[Passed]]

    def expand(self, pipeline: graph.Pipeline) -> graph.PCollection[Passed]:
        return self.construct(pipeline)


def _after(documents: ShardDocuments, folders: Sequence[WorkFolder]) -> ShardDocuments:
    return replace(documents, removals=(*documents.removals, *folders))


def _has_cut(rounds: Sequence[Counted]) -> bool:
    return any(counted.sums[_CUT_BYTES] for counted in rounds)


def _parts(engine: Engine, rounds: int | str) -> Iterator[Engine]:
    """The engines of rounds. If their number is unknown, each is assigned half of the remaining work."""
    if isinstance(rounds, int):
        return iter(engine.parts(*[1] * (rounds + 1)))
    return (engine.part(1 - 0.5**number, 1 - 0.5 ** (number + 1)) for number in count())


def _is_positive(number: int) -> bool:
    return number > 0
