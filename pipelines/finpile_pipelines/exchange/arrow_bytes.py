"""Arrow tables as bytes. A pickled slice contains its whole parent; Arrow IPC writes only the slice."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

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


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """The rows of a table."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
