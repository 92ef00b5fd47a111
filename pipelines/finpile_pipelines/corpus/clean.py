"""Clean: markup off, Unicode and white space in order, the source's filters, the document's date."""

from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import pyarrow.compute as pc

from finpile import storage
from finpile.clean import Cleaned, clean_batch, compile_kernels, needs_kernels
from finpile.config import CorpusConfig, SourceConfig, to_dict
from finpile.digest import add, multiset_digest, to_hex
from finpile.document import text_views
from finpile.ledger import ledger_table
from finpile.timestamps import Order
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import (
    ShardRef,
    add_counts,
    count_reasons,
    shard_url,
    write_clean,
)


def clean_task(
    ref: ShardRef, source: SourceConfig, before: str, folder: str, order: Order | None, drop_undated: bool
) -> dict[str, Any]:
    """Cleans one shard of `before/documents` into `folder/documents` and `folder/removed`; returns what it did."""
    batches = [
        clean_batch(batch, source, order, drop_undated=drop_undated)
        for batch in storage.read_ipc(shard_url(before, ref.name))
    ]
    kept = [cleaned.batch for cleaned in batches]
    removals = [removal for cleaned in batches for removal in cleaned.removals]
    write_clean(folder, ref.name, kept)
    if removals:
        storage.write_parquet(storage.join(folder, "removed", f"{ref.name}.parquet"), ledger_table(removals))
    num_documents = sum(batch.num_rows for batch in kept)
    text_bytes = sum(pc.sum(pc.binary_length(batch["text"])).as_py() or 0 for batch in kept)
    report_progress(num_documents, text_bytes)
    return {
        "dataset": source.dataset,
        "source": source.name,
        "documents": num_documents,
        "text_bytes": text_bytes,
        "removed": count_reasons(removals),
        "spans": sum(removal.start is not None and removal.start != removal.end for removal in removals),
        "removed_bytes": sum(len(removal.removed_text) for removal in removals),
        "undated": sum(cleaned.num_undated for cleaned in batches),
        "unreadable_dates": sum(cleaned.num_unreadable_dates for cleaned in batches),
        "digest": sum(map(_digest, batches)),
        "digest_before_filters": sum(cleaned.digest_before_filters for cleaned in batches),
    }


class Clean(beam.PTransform):
    """Shards of raw documents to shards of clean ones."""

    def __init__(self, config: CorpusConfig, orders: Sequence[Order | None], before: str, folder: str) -> None:
        super().__init__()
        self._arguments = (config.sources, tuple(orders), config.heldout.undated == "drop", before, folder)

    def expand(self, refs: beam.PCollection[ShardRef]) -> beam.PCollection[dict[str, Any]]:
        sources, orders, drop_undated, before, folder = self._arguments

        def clean(ref: ShardRef) -> dict[str, Any]:
            return clean_task(ref, sources[ref.entry], before, folder, orders[ref.entry], drop_undated)

        return refs | "CleanShard" >> beam.Map(clean)


def settings(config: CorpusConfig) -> list[Any]:
    """The part of a corpus file that the stage depends on."""
    sources = [[to_dict(source.clean), source.date_format] for source in config.sources]
    return [*sources, config.heldout.undated == "drop"]


def run(
    engine: Engine,
    config: CorpusConfig,
    orders: Sequence[Order | None],
    refs: Sequence[ShardRef],
    before: str,
    folder: str,
) -> dict[str, Any]:
    """Runs the stage; returns its counts by source, and the digests that `finpile verify` checks the ledger against.

    `orders` are those that each source entry's dates prove, where they do.
    """
    results = storage.join(folder, "tasks.json")

    def construct(pipeline: beam.Pipeline) -> None:
        _ = pipeline | Tasks(refs) | Clean(config, orders, before, folder) | Gather(results)

    if any(map(needs_kernels, config.sources)):
        compile_kernels()
    engine.run("clean", construct)
    rows = add_counts(storage.read_json(results), ("dataset", "source"))
    for row in rows:
        for name in ("digest", "digest_before_filters"):
            row[name] = to_hex(add(row[name]))
    return {"sources": rows}


def _digest(cleaned: Cleaned) -> int:
    """Of the kept documents; where nothing was removed, that is known."""
    if not cleaned.removals:
        return cleaned.digest_before_filters
    return multiset_digest(cleaned.batch["id"].to_pylist(), text_views(cleaned.batch))
