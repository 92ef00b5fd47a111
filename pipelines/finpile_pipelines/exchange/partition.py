"""Shuffle by partition: tables are split by key hash, and each partition is received as one table.

Three transports with equal results:

    files     each origin writes one scratch file with a table per partition; the runner shuffles references
    local     the same; on an object store, the files are in a temporary folder of this machine instead, and a
              pipeline that runs in the launcher holds tables in memory, up to a limit (`held_tables`)
    shuffle   the runner's GroupByKey shuffles the tables themselves, as Arrow IPC

`local` suits the local runner, which keeps every shuffled byte several times in memory; `shuffle` suits engines whose
workers share no disk.
"""

from __future__ import annotations

import pickle
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.coders import Coder

from finpile import storage
from finpile.errors import IntegrityError
from finpile.storage.file_systems import file_system_of, is_object_store, read_all
from finpile_pipelines.exchange.coders import Compression, table_from_bytes, table_to_bytes
from finpile_pipelines.exchange.held_tables import HeldTable, hold
from finpile_pipelines.exchange.jobs import Job, current_job, working
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


class PartitionedTablesCoder(Coder):
    """Each table as Arrow IPC; sizes are known without encoding."""

    def encode(self, value: PartitionedTables) -> bytes:
        return pickle.dumps((value.origin, {name: table_to_bytes(table) for name, table in value.tables.items()}))

    def decode(self, encoded: bytes) -> PartitionedTables:
        origin, tables = pickle.loads(encoded)
        return PartitionedTables(origin, {name: table_from_bytes(data) for name, data in tables.items()})

    def estimate_size(self, value: PartitionedTables) -> int:
        return sum(int(table.nbytes) for table in value.tables.values())

    def is_deterministic(self) -> bool:
        return True


beam.coders.registry.register_coder(PartitionedTables, PartitionedTablesCoder)


def split_by_partition(table: pa.Table, partition: np.ndarray[Any, Any]) -> dict[int, pa.Table]:
    """The rows of each partition, in the order of the table."""
    if len(partition) == 0:
        return {}
    order = np.argsort(partition, kind="stable")
    names, starts = np.unique(partition[order], return_index=True)
    if len(names) == 1:  # nothing to copy
        return {int(names[0]): table}
    ends = np.append(starts[1:], len(order))
    return {
        int(name): table.take(pa.array(order[start:end])) for name, start, end in zip(names, starts, ends, strict=True)
    }


def by_range(high_bits: np.ndarray[Any, Any], num_partitions: int) -> np.ndarray[Any, Any]:
    """The partition of each 64-bit key. Partitions are ranges of keys: sorted partitions, in order, are sorted."""
    top = high_bits.astype(np.uint64) >> np.uint64(32)
    return ((top * np.uint64(num_partitions)) >> np.uint64(32)).astype(np.int64)


class ExchangeByPartition(beam.PTransform):
    """`PartitionedTables` in, `(partition, table)` out; rows are ordered by origin, then as sent.

    Several collections may send to the same partitions. (If they were flattened first, the runner would shuffle their
    tables.) The steps that follow are `share` of the pipeline's work.
    """

    def __init__(self, transport: Transport, scratch: str, label: str, share: float = 0.0) -> None:
        super().__init__(label)
        self._transport = transport
        self._share = share
        is_elsewhere = transport == "local" and is_object_store(file_system_of(scratch)[0])
        # A pipeline may have several exchanges of one label, each with a scratch folder of its own.
        folder = _local_scratch(scratch) if is_elsewhere else scratch
        self._scratch = storage.join(folder, label)

    def expand(
        self, partitioned: beam.PCollection[PartitionedTables] | tuple[beam.PCollection[PartitionedTables], ...]
    ) -> beam.PCollection[tuple[int, pa.Table]]:
        in_files = _SendFiles(self._scratch, holds_tables=self._transport == "local")
        send: beam.DoFn = _SendBytes() if self._transport == "shuffle" else in_files
        receive: Receive = _receive_bytes if self._transport == "shuffle" else _receive_files
        senders = partitioned if isinstance(partitioned, tuple) else (partitioned,)
        sent = tuple(sender | f"Send{index}" >> beam.ParDo(send) for index, sender in enumerate(senders))
        joined = sent[0] if len(sent) == 1 else sent | beam.Flatten()
        received = beam.FlatMap(_counted, receive, self._share, current_job()).with_output_types(tuple[int, pa.Table])
        return joined | "Group" >> beam.GroupByKey() | "Receive" >> received


def _local_scratch(scratch: str) -> str:
    """The folder on this machine that replaces a scratch folder on an object store."""
    return storage.join(str(process_folder()), _SCRATCH, f"{zlib.crc32(scratch.encode()):08x}")


Receive = Callable[[tuple[int, Iterable[Any]]], tuple[int, pa.Table]]


def _counted(
    group: tuple[int, Iterable[Any]], receive: Receive, share: float, job: Job | None
) -> Iterator[tuple[int, pa.Table]]:
    yield from working(job, counted(share, map(receive, [group])))


@dataclass(frozen=True, slots=True)
class _FilePart:
    """A table in a scratch file: an Arrow IPC stream of its own, and the CRC-32 of its bytes."""

    url: str
    start: int
    size_bytes: int
    crc32: int

    def read(self) -> pa.Table:
        """Raises: IntegrityError if the bytes are not those that were written."""
        fs, path = file_system_of(self.url)
        data = read_all(fs, path, self.start, self.start + self.size_bytes)
        if len(data) != self.size_bytes or zlib.crc32(data) != self.crc32:
            raise IntegrityError(f"{self.url} is damaged: run the same command again")
        return table_from_bytes(data)


class _SendFiles(beam.DoFn):
    def __init__(self, scratch: str, *, holds_tables: bool = False) -> None:
        self._scratch = scratch
        self._holds_tables = holds_tables

    def process(self, partitioned: PartitionedTables) -> Iterator[tuple[int, tuple[str, _FilePart | HeldTable]]]:
        parts: dict[int, _FilePart | HeldTable] = {}
        for name, table in partitioned.tables.items():
            if self._holds_tables and (held := hold(table)):
                parts[name] = held
        parts.update(self._write(partitioned.origin, {n: t for n, t in partitioned.tables.items() if n not in parts}))
        for name, part in sorted(parts.items()):
            yield name, (partitioned.origin, part)

    def _write(self, origin: str, tables: Mapping[int, pa.Table]) -> dict[int, _FilePart]:
        """Writes the tables to one file; none if there are no tables."""
        if not tables:
            return {}
        url = storage.join(self._scratch, f"{origin}.arrow")
        parts: dict[int, _FilePart] = {}
        compression: Compression | None = "lz4" if is_object_store(file_system_of(url)[0]) else None
        with storage.write_atomically(url, durable=False) as stream:
            start = 0
            for name, table in sorted(tables.items()):
                data = table_to_bytes(table.combine_chunks(), compression)
                stream.write(data)
                parts[name] = _FilePart(url, start, len(data), zlib.crc32(data))
                start += len(data)
        return parts


class _SendBytes(beam.DoFn):
    def process(self, partitioned: PartitionedTables) -> Iterator[tuple[int, tuple[str, bytes]]]:
        for name, table in sorted(partitioned.tables.items()):
            yield name, (partitioned.origin, table_to_bytes(table))


def _receive_files(group: tuple[int, Iterable[tuple[str, _FilePart | HeldTable]]]) -> tuple[int, pa.Table]:
    partition, references = group
    ordered = sorted(references, key=lambda item: item[0])
    return partition, pa.concat_tables([part.read() for _, part in ordered])


def _receive_bytes(group: tuple[int, Iterable[tuple[str, bytes]]]) -> tuple[int, pa.Table]:
    partition, sent = group
    ordered = sorted(sent, key=lambda item: item[0])
    return partition, pa.concat_tables([table_from_bytes(data) for _, data in ordered])
