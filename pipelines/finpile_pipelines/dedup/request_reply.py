"""Request/reply shuffle: rows are sent to hash partitions; replies return per shard.

The replies are written to one file for each shard, so that the next step reads only the rows of its shard.
"""

from collections.abc import Callable, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.splitmix import GOLDEN
from finpile_pipelines.exchange.partition import (
    ExchangeByPartition,
    PartitionedTables,
    by_range,
    num_partitions,
    split_by_partition,
)
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef


def request_reply(
    engine: Engine,
    refs: Sequence[ShardRef],
    folder: str,
    label: str,
    request: tuple[str, Callable[[ShardRef], PartitionedTables]],
    reply: tuple[str, Callable[[pa.Table], pa.Table]],
    tally: str | None = None,
) -> int:
    """Runs two named steps: `request` partitions the rows of a shard, `reply` maps all rows of a partition to a table.

    The replied table has a column `shard`, and its rows are written to `folder/NAME`, by shard. The sizes of each step
    in bytes are in `folder/NAME.json`. Returns the number of replied rows whose column `tally` is true.
    """
    (requested, send), (replied, decide) = request, reply
    transport, scratch = engine.exchange_transport, storage.join(folder, "scratch")

    def send_back(group: tuple[int, pa.Table]) -> PartitionedTables:
        table = decide(group[1])
        return PartitionedTables(f"{group[0]:06d}", split_by_partition(table, table["shard"].to_numpy()))

    def write(group: tuple[int, pa.Table]) -> dict[str, Any]:
        storage.write_parquet(_url(folder, replied, group[0]), group[1])
        tallied = pc.sum(group[1][tally]).as_py() if tally else 0
        return {"origin": str(group[0]), "size_bytes": group[1].nbytes, "tallied": tallied}

    def construct(pipeline: beam.Pipeline) -> None:
        sent = pipeline | Tasks(refs, 0.6) | "Send" >> beam.Map(send)
        _ = sent | "Size" >> beam.Map(_size) | "Sizes" >> Gather(storage.join(folder, f"{requested}.json"))
        by_hash = ExchangeByPartition(transport, scratch, f"{requested.title()}ByHash", 0.3 / num_partitions(len(refs)))
        by_shard = ExchangeByPartition(transport, scratch, f"{replied.title()}ByShard", 0.1 / max(1, len(refs)))
        replies = sent | by_hash | "Reply" >> beam.Map(send_back) | by_shard
        _ = replies | "Write" >> beam.Map(write) | Gather(storage.join(folder, f"{replied}.json"))

    engine.run(label, construct)
    storage.remove_tree(scratch)
    return sum(row["tallied"] for row in storage.read_json(storage.join(folder, f"{replied}.json")))


def send_by_hash(ref: ShardRef, rows: pa.Table, num_shards: int) -> PartitionedTables:
    """Sends a shard's rows to the partitions of their column `hash`.

    A minimizer is the smallest of many hashes, so minimizers lie in a narrow range. Multiplied by
    an odd number, distinct hashes stay distinct and spread over all partitions.
    """
    partition = by_range(rows["hash"].to_numpy() * GOLDEN, num_partitions(num_shards))
    return PartitionedTables(f"{ref.index:06d}", split_by_partition(rows, partition))


def read_reply(folder: str, name: str, shard: int, schema: pa.Schema) -> pa.Table:
    """The replies of a step to a shard; empty if there are none."""
    url = _url(folder, name, shard)
    return storage.read_parquet(url) if storage.exists(url) else schema.empty_table()


def exchanged_bytes(folder: str, *names: str) -> int:
    """The bytes that the steps of these names sent, as Arrow buffers."""
    return sum(row["size_bytes"] for name in names for row in storage.read_json(storage.join(folder, f"{name}.json")))


def _size(partitioned: PartitionedTables) -> dict[str, Any]:
    return {"origin": partitioned.origin, "size_bytes": sum(table.nbytes for table in partitioned.tables.values())}


def _url(folder: str, name: str, shard: int) -> str:
    return storage.join(folder, name, f"{shard:06d}.parquet")
