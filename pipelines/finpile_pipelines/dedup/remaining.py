"""The documents of clean shards as earlier dedup stages left them: rows gone, spans cut."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from finpile.config import CorpusConfig
from finpile.dedup.near import clusters
from finpile.dedup.substring.spans import SPAN_SCHEMA, cut_rows
from finpile_pipelines.dedup.removals import (
    read_removals,
    read_spans,
)
from finpile_pipelines.shard_refs import (
    ShardRef,
    read_clean,
)


def scope_of(config: CorpusConfig, dataset: str) -> str:
    """Documents are compared within their scope only."""
    return dataset if config.dedup.scope == "dataset" else ""


class RemainingDocuments:
    """Reads what the stages whose folders are `found` left of the clean shards below `clean`."""

    def __init__(self, config: CorpusConfig, clean: str, found: tuple[str, ...]) -> None:
        self._config = config
        self._clean = clean
        self._found = found

    def scope(self, ref: ShardRef) -> str:
        return scope_of(self._config, self._config.sources[ref.entry].dataset)

    def read(self, ref: ShardRef) -> Iterator[pa.Table]:
        """Tables of the shard's surviving documents: `id, timestamp, text`, and what tells and orders them.

        `text` is what is left; `digest` is that of the clean text, and `number` 63 bits that stand for it within its
        scope; `shard` and `row` name the place; `priority` is the source's.
        """
        gone = {row for folder in self._found for row in read_removals(folder, ref.index)["row"].to_pylist()}
        spans = self.spans(ref)
        scope = self.scope(ref)
        first = 0
        for batch in read_clean(self._clean, ref.name):
            rows = np.arange(first, first + batch.num_rows, dtype=np.int32)
            keep = pa.array(np.array([row not in gone for row in rows.tolist()], dtype=bool))
            table = pa.Table.from_batches([batch]).select(["id", "timestamp", "text"])
            digests = batch["digest"]
            columns = {
                "digest": digests,
                "row": pa.array(rows),
                "shard": pa.array(np.full(table.num_rows, ref.index, np.int32)),
                "number": clusters.document_numbers(scope, digests),
                "priority": pa.array(np.full(table.num_rows, ref.entry, np.int32)),
            }
            for name, column in columns.items():
                table = table.append_column(name, column)
            if spans.num_rows:
                table = table.set_column(2, "text", cut_rows(table["text"].chunk(0), spans, first))
            first += batch.num_rows
            yield table.filter(keep)

    def spans(self, ref: ShardRef) -> pa.Table:
        """The spans cut from the shard's documents so far."""
        return pa.concat_tables([SPAN_SCHEMA.empty_table(), *(read_spans(folder, ref.index) for folder in self._found)])
