"""Exact duplicates, by digest over all shards. `finpile.dedup.exact` selects the document to keep.

digest rows --by digest--> find_duplicates --by shard--> removals
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from finpile import storage
from finpile.config import CorpusConfig
from finpile.dedup import exact
from finpile.dedup.order import Order
from finpile.dedup.substring.repeats import scope_bits
from finpile.document import digest_bits
from finpile.sizes import num_partitions
from finpile_pipelines.dedup.remaining import order_setting, scope_of
from finpile_pipelines.dedup.removals import NOT_CONFIGURED, WriteRemovals, removal_table, removed_rows
from finpile_pipelines.exchange.partition import (
    ExchangeByPartition,
    PartitionedTables,
    by_range,
    split_by_partition,
)
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After, Gather, RemoveFolder, Tasks, sum_of
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import RemovalFolder, Rows, ShardRef, read_clean_rows
from finpile_pipelines.stage import Context, Outcome, Stage, Step, StepInput

#: Share of the stage's work; the rest is reading and hashing.
_DECIDING = 0.2
#: Shards whose rows, about 50 bytes for each document, share a partition. Texts of 50 bytes have rows of the same size.
_SHARDS_OF_UNIT = 8


def settings(context: Context) -> list[Any]:
    """The settings on which the stage's outcome depends."""
    dedup = context.config.dedup
    return [dedup.exact, dedup.exact_fold, dedup.scope, *order_setting(context.config)]


def run(context: Context) -> Outcome:
    """Marks exact duplicates among the clean shards."""
    config, clean_folder, removals, selected = (
        context.config,
        context.clean_folder,
        context.earlier_removals,
        context.rows,
    )
    fold = config.dedup.exact_fold
    if not config.dedup.exact:
        return Outcome(counts=NOT_CONFIGURED)

    def rows(ref: ShardRef) -> pa.Table:
        tables = [exact.ROW_SCHEMA.empty_table()]
        for places, batch in _read(clean_folder, removals, selected, ref):
            report_progress(batch.num_rows, batch["text"].nbytes)
            digests = batch["digest"]
            folded = digests if fold == "none" else exact.document_digests(batch, fold)
            tables.append(digest_rows(ref, config, batch, places, folded, digests))
        return pa.concat_tables(tables)

    order = config.dedup.order
    removed = remove_equal(context.engine, context.refs, "exact", rows, exact.REASON, context.folder, order)
    return Outcome(counts={"removed": removed})


def _read(
    clean_folder: str, removals: tuple[RemovalFolder, ...], rows: Rows | None, ref: ShardRef
) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """The documents of a shard with their rows."""
    selected = None if rows is None else rows[ref.index]
    removed = removed_rows(removals, ref.index)
    for first, batch in read_clean_rows(clean_folder, ref, selected):
        places = np.arange(first, first + batch.num_rows, dtype=np.int32)
        if selected is None and not len(removed):
            yield pa.array(places), batch
        else:
            mask = ~np.isin(places, removed) & (selected is None or np.isin(places, selected))
            yield pa.array(places[mask]), batch.filter(pa.array(mask))


def _keys(step: StepInput, ref: ShardRef) -> pa.Table:
    """The digests of documents, each mixed with its scope."""
    config = step.config
    fold, scope = config.dedup.exact_fold, scope_of(config, config.sources[ref.entry].dataset)
    found = [pa.table({"key": pa.array([], pa.uint64()), "row": pa.array([], pa.int32())})]
    for places, batch in _read(step.clean_folder, step.removals, step.rows, ref):
        folded = batch["digest"] if fold == "none" else exact.document_digests(batch, fold)
        found.append(pa.table({"key": digest_bits(folded) ^ scope_bits(scope), "row": places}))
    return pa.concat_tables(found)


def _run_step(context: Context) -> str:
    run(context)
    return context.folder


def steps(config: CorpusConfig) -> Sequence[Step]:
    """One, for documents of equal digests."""
    if not config.dedup.exact:
        return ()
    return [Step(name="equal", keys=_keys, bytes_of_key=2048, reach="equal", run=_run_step)]


STAGE = Stage(name="exact", settings=settings, run=run, steps=steps)


def remove_equal(
    engine: Engine,
    refs: Sequence[ShardRef],
    stage: str,
    rows: Callable[[ShardRef], pa.Table],
    reason: str,
    folder: str,
    order: Order = "priority",
) -> int:
    """Runs `RemoveEqual` as a pipeline of its own; returns the number of removals."""
    engine.run_one(stage, RemoveEqual(engine, refs, stage, rows, reason, folder, order))
    return num_removed(folder)


class RemoveEqual(beam.PTransform):
    """Writes the removals of `stage`, for `reason`: of equal digests in a scope the first document in `order` is kept.

    `rows` returns `finpile.dedup.exact.ROW_SCHEMA` for a shard. The summary of the output is the number of removals,
    once all are written; `num_removed` reads it. The steps are `work` of the pipeline.
    """

    def __init__(
        self,
        engine: Engine,
        refs: Sequence[ShardRef],
        stage: str,
        rows: Callable[[ShardRef], pa.Table],
        reason: str,
        folder: str,
        order: Order = "priority",
        *,
        work: float = 1.0,
        after: After | None = None,
    ) -> None:
        super().__init__()
        self._engine = engine
        self._refs = refs
        self._stage = stage
        self._rows = rows
        self._reason = reason
        self._folder = folder
        self._order = order
        self._work = work
        self._after = after

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[Passed]:
        refs, stage, rows, reason, folder = self._refs, self._stage, self._rows, self._reason, self._folder
        order = self._order
        partitions = num_partitions(len(refs), _SHARDS_OF_UNIT)

        def send(ref: ShardRef) -> PartitionedTables:
            table = rows(ref)
            partition = by_range(digest_bits(table["digest"]), partitions)
            return PartitionedTables(f"{ref.index:06d}", split_by_partition(table, partition))

        def decide(group: tuple[int, pa.Table]) -> pa.Table:
            return removal_table(exact.find_duplicates(group[1], reason, order), stage)

        transport, scratch = self._engine.exchange_transport, storage.join(folder, "scratch")
        exchange = ExchangeByPartition(transport, scratch, "ByDigest", _DECIDING * self._work / partitions)
        tasks = Tasks(refs, (1 - _DECIDING) * self._work, after=self._after)
        decided = pipeline | tasks | "Digest" >> beam.Map(send) | exchange | "Decide" >> beam.Map(decide)
        gather = Gather(_removed_url(folder), sum_of("removed"), after=self._after)
        removed = decided | WriteRemovals(self._engine, folder) | gather
        _ = removed | RemoveFolder(scratch)
        return removed


def num_removed(folder: str) -> int:
    """The number of removals that `RemoveEqual` wrote."""
    return sum_of("removed")(storage.read_json(_removed_url(folder)))


def _removed_url(folder: str) -> str:
    return storage.join(folder, "tasks.json")


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
