"""Connected components of candidate pairs: in the memory of one task if they fit, else by star rounds over exchanges.

    pairs --by either end--> large star --by larger end--> small star    again, until no edge changes
    stars --by document--> groups

Memory: a partition holds the edges of its range of numbers, 16 bytes for each end. All edges of one node are in one
partition, and in the end the smallest document of a group has an edge to each of its members; the texts of the group,
which one process compares, take hundreds of times as much. The number of rounds grows as the logarithm of the longest
path.

Source: Kiveris et al. 2014, Connected Components in MapReduce and Beyond.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from finpile import storage
from finpile.dedup.near import clusters
from finpile.output.work_folder import WorkFile, WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, by_range, split_by_partition
from finpile_pipelines.exchange.tasks import Gather, Tasks, sum_of
from finpile_pipelines.runner.engine import Engine

_PAIRS, _GROUPS = "pairs", "groups"
#: The result of a step: partition, edges, and the number of edges that moved.
_Starred = tuple[int, pa.Table, int]


def by_number(numbers: np.ndarray[Any, Any], num_partitions: int) -> np.ndarray[Any, Any]:
    """The range that each 63-bit document number falls into."""
    return by_range(numbers.astype(np.uint64) << np.uint64(1), num_partitions)


def write_partition(folder: WorkFolder, partition: int, table: pa.Table) -> None:
    storage.write_parquet(_file(folder, partition), table, durable=False)


def read_partition(folder: WorkFolder, partition: int, schema: pa.Schema) -> pa.Table:
    """The table that a step wrote for the partition; empty if it wrote none."""
    return storage.read_parquet_if_exists(_file(folder, partition), schema)


def connect_in_memory(folder: WorkFolder, partitions: int) -> int:
    """Writes `folder/groups` from `folder/pairs`, as `ConnectedComponents` does; returns the number of documents."""
    pairs = (read_partition(folder / _PAIRS, partition, clusters.PAIR_SCHEMA) for partition in range(partitions))
    groups = clusters.components(pa.concat_tables(table.select(["a", "b"]) for table in pairs))
    parts = split_by_partition(groups, by_number(groups["doc"].to_numpy(), partitions))
    for partition, part in parts.items():
        write_partition(folder / _GROUPS, partition, part)
    return int(groups.num_rows)


@dataclass(frozen=True, slots=True)
class ConnectedComponents:
    """Groups the documents of `folder/pairs`, a `PAIR_SCHEMA` file for each range of `a`, by star rounds."""

    engine: Engine
    folder: WorkFolder
    partitions: int
    stage: str

    def run(self) -> int:
        """Writes `folder/groups`, a `GROUP_SCHEMA` file for each range of numbers; returns the document count."""
        rounds = self.folder / "rounds"
        number, edges = 0, self.folder / _PAIRS
        while True:
            stars = rounds / f"{number:03d}"
            engine = self.engine.part(1 - 0.8**number, 1 - 0.8 ** (number + 1))  # the number of rounds is unknown
            num_changed = self._round(engine, edges, stars)
            if num_changed == 0:
                num_documents = self._name_groups(stars)
                rounds.remove()
                return num_documents
            if number:
                edges.remove()
            number, edges = number + 1, stars

    def _round(self, engine: Engine, edges: WorkFolder, stars: WorkFolder) -> int:
        """Applies a large star and a small star to the edges; returns the number of edges that moved."""
        partitions, file = self.partitions, self.folder.file("changed.json")

        def send_both(partition: int) -> PartitionedTables:
            table = clusters.both_ends(read_partition(edges, partition, clusters.NEIGHBOUR_SCHEMA))
            return _by_first(partition, table, partitions)

        def send_larger(starred: _Starred) -> PartitionedTables:
            return _by_first(starred[0], starred[1], partitions)

        def write(starred: _Starred) -> dict[str, Any]:
            write_partition(stars, starred[0], starred[1])
            return _moved(starred)

        def construct(pipeline: graph.Pipeline) -> None:
            share, schema = 1 / (3 * partitions), clusters.NEIGHBOUR_SCHEMA
            by_end, by_larger = (self._exchange(label, schema, share) for label in ("ByEnd", "ByLargerEnd"))
            ends = pipeline | Tasks(range(partitions), 1 / 3) | "Ends" >> graph.Map(send_both) | by_end
            large = ends | "LargeStar" >> graph.Map(_starred, clusters.large_star)
            sent = large | "Larger" >> graph.Map(send_larger) | by_larger
            small = sent | "SmallStar" >> graph.Map(_starred, clusters.small_star)
            outcomes = (large | "LargeMoved" >> graph.Map(_moved), small | "Write" >> graph.Map(write))
            _ = outcomes | graph.Flatten() | Gather(file)

        engine.run(f"{self.stage}: components", construct)
        return sum_of("changed")(storage.read_json(file))

    def _name_groups(self, stars: WorkFolder) -> int:
        partitions, groups, file = self.partitions, self.folder / _GROUPS, self.folder.file("groups.json")

        def send(partition: int) -> PartitionedTables:
            table = clusters.star_groups(read_partition(stars, partition, clusters.NEIGHBOUR_SCHEMA))
            return _by_first(partition, table, partitions)

        def write(received: tuple[int, pa.Table]) -> dict[str, Any]:
            table = clusters.distinct_groups(received[1])
            write_partition(groups, received[0], table)
            return {"partition": received[0], "documents": table.num_rows}

        def construct(pipeline: graph.Pipeline) -> None:
            exchange = self._exchange("ByDocument", clusters.GROUP_SCHEMA)
            received = pipeline | Tasks(range(partitions)) | "Stars" >> graph.Map(send) | exchange
            _ = received | "Write" >> graph.Map(write) | Gather(file)

        self.engine.part(1, 1).run(f"{self.stage}: groups", construct)
        return sum_of("documents")(storage.read_json(file))

    def _exchange(self, label: str, schema: pa.Schema, share: float = 0.0) -> ExchangeByPartition:
        transport, scratch = self.engine.exchange_transport, self.folder / "scratch"
        return ExchangeByPartition(transport, scratch, label, share, schema=schema, partitions=self.partitions)


def _file(folder: WorkFolder, partition: int) -> WorkFile:
    return folder.file(f"{partition:06d}.parquet")


def _by_first(origin: int, table: pa.Table, partitions: int) -> PartitionedTables:
    """The rows by the range of their first column."""
    return PartitionedTables(
        f"{origin:06d}", split_by_partition(table, by_number(table.column(0).to_numpy(), partitions))
    )


def _starred(received: tuple[int, pa.Table], star: Callable[[pa.Table], clusters.Stars]) -> _Starred:
    stars = star(received[1])
    return received[0], stars.edges, stars.num_changed


def _moved(starred: _Starred) -> dict[str, Any]:
    return {"partition": starred[0], "changed": starred[2]}
