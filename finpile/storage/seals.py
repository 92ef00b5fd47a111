"""Checksums of the files that stages pass to each other.

A file below `.work/STAGE/` ends with a seal: the CRC-32 of the bytes before it, computed as they were written. Every
read checks it first: Arrow trusts what it reads, so a damaged shard would crash the process or alter text. A stage's
record lists the seals of all its files, so that a file that is missing, cut, or of another run is noticed too.

CRC-32 finds every single flipped bit and every burst of up to 32 bits; it is not a protection against intent.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any

import pyarrow as pa

from finpile.errors import IntegrityError
from finpile.plugins import stages
from finpile.storage.file_systems import file_system_of, is_object_store, list_below, open_in, read_all, read_buffer

#: The folder below `.work` of `finpile tokenizer train`. Files in `training/out`, which it is about to publish, have no
#: seal.
TRAINING = "training"
_MARK = b"\nFINPILE-CRC32 "
#: The mark, eight hex digits, a newline.
SEAL_BYTES = len(_MARK) + 9
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Seal:
    """A sealed file: path relative to its stage's folder, bytes (the seal's included), CRC-32 of those before it."""

    path: str
    size_bytes: int
    crc32: int


def is_sealed(url: str) -> bool:
    """Whether a file at this path or URL has a seal: it is below `.work`, in the folder of a stage or of a training."""
    return _sealed((*stages.names(), TRAINING)).search(url) is not None


@lru_cache(maxsize=1)
def _sealed(folders: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?:^|/)\.work/(?!{TRAINING}/out/)(?:{'|'.join(map(re.escape, folders))})/")


class SealingStream:
    """A binary stream that computes the checksum of what is written; `seal` writes it, as the last thing."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._crc32 = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, data: Any) -> int:
        self._crc32 = zlib.crc32(data, self._crc32)
        return self._stream.write(data)

    def seal(self) -> None:
        self._stream.write(_seal(self._crc32))


def read_sealed(url: str) -> pa.Buffer:
    """The bytes of a sealed file, without the seal.

    Raises: IntegrityError if they are not those that were written; FileNotFoundError.
    """
    data = read_buffer(url)
    size = data.size - SEAL_BYTES
    if size < 0 or data.slice(size).to_pybytes() != _seal(zlib.crc32(data.slice(0, size))):
        raise IntegrityError(
            f"{url} is damaged: it does not have the checksum that it was written with; run the same command again: "
            "the stage that wrote the file runs again"
        )
    return data.slice(0, size)


def seals_of(folder: str, names: Iterable[str]) -> tuple[Seal, ...]:
    """The seals of files below a stage's folder, as they are in the files: only a few bytes of each are read.

    Raises: IntegrityError if one has none.
    """
    fs, root = file_system_of(folder)
    sizes = list_below(fs, root) if is_object_store(fs) else {}

    def read(name: str) -> Seal:
        path = f"{root.rstrip('/')}/{name}"
        found = read_all(fs, path, start=-SEAL_BYTES)
        crc32 = _crc32_in(found)
        if crc32 is None:
            raise IntegrityError(f"{folder}/{name} is damaged: it has no checksum; run the same command again")
        return Seal(path=name, size_bytes=sizes[name] if name in sizes else int(fs.size(path)), crc32=crc32)

    with ThreadPoolExecutor(_num_threads()) as pool:
        return tuple(pool.map(read, sorted(names)))


def find_damage(folder: str, names: Sequence[str], seals: Sequence[Seal] | None = None) -> str | None:
    """A message about a damaged file of a folder; None if all are as they were written.

    With the `seals` of a record, the files must be those, no more and no fewer. Everything is read.
    """
    if seals is not None:
        missing = sorted({seal.path for seal in seals} - set(names))
        if missing:
            return f"{missing[0]} is missing"
        if more := sorted(set(names) - {seal.path for seal in seals}):
            return f"{more[0]} is not of this stage"
    expected = {seal.path: seal for seal in seals or ()}
    fs, root = file_system_of(folder)  # once: a thread of its own would open connections of its own
    with ThreadPoolExecutor(_num_threads()) as pool:
        found = pool.map(lambda name: _is_whole(fs, f"{root.rstrip('/')}/{name}", expected.get(name)), names)
        wrong = [name for name, is_whole in zip(names, found, strict=True) if not is_whole]
    return f"{min(wrong)} is damaged" if wrong else None


def _is_whole(fs: Any, path: str, expected: Seal | None) -> bool:
    """Whether a file has its own seal, and is the expected one if there is one."""
    crc32, tail, size = 0, b"", 0
    with open_in(fs, path) as stream:
        while block := stream.read(_BLOCK_BYTES):
            size += len(block)
            tail += block
            crc32 = zlib.crc32(memoryview(tail)[:-SEAL_BYTES], crc32)
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
