"""Coders for Arrow batches and tables as Beam elements.

Beam would pickle them, and a pickled slice contains its whole parent; Arrow IPC writes only the slice. Beam also
encodes the first ten elements of each step and bundle to estimate their size; these coders return the size directly.

Beam finds a coder from the annotated return type of the step that makes the element. It does not read annotations that
are strings, so modules with such steps do not import `annotations` from the future.
"""

from __future__ import annotations

from typing import Any, Literal

import apache_beam as beam
import pyarrow as pa
from apache_beam.coders import Coder

Compression = Literal["zstd", "lz4"]


def table_to_bytes(table: pa.Table, compression: Compression | None = "zstd") -> bytes:
    """A table as one Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_from_bytes(data: bytes | memoryview) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


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


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """The rows of a table."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


beam.coders.registry.register_coder(pa.Table, TableCoder)
beam.coders.registry.register_coder(pa.RecordBatch, RecordBatchCoder)
