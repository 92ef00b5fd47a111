"""Clean shards carry the digest of each text, which later stages read instead of the text."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
from finpile_pipelines.shard_refs import ShardRef, read_clean, write_clean

from finpile.clean.stage.document_rows import as_clean
from finpile.documents.document import CLEAN_SCHEMA, DOCUMENT_SCHEMA, DocumentBuilder, RawDocument
from finpile.output.work_folder import WorkFolder

TEXTS = ["Oil rose.", "", "Öl stieg.\n", "x" * 100_000]


def _documents() -> pa.RecordBatch:
    builder = DocumentBuilder("FinPile", "News")
    for number, text in enumerate(TEXTS):
        builder.append(RawDocument(locator=f"{number}.txt", text=text))
    return as_clean(builder.flush().select(DOCUMENT_SCHEMA.names))


def test_digest_of_a_clean_shard_is_that_of_the_text(tmp_path: Path) -> None:
    documents = _documents()
    ref = ShardRef(0, 0, "000000-0000", WorkFolder(str(tmp_path)))
    write_clean(ref.file, [documents.slice(0, 1), documents.slice(1)])
    stored = pa.Table.from_batches(read_clean(ref))
    assert stored.schema == CLEAN_SCHEMA
    assert stored["digest"].to_pylist() == [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in TEXTS]
    assert stored == pa.Table.from_batches([documents])


def test_empty_shard_has_the_column(tmp_path: Path) -> None:
    ref = ShardRef(0, 0, "empty", WorkFolder(str(tmp_path)))
    write_clean(ref.file, [_documents().slice(0, 0)])
    assert [batch.schema for batch in read_clean(ref)] == [CLEAN_SCHEMA]
