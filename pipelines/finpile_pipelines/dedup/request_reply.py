"""Request/reply shuffle: rows are sent to hash partitions; replies return per shard.

The replies are written to one file for each shard, so that the next step reads only the rows of its shard.
"""

from collections.abc import Callable, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.sizes import num_partitions
from finpile.splitmix import GOLDEN
from finpile_pipelines.exchange.partition import (
    ExchangeByPartition,
    PartitionedTables,
    Transport,
    by_range,
    split_by_partition,
)
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After, Gather, RemoveFolder, Tasks, sum_of
from finpile_pipelines.shard_refs import ShardRef


class RequestReply(beam.PTransform):
    """Two named steps: `request` returns the rows of a shard, `reply` maps all rows of a partition to a table.

    Rows are partitioned by their column `hash`; a partition has about as many as `shards_of_unit` shards. The replied
    table has a column `shard`, and its rows are written to `folder/NAME`, by shard. The sizes of each step in bytes are
    in `folder/NAME.json`. The summary of the output is the number of replied rows whose column `tally` is true, once
    all replies are written. The steps are `work` of the pipeline, and are skipped by `after`.
    """

    def __init__(
        self,
        transport: Transport,
        refs: Sequence[ShardRef],
        folder: str,
        request: tuple[str, Callable[[ShardRef], pa.Table]],
        reply: tuple[str, Callable[[pa.Table], pa.Table]],
        *,
        shards_of_unit: int = 1,
        tally: str | None = None,
        work: float = 1.0,
        after: After | None = None,
    ) -> None:
        super().__init__(f"RequestReply{request[0].title()}")
        self._transport = transport
        self._refs = refs
        self._folder = folder
        self._request = request
        self._reply = reply
        self._num_partitions = num_partitions(len(refs), shards_of_unit)
        self._tally = tally
        self._work = work
        self._after = after

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[Passed]:
        (requested, rows), (replied, decide) = self._request, self._reply
        transport, refs, folder, tally, work = self._transport, self._refs, self._folder, self._tally, self._work
        after, partitions = self._after, self._num_partitions
        exchanged = storage.join(folder, f"exchange-{requested}")
        scratch = storage.join(exchanged, "scratch")

        def send(ref: ShardRef) -> PartitionedTables:
            return PartitionedTables(f"{ref.index:06d}", partition_by_hash(rows(ref), partitions))

        def send_back(group: tuple[int, pa.Table]) -> PartitionedTables:
            table = decide(group[1])
            return PartitionedTables(f"{group[0]:06d}", split_by_partition(table, table["shard"].to_numpy()))

        def write(group: tuple[int, pa.Table]) -> dict[str, Any]:
            storage.write_parquet(_url(folder, replied, group[0]), group[1])
            tallied = pc.sum(group[1][tally]).as_py() if tally else 0
            return {"origin": str(group[0]), "size_bytes": group[1].nbytes, "tallied": tallied}

        sent = pipeline | Tasks(refs, 0.6 * work, after=after, note=requested) | "Send" >> beam.Map(send)
        sizes = Gather(storage.join(folder, f"{requested}.json"), after=after)
        _ = sent | "Size" >> beam.Map(_size) | "Sizes" >> sizes
        share_by_hash, share_by_shard = 0.3 * work / partitions, 0.1 * work / max(1, len(refs))
        by_hash = ExchangeByPartition(transport, scratch, f"{requested.title()}ByHash", share_by_hash)
        by_shard = ExchangeByPartition(transport, scratch, f"{replied.title()}ByShard", share_by_shard)
        replies = sent | by_hash | "Reply" >> beam.Map(send_back) | by_shard
        gather = Gather(storage.join(folder, f"{replied}.json"), sum_of("tallied"), after=after)
        num_tallied = replies | "Write" >> beam.Map(write) | gather
        _ = num_tallied | RemoveFolder(exchanged)
        return num_tallied


def partition_by_hash(rows: pa.Table, partitions: int) -> dict[int, pa.Table]:
    """The rows of each partition that has some, by their column `hash`.

    A minimizer is the smallest of many hashes, so minimizers lie in a narrow range. Multiplied by
    an odd number, distinct hashes stay distinct and spread over all partitions.
    """
    return split_by_partition(rows, by_range(rows["hash"].to_numpy() * GOLDEN, partitions))


def read_reply(folder: str, name: str, shard: int, schema: pa.Schema) -> pa.Table:
    """The replies of a step to a shard; empty if there are none."""
    url = _url(folder, name, shard)
    return storage.read_parquet_if_exists(url, schema)


def num_tallied(folder: str, name: str) -> int:
    """The number of rows that the reply of this name tallied."""
    return sum_of("tallied")(storage.read_json(storage.join(folder, f"{name}.json")))


def exchanged_bytes(folder: str, *names: str) -> int:
    """The bytes that the steps of these names sent, as Arrow buffers."""
    return sum(row["size_bytes"] for name in names for row in storage.read_json(storage.join(folder, f"{name}.json")))


def _size(partitioned: PartitionedTables) -> dict[str, Any]:
    return {"origin": partitioned.origin, "size_bytes": sum(table.nbytes for table in partitioned.tables.values())}


def _url(folder: str, name: str, shard: int) -> str:
    return storage.join(folder, name, f"{shard:06d}.parquet")
