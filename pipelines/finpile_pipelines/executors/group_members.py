"""The members of groups: the rows of each shard that are in a group, and the candidate pairs of each group.

    numbers --by number--> groups --by shard--> the rows of a shard that are in a group
    pairs   --by number--> groups --by group--> the pairs of a range of groups

For a few shards one task does this.
"""

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from finpile.dedup.near import clusters
from finpile.dedup.near.clusters import GROUPED_PAIR_SCHEMA, PAIR_ORDER, with_group
from finpile.output.work_folder import WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.exchange.packed import SplitTable
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, Transport, split_by_partition
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After, Gather, Tasks
from finpile_pipelines.executors.connected_components import by_number, read_partition, write_partition

#: A document's number and its place.
PLACE_SCHEMA = pa.schema([("number", pa.int64()), ("shard", pa.int32()), ("row", pa.int32())])
_GROUPED_PLACE_SCHEMA = PLACE_SCHEMA.append(GROUPED_PAIR_SCHEMA.field("group"))
MEMBER_SCHEMA = pa.schema([("row", pa.int32()), ("group", pa.int64())])


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """Reads `places` by shard, `pairs` and `groups` by range of numbers, all below `folder`.

    It is pickled for the workers, so it does not hold the engine.
    """

    folder: WorkFolder
    shard_indices: tuple[int, ...]
    num_ranges: int

    def write_all(self) -> None:
        """Writes `folder/members` by shard and `folder/named_pairs` by range of groups, both in order."""
        groups = pa.concat_tables(self._groups(number) for number in range(self.num_ranges))
        for shard in self.shard_indices:
            grouped = with_group(self._places(shard), "number", groups)
            if grouped.num_rows:
                self._write_members((shard, grouped))
        pairs = pa.concat_tables(self._pairs(number) for number in range(self.num_ranges))
        for part in self._by_group(with_group(pairs, "a", groups)).items():
            self._write_pairs(part)

    def construct(
        self, pipeline: graph.Pipeline, transport: Transport, work: float = 1.0, after: After | None = None
    ) -> graph.PCollection[Passed]:
        """Adds steps to a pipeline that write what `write_all` writes; the output is there when all is written."""
        members, indices, num_ranges = self.of_workers, self.shard_indices, self.num_ranges
        scratch, share, num_shards = self.folder / "scratch", 0.2 * work, 1 + max(indices, default=0)

        def exchange(label: str, partitions: int, schema: pa.Schema) -> ExchangeByPartition:
            return ExchangeByPartition(
                transport, scratch, label, share / partitions, schema=schema, partitions=partitions
            )

        shards = Tasks(indices, share, after=after, note="members")
        ranges = Tasks(range(num_ranges), share, after=after, note="members")
        sent = pipeline | "Shards" >> shards | "Numbers" >> graph.Map(members._send_numbers)
        found = (
            sent | exchange("MembersByNumber", num_ranges, PLACE_SCHEMA) | "Members" >> graph.Map(members._send_members)
        )
        routed = pipeline | "Ranges" >> ranges | "RangePairs" >> graph.Map(members._send_pairs)
        outcomes = (
            found
            | exchange("MembersByShard", num_shards, _GROUPED_PLACE_SCHEMA)
            | "WriteMembers" >> graph.Map(members._write_members),
            routed
            | exchange("PairsByGroup", num_ranges, GROUPED_PAIR_SCHEMA)
            | "WritePairs" >> graph.Map(members._write_pairs),
        )
        return outcomes | graph.Flatten() | Gather(self.folder.file("members.json"), after=after)

    @property
    def of_workers(self) -> "GroupMembers":
        """What is pickled with steps, once for each: the shards are the tasks."""
        return replace(self, shard_indices=())

    def members(self, shard: int) -> pa.Table:
        """The rows of a shard that are in a group, ascending."""
        return read_partition(self.folder / "members", shard, MEMBER_SCHEMA)

    def pairs(self, number: int) -> pa.Table:
        """The pairs of a range of groups, group after group."""
        return read_partition(self.folder / "named_pairs", number, GROUPED_PAIR_SCHEMA)

    def _send_numbers(self, shard: int) -> PartitionedTables:
        rows = self._places(shard)
        ranges = by_number(rows["number"].to_numpy(), self.num_ranges)
        return PartitionedTables(f"{shard:06d}", split_by_partition(rows, ranges))

    def _send_members(self, received: tuple[int, pa.Table]) -> PartitionedTables:
        grouped = with_group(received[1], "number", self._groups(received[0]))
        return PartitionedTables(f"{received[0]:06d}", split_by_partition(grouped, grouped["shard"].to_numpy()))

    def _send_pairs(self, number: int) -> PartitionedTables:
        return PartitionedTables(
            f"{number:06d}", self._by_group(with_group(self._pairs(number), "a", self._groups(number)))
        )

    def _by_group(self, pairs: pa.Table) -> SplitTable:
        return split_by_partition(pairs, pairs["group"].to_numpy() % self.num_ranges)

    def _write_members(self, received: tuple[int, pa.Table]) -> dict[str, Any]:
        rows = received[1].select(MEMBER_SCHEMA.names).sort_by("row")
        write_partition(self.folder / "members", received[0], rows)
        return {"shard": received[0], "members": rows.num_rows}

    def _write_pairs(self, received: tuple[int, pa.Table]) -> dict[str, Any]:
        write_partition(self.folder / "named_pairs", received[0], received[1].sort_by(PAIR_ORDER))
        return {"range": received[0], "pairs": received[1].num_rows}

    def _places(self, shard: int) -> pa.Table:
        return read_partition(self.folder / "places", shard, PLACE_SCHEMA)

    def _pairs(self, number: int) -> pa.Table:
        return read_partition(self.folder / "pairs", number, clusters.PAIR_SCHEMA)

    def _groups(self, number: int) -> pa.Table:
        return read_partition(self.folder / "groups", number, clusters.GROUP_SCHEMA)
