"""A pass over groups of shards' documents (`finpile.dedup.plan.Groups`), as steps of a pipeline.

    keys      of each shard's documents --by key--> candidate pairs --by number--> each pair once
    groups    connected components of the pairs, by number (`connected_components`)
    members   the rows of each shard that are in a group, and the pairs of each group (`group_members`)
    resolve   documents of those rows --by group--> removals --by shard--> removals

All of this is one pipeline, unless the pairs are too many for the memory of one task: then each round of the
connected components is a pipeline, and the steps after them are part of the next one.

A document's number is a hash of its scope and text, so pairs do not depend on how the corpus is cut into shards. A
process holds one shard, or one partition of an exchange, which is about as large, and all texts of one group.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from finpile import storage
from finpile.dedup.near import clusters
from finpile.dedup.plan import Answer, Counted, Groups
from finpile.output.work_folder import WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.dedup.removals import WriteRemovals, removal_table
from finpile_pipelines.exchange.partition import (
    ExchangeByPartition,
    PartitionedTables,
    by_range,
    split_by_partition,
)
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After, Gather, Tasks, sum_of
from finpile_pipelines.executors.connected_components import (
    ConnectedComponents,
    by_number,
    connect_in_memory,
    write_partition,
)
from finpile_pipelines.executors.group_members import PLACE_SCHEMA, GroupMembers
from finpile_pipelines.executors.one_round import OneRound, sums_of
from finpile_pipelines.executors.request_reply import answer_counts, partitions_of
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef
from finpile_pipelines.stage import Sizes

#: Shares of the work: keys and pairs, connected groups, their members, comparison of texts; the last two alone.
_WORKS, _REST = (0.6, 0.05, 0.05, 0.3), (0.1, 0.9)
_PAIRS, _DOCUMENTS, _REMOVED = "candidate_pairs", "grouped_documents", "removed"


@dataclass(frozen=True, slots=True)
class GroupsOverShards:
    """The pass of a round over groups."""

    round: OneRound
    engine: Engine
    sizes: Sizes

    @property
    def step(self) -> Groups:
        (step,) = self.round.one.steps
        if not isinstance(step, Groups):
            raise TypeError(f"pass {self.round.one.name!r} has no groups")
        return step

    def construct(
        self, work: float, after: After | None, are_connected: bool, pipeline: graph.Pipeline
    ) -> graph.PCollection[Passed]:
        """Adds all steps to a pipeline, or those after the connected components; the output is there at the end.

        The pass ends with its pairs if they are too many to be connected in memory.
        """
        if are_connected:
            gathering, resolving = (share * work for share in _REST)
            written = self._members.construct(pipeline, self.engine.exchange_transport, gathering, after)
            return self._resolve(pipeline, resolving, After(written))
        pairing, joining, gathering, resolving = (share * work for share in _WORKS)
        most = self.sizes.pairs_in_memory
        num_pairs = self._pair(pipeline, pairing, after)
        connected = self._connect(pipeline, joining, After(num_pairs, lambda number: number <= most))
        if not self._are_few:
            connected = self._members.construct(pipeline, self.engine.exchange_transport, gathering, After(connected))
        return self._resolve(pipeline, resolving, After(connected))

    def has_too_many_pairs(self) -> bool:
        """Whether the pass ended with its pairs."""
        return sum_of(_PAIRS)(storage.read_json(self._folder.file("pairs.json"))) > self.sizes.pairs_in_memory

    def connect(self, engine: Engine) -> None:
        """Connects the pairs in pipelines of their own."""
        number = ConnectedComponents(engine, self._folder, self._partitions, self.round.stage).run()
        storage.write_json(self._folder.file("groups.json"), [{_DOCUMENTS: number}])

    def counted(self) -> Counted:
        """What the pass counted, once it is complete."""
        (self._folder / "scratch").remove()
        files = map(self._folder.file, ("pairs.json", "groups.json", "resolved.json"))
        return Counted(sums=sums_of([row for file in files for row in storage.read_json(file)]), outcomes=())

    def _pair(self, pipeline: graph.Pipeline, work: float, after: After | None) -> graph.PCollection[Passed]:
        """Writes the places of documents by shard, and pairs by range of numbers; the summary is the pairs' number."""
        of_round, step, pairs_of, partitions = self.round.of_workers, self.step, self.step.pairs, self._partitions
        places, pairs = self._folder / "places", self._folder / "pairs"

        def send(ref: ShardRef) -> PartitionedTables:
            keys, rows = _keys_of(of_round, step, ref)
            write_partition(places, ref.index, rows)
            ranges = by_range(keys["key"].to_numpy(), partitions)
            return PartitionedTables(f"{ref.index:06d}", split_by_partition(keys, ranges))

        def pair(bucket: tuple[int, pa.Table]) -> tuple[int, Answer]:
            return bucket[0], pairs_of(bucket[1])

        def send_pairs(found: tuple[int, Answer]) -> PartitionedTables:
            rows = found[1].rows
            ranges = by_number(rows["a"].to_numpy(), partitions)
            return PartitionedTables(f"{found[0]:06d}", split_by_partition(rows, ranges))

        def write(received: tuple[int, pa.Table]) -> dict[str, Any]:
            distinct = clusters.distinct_pairs(received[1])
            write_partition(pairs, received[0], distinct)
            return {"pairs_of": received[0], _PAIRS: distinct.num_rows}

        refs = self.round.refs
        keys = pipeline | "Documents" >> Tasks(refs, 0.7 * work, after=after, note="keys") | "Keys" >> graph.Map(send)
        paired = keys | self._exchange("ByBandKey", 0.2 * work, self.step.sends) | "Pairs" >> graph.Map(pair)
        sent = (
            paired | "SendPairs" >> graph.Map(send_pairs) | self._exchange("ByNumber", 0.1 * work, clusters.PAIR_SCHEMA)
        )
        outcomes = (sent | "Distinct" >> graph.Map(write), paired | "PairCounts" >> graph.Map(answer_counts))
        gather = Gather(self._folder.file("pairs.json"), sum_of(_PAIRS), after=after)
        return outcomes | "AllPairs" >> graph.Flatten() | "GatherPairs" >> gather

    def _connect(self, pipeline: graph.Pipeline, work: float, after: After) -> graph.PCollection[Passed]:
        """One task: the groups of all pairs and, for a few shards, their members."""
        folder, partitions, are_few = self._folder, self._partitions, self._are_few
        members = self._members if are_few else self._members.of_workers

        def connect(_: int) -> dict[str, Any]:
            num_documents = connect_in_memory(folder, partitions)
            if are_few:
                members.write_all()
            return {_DOCUMENTS: num_documents}

        tasks = Tasks([0], work, after=after, note="groups")
        connected = pipeline | "AllOfThem" >> tasks | "Connect" >> graph.Map(connect)
        return connected | "GatherGroups" >> Gather(self._folder.file("groups.json"), after=after)

    def _resolve(self, pipeline: graph.Pipeline, work: float, after: After) -> graph.PCollection[Passed]:
        """Collects the texts of each group, resolves it, and writes the removals by shard."""
        partitions, members, stage = self._partitions, self._members.of_workers, self.round.stage
        of_round, step, resolve_groups = self.round.of_workers, self.step, self.step.resolve

        def send(ref: ShardRef) -> PartitionedTables:
            table = _members_of(of_round, step, ref, members.members(ref.index))
            parts = split_by_partition(table, table["group"].to_numpy() % partitions) if table else {}
            return PartitionedTables(f"{ref.index:06d}", parts)

        def resolve(received: tuple[int, pa.Table]) -> tuple[int, Answer]:
            return received[0], resolve_groups(received[1], members.pairs(received[0]))

        def removals(resolved: tuple[int, Answer]) -> pa.Table:
            return removal_table(resolved[1].rows, stage)

        tasks = Tasks(self.round.refs, 0.3 * work, after=after, note="verify")
        grouped = pipeline | "Groups" >> tasks | "Texts" >> graph.Map(send) | self._exchange("ByGroup", 0.7 * work)
        resolved = grouped | "Resolve" >> graph.Map(resolve)
        write = WriteRemovals(self.engine.exchange_transport, self._folder, self.round.num_shards)
        written = resolved | "Removals" >> graph.Map(removals) | write
        outcomes = (written, resolved | "GroupCounts" >> graph.Map(answer_counts)) | graph.Flatten()
        return outcomes | "GatherRemovals" >> Gather(self._folder.file("resolved.json"), after=after)

    @property
    def _folder(self) -> WorkFolder:
        return self.round.folder

    @property
    def _partitions(self) -> int:
        return partitions_of(self.round.refs, self.step.shards_of_unit)

    @property
    def _members(self) -> GroupMembers:
        return GroupMembers(self._folder, tuple(ref.index for ref in self.round.refs), self._partitions)

    @property
    def _are_few(self) -> bool:
        return len(self.round.refs) <= self.sizes.shards_in_memory

    def _exchange(self, label: str, share: float, schema: pa.Schema | None = None) -> ExchangeByPartition:
        transport, scratch, number = self.engine.exchange_transport, self._folder / "scratch", self._partitions
        return ExchangeByPartition(transport, scratch, label, share / number, schema=schema, partitions=number)


def _keys_of(one: OneRound, step: Groups, ref: ShardRef) -> tuple[pa.Table, pa.Table]:
    """The keys of a shard's documents, and the place of each document."""
    keys, rows = [step.sends.empty_table()], [PLACE_SCHEMA.empty_table()]
    for part in one.documents.pieces(ref, step.reads, reports=True):
        part = step.prepared(part)
        keys.append(step.keys(part))
        rows.append(part.documents.select(PLACE_SCHEMA.names).cast(PLACE_SCHEMA))
    return pa.concat_tables(keys), pa.concat_tables(rows)


def _members_of(one: OneRound, step: Groups, ref: ShardRef, members: pa.Table) -> pa.Table | None:
    """The shard's documents that are in a group, given `members` by row; None if there are none."""
    if members.num_rows == 0:
        return None
    rows, groups = members["row"].to_numpy(), members["group"].to_numpy()
    tables = []
    for part in replace(one.documents, rows={ref.index: rows}).pieces(ref, step.reads):
        table = step.prepared(part).documents
        of_rows = groups[np.searchsorted(rows, table["row"].to_numpy())]
        tables.append(table.append_column("group", pa.array(of_rows)))
    return pa.concat_tables(tables)
