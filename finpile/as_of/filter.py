"""Documents and ledger of a corpus as of a day, from those of the whole build."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from finpile import storage
from finpile.as_of.counts import Ledger, Texts, stage_counts
from finpile.as_of.cut import Cut
from finpile.errors import ConfigError, InputError, IntegrityError
from finpile.layout import Layout, read_published
from finpile.ledger import PUBLISHED_LEDGER_SCHEMA
from finpile.manifest import published
from finpile.published_counts import count_documents, count_ledger


def write_cut(source: Layout, target: Layout, manifest: Mapping[str, Any], cut: Cut) -> dict[str, dict[str, Any]]:
    """Writes `documents/` and `removed/` of the corpus as of a day; returns the counts of the stages up to `split`.

    Files keep their names, and those without a row are left out. One file is in memory at a time, and the spans of the
    ledger.

    Raises: InputError if no document is from that day or before; IntegrityError if a row of the ledger names a document
    that is not: then a decision depended on a later one.
    """
    ledger = Ledger()
    removed = []
    for path in published(manifest, "removed"):
        rows = _cut_rows(storage.join(source.root, path), cut)
        if rows.num_rows:
            ledger.add(rows)
            storage.write_parquet(
                storage.join(target.root, path),
                rows.select(PUBLISHED_LEDGER_SCHEMA.names).cast(PUBLISHED_LEDGER_SCHEMA),
            )
            removed.append(count_ledger(target.root, path, rows["stage"][0].as_py(), rows))
    texts = Texts(ledger)
    for entry in removed:
        texts.add_removed(read_published(storage.join(target.root, entry["path"])))
    documents = []
    for path in published(manifest, "documents"):
        rows = _cut_rows(storage.join(source.root, path), cut)
        if rows.num_rows:
            rows = _with_copies(rows, ledger.copies)
            texts.add(rows)
            stored = rows.drop_columns(["dataset", "source"])
            storage.write_parquet(storage.join(target.root, path), stored)
            documents.append(count_documents(target.root, path, rows))
    if not documents:
        raise InputError(f"{source.root}: no document is from {cut.day} or before: name a later day")
    if ledger.missing(texts.ids):
        raise IntegrityError(
            f"{source.root}: a document up to {cut.day} was removed in favour of {ledger.missing(texts.ids)}, which is "
            "later: the build is damaged, or one of its stages does not keep the order of time"
        )
    return stage_counts(manifest, documents, removed, texts)


def _cut_rows(url: str, cut: Cut) -> pa.Table:
    """The rows of a file of documents or of the ledger that are about documents up to the day."""
    table = read_published(url)
    if "timestamp" not in table.column_names:
        raise ConfigError(f"{url} has no timestamps, as an earlier version wrote it: run the build again with --fresh")
    return table.filter(pa.array(cut.has(table["timestamp"])))


def _with_copies(documents: pa.Table, copies: Mapping[str, int]) -> pa.Table:
    """The documents with `num_copies` of the rows of the ledger."""
    at = documents.schema.get_field_index("num_copies")
    counted = [1 + copies.get(identifier, 0) for identifier in documents["id"].to_pylist()]
    return documents.set_column(at, documents.schema.field(at), pa.array(counted, pa.int32()))
