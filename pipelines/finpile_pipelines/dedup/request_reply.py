"""Shards ask, partitions answer: tables go out by hash, and what they met there comes back by shard.

Answers lie in a file for each shard, so the next step of a stage reads what concerns its shard and nothing else.
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
    ask: tuple[str, Callable[[ShardRef], PartitionedTables]],
    answer: tuple[str, Callable[[pa.Table], pa.Table]],
    tally: str | None = None,
) -> int:
    """Runs two steps, each with a name: one makes `Parcels` of a shard, the other a table of all that met somewhere.

    The second's table has a column `shard`, which says where each of its rows goes: to `folder/NAME` of that step. Each
    step's sizes in bytes lie in `folder/NAME.json`. Returns how many of the answers have a true `tally`.
    """
    (there, send), (back, decide) = ask, answer
    transport, scratch = engine.exchange_transport, storage.join(folder, "scratch")

    def reply(group: tuple[int, pa.Table]) -> PartitionedTables:
        table = decide(group[1])
        return PartitionedTables(f"{group[0]:06d}", split_by_partition(table, table["shard"].to_numpy()))

    def write(group: tuple[int, pa.Table]) -> dict[str, Any]:
        storage.write_parquet(_url(folder, back, group[0]), group[1])
        tallied = pc.sum(group[1][tally]).as_py() if tally else 0
        return {"origin": str(group[0]), "size_bytes": group[1].nbytes, "tallied": tallied}

    def construct(pipeline: beam.Pipeline) -> None:
        sent = pipeline | Tasks(refs, 0.6) | "Send" >> beam.Map(send)
        _ = sent | "Size" >> beam.Map(_size) | "Sizes" >> Gather(storage.join(folder, f"{there}.json"))
        asked = ExchangeByPartition(transport, scratch, f"{there.title()}ByHash", 0.3 / num_partitions(len(refs)))
        returned = ExchangeByPartition(transport, scratch, f"{back.title()}ByShard", 0.1 / max(1, len(refs)))
        answered = sent | asked | "Answer" >> beam.Map(reply) | returned
        _ = answered | "Write" >> beam.Map(write) | Gather(storage.join(folder, f"{back}.json"))

    engine.run(label, construct)
    storage.remove_tree(scratch)
    return sum(row["tallied"] for row in storage.read_json(storage.join(folder, f"{back}.json")))


def by_hash(ref: ShardRef, rows: pa.Table, num_shards: int) -> PartitionedTables:
    """A shard's rows to the partitions of their column `hash`.

    A minimizer is the smallest hash of many: almost all of them lie in one narrow range, and are spread again here.
    """
    partition = by_range(rows["hash"].to_numpy() * GOLDEN, num_partitions(num_shards))
    return PartitionedTables(f"{ref.index:06d}", split_by_partition(rows, partition))


def read_answer(folder: str, name: str, shard: int, schema: pa.Schema) -> pa.Table:
    """What a step answered to a shard; empty where that was nothing."""
    url = _url(folder, name, shard)
    return storage.read_parquet(url) if storage.exists(url) else schema.empty_table()


def exchanged_bytes(folder: str, *names: str) -> int:
    """What the steps of that name sent, Arrow's buffers counted."""
    return sum(row["size_bytes"] for name in names for row in storage.read_json(storage.join(folder, f"{name}.json")))


def _size(partitioned: PartitionedTables) -> dict[str, Any]:
    return {"origin": partitioned.origin, "size_bytes": sum(table.nbytes for table in partitioned.tables.values())}


def _url(folder: str, name: str, shard: int) -> str:
    return storage.join(folder, name, f"{shard:06d}.parquet")
