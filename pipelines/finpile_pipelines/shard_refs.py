"""References to the shards that stages hand to each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import truediv
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile import storage
from finpile.config import SourceConfig
from finpile.documents.document import CLEAN_SCHEMA
from finpile.output.work_folder import WorkFile, WorkFolder
from finpile.storage.file_systems import file_system_of, is_object_store
from finpile_pipelines.batch_places import read_batches

#: Bytes of a batch of a clean shard, about.
_BATCH_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class ShardRef:
    """One intermediate shard: documents of one source entry, and of one row of it."""

    index: int
    entry: int
    """Which of the config's `sources` it comes from."""
    name: str
    """File name without folder or suffix; the same in every stage."""
    folder: WorkFolder
    """Where `clean` leaves it: that of an earlier snapshot is in the folder of that one."""
    row: str | None = None
    """Which row, if the source entry has several."""
    places: str | None = None
    """Of a clean shard of an earlier snapshot: the file of the places of its batches."""
    text_bytes: int = 0
    """As `ingest` read it: the mean of the shards of its task and row."""

    @property
    def file(self) -> WorkFile:
        """The clean shard."""
        return shard_file(self.folder, self.name)

    def source(self, sources: Sequence[SourceConfig]) -> SourceConfig:
        """The source entry of the config's `sources`, restricted to the row of this shard."""
        return sources[self.entry].of_row(self.row)


#: Files of a dedup stage by shard: removals, and spans.
REMOVAL_KINDS = ("decisions", "spans")


@dataclass(frozen=True, slots=True)
class FinishedFolder:
    """A folder of a finished dedup stage, and which of its files by shard exist: no other file is looked for."""

    path: WorkFolder
    shards: Mapping[str, bytes]
    """By kind of file, a bit for each shard that has one: bit `shard % 8` of byte `shard // 8`."""

    def has(self, kind: str, shard: int) -> bool:
        """Whether the file `KIND/SHARD` exists."""
        bits = self.shards.get(kind, b"")
        return shard // 8 < len(bits) and bool(bits[shard // 8] >> shard % 8 & 1)


#: Rows of shards by the index of the shard, ascending; None for all of a shard. A shard that is not listed has none.
Rows = Mapping[int, npt.NDArray[np.int32] | None]

#: A folder of removals; a `WorkFolder` may lack any file, which a reader finds out by looking for it.
RemovalFolder = WorkFolder | FinishedFolder


def finished_folders(work: WorkFolder, files: Iterable[str]) -> tuple[FinishedFolder, ...]:
    """The folders below that of a stage which hold removals or spans, in the order of their names.

    `files` are all files of the stage: removals and spans are `KIND/SHARD.SUFFIX` below such a folder.

    >>> work, files = WorkFolder(".work/near"), ["groups/decisions/000009.parquet", "groups/pairs/000001.parquet"]
    >>> (folder,) = finished_folders(work, files)
    >>> folder.path.url, folder.has("decisions", 9)
    ('.work/near/groups', True)
    """
    found: dict[WorkFolder, dict[str, list[int]]] = {}
    for file in files:
        *folders, kind, name = ("", *file.split("/"))
        if kind in REMOVAL_KINDS:
            folder = reduce(truediv, filter(None, folders), work)
            found.setdefault(folder, {}).setdefault(kind, []).append(int(name[:6]))
    return tuple(
        FinishedFolder(path, {kind: _bits(shards) for kind, shards in sorted(kinds.items())})
        for path, kinds in sorted(found.items())
    )


def _bits(shards: Sequence[int]) -> bytes:
    flags = np.zeros(max(shards) + 1, np.uint8)
    flags[list(shards)] = 1
    return np.packbits(flags, bitorder="little").tobytes()


def shard_refs(outcomes: Iterable[Mapping[str, Any]], folder: WorkFolder, first: int = 0) -> list[ShardRef]:
    """The shards that the ingest tasks wrote, in the order of their names, numbered from `first`; `clean` leaves them
    in `folder`."""
    found = sorted(
        (shard, outcome["entry"], outcome["row"], outcome["text_bytes"] // len(outcome["shards"]))
        for outcome in outcomes
        for shard in outcome["shards"]
    )
    return [
        ShardRef(index, entry, name, folder, row, text_bytes=size)
        for index, (name, entry, row, size) in enumerate(found, first)
    ]


def shard_file(folder: WorkFolder, name: str) -> WorkFile:
    """Where a stage keeps the shard of that name."""
    return folder.file("documents", f"{name}.arrow")


def write_shard(file: WorkFile, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Writes a shard of documents. It is compressed on an object store; on a disk that costs more than it saves."""
    storage.write_ipc(file, schema, batches, compress=is_object_store(file_system_of(file.url)[0]))


def write_clean(file: WorkFile, batches: Iterable[pa.RecordBatch]) -> None:
    """Writes clean documents (`CLEAN_SCHEMA`)."""
    write_shard(file, CLEAN_SCHEMA, chain.from_iterable(map(_parts, batches)))


def read_clean(ref: ShardRef, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The documents of a clean shard, with these columns of `CLEAN_SCHEMA`, or all."""
    return storage.read_ipc(ref.file, columns)


def read_clean_rows(
    ref: ShardRef, rows: npt.NDArray[np.int32] | None, columns: Sequence[str] = CLEAN_SCHEMA.names
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches of a clean shard that have one of the `rows`, each with the row of its first document; None: all."""
    if rows is not None and ref.places is not None:
        for first, batch in read_batches(ref.file, ref.places, CLEAN_SCHEMA, rows):
            yield first, batch.select(columns)
        return
    first = 0
    for batch in read_clean(ref, columns):
        end = first + batch.num_rows
        if rows is None or np.searchsorted(rows, first) < np.searchsorted(rows, end):
            yield first, batch
        first = end


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The documents in batches of about `_BATCH_BYTES`: a snapshot reads some of them."""
    num_rows = max(1, batch.num_rows * _BATCH_BYTES // max(1, batch.nbytes))
    for first in range(0, max(1, batch.num_rows), num_rows):
        yield batch.slice(first, num_rows)
