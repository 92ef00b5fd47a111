"""Exact duplicates over an exchange, and the last word on every duplicate. `finpile.dedup` decides; here rows meet.

exact     digest rows --by digest--> find_duplicates --by shard--> decisions
resolve   a decision whose kept copy was itself removed later is passed on to the copy that stands for it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile import shards
from finpile.config import CorpusConfig
from finpile.dedup import exact
from finpile.tree import COPY_STAGES
from finpile_pipelines.decisions import DECISION_SCHEMA, WriteDecisions, decision_table, read_decisions
from finpile_pipelines.engine import Engine, Gather, Tasks
from finpile_pipelines.exchange import ExchangeByPartition, Parcels, by_range, split_by_partition
from finpile_pipelines.local import report_progress
from finpile_pipelines.shardrefs import ShardRef, shard_url
from finpile_pipelines.survivors import scope_of

#: What a shard's row gains when others are removed for its sake.
COPIES_SCHEMA = pa.schema([pa.field("row", pa.int32()), pa.field("num_copies", pa.int32())])
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


def run_resolve(engine: Engine, refs: Sequence[ShardRef], found: Sequence[str], folder: str) -> None:
    """Writes final decisions and copy counts by shard into `folder`.

    `found` are the decision folders of the dedup stages in order. A document removed by an earlier stage for the sake
    of one that a later stage removed is passed on to the later stage's kept copy, where there is one.
    """
    carrier, scratch = engine.exchange_carrier, shards.join(folder, "scratch")
    stages = list(enumerate(found))

    def by_kept(stage_ref: tuple[int, str, int]) -> Parcels:
        number, source, shard = stage_ref
        table = read_decisions(source, shard)
        meets = pc.coalesce(table["kept_shard"], table["shard"])
        return Parcels(f"{number}-{shard:06d}", split_by_partition(table, meets.to_numpy()))

    def pass_on(group: tuple[int, pa.Table]) -> pa.Table:
        shard, table = group
        later = pa.concat_tables([read_decisions(source, shard) for source in found])
        return _passed_on(table, later)

    def construct(pipeline: beam.Pipeline) -> None:
        tasks = [(number, source, ref.index) for number, source in stages for ref in refs]
        final = (
            pipeline
            | Tasks(tasks)
            | "ByKept" >> beam.Map(by_kept)
            | ExchangeByPartition(carrier, scratch, "ByMiddle")
            | "PassOn" >> beam.Map(pass_on)
        )
        _ = final | WriteDecisions(engine, folder) | Gather(shards.join(folder, "decisions.json"))
        _ = (
            final
            | "Copies" >> beam.Map(_copies)
            | "SomeCopies" >> beam.Filter(lambda table: table.num_rows > 0)
            | "SendCopies" >> beam.Map(_copies_parcels)
            | ExchangeByPartition(carrier, scratch, "CopiesByShard")
            | "WriteCopies" >> beam.Map(_write_copies, folder)
            | "GatherCopies" >> Gather(shards.join(folder, "copies.json"))
        )

    engine.run("resolve", construct)


def read_copies(folder: str, shard: int) -> pa.Table:
    url = shards.join(folder, "copies", f"{shard:06d}.parquet")
    return shards.read_parquet(url) if shards.exists(url) else COPIES_SCHEMA.empty_table()


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


def _passed_on(table: pa.Table, later: pa.Table) -> pa.Table:
    """Decisions `table`, all kept by rows of one shard, after the decisions `later` on that shard's rows."""
    final = {row["row"]: row for row in later.to_pylist()}
    if not final:
        return table
    rows = [_follow(row, final.get(row["kept_row"])) for row in table.to_pylist()]
    return pa.Table.from_pylist(rows, schema=DECISION_SCHEMA)


def _follow(row: dict[str, Any], later: dict[str, Any] | None) -> dict[str, Any]:
    if later is None or later["duplicate_of"] is None:
        return row
    detail = f"{row['detail']}; its kept copy {row['duplicate_of']} went in stage {later['stage']}"
    moved = {name: later[name] for name in ("duplicate_of", "kept_shard", "kept_row")}
    return {**row, **moved, "duplicate_offset": None, "detail": detail}


def _copies(table: pa.Table) -> pa.Table:
    """The decisions on documents that are copies of the one kept for them."""
    return table.filter(pc.is_in(table["stage"], pa.array(COPY_STAGES)))


def _copies_parcels(table: pa.Table) -> Parcels:
    slim = table.select(["kept_shard", "kept_row", "id"])
    origin = slim["id"][0].as_py() + "-" + table["stage"][0].as_py()
    return Parcels(origin, split_by_partition(slim, slim["kept_shard"].to_numpy()))


def _write_copies(group: tuple[int, pa.Table], folder: str) -> dict[str, Any]:
    shard, table = group
    rows, counts = np.unique(table["kept_row"].to_numpy(), return_counts=True)
    copies = pa.table([pa.array(rows, pa.int32()), pa.array(counts, pa.int32())], schema=COPIES_SCHEMA)
    shards.write_parquet(shards.join(folder, "copies", f"{shard:06d}.parquet"), copies)
    return {"shard": shard, "kept": len(rows)}


def _removed_counts(outcomes: Iterator[Any] | list[Any]) -> dict[str, Any]:
    return {"removed": sum(outcome["removed"] for outcome in outcomes)}
