"""What dedup stages decide, and where it lies until `publish` applies all of it at once.

A decision says of one row of one clean shard: gone, and for whose sake. A span says of some bytes of a row the same.
No stage rewrites documents: the next one reads the clean shards through what the stages before it decided.
"""

from typing import Any

import apache_beam as beam
import pyarrow as pa

from finpile import storage
from finpile.dedup.substring.spans import SPAN_SCHEMA
from finpile_pipelines.exchange.partition import (
    ExchangeByPartition,
    PartitionedTables,
    split_by_partition,
)
from finpile_pipelines.runner.engine import Engine

#: A document that goes (`row` of the shard in question) and, for a duplicate, the document that is kept for it.
REMOVAL_SCHEMA = pa.schema(
    [
        pa.field("shard", pa.int32()),
        pa.field("row", pa.int32()),
        pa.field("id", pa.string()),
        pa.field("stage", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("duplicate_of", pa.string()),
        pa.field("duplicate_offset", pa.int64()),
        pa.field("kept_shard", pa.int32()),
        pa.field("kept_row", pa.int32()),
    ]
)

#: The counts of a stage that the corpus file does not ask for.
NOT_CONFIGURED = {"asked": False, "removed": 0}


def removal_table(decisions: pa.Table, stage: str) -> pa.Table:
    """Decisions of one stage in `DECISION_SCHEMA`."""
    staged = decisions.append_column("stage", pa.array([stage] * decisions.num_rows, pa.string()))
    return staged.select(REMOVAL_SCHEMA.names).cast(REMOVAL_SCHEMA)


def read_removals(folder: str, shard: int) -> pa.Table:
    """The decisions on a shard's rows; empty where the stage removed nothing from it."""
    return _read(removals_url(folder, shard), REMOVAL_SCHEMA)


def write_removals(folder: str, shard: int, decisions: pa.Table) -> None:
    """Writes all decisions on a shard's rows."""
    ordered = decisions.sort_by([("row", "ascending"), ("id", "ascending")])
    storage.write_parquet(removals_url(folder, shard), ordered)


def read_spans(folder: str, shard: int) -> pa.Table:
    """The spans cut from a shard's rows; empty where the stage cut nothing from it."""
    return _read(spans_url(folder, shard), SPAN_SCHEMA)


def removals_url(folder: str, shard: int) -> str:
    return storage.join(folder, "decisions", f"{shard:06d}.parquet")


def spans_url(folder: str, shard: int) -> str:
    return storage.join(folder, "spans", f"{shard:06d}.parquet")


class WriteRemovals(beam.PTransform):
    """Decision tables, of one collection or of several, to one file for each shard that loses a document."""

    def __init__(self, engine: Engine, folder: str) -> None:
        super().__init__()
        self._transport = engine.exchange_transport
        self._folder = folder

    def expand(
        self, decisions: beam.PCollection[pa.Table] | tuple[beam.PCollection[pa.Table], ...]
    ) -> beam.PCollection[dict[str, Any]]:
        folder = self._folder

        def send(table: pa.Table) -> PartitionedTables:
            origin = f"{table['id'][0].as_py()}-{table['stage'][0].as_py()}"
            return PartitionedTables(origin, split_by_partition(table, table["shard"].to_numpy()))

        def write(group: tuple[int, pa.Table]) -> dict[str, Any]:
            shard, table = group
            write_removals(folder, shard, table)
            return {"shard": shard, "removed": table.num_rows}

        exchange = ExchangeByPartition(self._transport, storage.join(folder, "scratch"), "ByShard")
        sent = tuple(
            tables
            | f"NotEmpty{index}" >> beam.Filter(lambda table: table.num_rows > 0)
            | f"Send{index}" >> beam.Map(send)
            for index, tables in enumerate(decisions if isinstance(decisions, tuple) else (decisions,))
        )
        return sent | exchange | "Write" >> beam.Map(write)


def _read(url: str, schema: pa.Schema) -> pa.Table:
    return storage.read_parquet(url) if storage.exists(url) else schema.empty_table()
