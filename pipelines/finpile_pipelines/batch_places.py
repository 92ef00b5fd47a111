"""Reads some batches of a sealed Arrow file without the others: their places in the file, and a checksum of each.

The first read of a file is a whole one, which checks its seal, and leaves the places in a file beside an index. Later
reads check the batches that they read. The places are those of a file with that seal alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from zlib_ng import zlib_ng

from finpile import storage
from finpile.errors import IntegrityError
from finpile.output.work_folder import WorkFile
from finpile.storage.file_systems import read_buffer

_I32 = npt.NDArray[np.int32]
#: Where the messages of an Arrow file begin.
_MAGIC_BYTES = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class _Places:
    """The batches of one file."""

    seal: str
    """The last bytes of the file, in hex."""
    batches: list[tuple[int, int, int, int]]
    """Of each: first byte, bytes, rows, CRC-32."""


def read_batches(
    file: WorkFile, places_url: str, schema: pa.Schema, rows: _I32
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches of a file of that schema that have one of the `rows`, each with the number of its first row.

    Raises: IntegrityError if the file is damaged; FileNotFoundError.
    """
    found = _load(file, places_url)
    if found is None:
        yield from _whole(file, places_url, schema, rows)
        return
    first = 0
    for start, size, num_rows, crc32 in found.batches:
        if np.searchsorted(rows, first) < np.searchsorted(rows, first + num_rows):
            data = read_buffer(file.url, start, size)
            if zlib_ng.crc32(data) != crc32:
                raise file.damage()
            yield first, pa.ipc.read_record_batch(data, schema)
        first += num_rows


def _whole(file: WorkFile, places_url: str, schema: pa.Schema, rows: _I32) -> Iterator[tuple[int, pa.RecordBatch]]:
    data, first, batches = file.decoded(), 0, []
    with pa.BufferReader(data) as stream:
        reader = pa.ipc.open_file(stream)
        is_ours = reader.schema.equals(schema)
    if not is_ours:
        raise IntegrityError(f"{file} has other columns than {', '.join(schema.names)}: build the corpus with --fresh")
    for start, size in _messages(data):
        message = data.slice(start, size)
        batch = pa.ipc.read_record_batch(message, schema)
        batches.append((start, size, batch.num_rows, zlib_ng.crc32(message)))
        if np.searchsorted(rows, first) < np.searchsorted(rows, first + batch.num_rows):
            yield first, batch
        first += batch.num_rows
    storage.write_json(places_url, asdict(_Places(seal=file.seal(), batches=batches)))


def _messages(data: pa.Buffer) -> Iterator[tuple[int, int]]:
    """The first byte and the size of the message of each batch."""
    with pa.BufferReader(data) as stream:
        stream.seek(_MAGIC_BYTES)
        reader = pa.ipc.MessageReader.open_stream(stream)
        start = _MAGIC_BYTES
        while True:
            try:
                message = reader.read_next_message()
            except StopIteration:
                return
            if message.type == "record batch":
                yield start, stream.tell() - start
            start = stream.tell()


def _load(file: WorkFile, places_url: str) -> _Places | None:
    """The places of a file's batches; None if they are not known."""
    try:
        found: dict[str, Any] = storage.read_json(places_url)
        places = _Places(seal=found["seal"], batches=[tuple(batch) for batch in found["batches"]])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None
    return places if places.seal == file.seal() else None
