"""The documents of clean shards without the rows and spans that earlier dedup stages removed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from finpile.config import CorpusConfig
from finpile.dedup.near import clusters
from finpile.dedup.order import Order
from finpile.dedup.substring.spans import cut_rows
from finpile_pipelines.dedup.removals import NO_ROWS, read_spans, removed_rows
from finpile_pipelines.shard_refs import RemovalFolder, Rows, ShardRef, read_clean_rows
from finpile_pipelines.stage import Context, StepInput


def scope_of(config: CorpusConfig, dataset: str) -> str:
    """The scope of a dataset's documents; documents of different scopes are not compared."""
    return dataset if config.dedup.scope == "dataset" else ""


def order_setting(config: CorpusConfig) -> list[str]:
    """What the order of documents adds to the settings of a stage: nothing for the default."""
    return [] if config.dedup.order == "priority" else [config.dedup.order]


def remaining_documents(context: Context) -> RemainingDocuments:
    """The documents of a stage: those that the stages before it left."""
    return RemainingDocuments(context.config, context.clean_folder, context.earlier_removals, context.rows)


def documents_of(step: StepInput) -> RemainingDocuments:
    """Those of which a step derives keys."""
    return RemainingDocuments(step.config, step.clean_folder, step.removals, step.rows)


class RemainingDocuments:
    """Reads the clean shards below `clean_folder`, without what the folders `earlier_removals` remove.

    With `rows`, only these documents are read.
    """

    def __init__(
        self,
        config: CorpusConfig,
        clean_folder: str,
        earlier_removals: tuple[RemovalFolder, ...],
        rows: Rows | None = None,
    ) -> None:
        self._config = config
        self._clean_folder = clean_folder
        self._earlier_removals = earlier_removals
        self._rows = rows

    @property
    def order(self) -> Order:
        """The order in which copies are preferred."""
        return self._config.dedup.order

    def scope(self, ref: ShardRef) -> str:
        return scope_of(self._config, self._config.sources[ref.entry].dataset)

    def read(self, ref: ShardRef) -> Iterator[pa.Table]:
        """Tables of the shard's remaining documents: `id, timestamp, text, digest, row, shard, number, priority`.

        `text` is without the spans; `digest` is that of the clean text, and `number` 63 bits of scope and digest;
        `shard` and `row` are the document's place; `priority` is the source's.
        """
        wanted = None if self._rows is None else self._rows.get(ref.index, NO_ROWS)
        removed = removed_rows(self._earlier_removals, ref.index)
        spans = [read_spans(folder, ref.index) for folder in self._earlier_removals]
        scope = self.scope(ref)
        for first, batch in read_clean_rows(self._clean_folder, ref, wanted):
            rows = np.arange(first, first + batch.num_rows, dtype=np.int32)
            keep = ~np.isin(rows, removed)
            if wanted is not None:
                keep &= np.isin(rows, wanted)
            table = pa.Table.from_batches([batch]).select(["id", "timestamp", "text", "digest"])
            texts = table["text"].chunk(0)
            for of_stage in spans:
                texts = cut_rows(texts, of_stage, first)
            table = table.set_column(2, table.field(2), texts)
            if not keep.all():
                table = table.filter(pa.array(keep))
            columns = {
                "row": pa.array(rows[keep]),
                "shard": pa.array(np.full(table.num_rows, ref.index, np.int32)),
                "number": clusters.document_numbers(scope, table["digest"]),
                "priority": pa.array(np.full(table.num_rows, ref.entry, np.int32)),
            }
            for name, column in columns.items():
                table = table.append_column(name, column)
            yield table
