"""The removals and spans of dedup stages, by shard, until the stage `split` applies all of them at once.

A removal marks a row of a clean shard and names the document that is kept for it; a span marks bytes of a row. No
stage rewrites documents: later stages read the clean shards without the rows and spans that earlier ones removed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile import storage
from finpile.dedup import plan
from finpile.dedup.plan import SPAN_SCHEMA
from finpile.output.work_folder import Seal, WorkFile, WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, Transport, split_by_partition
from finpile_pipelines.shard_refs import REMOVAL_KINDS, RemovalFolder

#: Removals with the name of their stage.
REMOVAL_SCHEMA = plan.REMOVAL_SCHEMA.append(pa.field("stage", pa.string(), nullable=False))

NO_ROWS = np.empty(0, np.int32)
_REMOVALS, _SPANS = REMOVAL_KINDS
#: A file of a shard: stage, path in the stage's folder, bytes, CRC-32.
Mark = tuple[str, str, int, int]
#: The counts of a stage that the corpus file does not configure.
NOT_CONFIGURED = {"asked": False, "removed": 0}


def removal_table(removals: pa.Table, stage: str) -> pa.Table:
    """Removals of one stage as `REMOVAL_SCHEMA`."""
    staged = removals.append_column("stage", pa.array([stage] * removals.num_rows, pa.string()))
    return staged.select(REMOVAL_SCHEMA.names).cast(REMOVAL_SCHEMA)


def read_removals(folder: RemovalFolder, shard: int) -> pa.Table:
    """The removals of a shard's rows; empty if the stage removed none."""
    return _read(folder, _REMOVALS, shard, REMOVAL_SCHEMA)


def removed_rows(folders: Iterable[RemovalFolder], shard: int) -> npt.NDArray[np.int32]:
    """The rows of a shard that are removed, in any order."""
    return np.concatenate([NO_ROWS, *(read_removals(folder, shard)["row"].to_numpy() for folder in folders)])


def marks_by_shard(seals: Mapping[str, Iterable[Seal]], kinds: Mapping[str, Collection[str]]) -> dict[int, set[Mark]]:
    """The files of each shard among those of stages, of the `kinds` of a stage: equal marks are equal files."""
    found: dict[int, set[Mark]] = {}
    for stage, sealed in seals.items():
        for seal in sealed:
            folder, _, name = seal.path.rpartition("/")
            shard = name.split(".")[0]
            if shard.isdigit() and folder.rsplit("/", 1)[-1] in kinds[stage]:
                found.setdefault(int(shard), set()).add((stage, seal.path, seal.size_bytes, seal.crc32))
    return found


def write_removals(folder: WorkFolder, shard: int, removals: pa.Table) -> None:
    """Writes all removals of a shard's rows."""
    ordered = removals.sort_by([("row", "ascending"), ("id", "ascending")])
    storage.write_parquet(removals_file(folder, shard), ordered)


def read_spans(folder: RemovalFolder, shard: int) -> pa.Table:
    """The spans cut from a shard's rows; empty if the stage cut none."""
    return _read(folder, _SPANS, shard, SPAN_SCHEMA)


def spans_of(folders: Iterable[RemovalFolder], shard: int) -> pa.Table:
    """The spans that a stage cut from a shard's rows."""
    return pa.concat_tables([SPAN_SCHEMA.empty_table(), *(read_spans(folder, shard) for folder in folders)])


def removals_file(folder: WorkFolder, shard: int) -> WorkFile:
    return folder.numbered(_REMOVALS, shard)


def spans_file(folder: WorkFolder, shard: int) -> WorkFile:
    return folder.numbered(_SPANS, shard)


@dataclass(eq=False)
class WriteRemovals(graph.PTransform):
    """Writes tables of removals, from one collection or several, to one file for each shard that loses a document."""

    transport: Transport
    folder: WorkFolder
    num_shards: int

    def expand(
        self, removals: graph.PCollection[pa.Table] | tuple[graph.PCollection[pa.Table], ...]
    ) -> graph.PCollection[dict[str, Any]]:
        folder = self.folder

        def send(table: pa.Table) -> PartitionedTables:
            origin = f"{table['id'][0].as_py()}-{table['stage'][0].as_py()}"
            return PartitionedTables(origin, split_by_partition(table, table["shard"].to_numpy()))

        def write(group: tuple[int, pa.Table]) -> dict[str, Any]:
            shard, table = group
            write_removals(folder, shard, table)
            return {"shard": shard, "removed": table.num_rows}

        scratch, schema = folder / "scratch", REMOVAL_SCHEMA
        exchange = ExchangeByPartition(self.transport, scratch, "ByShard", schema=schema, partitions=self.num_shards)
        sent = tuple(
            tables
            | f"NotEmpty{index}" >> graph.Filter(lambda table: table.num_rows > 0)
            | f"Send{index}" >> graph.Map(send)
            for index, tables in enumerate(removals if isinstance(removals, tuple) else (removals,))
        )
        return sent | exchange | "Write" >> graph.Map(write)


def _read(folder: RemovalFolder, kind: str, shard: int, schema: pa.Schema) -> pa.Table:
    """Raises: IntegrityError if the file is damaged, or missing in a finished folder that had it."""
    if isinstance(folder, WorkFolder):
        return storage.read_parquet_if_exists(folder.numbered(kind, shard), schema)
    if not folder.has(kind, shard):
        return schema.empty_table()
    file = folder.path.numbered(kind, shard)
    try:
        return storage.read_parquet(file)
    except FileNotFoundError as error:
        raise file.damage("is missing") from error
