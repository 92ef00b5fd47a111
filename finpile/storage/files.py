"""Reads and writes whole files at fsspec URLs: bytes and JSON.

Each file appears when it is complete: it is written under a temporary name and renamed, or, on an object store, sent
with one upload.

Files below `.work/STAGE/` end with a checksum, which every function writes and checks (`finpile.storage.seals`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from typing import IO, Any, TypeAlias, cast

import pyarrow as pa

from finpile.storage.file_systems import (
    file_system_of,
    is_object_store,
    open_file,
    read_all,
    repeated,
    upload,
)
from finpile.storage.folders import TEMPORARY, is_local
from finpile.storage.seals import SealingStream, is_sealed, read_sealed
from finpile.storage.write_guard import check_write

_BLOCK_BYTES = 1 << 20


#: The path or URL of a file, or its bytes.
Source: TypeAlias = str | pa.Buffer


def digest_of(url: str) -> tuple[str, int]:
    """SHA-256 of a file's bytes, as 64 hex digits, and their number."""
    return digest_with_tail(url)[:2]


def digest_with_tail(url: str) -> tuple[str, int, bytes]:
    """The same, and the last bytes of the file: 1 MiB or more, or all."""
    digest, size, blocks = hashlib.sha256(), 0, deque[bytes](maxlen=2)
    with open_file(url) as stream:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
            blocks.append(block)
    return digest.hexdigest(), size, b"".join(blocks)


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
    beside = f"{path}.{uuid.uuid4().hex[:8]}{TEMPORARY}"
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
    with tempfile.NamedTemporaryFile(suffix=TEMPORARY) as local:
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


def create(url: str, data: bytes) -> None:
    """Writes a file that does not exist, in one step: by a hard link on a local disk, by a conditional request on a
    store. Does nothing if it exists with these bytes.

    Raises: FileExistsError if it has others.
    """
    fs, path = file_system_of(url)
    try:
        if is_object_store(fs):
            check_write()
            repeated(path, lambda: fs.pipe_file(path, data, mode="create"))
        elif fs.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        elif is_local(url):
            beside = f"{url}.{uuid.uuid4().hex[:8]}{TEMPORARY}"
            write_bytes(beside, data)
            try:
                os.link(file_system_of(beside)[1], path)
            finally:
                os.remove(file_system_of(beside)[1])
        else:
            write_bytes(url, data)
    except FileExistsError:
        if read_bytes(url) != data:
            raise


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


def opened(source: Source) -> Any:
    """A stream of the bytes of a file, without its seal."""
    if isinstance(source, str):
        return pa.BufferReader(read_sealed(source)) if is_sealed(source) else open_file(source)
    return pa.BufferReader(source)
