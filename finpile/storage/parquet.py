"""Parquet files at fsspec URLs, or in memory.

Row order, row groups and compression are functions of the content alone, so the same content gives the same bytes.
"""

from __future__ import annotations

import functools
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from finpile.storage import files
from finpile.storage.files import File, Source, opened

_I64 = npt.NDArray[np.int64]

#: Rows of one Parquet row group, and bytes of their texts, unless a row alone has more; small enough to be read alone,
#: large enough to compress.
ROW_GROUP_ROWS, ROW_GROUP_BYTES = 8192, 8 << 20

#: Rows that are decoded at a time where a file is read in parts.
_BATCH_ROWS = 256

#: Rows after which the writer compares a page with its size, 1 MiB. A page of all texts of a group is a copy of them.
_PAGE_ROWS = 64

#: Columns whose values differ, of which a dictionary has no smaller file: the writer gives it up after a megabyte.
_DISTINCT = ("id", "text")


#: Bytes of the end of a Parquet file: the length of the footer before it, and `PAR1`.
_FOOTER_END_BYTES = 8


def footer_digest(tail: bytes) -> str | None:
    """BLAKE2b-64 of the footer of a Parquet file, as 16 hex digits, from the last bytes of the file.

    None if these do not have all of it.
    """
    size = _footer_bytes(tail)
    return hashlib.blake2b(tail[-size:], digest_size=8).hexdigest() if size <= len(tail) else None


def _footer_bytes(tail: bytes) -> int:
    """The bytes of that footer, its length and the mark at the end included, from the last 8 bytes of the file."""
    return _FOOTER_END_BYTES + int.from_bytes(tail[-_FOOTER_END_BYTES:][:4], "little")


def read_footer_digest(stream: IO[bytes]) -> str | None:
    """`footer_digest` of an open file, of which only the footer is read. The stream is at its start afterwards."""
    end = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, end - _FOOTER_END_BYTES))
    stream.seek(max(0, end - _footer_bytes(stream.read(_FOOTER_END_BYTES))))
    digest = footer_digest(stream.read())
    stream.seek(0)
    return digest


def checked_parquet(stream: IO[bytes]) -> pq.ParquetFile:
    """An open Parquet file that compares each page that it reads with the checksum of the page, if it has one.

    With `use_threads=False`, the thread that reads does all of it, and of the file's bytes the row groups that it
    reads are in memory. With `pre_buffer`, all would be in memory until the file is closed, read by threads of Arrow,
    which end the process with SIGABRT if they release a buffer of the stream while Python shuts down.

    Raises: pyarrow.ArrowException or OSError for a damaged file; so does reading.
    """
    return pq.ParquetFile(stream, page_checksum_verification=True, pre_buffer=False)


def is_damage(error: BaseException) -> bool:
    """Whether an error of reading Parquet is due to the content of the file, and not to the system, whose errors have a
    number: then the file may be whole."""
    return isinstance(error, (pa.ArrowException, OSError)) and not getattr(error, "errno", None)


def write_parquet(file: File, table: pa.Table, *, durable: bool = True) -> None:
    """One zstd Parquet file; a row group has as many rows as `ROW_GROUP_ROWS` and `ROW_GROUP_BYTES` admit."""
    with files.write_atomically(file, durable=durable) as stream:
        _write(stream, table)


def _write(stream: IO[bytes], table: pa.Table) -> None:
    table = table.combine_chunks()
    with _writer(stream, table.schema) as writer:
        for rows in _row_groups(_text_bytes(table)):
            writer.write_table(table.slice(rows.start, len(rows)), ROW_GROUP_ROWS)


def _writer(stream: IO[bytes] | io.RawIOBase, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        stream,
        schema,
        compression="zstd",
        compression_level=3,
        use_dictionary=_dictionary_columns(schema),
        write_page_checksum=True,
        write_batch_size=_PAGE_ROWS,
    )


@functools.cache
def _dictionary_columns(schema: pa.Schema) -> list[str]:
    """The paths of all columns but the distinct ones, those within nested columns too."""
    with pa.BufferOutputStream() as stream:
        pq.write_metadata(schema, stream)
        columns = pq.ParquetFile(stream.getvalue()).schema
    return [column.path for column in columns if column.path not in _DISTINCT]


def is_parquet_of(url: str, tables: Callable[[], Iterable[pa.Table]]) -> bool:
    """Whether a file has the bytes that `write_parquet` gives all `tables` joined, of which there is one or more.

    Other versions of pyarrow write other bytes: of a file of one, rows and the statistics of columns are compared.
    """
    hashed = _Hashed()
    first = next(iter(tables()))
    _write_rows(hashed, first.schema, tables())
    if files.digest_of(url) == hashed.digest.hexdigest():
        return True
    table = pa.concat_tables(tables())
    with pa.BufferOutputStream() as stream:
        _write(stream, table)
        expected = stream.getvalue()
    try:
        wanted, found = (read_parquet_footer(source)[0] for source in (expected, url))
        is_other = found.created_by != wanted.created_by
        return bool(is_other and _statistics(found) == _statistics(wanted) and read_parquet(url).equals(table))
    except (pa.ArrowException, OSError, ValueError):
        return False


class _Hashed(io.RawIOBase):
    """A stream that keeps the SHA-256 of what is written, and nothing else."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        self.digest.update(data)
        self._size += len(data)
        return len(data)


def _statistics(metadata: pq.FileMetaData) -> list[Any]:
    """What readers that skip row groups see of each."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    columns = [(group.num_rows, group.column(place)) for group in groups for place in range(group.num_columns)]
    return [(rows, one.path_in_schema, one.statistics and one.statistics.to_dict()) for rows, one in columns]


def write_parquet_sorted(file: File, table: pa.Table, order: pa.Array) -> None:
    """Writes the same file as `write_parquet` of `table.take(order)`; beside the table, one row group is in memory."""
    rows = order.to_numpy().astype(np.int64)
    with files.write_atomically(file) as stream, _writer(stream, table.schema) as writer:
        for group in _row_groups(_text_bytes(table)[rows]):
            some = rows[group.start : group.stop]
            taken = pa.table([_taken(column, some) for column in table.columns], schema=table.schema)
            writer.write_table(taken, ROW_GROUP_ROWS)


def _row_groups(text_bytes: _I64) -> Iterator[range]:
    """The rows of each row group, from the bytes of each row; a table without rows has one too.

    A group has all rows that fit, so that the groups of a table are the first ones of any that begins with it, but for
    the last.
    """
    ends = np.cumsum(text_bytes)
    start = 0
    while True:
        most = ROW_GROUP_BYTES + (int(ends[start - 1]) if start else 0)
        stop = min(max(start + 1, int(np.searchsorted(ends, most, side="right"))), start + ROW_GROUP_ROWS, len(ends))
        yield range(start, stop)
        if stop == len(ends):
            return
        start = stop


def _text_bytes(table: pa.Table) -> _I64:
    """The bytes of the strings of each row."""
    total = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        if _is_text(column.type) or pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            total += pc.fill_null(pc.binary_length(column), 0).to_numpy()
    return total


def _is_text(of: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(of) or pa.types.is_large_binary(of))


def _taken(column: pa.ChunkedArray, rows: npt.NDArray[Any]) -> pa.ChunkedArray | pa.Array:
    """The values of some rows, in one chunk. Arrow would join all chunks first, which doubles the texts of a table."""
    if not _is_text(column.type) or column.num_chunks == 1 or column.null_count:
        return column.take(pa.array(rows))
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    chunk_of = np.searchsorted(ends, rows, side="right")
    row_of = rows - np.r_[0, ends][chunk_of]
    views = [_views(chunk) for chunk in column.chunks]
    values = [views[chunk](row) for chunk, row in zip(chunk_of.tolist(), row_of.tolist(), strict=True)]
    places = np.cumsum([0, *map(len, values)])
    buffers = [None, pa.py_buffer(places), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(column.type, len(rows), buffers)


def _views(texts: pa.Array) -> Callable[[int], memoryview]:
    """A function from a row of a column of large strings to the bytes of its value, which are not copied."""
    _, places, content = texts.buffers()
    offsets, data = np.frombuffer(places or bytes(8), np.int64)[texts.offset :].tolist(), memoryview(content or b"")
    return lambda row: data[offsets[row] : offsets[row + 1]]


def write_parquet_rows(file: File, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    """Writes the same file as `write_parquet` of all tables joined, with few of them in memory; returns its rows."""
    with files.write_atomically(file) as stream:
        return _write_rows(stream, schema, tables)


def _write_rows(stream: IO[bytes] | io.RawIOBase, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    left = schema.empty_table()
    num_rows = 0
    with _writer(stream, schema) as writer:
        for table in tables:
            num_rows += table.num_rows
            left = pa.concat_tables([left, table.cast(schema)])
            *whole, last = _row_groups(_text_bytes(left))
            for rows in whole:
                writer.write_table(left.slice(rows.start, len(rows)).combine_chunks(), ROW_GROUP_ROWS)
            left = left.slice(last.start)
        if left.num_rows or not num_rows:
            writer.write_table(left.combine_chunks(), ROW_GROUP_ROWS)
    return num_rows


def write_parquet_parts(file: File, tables: Iterable[pa.Table]) -> int:
    """The same for tables of one schema; without a row it writes no file, and returns 0."""
    some = filter(len, tables)
    first = next(some, None)
    return 0 if first is None else write_parquet_rows(file, first.schema, chain([first], some))


def read_parquet(source: Source, columns: list[str] | None = None) -> pa.Table:
    """The table in a file. Its pages are compared with their checksums; so do all functions that read Parquet."""
    with opened(source) as stream:
        return checked_parquet(stream).read(columns=columns, use_threads=False)


def read_parquet_footer(source: Source) -> tuple[pq.FileMetaData, int]:
    """The footer of a file, and the bytes of the file."""
    with opened(source) as stream:
        metadata = checked_parquet(stream).metadata
        return metadata, stream.seek(0, io.SEEK_END)


def read_parquet_rows(source: Source, rows: Iterable[int]) -> pa.Table:
    """Rows of a file, in ascending order, each once; only the row groups that have them are read.

    Raises: IndexError if there is no such row.
    """
    wanted = sorted(set(rows))
    with opened(source) as stream:
        file = checked_parquet(stream)
        if wanted and not 0 <= wanted[0] <= wanted[-1] < file.metadata.num_rows:
            raise IndexError(f"the file has {file.metadata.num_rows} rows, and not row {wanted[-1]}")
        parts, first = [], 0
        for group in range(file.num_row_groups):
            end = first + file.metadata.row_group(group).num_rows
            if here := [row - first for row in wanted if first <= row < end]:
                parts.append(file.read_row_group(group, use_threads=False).take(here))
            first = end
        return pa.concat_tables(parts) if parts else file.schema_arrow.empty_table()


def read_parquet_parts(source: Source, columns: list[str] | None = None, *, size_bytes: int) -> Iterator[pa.Table]:
    """The rows of a file, in tables of about `size_bytes`; of a file without rows, none."""
    batches: list[pa.RecordBatch] = []
    held_bytes = 0
    with opened(source) as stream:
        for batch in checked_parquet(stream).iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
            batches.append(batch)
            held_bytes += batch.nbytes
            if held_bytes >= size_bytes:
                yield pa.Table.from_batches(batches)
                batches, held_bytes = [], 0
    if batches:
        yield pa.Table.from_batches(batches)


def read_parquet_if_exists(file: File, schema: pa.Schema) -> pa.Table:
    """The table in a file; one without rows if there is no such file."""
    try:
        return read_parquet(file)
    except FileNotFoundError:
        return schema.empty_table()
