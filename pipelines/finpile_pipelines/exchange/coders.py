"""Coders of what passes between the steps of a Beam pipeline.

Beam would pickle tables, and a pickled slice contains its whole parent. Beam also encodes the first ten elements of
each step and bundle to estimate their size; these coders return the size directly.

Beam finds a coder from the annotated return type of the step that makes the element. It does not read annotations that
are strings, so modules with such steps do not import `annotations` from the future.
"""

from __future__ import annotations

import pickle
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import Coder

from finpile.dedup.plan import Answer
from finpile_pipelines.exchange.arrow_bytes import one_batch, table_from_bytes, table_to_bytes
from finpile_pipelines.exchange.partition import PartitionedTables
from finpile_pipelines.exchange.passed import Passed


class TableCoder(Coder):
    """`pa.Table` by Arrow IPC."""

    def encode(self, value: pa.Table) -> bytes:
        return table_to_bytes(value)

    def decode(self, encoded: bytes) -> pa.Table:
        return table_from_bytes(encoded)

    def estimate_size(self, value: pa.Table | pa.RecordBatch) -> int:
        """Beam calls this often; by default it would encode the element."""
        return int(value.nbytes)

    def is_deterministic(self) -> bool:
        return True


class RecordBatchCoder(TableCoder):
    """`pa.RecordBatch` by Arrow IPC."""

    def encode(self, value: pa.RecordBatch) -> bytes:
        return table_to_bytes(pa.Table.from_batches([value]))

    def decode(self, encoded: bytes) -> Any:
        return one_batch(table_from_bytes(encoded))


class PartitionedTablesCoder(Coder):
    """Each table as Arrow IPC; sizes are known without encoding."""

    def encode(self, value: PartitionedTables) -> bytes:
        return pickle.dumps((value.origin, {name: table_to_bytes(table) for name, table in value.tables.items()}))

    def decode(self, encoded: bytes) -> PartitionedTables:
        origin, tables = pickle.loads(encoded)
        return PartitionedTables(origin, {name: table_from_bytes(data) for name, data in tables.items()})

    def estimate_size(self, value: PartitionedTables) -> int:
        return sum(int(table.nbytes) for table in value.tables.values())

    def is_deterministic(self) -> bool:
        return True


class PassedCoder(Coder):
    """Bytes that no engine looks into, whatever the type of the summary."""

    def encode(self, value: Passed) -> bytes:
        return pickle.dumps((value.ran, value.summary))

    def decode(self, encoded: bytes) -> Passed:
        return Passed(*pickle.loads(encoded))

    def is_deterministic(self) -> bool:
        return False


class AnswerCoder(Coder):
    """The rows by Arrow IPC; the counts are small."""

    def encode(self, value: Answer) -> bytes:
        return pickle.dumps((table_to_bytes(value.rows), value.counts))

    def decode(self, encoded: bytes) -> Answer:
        rows, counts = pickle.loads(encoded)
        return Answer(table_from_bytes(rows), counts)

    def estimate_size(self, value: Answer) -> int:
        return int(value.rows.nbytes)

    def is_deterministic(self) -> bool:
        return True


for kind, coder in {
    pa.Table: TableCoder,
    pa.RecordBatch: RecordBatchCoder,
    PartitionedTables: PartitionedTablesCoder,
    Answer: AnswerCoder,
    Passed: PassedCoder,
}.items():
    beam.coders.registry.register_coder(kind, coder)
