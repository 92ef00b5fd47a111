"""Batches with names, and the tables that are sent to them and from them.

A batch's name is 63 bits of the ids in it. Rows that are sent name their document by `batch` and `row`. Plans number
parts by 32 bits: `with_shards` gives the batches of some tables such numbers.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import finpile_pipelines.exchange.coders  # noqa: F401  (registers the coders of elements)
from finpile.dedup.documents import Scope, compared, selectable
from finpile.errors import InputError
from finpile_pipelines.exchange.arrow_bytes import table_from_bytes, table_to_bytes
from finpile_pipelines.exchange.partition import PartitionedTables, split_by_partition

#: Partitions of each shuffle, if the caller does not set them.
PARTITIONS = 64
_NAME_MASK = (1 << 63) - 1
_I64 = npt.NDArray[np.int64]
#: Columns with names of batches, and those with their numbers.
_SHARDS = {"batch": "shard", "kept_batch": "kept_shard"}

#: The tables that one key received, by the name of the collection that sent them; only collections that sent some.
Received = Mapping[str, pa.Table]


def named_batches(batch: pa.RecordBatch, scope: Scope) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The documents of each dataset of a batch (of all, for `scope` corpus), as a `selectable` batch with a name.

    Raises: InputError for a batch without ids, or with a column of which Arrow cannot select rows.
    """
    for name in ("id", "text"):
        if name not in batch.schema.names:
            raise InputError(f"a batch has no column `{name}`; it has {', '.join(batch.schema.names)}")
    batch = selectable(batch)
    parts = [batch]
    if scope == "dataset" and "dataset" in batch.schema.names:
        datasets = pc.unique(batch["dataset"]).to_pylist()
        parts = [batch.filter(pc.equal(batch["dataset"], name)) for name in datasets] if len(datasets) > 1 else parts
    for part in parts:
        if part.num_rows:
            digest = hashlib.blake2b("\n".join(part["id"].to_pylist()).encode(), digest_size=8).digest()
            yield int.from_bytes(digest, "big") & _NAME_MASK, part


def documents_of(batch: pa.RecordBatch | pa.Table, scope: Scope, reads: Sequence[str] = ()) -> pa.Table:
    """`finpile.dedup.documents.COMPARED_SCHEMA` of a batch, and those columns of `reads` that it lacks.

    Raises: InputError for a batch without one of these columns.
    """
    documents = compared(batch, scope)
    for name in reads:
        if name not in documents.schema.names:
            if name not in batch.schema.names:
                raise InputError(f"a batch has no column `{name}`; it has {', '.join(batch.schema.names)}")
            documents = documents.append_column(name, batch[name].cast(pa.string()))
    return documents


def scope_of(documents: pa.Table) -> str:
    """The scope of the documents of one named batch."""
    return str(documents["scope"][0].as_py())


def batches_in(tables: Iterable[pa.Table], own: int | None = None) -> _I64:
    """The names of the batches in `batch` and `kept_batch`: `own` first, if it is given, then the others, ascending.

    The position of a name is its number, as `with_shards` gives it.
    """
    found = [rows[name].drop_null().to_numpy() for rows in tables for name in _SHARDS if name in rows.schema.names]
    names = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
    return names if own is None else np.r_[own, names[names != own]].astype(np.int64)


def with_shards(rows: pa.Table, names: _I64) -> pa.Table:
    """The rows with the numbers `shard` and `kept_shard` instead of the names `batch` and `kept_batch`."""
    order = np.argsort(names)
    for name, shard in _SHARDS.items():
        if name in rows.schema.names:
            is_null = rows[name].is_null().to_numpy()
            values = rows[name].fill_null(int(names[0]) if len(names) else 0).to_numpy()
            numbers = order[np.searchsorted(names, values, sorter=order)].astype(np.int32)
            rows = rows.drop_columns([name]).append_column(shard, pa.array(numbers, mask=is_null))
    return rows


def with_batches(rows: pa.Table, names: _I64) -> pa.Table:
    """The inverse of `with_shards`."""
    for name, shard in _SHARDS.items():
        if shard in rows.schema.names:
            column = pa.array(names).take(rows[shard].combine_chunks())
            rows = rows.drop_columns([shard]).append_column(name, column)
    return rows


# --- sending and receiving


def to_batch(name: int, table: pa.Table) -> PartitionedTables:
    """The whole table, to the batch of that name."""
    return PartitionedTables(f"{name:016x}", {name: table} if table.num_rows else {})


def to_batches(origin: int, rows: pa.Table, column: str = "batch") -> PartitionedTables:
    """Each row to the batch in `column`."""
    return PartitionedTables(f"{origin:016x}", split_by_partition(rows, rows[column].to_numpy()))


def to_partitions(origin: int, rows: pa.Table, partition: _I64) -> PartitionedTables:
    """Each row to its partition."""
    return PartitionedTables(f"{origin:016x}", split_by_partition(rows, partition))


class Composite(beam.PTransform):
    """A transform of several inputs or outputs, whose types Beam does not check: it would log a warning at each use."""

    def default_type_hints(self) -> None:
        return None


class Join(Composite):
    """Brings the tables of several collections together by key, and maps `work(key, tables)` over the keys.

    The input is a dictionary of collections of `PartitionedTables`. Each table is the concatenation of those that were
    sent, in the order of their origins. `output` is the type of the results, from which Beam takes their coder.
    """

    def __init__(self, label: str, work: Callable[[int, Received], Any], output: Any) -> None:
        super().__init__(label)
        self._work = work
        self._output = output

    def expand(self, sent: dict[str, beam.PCollection[PartitionedTables]]) -> beam.PCollection[Any]:
        parts = {name: tables | f"Send {name}" >> beam.FlatMap(_encoded) for name, tables in sent.items()}
        received = beam.Map(_receive, self._work).with_output_types(self._output)
        return parts | "Group" >> beam.CoGroupByKey() | "Receive" >> received


def _encoded(partitioned: PartitionedTables) -> Iterator[tuple[int, tuple[str, bytes]]]:
    for name, table in sorted(partitioned.tables.items()):
        yield name, (partitioned.origin, table_to_bytes(table))


def _receive(group: tuple[int, Mapping[str, Iterable[tuple[str, bytes]]]], work: Callable[[int, Received], Any]) -> Any:
    tables = {}
    for name, sent in group[1].items():
        ordered = sorted(sent, key=lambda item: item[0])
        if ordered:
            tables[name] = pa.concat_tables([table_from_bytes(data) for _, data in ordered])
    return work(group[0], tables)
