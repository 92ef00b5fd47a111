"""Shuffle by partition: tables are split by key hash, and each partition is received as one table.

Three transports with equal results:

    files     each origin writes one scratch file with a segment per partition; the runner shuffles one directory of
              segments per origin
    local     the same; on an object store, the files are in a temporary folder of this machine instead, and a
              pipeline that runs in the launcher holds packed rows in memory, up to a limit (`held_tables`)
    shuffle   the runner's GroupByKey shuffles the segments themselves

`local` suits the local runner, which keeps every shuffled byte several times in memory; `shuffle` suits engines whose
workers share no disk.

If the schema of an exchange is known, a segment is packed rows (`packed`), else an Arrow IPC stream.

Each origin has a segment for each partition to which it sends rows, so that their number would grow with the square of
the corpus. In files, an origin has a limited number: above, a segment has the rows of a range of partitions, which its
receiver splits, in memory or, above `RANGE_BYTES`, in files of its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import pyarrow as pa
from zlib_ng import zlib_ng

from finpile.output.work_folder import WorkFolder
from finpile.storage import sizes
from finpile.storage.file_systems import file_system_of, is_object_store
from finpile_pipelines import graph
from finpile_pipelines.exchange.held_tables import hold
from finpile_pipelines.exchange.jobs import Job, current_job, working
from finpile_pipelines.exchange.packed import Ranges, SplitTable
from finpile_pipelines.exchange.packed import split_by_partition as split_by_partition
from finpile_pipelines.exchange.segments import (
    Block,
    Directory,
    SegmentFiles,
    Segments,
    compression_of,
    directories,
    write_block,
)
from finpile_pipelines.process_folder import process_folder
from finpile_pipelines.progress import counted

Transport = Literal["files", "local", "shuffle"]
_SCRATCH = "exchange"


def remove_local_scratch() -> None:
    """Removes the files that exchanges to an object store left on this machine, when their pipeline has ended."""
    shutil.rmtree(process_folder() / _SCRATCH, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class PartitionedTables:
    """Tables that one origin sends, by partition. Its name is unique in an exchange and determines the order."""

    origin: str
    tables: Mapping[int, pa.Table]


def by_range(high_bits: np.ndarray[Any, Any], num_partitions: int) -> np.ndarray[Any, Any]:
    """The partition of each 64-bit key. Partitions are ranges of keys: sorted partitions, in order, are sorted."""
    top = high_bits.astype(np.uint64) >> np.uint64(32)
    return ((top * np.uint64(num_partitions)) >> np.uint64(32)).astype(np.int64)


class ExchangeByPartition(graph.PTransform):
    """`PartitionedTables` in, `(partition, table)` out; rows are ordered by origin, then as sent.

    Several collections may send to the same partitions. (If they were flattened first, the runner would shuffle their
    tables.) The steps that follow are `share` of the pipeline's work for each partition. All tables have the `schema`,
    if it is given. If the number of `partitions` is, an origin has `most_segments` in files: with more partitions, a
    segment has the rows of a range of them.
    """

    def __init__(
        self,
        transport: Transport,
        scratch: WorkFolder,
        label: str,
        share: float = 0.0,
        *,
        schema: pa.Schema | None = None,
        partitions: int = 0,
        most_segments: int | None = None,
    ) -> None:
        super().__init__(label)
        self._transport = transport
        self._share = share
        most = sizes.MOST_SEGMENTS if most_segments is None else most_segments
        self._segments = Segments(schema, 0 if transport == "shuffle" else partitions, most)
        is_elsewhere = transport == "local" and is_object_store(file_system_of(scratch.url)[0])
        # A pipeline may have several exchanges of one label, each with a scratch folder of its own.
        folder = _local_scratch(scratch) if is_elsewhere else scratch
        self._scratch = folder / label

    def expand(
        self, partitioned: graph.PCollection[PartitionedTables] | tuple[graph.PCollection[PartitionedTables], ...]
    ) -> graph.PCollection[tuple[int, pa.Table]]:
        holds_tables = self._transport == "local" and not self._segments.are_mapped
        in_files = _SendFiles(self._segments, self._scratch, holds_tables=holds_tables)
        send = _SendBytes(self._segments).send if self._transport == "shuffle" else in_files.send
        senders = partitioned if isinstance(partitioned, tuple) else (partitioned,)
        sent = tuple(sender | f"Send{index}" >> graph.FlatMap(send) for index, sender in enumerate(senders))
        joined = sent[0] if len(sent) == 1 else sent | graph.Flatten()
        receive: Receive = _ReceiveBytes(self._segments)
        if self._transport != "shuffle":
            joined = joined | "Blocks" >> graph.GroupByKey() | "Directories" >> graph.FlatMap(_directories)
            receive = _ReceiveFiles(self._segments, self._scratch)
        received = graph.FlatMap(_counted, receive, self._share, current_job()).with_output_types(tuple[int, pa.Table])
        return joined | "Group" >> graph.GroupByKey() | "Receive" >> received


def _local_scratch(scratch: WorkFolder) -> WorkFolder:
    """The folder on this machine that replaces a scratch folder on an object store."""
    return WorkFolder(str(process_folder())) / _SCRATCH / f"{zlib_ng.crc32(scratch.url.encode()):08x}"


Receive = Callable[[tuple[int, Iterable[Any]]], Iterator[tuple[int, pa.Table]]]


def _counted(
    group: tuple[int, Iterable[Any]], receive: Receive, share: float, job: Job | None
) -> Iterator[tuple[int, pa.Table]]:
    for received in working(job, receive(group)):
        yield from counted(share, [received])


@dataclass(frozen=True, slots=True)
class _SendFiles:
    """It is pickled for the workers."""

    segments: Segments
    scratch: WorkFolder
    holds_tables: bool

    def send(self, partitioned: PartitionedTables) -> Iterator[tuple[int, Block]]:
        rows = self.segments.rows(partitioned.tables)
        if not len(rows):
            return
        if self.holds_tables and (held := hold(rows)):
            numbers, cuts = self.segments.cut(rows)
            yield 0, Block(partitioned.origin, numbers, cuts, np.zeros(len(numbers), np.uint32), held)
            return
        encoded = self.segments.encode(rows, compression_of(self.scratch.url))
        yield 0, write_block(self.scratch, partitioned.origin, encoded)


@dataclass(frozen=True, slots=True)
class _SendBytes:
    """As `_SendFiles`, of segments that are elements."""

    segments: Segments

    def send(self, partitioned: PartitionedTables) -> Iterator[tuple[int, tuple[str, bytes]]]:
        for number, segment in self.segments.encode(self.segments.rows(partitioned.tables), "zstd"):
            yield number, (partitioned.origin, segment)


def _directories(blocks: tuple[int, Iterable[Block]]) -> Iterator[tuple[int, Directory]]:
    for directory in directories(list(blocks[1])):
        yield directory.number, directory


@dataclass(frozen=True, slots=True)
class _ReceiveFiles:
    """All tables of a segment's partitions. It is pickled for the workers."""

    segments: Segments
    scratch: WorkFolder

    def __call__(self, group: tuple[int, Iterable[Directory]]) -> Iterator[tuple[int, pa.Table]]:
        """Raises: IntegrityError if a file has other bytes than were written."""
        (directory,) = group[1]
        if self.segments.have_ranges and directory.size_bytes > sizes.RANGE_BYTES:
            yield from self._in_parts(directory)
        else:
            yield from self._read(directory).items()

    def _in_parts(self, directory: Directory) -> Iterator[tuple[int, pa.Table]]:
        """As `_read`, in bounded memory: parts of the segments are split into files, from which partitions are read."""
        segments = self.segments.of_partitions
        folder = _local_scratch(self.scratch / f"range-{directory.number}-{uuid4().hex}")
        try:
            blocks: list[Block] = []
            for part in directory.parts(sizes.RANGE_BYTES):
                origin, rows = f"{len(blocks):06d}", segments.rows(self._read(part))
                blocks.append(write_block(folder, origin, segments.encode(rows, None)))
                del rows
            receive = _ReceiveFiles(segments, folder)
            for one in directories(blocks):
                yield from receive._read(one).items()
        finally:
            folder.remove()

    def _read(self, directory: Directory) -> SplitTable:
        files = SegmentFiles(self.scratch, are_mapped=self.segments.are_mapped)
        found: list[tuple[pa.Table, Ranges]] = []
        for is_held, sources in groupby(directory.sources(), lambda source: source[-1] is not None):
            if is_held:
                held = [one.read(start, end) for _, start, end, _, one in sources if one is not None]
                found += [(rows.table, rows.ranges) for rows in held]
            else:
                data = [files.read(origin, start, end, checksum) for origin, start, end, checksum, _ in sources]
                found.append(self.segments.decode(data))
        return _joined(found)


@dataclass(frozen=True, slots=True)
class _ReceiveBytes:
    """As `_ReceiveFiles`, of segments that are elements."""

    segments: Segments

    def __call__(self, group: tuple[int, Iterable[tuple[str, bytes]]]) -> Iterator[tuple[int, pa.Table]]:
        ordered = sorted(group[1], key=lambda item: item[0])
        yield from _joined([self.segments.decode([data for _, data in ordered])]).items()


def _joined(found: list[tuple[pa.Table, Ranges]]) -> SplitTable:
    """The rows of all tables, which are released, by partition."""
    table = pa.concat_tables([table for table, _ in found]) if len(found) > 1 else found[0][0]
    ranges = Ranges(
        np.concatenate([ranges.names for _, ranges in found]), np.concatenate([ranges.sizes for _, ranges in found])
    )
    found.clear()
    return ranges.split(table)
