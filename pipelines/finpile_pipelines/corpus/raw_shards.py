"""The shards of raw documents that a task of `ingest` writes.

Documents are values of Python until they are a batch of about `_BATCH_BYTES`, then Arrow data: a shard has several
batches, and is written when its texts have the size of a shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from finpile.config import SourceConfig
from finpile.documents.document import RAW_SCHEMA, DocumentBuilder
from finpile.errors import MACHINE_REMEDIES, RunError
from finpile.output.work_folder import WorkFile, WorkFolder
from finpile.sources.readers.record_evidence import FieldEvidence
from finpile_pipelines.progress import report_progress
from finpile_pipelines.shard_refs import shard_file, write_shard

#: Bytes of text in a batch of a shard, about: Python's strings take up to four times as much.
_BATCH_BYTES = 2 << 20
#: Shards whose text a task holds at most, where a source has several rows.
_SHARDS_HELD = 4
#: Documents between two reports of progress.
_REPORT_EVERY = 128


@contextmanager
def writing(file: WorkFile) -> Iterator[WorkFile]:
    """Raises: RunError with the file that cannot be written; what cannot be read is a row of the ledger."""
    try:
        yield file
    except OSError as error:
        remedy = MACHINE_REMEDIES.get(error.errno or 0)
        what = f"{error.strerror or error}{f': {remedy}' if remedy else ''}"
        raise RunError(f"{file} cannot be written: {what}") from error


@dataclass(slots=True)
class RowShards:
    """The shards of one row, and the documents of the next one."""

    builder: DocumentBuilder
    batches: list[pa.RecordBatch] = field(default_factory=list)
    held_bytes: int = 0
    """Of the texts in `batches` and `builder`."""
    names: list[str] = field(default_factory=list)
    num_documents: int = 0
    text_bytes: int = 0


class ShardWriter:
    """Cuts a task's documents into shards of about `shard_bytes`, in reading order; a shard has documents of one row.

    The rows of a source with several share the memory of four shards.
    """

    def __init__(self, index: int, source: SourceConfig, folder: WorkFolder, shard_bytes: int) -> None:
        self._index = index
        self._source = source
        self._folder = folder
        self._shard_bytes = shard_bytes
        self._held_bytes = 0
        self._num_shards = 0
        self._unreported = [0, 0]
        self.rows: dict[str | None, RowShards] = {}
        self.evidence = FieldEvidence()

    def append(self, document: Any) -> None:
        row = self.rows.get(document.row) or self._begin(document.row)
        before = row.builder.size_bytes
        row.builder.append(document)
        added = row.builder.size_bytes - before
        self.evidence.add(document)
        row.num_documents += 1
        row.text_bytes += added
        row.held_bytes += added
        self._held_bytes += added
        self._unreported[0] += 1
        self._unreported[1] += added
        if self._unreported[0] == _REPORT_EVERY:
            self._report()
        if row.builder.size_bytes >= _BATCH_BYTES:
            row.batches.append(row.builder.flush())
        if row.held_bytes >= self._shard_bytes:
            self._flush(row)
        elif self._held_bytes >= _SHARDS_HELD * self._shard_bytes:
            self._flush(max(self.rows.values(), key=lambda other: other.held_bytes))

    def close(self) -> None:
        for row in self.rows.values():
            if row.batches or len(row.builder):
                self._flush(row)
        self._report()

    def of(self, name: str | None) -> RowShards:
        """The shards of a row, which may have no documents."""
        return self.rows.get(name) or self._begin(name)

    def _begin(self, name: str | None) -> RowShards:
        source = self._source.of_row(name)
        self.rows[name] = RowShards(DocumentBuilder(source.dataset, source.label))
        return self.rows[name]

    def _flush(self, row: RowShards) -> None:
        name = f"{self._index:06d}-{self._num_shards:04d}"
        self._held_bytes -= row.held_bytes
        if len(row.builder):
            row.batches.append(row.builder.flush())
        with writing(shard_file(self._folder, name)) as file:
            write_shard(file, RAW_SCHEMA, row.batches)
        row.batches, row.held_bytes = [], 0
        row.names.append(name)
        self._num_shards += 1

    def _report(self) -> None:
        report_progress(*self._unreported)
        self._unreported = [0, 0]
