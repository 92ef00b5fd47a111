"""Exact duplicates, by digest over all shards. `finpile.dedup.exact` selects the document to keep.

digest rows --by digest--> find_duplicates --by shard--> removals
"""

from collections.abc import Callable, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from finpile import storage
from finpile.config import CorpusConfig
from finpile.dedup import exact
from finpile.document import digest_bits
from finpile_pipelines.dedup.remaining import scope_of
from finpile_pipelines.dedup.removals import NOT_CONFIGURED, WriteRemovals, removal_table
from finpile_pipelines.exchange.partition import (
    ExchangeByPartition,
    PartitionedTables,
    by_range,
    num_partitions,
    split_by_partition,
)
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef, read_clean
from finpile_pipelines.stage import Context, Outcome, Stage

#: Share of the stage's work; the rest is reading and hashing.
_DECIDING = 0.2


def settings(context: Context) -> list[Any]:
    """The settings on which the stage's outcome depends."""
    dedup = context.config.dedup
    return [dedup.exact, dedup.exact_fold, dedup.scope]


def run(context: Context) -> Outcome:
    """Marks exact duplicates among the clean shards."""
    config, clean_folder = context.config, context.clean_folder
    fold = config.dedup.exact_fold
    if not config.dedup.exact:
        return Outcome(counts=NOT_CONFIGURED)

    def rows(ref: ShardRef) -> pa.Table:
        tables, first = [exact.ROW_SCHEMA.empty_table()], 0
        for batch in read_clean(clean_folder, ref.name):
            report_progress(batch.num_rows, batch["text"].nbytes)
            digests = batch["digest"]
            folded = digests if fold == "none" else exact.document_digests(batch, fold)
            places = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int32))
            tables.append(digest_rows(ref, config, batch, places, folded, digests))
            first += batch.num_rows
        return pa.concat_tables(tables)

    removed = remove_equal(context.engine, context.refs, "exact", rows, exact.REASON, context.folder)
    return Outcome(counts={"removed": removed})


STAGE = Stage(name="exact", settings=settings, run=run)


def remove_equal(
    engine: Engine,
    refs: Sequence[ShardRef],
    label: str,
    rows: Callable[[ShardRef], pa.Table],
    reason: str,
    folder: str,
) -> int:
    """Writes the removals, for `reason`, of the stage that `label` begins with; returns their number.

    `rows` returns `finpile.dedup.exact.ROW_SCHEMA` for a shard. Of equal digests in a scope one document is kept.
    """
    partitions, stage = num_partitions(len(refs)), label.partition(":")[0]
    transport, scratch = engine.exchange_transport, storage.join(folder, "scratch")

    def send(ref: ShardRef) -> PartitionedTables:
        table = rows(ref)
        partition = by_range(digest_bits(table["digest"]), partitions)
        return PartitionedTables(f"{ref.index:06d}", split_by_partition(table, partition))

    def decide(group: tuple[int, pa.Table]) -> pa.Table:
        return removal_table(exact.find_duplicates(group[1], reason), stage)

    def construct(pipeline: beam.Pipeline) -> None:
        exchange = ExchangeByPartition(transport, scratch, "ByDigest", _DECIDING / partitions)
        sent = pipeline | Tasks(refs, 1 - _DECIDING) | "Digest" >> beam.Map(send)
        decided = sent | exchange | "Decide" >> beam.Map(decide)
        _ = decided | WriteRemovals(engine, folder) | Gather(storage.join(folder, "tasks.json"))

    engine.run(label, construct)
    return sum(outcome["removed"] for outcome in storage.read_json(storage.join(folder, "tasks.json")))


def digest_rows(
    ref: ShardRef,
    config: CorpusConfig,
    documents: pa.RecordBatch | pa.Table,
    rows: pa.Array | pa.ChunkedArray,
    folded: pa.Array,
    digests: pa.Array | pa.ChunkedArray,
) -> pa.Table:
    """`ROW_SCHEMA` of the documents at `rows` of a shard: equal documents share a digest in `folded`.

    `digests` are those of the texts themselves, and order equal documents.
    """
    size = documents.num_rows
    columns = {
        "digest": folded,
        "text_digest": digests,
        "scope": pa.array([scope_of(config, config.sources[ref.entry].dataset)] * size, pa.string()),
        "priority": pa.array(np.full(size, ref.entry, np.int32)),
        "timestamp": documents["timestamp"],
        "id": documents["id"],
        "shard": pa.array(np.full(size, ref.index, np.int32)),
        "row": rows,
    }
    return pa.table(columns, schema=exact.ROW_SCHEMA)
