"""A documents shard is encoded in parts: neither ids nor counts depend on their sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from finpile_pipelines import tokens

from finpile.documents.split import TRAIN
from finpile.output.layout import Layout, row_of
from finpile.output.published_files import PublishedFile
from finpile.output.snapshots import published_files
from finpile.storage import parquet
from finpile.tokens.counts import count_documents
from finpile.tokens.tokenizer_files import load_tokenizer, tokenizer_checksum
from tests.support.trees import read_published

COLUMNS = ("dataset", "source", "id", "text", "timestamp", "split")


@pytest.fixture(scope="module")
def shards(sample_build: Path) -> list[PublishedFile]:
    found = published_files(Layout(str(sample_build))).below("documents")
    assert any(set(file.table()["split"].to_pylist()) - {TRAIN} for file in found)
    return found


@pytest.mark.parametrize("size_bytes", [1, 5_000, 1 << 30])
def test_parts_of_a_file_are_its_rows_in_order(
    sample_build: Path, shards: list[PublishedFile], size_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part ends with the batch that makes it as large as asked."""
    monkeypatch.setattr(parquet, "_BATCH_ROWS", 7)
    num_parts = []
    for file in shards:
        parts = list(file.parts(COLUMNS, size_bytes=size_bytes))
        assert pa.concat_tables(parts).equals(read_published(f"{sample_build}/{file.path}", COLUMNS))
        num_parts.append(len(parts))
        stored = [part.select(["id", "text", "timestamp", "split"]) for part in parts]
        assert all(part.nbytes >= size_bytes for part in stored[:-1])
        assert all(part.slice(0, part.num_rows - 7).nbytes < size_bytes for part in stored if part.num_rows > 7)
    assert (max(num_parts) > 1) == (size_bytes < 1 << 30)


@pytest.mark.parametrize("size_bytes", [1, 1 << 30])
def test_ids_and_counts_do_not_depend_on_parts(
    sample_build: Path, shards: list[PublishedFile], size_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "SHARD_BYTES", size_bytes)
    monkeypatch.setattr(parquet, "_BATCH_ROWS", 7)
    layout = Layout(str(sample_build))
    tokenizer, checksum = load_tokenizer(layout.tokenizer), tokenizer_checksum(layout)
    for file in shards:
        table = file.table(COLUMNS)
        ids = tokenizer.encode_array(table["text"])
        expected = dict(zip(table["id"].to_pylist(), ids.to_pylist(), strict=True))
        is_train = dict(zip(table["id"].to_pylist(), pc.equal(table["split"], TRAIN).to_pylist(), strict=True))
        streams = tokens.Streams(3, {row_of(file.path): range(7, 9)})
        sent: dict[str, Any] = {}
        counts = []
        origins = []
        for partitioned, counted in tokens.encode_task(file, layout, checksum, streams):
            counts += counted
            origins.append(partitioned.origin)
            for partition, rows in partitioned.tables.items():
                sent |= zip(rows["id"].to_pylist(), rows["ids"].to_pylist(), strict=True)
                assert {is_train[name] for name in rows["id"].to_pylist()} == {partition < 3}
        assert counts == [count_documents(table, pc.list_value_length(ids))]
        assert len(set(origins)) == len(origins), "the exchange needs distinct names"
        assert sent == expected
