"""Exact duplicates over an exchange. `finpile.dedup` decides; here rows meet.

digest rows --by digest--> find_duplicates --by shard--> decisions
"""

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from finpile import shards
from finpile.config import CorpusConfig
from finpile.dedup import exact
from finpile_pipelines.decisions import WriteDecisions, decision_table
from finpile_pipelines.engine import Engine, Gather, Tasks
from finpile_pipelines.exchange import ExchangeByPartition, Parcels, by_range, split_by_partition
from finpile_pipelines.local import report_progress
from finpile_pipelines.shardrefs import ShardRef, shard_url
from finpile_pipelines.survivors import scope_of

_MIN_PARTITIONS = 2
_MAX_PARTITIONS = 4096


def num_partitions(num_shards: int) -> int:
    """Partitions of an exchange: about one a shard, so that a partition is no larger than a shard's share."""
    return max(_MIN_PARTITIONS, min(_MAX_PARTITIONS, num_shards))


def run_exact(
    engine: Engine, config: CorpusConfig, refs: Sequence[ShardRef], clean: str, folder: str
) -> dict[str, Any]:
    """Finds exact duplicates among the clean shards; returns how many, and the bytes compared."""
    partitions = num_partitions(len(refs))

    def send(ref: ShardRef) -> Parcels:
        table = _digest_rows(ref, config, clean)
        return Parcels(
            f"{ref.index:06d}", split_by_partition(table, by_range(digest_bits(table["digest"]), partitions))
        )

    def decide(group: tuple[int, pa.Table]) -> pa.Table:
        return decision_table(exact.find_duplicates(group[1]), "exact")

    def construct(pipeline: beam.Pipeline) -> None:
        exchange = ExchangeByPartition(engine.exchange_carrier, shards.join(folder, "scratch"), "ByDigest")
        decided = pipeline | Tasks(refs) | "Digest" >> beam.Map(send) | exchange | "Decide" >> beam.Map(decide)
        _ = decided | WriteDecisions(engine, folder) | Gather(shards.join(folder, "tasks.json"))

    engine.run("exact", construct)
    return _removed_counts(shards.read_json(shards.join(folder, "tasks.json")))


def digest_bits(digests: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, Any]:
    """The first 64 bits of 16-byte digests, as numbers whose order is the digests' order."""
    chunk = digests.combine_chunks() if isinstance(digests, pa.ChunkedArray) else digests
    if len(chunk) == 0:
        return np.empty(0, dtype=np.uint64)
    data = np.frombuffer(chunk.buffers()[1], dtype=">u8").reshape(-1, 2)
    return data[chunk.offset : chunk.offset + len(chunk), 0].astype(np.uint64)


def _digest_rows(ref: ShardRef, config: CorpusConfig, clean: str) -> pa.Table:
    tables = [exact.ROW_SCHEMA.empty_table()]
    first = 0
    for batch in shards.read_ipc(shard_url(clean, ref.name)):
        size = batch.num_rows
        report_progress(size, batch["text"].nbytes)
        scope = scope_of(config, config.sources[ref.entry].dataset)
        fold, digests = config.dedup.exact_fold, exact.document_digests(batch)
        columns = {
            "digest": digests if fold == "none" else exact.document_digests(batch, fold),
            "text_digest": digests,
            "scope": pa.array([scope] * size, pa.string()),
            "priority": pa.array(np.full(size, ref.entry, np.int32)),
            "timestamp": batch["timestamp"],
            "id": batch["id"],
            "shard": pa.array(np.full(size, ref.index, np.int32)),
            "row": pa.array(np.arange(first, first + size, dtype=np.int32)),
        }
        tables.append(pa.table(columns, schema=exact.ROW_SCHEMA))
        first += size
    return pa.concat_tables(tables)


def _removed_counts(outcomes: Iterator[Any] | list[Any]) -> dict[str, Any]:
    return {"removed": sum(outcome["removed"] for outcome in outcomes)}
