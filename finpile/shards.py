"""Shard files, stage records, resume.

Three rules make a run restartable at any moment and repeatable to the byte:

1. a file is written beside its final name and renamed when it is whole;
2. a stage's files count only once its `StageRecord` is there, and the record is written last;
3. names, row order, row groups and compression are functions of the content alone, never of workers or time.

What lies below `.work/STAGE/` ends with a checksum, which every function here writes and checks (`finpile.seals`).

All paths are fsspec URLs.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from io import UnsupportedOperation
from pathlib import PurePath
from typing import IO, Any, cast

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.core import url_to_fs

from finpile.errors import IntegrityError
from finpile.seals import Seal, SealingStream, find_damage, is_sealed, read_sealed, seals_of

#: Rows of one Parquet row group; small enough to be read alone, large enough to compress.
ROW_GROUP_ROWS = 8192
_PARQUET: dict[str, Any] = {"compression": "zstd", "compression_level": 3, "store_schema": True}
_BLOCK_BYTES = 1 << 20
_TEMPORARY = ".tmp"
_DOMAIN = "finpile-stage-1"
_RECORD, _STARTED = "stage.json", "started.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRecord:
    """A finished file: path relative to the tree's root, size, BLAKE2b-128 of its bytes, rows where it has rows."""

    path: str
    size_bytes: int
    checksum: str
    num_rows: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StageRecord:
    """What a finished stage left behind; written after all of its files."""

    stage: str
    fingerprint: str
    files: tuple[FileRecord, ...]
    counts: Mapping[str, Any] = field(default_factory=dict)
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    seals: tuple[Seal, ...] = ()
    """Of the files that the stage left in its folder of `.work`; they are no part of the manifest."""

    def to_json(self) -> dict[str, Any]:
        """As in the manifest."""
        return {name: value for name, value in asdict(self).items() if name != "seals"}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> StageRecord:
        files = tuple(FileRecord(**entry) for entry in raw["files"])
        seals = tuple(Seal(**entry) for entry in raw.get("seals", ()))
        return cls(**{**raw, "files": files, "seals": seals})


def fingerprint(*parts: Any) -> str:
    """32 hex digits over JSON-able parts: equal parts, equal fingerprint, on any machine and run."""
    text = json.dumps([_DOMAIN, *parts], sort_keys=True, ensure_ascii=False, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(value: Any) -> str:
    """Days and paths as text. Raises: TypeError for what has no fixed text, such as a set."""
    if isinstance(value, (date, PurePath)):
        return str(value)
    raise TypeError(f"{value!r} cannot be part of a fingerprint")


def join(base: str, *names: str) -> str:
    """`base/name/...` for a local path or a URL."""
    return "/".join([base.rstrip("/"), *names])


def exists(url: str) -> bool:
    fs, path = url_to_fs(url)
    return bool(fs.exists(path))


def size_of(url: str) -> int:
    """The bytes of a file."""
    fs, path = url_to_fs(url)
    return int(fs.size(path))


def list_files(url: str) -> list[str]:
    """All files under a folder, as sorted paths relative to it; temporary ones left out."""
    fs, root = url_to_fs(url)
    if not fs.exists(root):
        return []
    found = (os.path.relpath(path, root).replace(os.sep, "/") for path in fs.find(root))
    return sorted(path for path in found if not path.endswith(_TEMPORARY))


def list_folder(url: str) -> list[str]:
    """The names of the files and folders in a folder, sorted; temporary files left out."""
    fs, root = url_to_fs(url)
    names = (path.rstrip("/").rsplit("/", 1)[-1] for path in fs.ls(root, detail=False))
    return sorted(name for name in names if not name.endswith(_TEMPORARY))


def remove_tree(url: str) -> None:
    """Removes a folder and all below it; no error where there is none."""
    fs, path = url_to_fs(url)
    if fs.exists(path):
        fs.rm(path, recursive=True)


@contextmanager
def write_atomically(url: str, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A binary stream whose bytes appear under `url` all at once, or, on any error, not at all.

    A `durable` file outlives a power cut once it is there; one that only the running stage reads need not.
    """
    fs, path = url_to_fs(url)
    fs.makedirs(fs._parent(path), exist_ok=True)
    beside = f"{path}.{uuid.uuid4().hex[:8]}{_TEMPORARY}"
    try:
        with fs.open(beside, "wb") as stream:
            if is_sealed(url):
                sealing = SealingStream(stream)
                yield cast(IO[bytes], sealing)
                sealing.seal()
            else:
                yield stream
            stream.flush()
            if durable:
                _sync(stream)
        fs.mv(beside, path)
    except BaseException as error:
        with suppress(OSError):
            if fs.exists(beside):
                fs.rm(beside)
        if isinstance(error, OSError) and error.errno and not error.filename:  # a full disk does not say which
            raise OSError(error.errno, error.strerror, path) from error
        raise


def _sync(stream: IO[bytes]) -> None:
    with suppress(AttributeError, UnsupportedOperation):  # only local files have a descriptor
        os.fsync(stream.fileno())


def write_bytes(url: str, data: bytes) -> None:
    with write_atomically(url) as stream:
        stream.write(data)


def write_json(url: str, value: Any) -> None:
    """Sorted keys, two spaces, a final newline: the same value is always the same bytes."""
    write_bytes(url, (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())


def read_bytes(url: str) -> bytes:
    """Raises: IntegrityError where a file of `.work` is damaged; so do all functions that read."""
    if is_sealed(url):
        return bytes(read_sealed(url).to_pybytes())
    with fsspec.open(url, "rb") as stream:
        return bytes(stream.read())


def read_json(url: str) -> Any:
    """Raises: ValueError for what is no JSON."""
    try:
        return json.loads(read_bytes(url))
    except RecursionError:
        raise ValueError(f"{url} is JSON nested too deep") from None


def write_parquet(url: str, table: pa.Table, *, durable: bool = True) -> None:
    """One zstd Parquet file with row groups of `ROW_GROUP_ROWS`."""
    with write_atomically(url, durable=durable) as stream:
        pq.write_table(table.combine_chunks(), stream, row_group_size=ROW_GROUP_ROWS, **_PARQUET)


def write_parquet_sorted(url: str, table: pa.Table, order: pa.Array) -> None:
    """The file that `write_parquet` makes of `table.take(order)`, which would copy all of it a second time."""
    table = table.combine_chunks()
    with write_atomically(url) as stream, pq.ParquetWriter(stream, table.schema, **_PARQUET) as writer:
        for start in range(0, max(1, len(order)), ROW_GROUP_ROWS):  # of no rows there is a row group too
            writer.write_table(table.take(order[start : start + ROW_GROUP_ROWS]), ROW_GROUP_ROWS)


def write_parquet_rows(url: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    """The file that `write_parquet` makes of all tables in one, of which only a few are held; returns its rows."""
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


def read_parquet(url: str, columns: list[str] | None = None) -> pa.Table:
    with pa.BufferReader(read_sealed(url)) if is_sealed(url) else fsspec.open(url, "rb") as stream:
        # On this thread: one of Arrow's own may still be giving the stream's buffers back while Python shuts down.
        return pq.ParquetFile(stream).read(columns=columns, use_threads=False)


def write_ipc(
    url: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, compress: bool = True, durable: bool = True
) -> int:
    """One Arrow IPC file; returns its rows. Uncompressed files can be memory-mapped."""
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compress else None)  # read soon, and not for long
    num_rows = 0
    with write_atomically(url, durable=durable) as stream, pa.ipc.new_file(stream, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
            num_rows += batch.num_rows
    return num_rows


def read_ipc(url: str) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow IPC file, one at a time."""
    with pa.BufferReader(read_sealed(url)) if is_sealed(url) else fsspec.open(url, "rb") as stream:
        reader = pa.ipc.open_file(stream)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)


def file_record(root: str, path: str, num_rows: int | None = None) -> FileRecord:
    """Measures a finished file that stands at `root/path`."""
    digest = hashlib.blake2b(digest_size=16)
    size = 0
    with fsspec.open(join(root, path), "rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return FileRecord(path=path, size_bytes=size, checksum=digest.hexdigest(), num_rows=num_rows)


def load_stage(folder: str) -> StageRecord | None:
    """The record of a finished stage, or None where it never finished, or where its record is damaged."""
    url = join(folder, _RECORD)
    if not exists(url):
        return None
    try:
        return StageRecord.from_json(read_json(url))
    except (IntegrityError, ValueError, KeyError, TypeError, AttributeError):
        return None


def save_stage(folder: str, record: StageRecord) -> None:
    """Marks a stage as finished. To be called after everything else it writes."""
    seals = [asdict(seal) for seal in record.seals]
    write_json(join(folder, _RECORD), {**record.to_json(), "seals": seals})


def is_done(folder: str, mark: str) -> bool:
    """Whether the stage finished with this fingerprint."""
    done = load_stage(folder)
    return done is not None and done.fingerprint == mark


def find_stage_damage(root: str, folder: str, record: StageRecord) -> str | None:
    """What is wrong with the files that a finished stage left in its folder and below `root`; None where nothing is.

    All of them are read.
    """
    wrong = find_damage(folder, _own_files(folder), record.seals)
    if wrong is not None:
        return join(folder, wrong)
    for expected in record.files:
        if not exists(join(root, expected.path)):
            return f"{join(root, expected.path)} is missing"
        if file_record(root, expected.path).checksum != expected.checksum:
            return f"{join(root, expected.path)} is damaged"
    return None


def find_missing(root: str, record: StageRecord) -> str | None:
    """Which of the published files of a finished stage is missing or of another size; None where none is."""
    for expected in record.files:
        fs, path = url_to_fs(join(root, expected.path))
        if not fs.exists(path):
            return f"{join(root, expected.path)} is missing"
        if fs.size(path) != expected.size_bytes:
            return f"{join(root, expected.path)} is damaged"
    return None


def _own_files(folder: str) -> list[str]:
    """The files of a stage, but for those that say that it began and ended."""
    return [name for name in list_files(folder) if name not in (_RECORD, _STARTED) and is_sealed(join(folder, name))]


def _remove_temporaries(url: str) -> None:
    """What a killed run was writing when it was killed."""
    fs, root = url_to_fs(url)
    if fs.exists(root):
        for path in fs.find(root):
            if path.endswith(_TEMPORARY):
                fs.rm(path)


def _began(folder: str, mark: str) -> bool:
    """Whether a run with this fingerprint was interrupted here, and nothing of what it left is damaged."""
    url = join(folder, _STARTED)
    try:
        return exists(url) and read_json(url) == mark and find_damage(folder, _own_files(folder)) is None
    except (IntegrityError, ValueError):
        return False


def run_once(
    folder: str, mark: str, run: Callable[[], StageRecord], published: Sequence[str] = ()
) -> tuple[StageRecord, bool]:
    """Runs a stage unless its record with the same fingerprint is there; returns the record and whether it ran.

    What an interrupted run with the same fingerprint left is kept, since names and bytes are the same again; what any
    other run left, in `folder` and in the `published` folders, is removed first, and so is all where a file is damaged.
    """
    done = load_stage(folder)
    if done is not None and done.fingerprint == mark:
        return done, False
    _remove_temporaries(folder)
    if not _began(folder, mark):
        for stale in (folder, *published):
            remove_tree(stale)
        write_json(join(folder, _STARTED), mark)
    for unfinished in published:
        _remove_temporaries(unfinished)
    record = run()
    record = replace(record, seals=seals_of(folder, _own_files(folder)))
    save_stage(folder, record)
    return record, True
