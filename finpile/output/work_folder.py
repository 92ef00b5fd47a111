"""Folders of `.work` in which a stage leaves files for later stages, and these files.

A work file ends with a seal: the CRC-32 of the bytes before it, computed as they were written. Every read checks it
first: Arrow trusts what it reads, so a damaged shard would crash the process or alter text. A stage's record lists the
seals of all its files, so that a file that is missing, cut, or of another run is noticed too.

Whoever has a `WorkFolder` names its files as `WorkFile`, which the functions of `finpile.storage` read and write by its
codec. They read and write a `str` as it is on the disk, so no file is read or written by the other rule unnoticed.

CRC-32 finds every single flipped bit and every burst of up to 32 bits; it is not a protection against intent.

Decision: docs/decisions/0090-work-folders-are-types.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, cast

import pyarrow as pa
from zlib_ng import zlib_ng

from finpile import storage
from finpile.errors import IntegrityError
from finpile.storage.file_systems import file_system_of, is_object_store, list_below, open_in, read_all, read_buffer

_MARK = b"\nFINPILE-CRC32 "
#: The mark, eight hex digits, a newline.
SEAL_BYTES = len(_MARK) + 9
_BLOCK_BYTES = 1 << 20
_RUNS_AGAIN = "run the same command again: the stage that wrote the file runs again"
_KEPT_REMEDY = (
    "it is of a published build or snapshot, whose stages do not run again: restore it from a copy, or build the "
    "corpus again with `finpile build CONFIG.yaml -o OUT --fresh`, which asks for --takedowns-to FILE if documents "
    "were taken down"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seal:
    """A work file: path relative to its folder, bytes (the seal's included), CRC-32 of those before the seal."""

    path: str
    size_bytes: int
    crc32: int


@dataclass(frozen=True, order=True, slots=True)
class WorkFile:
    """A file of a work folder. It is pickled for the workers."""

    url: str
    is_kept: bool = field(default=False, compare=False)
    """Whether it is of a published build or snapshot, of which no stage runs again."""

    def __str__(self) -> str:
        return self.url

    @contextmanager
    def encoded(self, stream: IO[bytes]) -> Iterator[IO[bytes]]:
        """A stream for the content, which is written to `stream`, with the seal at its end."""
        sealing = _SealingStream(stream)
        yield cast(IO[bytes], sealing)
        sealing.seal()

    def decoded(self) -> pa.Buffer:
        """The bytes without the seal.

        Raises: IntegrityError if they are not those that were written; FileNotFoundError.
        """
        data = read_buffer(self.url)
        size = data.size - SEAL_BYTES
        if size < 0 or data.slice(size).to_pybytes() != _seal(zlib_ng.crc32(data.slice(0, size))):
            raise self.damage()
        return data.slice(0, size)

    def damage(
        self, problem: str = "is damaged: it does not have the checksum that it was written with"
    ) -> IntegrityError:
        """The error for a file that is not as it was written."""
        return IntegrityError(f"{self.url} {problem}; {_KEPT_REMEDY if self.is_kept else _RUNS_AGAIN}")

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    def seal(self) -> str:
        """The seal as it is in the file, in hex; nothing else is read."""
        fs, path = file_system_of(self.url)
        return bytes(read_all(fs, path, start=-SEAL_BYTES)).hex()

    def exists(self) -> bool:
        return storage.is_file(self.url)

    def remove(self) -> None:
        """No error if it does not exist."""
        storage.remove_tree(self.url)


@dataclass(frozen=True, order=True, slots=True)
class WorkFolder:
    """A folder of work files and of no others. It is pickled for the workers."""

    url: str
    is_kept: bool = field(default=False, compare=False)
    """As that of its files."""

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    def __truediv__(self, name: str) -> WorkFolder:
        """The folder of that name in this one."""
        return WorkFolder(storage.join(self.url, name), self.is_kept)

    def file(self, *names: str) -> WorkFile:
        """The file `folder/name/...`."""
        return WorkFile(storage.join(self.url, *names), self.is_kept)

    def numbered(self, kind: str, number: int, suffix: str = "parquet") -> WorkFile:
        """The file `folder/KIND/000012.parquet`, such as that of a shard or of a partition."""
        return self.file(kind, f"{number:06d}.{suffix}")

    def names(self) -> list[str]:
        """The paths of all files, sorted, relative to this folder; none if there is no such folder."""
        return storage.list_files(self.url)

    def remove(self) -> None:
        """Removes the folder and its files; no error if it does not exist."""
        storage.remove_tree(self.url)

    def seals(self, names: Iterable[str] | None = None) -> tuple[Seal, ...]:
        """The seals of these files, by default of all, as they are in the files: only a few bytes of each are read.

        Raises: IntegrityError if one has none.
        """
        fs, root = file_system_of(self.url)
        sizes = list_below(fs, root) if is_object_store(fs) else {}

        def read(name: str) -> Seal:
            path = f"{root.rstrip('/')}/{name}"
            crc32 = _crc32_in(read_all(fs, path, start=-SEAL_BYTES))
            if crc32 is None:
                raise IntegrityError(f"{self.url}/{name} is damaged: it has no checksum; run the same command again")
            return Seal(path=name, size_bytes=sizes[name] if name in sizes else int(fs.size(path)), crc32=crc32)

        with ThreadPoolExecutor(_num_threads()) as pool:
            return tuple(pool.map(read, self.names() if names is None else sorted(names)))

    def find_damage(self, seals: Sequence[Seal] | None = None) -> str | None:
        """A message about a damaged file; None if all are as they were written. Everything is read.

        With the `seals` of a record, the files must be those, no more and no fewer.
        """
        names, expected = self.names(), {seal.path: seal for seal in seals or ()}
        if seals is not None:
            if missing := sorted(expected.keys() - set(names)):
                return f"{missing[0]} is missing"
            if more := sorted(set(names) - expected.keys()):
                return f"{more[0]} is not of this stage"
        fs, root = file_system_of(self.url)  # once: a thread of its own would open connections of its own
        with ThreadPoolExecutor(_num_threads()) as pool:
            found = pool.map(lambda name: _is_whole(fs, f"{root.rstrip('/')}/{name}", expected.get(name)), names)
            wrong = [name for name, is_whole in zip(names, found, strict=True) if not is_whole]
        return f"{min(wrong)} is damaged" if wrong else None


class _SealingStream:
    """A binary stream that computes the checksum of what is written; `seal` writes it, as the last thing."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._crc32 = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, data: Any) -> int:
        self._crc32 = zlib_ng.crc32(data, self._crc32)
        return self._stream.write(data)

    def seal(self) -> None:
        self._stream.write(_seal(self._crc32))


def _is_whole(fs: Any, path: str, expected: Seal | None) -> bool:
    """Whether a file has its own seal, and is the expected one if there is one."""
    crc32, tail, size = 0, b"", 0
    with open_in(fs, path) as stream:
        while block := stream.read(_BLOCK_BYTES):
            size += len(block)
            tail += block
            crc32 = zlib_ng.crc32(memoryview(tail)[:-SEAL_BYTES], crc32)
            tail = tail[-SEAL_BYTES:]
    same = expected is None or (expected.size_bytes, expected.crc32) == (size, crc32)
    return same and tail == _seal(crc32)


def _seal(crc32: int) -> bytes:
    return b"%s%08x\n" % (_MARK, crc32)


def _crc32_in(seal: bytes) -> int | None:
    if len(seal) != SEAL_BYTES or not seal.startswith(_MARK):
        return None
    try:
        return int(seal[len(_MARK) : -1], 16)
    except ValueError:
        return None


def _num_threads() -> int:
    return min(8, os.cpu_count() or 1)
