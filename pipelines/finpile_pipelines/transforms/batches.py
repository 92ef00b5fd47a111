"""Batches with names, and the tables that are sent to them and from them.

A batch's name is 63 bits of the ids in it. Rows name their document by `batch` and `row`. The functions of
`finpile.dedup` number shards by 32 bits: `with_shards` gives the batches of one table such numbers.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.dedup.documents import Scope, compared, selectable
from finpile.errors import InputError
from finpile_pipelines.exchange.coders import table_from_bytes, table_to_bytes
from finpile_pipelines.exchange.partition import PartitionedTables, split_by_partition

#: Partitions of each shuffle, if the caller does not set them.
PARTITIONS = 64
_NAME_MASK = (1 << 63) - 1

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


def documents_of(name: int, batch: pa.RecordBatch | pa.Table, scope: Scope) -> pa.Table:
    """`finpile.dedup.documents.COMPARED_SCHEMA` of a batch, with `batch` and `num_copies` appended."""
    size = batch.num_rows
    copies = batch["num_copies"] if "num_copies" in batch.schema.names else pa.array(np.ones(size, np.int32))
    documents = compared(batch, scope).append_column("batch", pa.array(np.full(size, name, np.int64)))
    return documents.append_column("num_copies", copies.cast(pa.int64()))


def scope_of(documents: pa.Table) -> str:
    """The scope of the documents of one named batch."""
    return str(documents["scope"][0].as_py())


def with_shards(rows: pa.Table) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    """The rows with a column `shard` made from `batch`, and the name of the batch that each shard number means."""
    names, numbers = np.unique(rows["batch"].to_numpy(), return_inverse=True)
    others = rows.drop_columns([name for name in ("batch", "shard") if name in rows.schema.names])
    return others.append_column("shard", pa.array(numbers.astype(np.int32))), names


def with_batches(rows: pa.Table, names: np.ndarray[Any, Any]) -> pa.Table:
    """The inverse of `with_shards`: `batch` from `shard`, and `kept_batch` from `kept_shard` if there is one."""
    for column, batch in (("shard", "batch"), ("kept_shard", "kept_batch")):
        if column in rows.schema.names:
            named = pa.array(names[rows[column].to_numpy()].astype(np.int64))
            rows = rows.drop_columns([column]).append_column(batch, named)
    return rows


# --- sending and receiving


def to_batch(named: tuple[int, pa.RecordBatch]) -> PartitionedTables:
    """The batch itself, to the key that is its name."""
    return PartitionedTables(f"{named[0]:016x}", {named[0]: pa.Table.from_batches([named[1]])})


def to_batches(origin: int, rows: pa.Table, column: str = "batch") -> PartitionedTables:
    """Each row to the batch in `column`."""
    return PartitionedTables(f"{origin:016x}", split_by_partition(rows, rows[column].to_numpy()))


def to_partitions(origin: int, rows: pa.Table, partition: np.ndarray[Any, Any]) -> PartitionedTables:
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
