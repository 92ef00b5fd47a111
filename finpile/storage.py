"""Reads and writes files at fsspec URLs: Parquet, Arrow IPC, JSON.

Each file appears when it is complete: it is written under a temporary name and renamed, or, on an object store, sent
with one upload. Row order, row groups and compression are functions of the content alone, so the same content gives the
same bytes.

Files below `.work/STAGE/` end with a checksum, which every function here writes and checks (`finpile.seals`).

All paths are fsspec URLs.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from pathlib import PurePosixPath
from typing import IO, Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.parquet as pq

from finpile.file_systems import file_system_of, is_object_store, list_below, open_file, read_all, repeated, upload
from finpile.seals import SealingStream, is_sealed, read_sealed
from finpile.write_guard import check_write

#: Rows of one Parquet row group; small enough to be read alone, large enough to compress.
ROW_GROUP_ROWS = 8192
#: Rows that are decoded at a time where a file is read in parts.
_BATCH_ROWS = 256
_PARQUET: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "store_schema": True,
    "write_page_checksum": True,
}
_BLOCK_BYTES = 1 << 20
#: Bytes of the end of a Parquet file: the length of the footer before it, and `PAR1`.
FOOTER_END_BYTES = 8
_TEMPORARY = ".tmp"

#: The path or URL of a file, or its bytes.
Source: TypeAlias = str | pa.Buffer


def join(base: str, *names: str) -> str:
    """`base/name/...` for a local path or a URL."""
    return "/".join([base.rstrip("/"), *names])


def absolute(url: str) -> str:
    """A local path, made absolute; a URL as it is. Workers have another current folder than the launcher.

    >>> absolute("/corpora/../out"), absolute("s3://corpora/out")
    ('/out', 's3://corpora/out')
    """
    return url if "://" in url else os.path.abspath(url)


def exists(url: str) -> bool:
    fs, path = file_system_of(url)
    if not is_object_store(fs):
        return bool(fs.exists(path))
    try:
        repeated(path, lambda: fs.info(path))
    except FileNotFoundError:
        return False
    return True


def is_file(url: str) -> bool:
    """Whether there is a file; one request on an object store, where `exists` takes two for what does not exist."""
    fs, path = file_system_of(url)
    if not is_object_store(fs):
        return bool(fs.isfile(path))
    try:
        read_all(fs, path, 0, 1)
    except FileNotFoundError:
        return False
    return True


def sizes_of(root: str, paths: Iterable[str]) -> dict[str, int]:
    """The bytes of those of the files `root/path` that exist, by path; of an object store, folders are listed."""
    fs, folder = file_system_of(root)
    paths = set(paths)
    if is_object_store(fs):
        found = {
            f"{top}/{name}": size
            for top in sorted({path.split("/")[0] for path in paths if "/" in path})
            for name, size in list_below(fs, f"{folder.rstrip('/')}/{top}").items()
        }
        found |= {path: int(fs.size(f"{folder.rstrip('/')}/{path}")) for path in paths if "/" not in path}
        return {path: found[path] for path in sorted(paths & found.keys())}
    there = [path for path in sorted(paths) if fs.exists(f"{folder.rstrip('/')}/{path}")]
    return {path: int(fs.size(f"{folder.rstrip('/')}/{path}")) for path in there}


def list_files(url: str) -> list[str]:
    """All files under a folder, as sorted paths relative to it, without temporary files."""
    return list(sizes_below(url))


def sizes_below(url: str) -> dict[str, int]:
    """The bytes of all files under a folder, by path relative to it, without temporary files."""
    fs, root = file_system_of(url)
    return {path: size for path, size in sorted(list_below(fs, root).items()) if not path.endswith(_TEMPORARY)}


def list_folder(url: str) -> list[str]:
    """The names of the files and folders in a folder, sorted, without temporary files.

    Raises: FileNotFoundError; NotADirectoryError for a file.
    """
    fs, root = file_system_of(url)
    found = repeated(root, lambda: fs.ls(root, detail=True)) if is_object_store(fs) else fs.ls(root, detail=True)
    if [(entry["name"], entry["type"]) for entry in found] == [(root, "file")]:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), url)
    names = (entry["name"].rstrip("/").rsplit("/", 1)[-1] for entry in found)
    return sorted(name for name in names if not name.endswith(_TEMPORARY))


def digest_of(url: str) -> tuple[str, int]:
    """BLAKE2b-128 of a file's bytes, as 32 hex digits, and their number."""
    return digest_with_tail(url)[:2]


def digest_with_tail(url: str) -> tuple[str, int, bytes]:
    """The same, and the last bytes of the file: 1 MiB or more, or all."""
    digest, size, blocks = hashlib.blake2b(digest_size=16), 0, deque[bytes](maxlen=2)
    with open_file(url) as stream:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
            blocks.append(block)
    return digest.hexdigest(), size, b"".join(blocks)


def footer_digest(tail: bytes) -> str | None:
    """BLAKE2b-64 of the footer of a Parquet file, as 16 hex digits, from the last bytes of the file.

    None if these do not have all of it.
    """
    size = footer_bytes(tail)
    return hashlib.blake2b(tail[-size:], digest_size=8).hexdigest() if size <= len(tail) else None


def footer_bytes(tail: bytes) -> int:
    """The bytes of that footer, its length and the mark at the end included, from the last 8 bytes of the file."""
    return FOOTER_END_BYTES + int.from_bytes(tail[-FOOTER_END_BYTES:][:4], "little")


def remove_tree(url: str) -> None:
    """Removes a folder and its content; no error if it does not exist."""
    check_write()
    fs, path = file_system_of(url)
    if is_object_store(fs):
        _remove(fs, [f"{path.rstrip('/')}/{name}" for name in list_below(fs, path)])
    elif fs.exists(path):
        fs.rm(path, recursive=True)


def remove_files(root: str, names: Sequence[str]) -> None:
    """Removes the files `root/NAME`, those that exist, and then those of their folders in which nothing is left."""
    check_write()
    fs, base = file_system_of(root)
    base = base.rstrip("/")
    if is_object_store(fs):
        there = sizes_of(root, names)
        _remove(fs, [f"{base}/{name}" for name in there])
        return
    for name in names:
        if fs.isfile(f"{base}/{name}"):
            fs.rm(f"{base}/{name}")
    remove_empty_folders(root, names)


def remove_empty_folders(root: str, names: Iterable[str]) -> None:
    """Removes the folders of the files `root/NAME` in which nothing is left; object stores have no folders."""
    fs, base = file_system_of(root)
    base = base.rstrip("/")
    for folder in sorted({str(parent) for name in names for parent in PurePosixPath(name).parents[:-1]}, reverse=True):
        if not is_object_store(fs) and fs.isdir(f"{base}/{folder}") and not fs.ls(f"{base}/{folder}"):
            fs.rmdir(f"{base}/{folder}")


def _remove(fs: Any, paths: list[str]) -> None:
    if paths:
        with suppress(FileNotFoundError):  # removed by a request whose answer was lost
            repeated(paths[0], lambda: fs.rm(paths))


def move(source: str, target: str) -> None:
    """Moves a file within its file system; on an object store it is copied and then removed."""
    check_write()
    (fs, path), (_, target_path) = file_system_of(source), file_system_of(target)
    if not is_object_store(fs):
        fs.makedirs(fs._parent(target_path), exist_ok=True)
    fs.mv(path, target_path)


@contextmanager
def write_atomically(url: str, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A binary stream whose bytes appear under `url` atomically: all of them, or none after an error.

    A `durable` file survives a power failure once it exists; a file that only the running stage reads need not.
    """
    fs, path = file_system_of(url)
    if is_object_store(fs):
        with _uploaded(fs, path) as stream, _sealed(stream, url) as target:
            yield target
        return
    fs.makedirs(fs._parent(path), exist_ok=True)
    beside = f"{path}.{uuid.uuid4().hex[:8]}{_TEMPORARY}"
    try:
        with fs.open(beside, "wb") as stream:
            with _sealed(stream, url) as target:
                yield target
            stream.flush()
            if durable:
                _sync(stream)
        check_write()
        fs.mv(beside, path)
    except BaseException as error:
        with suppress(OSError):
            if fs.exists(beside):
                fs.rm(beside)
        if isinstance(error, OSError) and error.errno and not error.filename:  # errors of a full disk have no path
            raise OSError(error.errno, error.strerror, path) from error
        raise


@contextmanager
def _sealed(stream: IO[bytes], url: str) -> Iterator[IO[bytes]]:
    """The stream, with a seal at its end if the file at `url` has one."""
    if not is_sealed(url):
        yield stream
        return
    sealing = SealingStream(stream)
    yield cast(IO[bytes], sealing)
    sealing.seal()


@contextmanager
def _uploaded(fs: Any, path: str) -> Iterator[IO[bytes]]:
    """A temporary local file that is uploaded unless an error occurs."""
    with tempfile.NamedTemporaryFile(suffix=_TEMPORARY) as local:
        yield cast(IO[bytes], local)
        local.flush()
        check_write()
        upload(fs, local.name, path)


def _sync(stream: IO[bytes]) -> None:
    with suppress(AttributeError, UnsupportedOperation):  # only local files have a descriptor
        os.fsync(stream.fileno())


def write_bytes(url: str, data: bytes) -> None:
    with write_atomically(url) as stream:
        stream.write(data)


def write_json(url: str, value: Any) -> None:
    """Writes JSON with sorted keys, two spaces and a final newline: the same value gives the same bytes."""
    write_bytes(url, (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())


def read_bytes(url: str) -> bytes:
    """Raises: IntegrityError if a file of `.work` is damaged; so do all functions that read."""
    if is_sealed(url):
        return bytes(read_sealed(url).to_pybytes())
    fs, path = file_system_of(url)
    return read_all(fs, path)


def read_json(url: str) -> Any:
    """Raises: ValueError for invalid JSON."""
    try:
        return json.loads(read_bytes(url))
    except RecursionError:
        raise ValueError(f"{url} is JSON nested too deep") from None


def checked_parquet(stream: IO[bytes]) -> pq.ParquetFile:
    """An open Parquet file that compares each page that it reads with the checksum of the page, if it has one.

    Raises: pyarrow.ArrowException or OSError for a damaged file; so does reading.
    """
    return pq.ParquetFile(stream, page_checksum_verification=True)


def _opened(source: Source) -> Any:
    """A stream of the bytes of a file, without its seal."""
    if isinstance(source, str):
        return pa.BufferReader(read_sealed(source)) if is_sealed(source) else open_file(source)
    return pa.BufferReader(source)


def write_parquet(url: str, table: pa.Table, *, durable: bool = True) -> None:
    """One zstd Parquet file with row groups of `ROW_GROUP_ROWS`."""
    with write_atomically(url, durable=durable) as stream:
        pq.write_table(table.combine_chunks(), stream, row_group_size=ROW_GROUP_ROWS, **_PARQUET)


def write_parquet_sorted(url: str, table: pa.Table, order: pa.Array) -> None:
    """Writes the same file as `write_parquet` of `table.take(order)`, without a second copy of the table."""
    table = table.combine_chunks()
    with write_atomically(url) as stream, pq.ParquetWriter(stream, table.schema, **_PARQUET) as writer:
        for start in range(0, max(1, len(order)), ROW_GROUP_ROWS):  # a table without rows has a row group too
            writer.write_table(table.take(order[start : start + ROW_GROUP_ROWS]), ROW_GROUP_ROWS)


def write_parquet_rows(url: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    """Writes the same file as `write_parquet` of all tables joined, with few of them in memory; returns its rows."""
    left = schema.empty_table()
    num_rows = 0
    with write_atomically(url) as stream, pq.ParquetWriter(stream, schema, **_PARQUET) as writer:
        for table in tables:
            num_rows += table.num_rows
            left = pa.concat_tables([left, table.cast(schema)])
            whole = left.num_rows - left.num_rows % ROW_GROUP_ROWS
            for start in range(0, whole, ROW_GROUP_ROWS):
                writer.write_table(left.slice(start, ROW_GROUP_ROWS).combine_chunks(), ROW_GROUP_ROWS)
            left = left.slice(whole)
        if left.num_rows or not num_rows:
            writer.write_table(left.combine_chunks(), ROW_GROUP_ROWS)
    return num_rows


def read_parquet(source: Source, columns: list[str] | None = None) -> pa.Table:
    """The table in a file. Its pages are compared with their checksums; so do all functions that read Parquet."""
    with _opened(source) as stream:
        # On this thread: a thread of Arrow could still release buffers of the stream while Python shuts down.
        return checked_parquet(stream).read(columns=columns, use_threads=False)


def read_parquet_rows(source: Source, rows: Iterable[int], columns: list[str] | None = None) -> pa.Table:
    """Rows of a file, in ascending order, each once; only the row groups that have them are read.

    Raises: IndexError if there is no such row.
    """
    wanted = sorted(set(rows))
    with _opened(source) as stream:
        file = checked_parquet(stream)
        if wanted and not 0 <= wanted[0] <= wanted[-1] < file.metadata.num_rows:
            raise IndexError(f"the file has {file.metadata.num_rows} rows, and not row {wanted[-1]}")
        parts, first = [], 0
        for group in range(file.num_row_groups):
            end = first + file.metadata.row_group(group).num_rows
            if here := [row - first for row in wanted if first <= row < end]:
                parts.append(file.read_row_group(group, columns=columns, use_threads=False).take(here))
            first = end
        return pa.concat_tables(parts) if parts else file.schema_arrow.empty_table()


def read_parquet_parts(source: Source, columns: list[str] | None = None, *, size_bytes: int) -> Iterator[pa.Table]:
    """The rows of a file, in tables of about `size_bytes`; of a file without rows, none."""
    batches: list[pa.RecordBatch] = []
    held_bytes = 0
    with _opened(source) as stream:
        for batch in checked_parquet(stream).iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
            batches.append(batch)
            held_bytes += batch.nbytes
            if held_bytes >= size_bytes:
                yield pa.Table.from_batches(batches)
                batches, held_bytes = [], 0
    if batches:
        yield pa.Table.from_batches(batches)


def read_parquet_if_exists(url: str, schema: pa.Schema) -> pa.Table:
    """The table in a file; one without rows if there is no such file."""
    try:
        return read_parquet(url)
    except FileNotFoundError:
        return schema.empty_table()


def write_ipc(
    url: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, compress: bool = True, durable: bool = True
) -> int:
    """Writes one Arrow IPC file; returns its rows. Uncompressed files can be memory-mapped."""
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compress else None)  # fast: these files are short-lived
    num_rows = 0
    with write_atomically(url, durable=durable) as stream, pa.ipc.new_file(stream, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
            num_rows += batch.num_rows
    return num_rows


def read_ipc(url: str) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow IPC file, one at a time."""
    with _opened(url) as stream:
        reader = pa.ipc.open_file(stream)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)


def remove_temporaries(url: str) -> None:
    """Removes the temporary files of killed runs from a folder."""
    fs, root = file_system_of(url)
    if not is_object_store(fs):  # uploads have no temporary files
        for name in list_below(fs, root):
            if name.endswith(_TEMPORARY):
                fs.rm(f"{root.rstrip('/')}/{name}")
