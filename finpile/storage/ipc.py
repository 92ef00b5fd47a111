"""Arrow IPC files at fsspec URLs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from finpile.storage import files
from finpile.storage.files import opened


def write_ipc(
    url: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, compress: bool = True, durable: bool = True
) -> int:
    """Writes one Arrow IPC file; returns its rows. Uncompressed files can be memory-mapped."""
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compress else None)  # fast: these files are short-lived
    num_rows = 0
    with (
        files.write_atomically(url, durable=durable) as stream,
        pa.ipc.new_file(stream, schema, options=options) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
            num_rows += batch.num_rows
    return num_rows


def read_ipc(url: str) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow IPC file, one at a time."""
    with opened(url) as stream:
        reader = pa.ipc.open_file(stream)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)
