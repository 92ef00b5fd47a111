"""Segments of exchanges as bytes, and in the scratch files of the transports `files` and `local`."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem
from zlib_ng import zlib_ng

from finpile import storage
from finpile.errors import IntegrityError
from finpile.output.work_folder import WorkFolder
from finpile.storage.file_systems import file_system_of, is_object_store, read_all
from finpile_pipelines.exchange.arrow_bytes import Compression, table_from_bytes, table_to_bytes
from finpile_pipelines.exchange.held_tables import HeldTable
from finpile_pipelines.exchange.packed import RANGE_ENTRY_BYTES, PackedRows, Ranges, SplitTable, can_pack

_I64 = npt.NDArray[np.int64]
#: Characters of an origin in the name of a file, which has more while it is written.
_LONGEST_ORIGIN = 200
#: Smaller segments are not compressed.
_COMPRESSED_BYTES = 512
_CODECS: dict[Compression, bytes] = {"zstd": b"\1", "lz4": b"\2"}
_NAMES: dict[int, Compression] = {code[0]: name for name, code in _CODECS.items()}
#: Arrow expects buffers at multiples of 8 bytes, so a segment that is not compressed begins with 8.
_RAW = bytes(8)
_SIZE = struct.Struct("<q")


class Segments:
    """Encodes and decodes the segments of one exchange: packed rows of its schema, or Arrow IPC if it has none."""

    def __init__(self, schema: pa.Schema | None, num_partitions: int = 0, most: int = 0) -> None:
        """A segment has the rows of a range of partitions if there are more than `most` partitions.

        Raises: TypeError for a schema with columns that cannot be packed.
        """
        if schema is not None and not can_pack(schema):
            raise TypeError(f"an exchange cannot pack rows of {schema}: leave its schema out")
        self._schema = schema
        self._num_partitions, self._most = num_partitions, most

    def rows(self, tables: Mapping[int, pa.Table]) -> SplitTable:
        """What an origin sends, with the schema of the exchange.

        Raises: TypeError if a table has other columns.
        """
        rows = SplitTable.of(tables)
        schema = self._schema
        if schema is None or not len(rows) or rows.table.schema.equals(schema):
            return rows
        if rows.table.column_names != schema.names:
            raise TypeError(f"an exchange is given the columns {rows.table.column_names}: expected {schema.names}")
        return SplitTable(rows.table.cast(schema), rows.names, rows.bounds)

    def encode(self, rows: SplitTable, compression: Compression | None) -> Iterator[tuple[int, bytes]]:
        """The number of each segment, and its bytes."""
        if not len(rows):
            return
        numbers, cuts = self.cut(rows)
        segments = _streams(rows, cuts) if self._schema is None else PackedRows(self._schema).encode(rows, cuts)
        for number, segment in zip(numbers.tolist(), segments, strict=True):
            yield number, _deflated(segment, compression)

    @property
    def are_mapped(self) -> bool:
        """Whether files are mapped: streams have documents, and their tables are views of the bytes."""
        return self._schema is None

    def decode(self, segments: Sequence[bytes | memoryview]) -> tuple[pa.Table, Ranges]:
        """All rows of some segments, in their order, and their partitions.

        Raises: IntegrityError for bytes that no segment has.
        """
        inflated = [_inflated(segment) for segment in segments]
        return _from_streams(inflated) if self._schema is None else PackedRows(self._schema).decode(inflated)

    def cut(self, rows: SplitTable) -> tuple[_I64, _I64]:
        """The numbers of the segments of some rows, and which of their partitions are the first ones of each."""
        numbers = self.number(rows.names)
        starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]][: len(numbers)])
        return numbers[starts], np.append(starts, len(numbers))

    def number(self, partitions: _I64) -> _I64:
        """The segment that has the rows of each partition."""
        return partitions * self._most // self._num_partitions if self.have_ranges else partitions

    @property
    def have_ranges(self) -> bool:
        """Whether a segment can have the rows of several partitions."""
        return self._num_partitions > self._most > 0

    @property
    def of_partitions(self) -> Segments:
        """Segments of one partition each, of the same rows."""
        return Segments(self._schema)


def _streams(rows: SplitTable, cuts: _I64) -> Iterator[bytes]:
    """Arrow IPC, after the number of ranges and the ranges."""
    ranges = rows.ranges.to_bytes()
    for (low, high), (first, last) in zip(pairwise(cuts.tolist()), pairwise(rows.bounds[cuts].tolist()), strict=True):
        stream = table_to_bytes(rows.table.slice(first, last - first), None)
        yield b"".join([_SIZE.pack(high - low), ranges[low * RANGE_ENTRY_BYTES : high * RANGE_ENTRY_BYTES], stream])


def _from_streams(segments: Sequence[bytes | memoryview]) -> tuple[pa.Table, Ranges]:
    tables, ranges = [], []
    for segment in segments:
        (num_ranges,) = _SIZE.unpack_from(segment)
        start = _SIZE.size + num_ranges * RANGE_ENTRY_BYTES
        ranges.append(np.frombuffer(segment, "<i8", num_ranges * 2, _SIZE.size).reshape(-1, 2))
        tables.append(table_from_bytes(memoryview(segment)[start:]))
    found = np.concatenate(ranges)
    return pa.concat_tables(tables), Ranges(found[:, 0], found[:, 1])


def _deflated(segment: bytes, compression: Compression | None) -> bytes:
    if compression is None or len(segment) < _COMPRESSED_BYTES:
        return _RAW + segment
    content: bytes = pa.compress(segment, compression, asbytes=True)
    return _CODECS[compression] + _SIZE.pack(len(segment)) + content


def _inflated(segment: bytes | memoryview) -> memoryview | bytes:
    if segment[: len(_RAW)] == _RAW:
        return memoryview(segment)[len(_RAW) :]
    try:
        (size,) = _SIZE.unpack_from(segment, 1)
        content: Any = pa.decompress(segment[1 + _SIZE.size :], size, _NAMES[segment[0]], asbytes=True)
    except (struct.error, KeyError, OSError, ValueError, OverflowError, IndexError, MemoryError) as error:
        raise IntegrityError("a segment of an exchange is damaged") from error
    return bytes(content)


class Block(NamedTuple):
    """The directory of what one origin sends: in a file, or held."""

    origin: str
    numbers: _I64
    """Of the segments, ascending."""
    places: _I64
    """In a file: the first byte of each segment, and the size of the file. Held: its first partition, and how many."""
    checksums: npt.NDArray[np.uint32]
    """CRC-32 of each segment in a file."""
    held: HeldTable | None = None


def segment_file_name(origin: str) -> str:
    """The name of the file of an origin's segments. A long origin is its digest there: names may have 255 bytes."""
    is_long = len(origin) > _LONGEST_ORIGIN
    return f"{hashlib.blake2b(origin.encode(), digest_size=16).hexdigest() if is_long else origin}.arrow"


def write_block(folder: WorkFolder, origin: str, segments: Iterator[tuple[int, bytes]]) -> Block:
    """Writes the file of an origin's segments."""
    numbers, places, checksums = [], [0], []
    with storage.write_atomically(folder.file(segment_file_name(origin)), durable=False) as stream:
        for number, segment in segments:
            stream.write(segment)
            numbers.append(number)
            places.append(places[-1] + len(segment))
            checksums.append(zlib_ng.crc32(segment))
    return Block(origin, np.array(numbers, np.int64), np.array(places, np.int64), np.array(checksums, np.uint32))


def compression_of(url: str) -> Compression | None:
    """Files on a disk are not compressed: that costs more than it saves."""
    return "lz4" if is_object_store(file_system_of(url)[0]) else None


class SegmentFiles:
    """The files of the segments of an exchange, by origin, in one folder. The file system is looked up once."""

    def __init__(self, folder: WorkFolder, *, are_mapped: bool) -> None:
        """If they `are_mapped`, segments on this machine are mapped into memory."""
        self._folder, self._are_mapped = folder, are_mapped
        self._fs, self._root = file_system_of(folder.url)

    def read(self, origin: str, start: int, end: int, checksum: int) -> bytes | memoryview:
        """The bytes of a segment.

        Raises: IntegrityError if they are not those that were written.
        """
        path = f"{self._root}/{segment_file_name(origin)}"
        data: bytes | memoryview
        if not isinstance(self._fs, LocalFileSystem):
            data = read_all(self._fs, path, start, end)
        elif self._are_mapped:
            data = _mapped(path, start, end)
        else:
            data = _read_local(path, start, end)
        if len(data) != end - start or zlib_ng.crc32(data) != checksum:
            url = self._folder.file(segment_file_name(origin))
            raise IntegrityError(f"{url} is damaged: run the same command again")
        return data


def _read_local(path: str, start: int, end: int) -> bytes:
    """Without the buffers of file objects, which take longer than the reading of a small segment."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parts = [os.pread(descriptor, end - start, start)]
        while parts[-1] and sum(map(len, parts)) < end - start:  # at most 2 GiB at a time
            done = sum(map(len, parts))
            parts.append(os.pread(descriptor, end - start - done, start + done))
        return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(descriptor)


def _mapped(path: str, start: int, end: int) -> memoryview:
    """Pages of the file that the system can drop and read again: the texts of a group may exceed the memory."""
    with pa.memory_map(path) as source:
        size = min(end, source.size()) - start
        if size <= 0:
            return memoryview(b"")
        source.seek(start)
        return memoryview(source.read_buffer(size))


@dataclass(frozen=True, slots=True)
class Directory:
    """The segments of one number that all origins have sent, by origin."""

    number: int
    origins: npt.NDArray[np.bytes_]
    starts: _I64
    ends: _I64
    checksums: npt.NDArray[np.uint32]
    held: tuple[HeldTable | None, ...]

    @property
    def size_bytes(self) -> int:
        """Of the segments in files."""
        return int((self.ends - self.starts)[[one is None for one in self.held]].sum())

    def parts(self, size_bytes: int) -> Iterator[Directory]:
        """Directories of some segments each, in order, of at most `size_bytes` in files if they are several."""
        sizes = np.where([one is None for one in self.held], self.ends - self.starts, 0)
        first, ends = 0, np.cumsum(sizes)
        while first < len(sizes):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + size_bytes, side="right")))
            some = slice(first, last)
            yield Directory(
                self.number,
                self.origins[some],
                self.starts[some],
                self.ends[some],
                self.checksums[some],
                self.held[some],
            )
            first = last

    def sources(self) -> Iterator[tuple[str, int, int, int, HeldTable | None]]:
        names = [origin.decode() for origin in self.origins.tolist()]
        rows = zip(names, self.starts.tolist(), self.ends.tolist(), self.checksums.tolist(), self.held, strict=True)
        yield from rows


def directories(blocks: Sequence[Block]) -> Iterator[Directory]:
    """All segments, by number."""
    ordered = sorted(blocks, key=lambda block: block.origin)
    counts = [len(block.numbers) for block in ordered]
    if not sum(counts):
        return
    numbers = np.concatenate([block.numbers for block in ordered])
    order = np.argsort(numbers, kind="stable")
    of_block = np.repeat(np.arange(len(ordered)), counts)[order]
    starts, ends = (np.concatenate([block.places[part] for block in ordered])[order] for part in _PARTS)
    checksums = np.concatenate([block.checksums for block in ordered])[order]
    origins = np.array([block.origin.encode() for block in ordered])
    held = [block.held for block in ordered]
    bounds = np.flatnonzero(np.r_[True, np.diff(numbers[order]) > 0, True])
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        mine = of_block[low:high]
        of_held: Any = tuple(held[at] for at in mine.tolist())
        number = int(numbers[order[low]])
        yield Directory(number, origins[mine], starts[low:high], ends[low:high], checksums[low:high], of_held)


_PARTS = (slice(None, -1), slice(1, None))
