"""Reads and writes whole files at fsspec URLs: bytes and JSON.

Each file appears when it is complete: it is written under a temporary name and renamed, or, on an object store, sent
with one upload.

A file with a codec is an `Encoded`: its owner says how its bytes follow from its content.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import tempfile
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from io import UnsupportedOperation
from typing import IO, Any, Protocol, TypeAlias, cast

import pyarrow as pa

from finpile.storage.file_systems import (
    file_system_of,
    is_object_store,
    open_file,
    read_all,
    repeated,
    upload,
)
from finpile.storage.folders import TEMPORARY, is_local, join
from finpile.storage.write_guard import check_write

_BLOCK_BYTES = 1 << 20


class Encoded(Protocol):
    """A file whose bytes are not its content."""

    @property
    def url(self) -> str: ...

    def encoded(self, stream: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
        """A stream for the content; its bytes are written to `stream`."""

    def decoded(self) -> pa.Buffer:
        """The content. Raises: IntegrityError if it is not as it was written; FileNotFoundError."""


#: A file: its path or URL if its bytes are its content.
File: TypeAlias = str | Encoded
#: A file, or its content.
Source: TypeAlias = File | pa.Buffer


def digest_of(url: str) -> str:
    """SHA-256 of a file's bytes, as 64 hex digits."""
    return digest_with_tail(url)[0]


def digest_with_tail(url: str) -> tuple[str, int, bytes]:
    """The same, the number of bytes, and the last bytes of the file: 1 MiB or more, or all."""
    digest, size, blocks = hashlib.sha256(), 0, deque[bytes](maxlen=2)
    with open_file(url) as stream:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
            blocks.append(block)
    return digest.hexdigest(), size, b"".join(blocks)


@contextmanager
def write_atomically(file: File, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A binary stream whose bytes become the content of `file` atomically: all of them, or none after an error.

    A `durable` file survives a power failure once it exists; a file that only the running stage reads need not.
    """
    url, encoded = (file, nullcontext) if isinstance(file, str) else (file.url, file.encoded)
    fs, path = file_system_of(url)
    if is_object_store(fs):
        with _uploaded(fs, path) as stream, encoded(stream) as target:
            yield target
        return
    fs.makedirs(fs._parent(path), exist_ok=True)
    beside = f"{path}.{uuid.uuid4().hex[:8]}{TEMPORARY}"
    try:
        with fs.open(beside, "wb") as stream:
            with encoded(stream) as target:
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


def write_bytes(file: File, data: bytes) -> None:
    with write_atomically(file) as stream:
        stream.write(data)


def append_line(url: str, line: bytes) -> None:
    """Appends a line and its end, durably, in place of a last line without an end: a write that was cut short.

    On a local disk only the line is written, and several processes may append at a time; elsewhere files cannot grow,
    and the whole file is written again.

    Raises: OSError if the line cannot be written; the file then lacks it.
    """
    check_write()
    fs, path = file_system_of(url)
    if not is_local(url):
        before = read_bytes(url) if fs.exists(path) else b""
        write_bytes(url, before[: before.rfind(b"\n") + 1] + line + b"\n")
        return
    fs.makedirs(fs._parent(path), exist_ok=True)
    with open(path, "ab+", buffering=0) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        end = _end_of_lines(stream)
        try:
            stream.truncate(end)
            if stream.write(line + b"\n") != len(line) + 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            os.fsync(stream.fileno())
        except OSError:
            stream.truncate(end)
            raise


def _end_of_lines(stream: IO[bytes]) -> int:
    """The bytes of the lines that have an end."""
    start = stream.seek(0, os.SEEK_END)
    while start:
        end, start = start, max(0, start - _BLOCK_BYTES)
        stream.seek(start)
        if (place := stream.read(end - start).rfind(b"\n")) >= 0:
            return start + place + 1
    return 0


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


def write_json(file: File, value: Any) -> None:
    """Writes JSON with sorted keys, two spaces and a final newline: the same value gives the same bytes."""
    write_bytes(file, (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())


def write_files(folder: str, files: Mapping[str, bytes]) -> list[str]:
    """Writes files into a folder, in their order; returns their URLs."""
    for name, data in files.items():
        write_bytes(join(folder, name), data)
    return [join(folder, name) for name in files]


def read_bytes(file: File) -> bytes:
    """Raises: what the codec of the file raises; so do all functions that read."""
    if isinstance(file, str):
        fs, path = file_system_of(file)
        return read_all(fs, path)
    return bytes(file.decoded().to_pybytes())


def read_json(file: File) -> Any:
    """Raises: ValueError for invalid JSON."""
    try:
        return json.loads(read_bytes(file))
    except RecursionError:
        raise ValueError(f"{file} is JSON nested too deep") from None


def opened(source: Source) -> Any:
    """A stream of the content of a file."""
    if isinstance(source, str):
        return open_file(source)
    return pa.BufferReader(source if isinstance(source, pa.Buffer) else source.decoded())
