"""Arrow IPC files at fsspec URLs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from finpile.storage import files
from finpile.storage.files import File, Source, opened


def write_ipc(file: File, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, compress: bool = True) -> int:
    """Writes one Arrow IPC file; returns its rows. Uncompressed files can be memory-mapped."""
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compress else None)  # fast: these files are short-lived
    num_rows = 0
    with (
        files.write_atomically(file) as stream,
        pa.ipc.new_file(stream, schema, options=options) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
            num_rows += batch.num_rows
    return num_rows


def read_ipc(source: Source, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow IPC file, one at a time; with `columns`, only these are decoded, in this order."""
    with opened(source) as stream:
        options = None
        if columns is not None:
            schema = pa.ipc.open_file(stream).schema
            options = pa.ipc.IpcReadOptions(included_fields=sorted(map(schema.names.index, columns)))
        reader = pa.ipc.open_file(stream, options=options)
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index)
            yield batch if columns is None else batch.select(columns)
