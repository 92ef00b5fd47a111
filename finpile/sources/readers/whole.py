"""Files that are read whole or not at all: the first damage or broken record is an error, and no ledger row.

`where` is the name of a file in error messages. Compressed files are decompressed by their suffixes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import pyarrow as pa

from finpile import storage
from finpile.config.limits import LimitsConfig
from finpile.errors import InputError
from finpile.sources.bytes.compression import decompressed, split_codecs
from finpile.sources.bytes.streams import BrokenStream, ByteStream, TooLarge
from finpile.sources.readers.finding import locate
from finpile.sources.readers.json_line import parse_line
from finpile.storage.file_systems import open_in

_BATCH_ROWS = 1024
#: A file that the user names is not an attack: nothing but the window of a zstd frame is bounded.
_LIMITS = LimitsConfig(record="1024 TiB", member="1024 TiB", ratio=1 << 40, window="2 GiB")


@contextmanager
def open_stream(url: str, where: str) -> Iterator[ByteStream]:
    """The decompressed bytes of a file.

    Raises: InputError for a file that cannot be opened, and, during the reads, for one that is damaged or cut.
    """
    try:
        fs, path = locate(url)
        with open_in(fs, path) as raw:
            yield decompressed(raw, split_codecs(path)[1], where, _LIMITS)
    except BrokenStream as error:
        raise InputError(f"{where}: is damaged or cut short: {error.detail}") from error
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from error


def read_bytes(url: str, where: str) -> bytes:
    """All bytes of a file, decompressed. Raises: InputError."""
    with open_stream(url, where) as stream:
        return stream.read()


def json_lines(stream: ByteStream, where: str) -> Iterator[tuple[int, Any]]:
    """The number of each line, from 1, and its value; blank lines are left out.

    Raises: InputError for a line that is not JSON in UTF-8.
    """
    for number, line in enumerate(stream.lines(), start=1):
        if isinstance(line, TooLarge):
            raise InputError(f"{where}:{number}: {line.detail(stream.limits)}")
        if line.isspace():
            continue
        try:
            yield number, parse_line(line)
        except ValueError as error:
            raise InputError(f"{where}:{number}: is not JSON in UTF-8: {error}") from error


def parquet_rows(
    url: str, where: str, columns: Callable[[list[str]], list[str]] = lambda names: names
) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file; of its columns, those that `columns` chooses of the names.

    Raises: InputError for a file that is not Parquet, or is damaged.
    """
    fs, path = locate(url)
    is_compressed = bool(split_codecs(path)[1])
    try:
        with BytesIO(read_bytes(url, where)) if is_compressed else open_in(fs, path) as stream:
            file = storage.checked_parquet(stream)
            wanted = columns(file.schema_arrow.names)
            for batch in file.iter_batches(_BATCH_ROWS, columns=wanted, use_threads=False):
                yield from batch.to_pylist()
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{where}: is not a whole Parquet file: {error}") from error
