"""Redirects duplicates whose kept copy was itself removed by a later stage, before anything is published.

    removals --by the kept copy's shard--> final ones, and those whose kept copy a later stage removed as a duplicate,
                                           which now name that one's kept copy and are sent again
    final removals --by shard--> removals
                   --by the kept copy's shard--> copy counts

For a few shards the launcher does this itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.dedup.redirects import redirect
from finpile.output.work_folder import WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.dedup.removals import REMOVAL_SCHEMA, WriteRemovals, read_removals, write_removals
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, split_by_partition
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import RemovalFolder, ShardRef

#: The number of documents that are removed as copies of a shard's row, and the id of that row.
COPIES_SCHEMA = pa.schema(
    [pa.field("row", pa.int32()), pa.field("num_copies", pa.int32()), pa.field("id", pa.string())]
)
_KEPT_SCHEMA = pa.schema([REMOVAL_SCHEMA.field(name) for name in ("kept_shard", "kept_row", "duplicate_of")])
#: Removals up to which the launcher redirects them itself; one takes about 300 bytes.
REMOVALS_IN_MEMORY = 250_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Removals:
    """The removals of all dedup stages."""

    folders: tuple[RemovalFolder, ...]
    """Where they are, in the order of the stages."""
    number: int
    """How many there are."""
    copy_stages: tuple[str, ...]
    """Stages whose removals count as copies of the kept document."""
    num_redirecting: int
    """How many stages may remove a document and name another one that is kept. A removal by the first of them can be
    redirected by each of the others."""

    @property
    def most_redirects(self) -> int:
        return max(0, self.num_redirecting - 1)


def redirect_here(refs: Sequence[ShardRef], removals: Removals, folder: WorkFolder) -> None:
    """Writes final removals and copy counts by shard into `folder`, without a pipeline.

    If a later stage removed the kept copy of a document as a duplicate, the document names that stage's kept copy
    instead, and so on.
    """
    found = removals.folders
    waiting = pa.concat_tables(_removals_of(ref.index, found) for ref in refs)
    settled = [REMOVAL_SCHEMA.empty_table()]
    for _ in range(removals.most_redirects):
        by_kept = split_by_partition(waiting, _kept_shard(waiting))
        parts = [_redirected(rows, _removals_of(shard, found)) for shard, rows in by_kept.items()]
        settled += [final for final, _ in parts]
        waiting = pa.concat_tables([REMOVAL_SCHEMA.empty_table(), *(moved for _, moved in parts)])
    final = pa.concat_tables([*settled, waiting])
    for shard, rows in split_by_partition(final, final["shard"].to_numpy()).items():
        write_removals(folder, shard, rows)
    copies = _copies(final, removals.copy_stages)
    for part in split_by_partition(copies, copies["kept_shard"].to_numpy()).items():
        _write_copies(part, folder)


def are_few(refs: Sequence[ShardRef], removals: Removals, shards_in_memory: int) -> bool:
    """Whether the launcher redirects the removals in its memory."""
    return removals.number <= REMOVALS_IN_MEMORY and len(refs) <= shards_in_memory


def read_copies(folder: WorkFolder, shard: int) -> pa.Table:
    """The number of copies that were removed for each of a shard's rows, without rows that have none."""
    return storage.read_parquet_if_exists(folder.numbered("copies", shard), COPIES_SCHEMA)


@dataclass(eq=False)
class RedirectDuplicates(graph.PTransform):
    """Steps that write what `redirect_here` writes; the output is that of their `Gather`.

    They are `work` of the pipeline.
    """

    engine: Engine
    refs: Sequence[ShardRef]
    removals: Removals
    folder: WorkFolder
    work: float = 1.0

    def expand(self, pipeline: graph.Pipeline) -> graph.PCollection[Passed]:
        found, most_redirects, folder = self.removals.folders, self.removals.most_redirects, self.folder
        indices, copy_stages = [ref.index for ref in self.refs], self.removals.copy_stages
        transport, scratch = self.engine.exchange_transport, folder / "scratch"
        share, num_shards = self.work / (1 + most_redirects), 1 + max(indices, default=0)

        def removals_of(index: int) -> tuple[int, pa.Table]:
            return index, _removals_of(index, found)

        def redirect(group: tuple[int, pa.Table]) -> tuple[int, pa.Table, pa.Table]:
            return group[0], *_redirected(group[1], _removals_of(group[0], found))

        waiting = pipeline | Tasks(indices, share, note="resolve") | "Removals" >> graph.Map(removals_of)
        final: tuple[graph.PCollection[pa.Table], ...] = ()
        for number in range(most_redirects):
            parts = (
                waiting
                | f"ByKept{number}" >> graph.Map(_to_kept_shard)
                | ExchangeByPartition(
                    transport,
                    scratch,
                    f"ByMiddle{number}",
                    share / max(1, len(indices)),
                    schema=REMOVAL_SCHEMA,
                    partitions=num_shards,
                )
                | f"Redirect{number}" >> graph.Map(redirect)
            )
            final = (*final, parts | f"Final{number}" >> graph.item(1, pa.Table))
            waiting = parts | f"Moved{number}" >> graph.Map(_moved)
        final = (*final, waiting | "Last" >> graph.item(1, pa.Table))
        copies = tuple(
            tables
            | f"Copies{number}" >> graph.Map(_copies, copy_stages)
            | f"SomeCopies{number}" >> graph.Filter(lambda table: table.num_rows > 0)
            | f"SendCopies{number}" >> graph.Map(_copies_to_shard)
            for number, tables in enumerate(final)
        )
        by_shard = copies | ExchangeByPartition(
            transport, scratch, "CopiesByShard", schema=_KEPT_SCHEMA, partitions=num_shards
        )
        written = (
            final | WriteRemovals(transport, folder, num_shards),
            by_shard | "WriteCopies" >> graph.Map(_write_copies, folder),
        )
        return written | graph.Flatten() | Gather(folder.file("decisions.json"))


def _moved(redirected: tuple[int, pa.Table, pa.Table]) -> tuple[int, pa.Table]:
    return redirected[0], redirected[2]


def _removals_of(shard: int, found: Sequence[RemovalFolder]) -> pa.Table:
    """The removals of a shard's rows, in the order of the stages."""
    return pa.concat_tables([REMOVAL_SCHEMA.empty_table(), *(read_removals(source, shard) for source in found)])


def _kept_shard(removals: pa.Table) -> np.ndarray[Any, Any]:
    """The shard of each removal's kept copy, or its own shard if no copy is kept."""
    return np.asarray(pc.coalesce(removals["kept_shard"], removals["shard"]).to_numpy())


def _to_kept_shard(group: tuple[int, pa.Table]) -> PartitionedTables:
    return PartitionedTables(f"{group[0]:06d}", split_by_partition(group[1], _kept_shard(group[1])))


def _redirected(table: pa.Table, later: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Redirects removals `table`, whose kept copies are rows of one shard, given the removals `later` of these rows.

    Returns the final removals, and those that now name another kept copy.
    """
    removed = {row["row"]: row for row in later.to_pylist() if row["duplicate_of"] is not None}
    if not removed:
        return table, REMOVAL_SCHEMA.empty_table()
    found = [(row, removed.get(row["kept_row"])) for row in table.to_pylist()]
    final = [row for row, by in found if by is None]
    moved = [redirect(row, by) for row, by in found if by is not None]
    return pa.Table.from_pylist(final, schema=REMOVAL_SCHEMA), pa.Table.from_pylist(moved, schema=REMOVAL_SCHEMA)


def _copies(table: pa.Table, copy_stages: tuple[str, ...]) -> pa.Table:
    """The removals that count as copies of the kept document."""
    is_copy = pc.and_(pc.is_in(table["stage"], pa.array(copy_stages, pa.string())), pc.is_valid(table["kept_shard"]))
    return table.filter(is_copy)


def _copies_to_shard(table: pa.Table) -> PartitionedTables:
    origin = table["id"][0].as_py() + "-" + table["stage"][0].as_py()
    slim = table.select(_KEPT_SCHEMA.names)
    return PartitionedTables(origin, split_by_partition(slim, slim["kept_shard"].to_numpy()))


def _write_copies(group: tuple[int, pa.Table], folder: WorkFolder) -> dict[str, Any]:
    shard, table = group
    rows, first, counts = np.unique(table["kept_row"].to_numpy(), return_index=True, return_counts=True)
    ids = table["duplicate_of"].take(pa.array(first)).combine_chunks()
    copies = pa.table([pa.array(rows, pa.int32()), pa.array(counts, pa.int32()), ids], schema=COPIES_SCHEMA)
    storage.write_parquet(folder.numbered("copies", shard), copies)
    return {"shard": shard, "kept": len(rows)}
