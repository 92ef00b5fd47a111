"""The end of every transform: removals and spans return to their batches, which become kept documents and ledger."""

from collections.abc import Iterator
from typing import NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.dedup.documents import Scope
from finpile.dedup.ledger_rows import removal_rows, span_rows
from finpile.dedup.substring.spans import SPAN_SCHEMA, cut_rows
from finpile_pipelines.exchange.partition import PartitionedTables
from finpile_pipelines.transforms.batches import Composite, Join, Received, documents_of, to_batch, to_batches

#: A removed document (`batch`, `row`), the copy that is kept (`kept_batch`, `kept_row`), and how many documents the
#: removed one represented.
REMOVED_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("batch", pa.int64()),
        ("row", pa.int32()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("duplicate_of", pa.string()),
        ("duplicate_offset", pa.int64()),
        ("kept_batch", pa.int64()),
        ("kept_row", pa.int32()),
        ("num_copies", pa.int64()),
    ]
)


class Outputs(NamedTuple):
    """The two outputs of a transform, both collections of `pa.RecordBatch`."""

    kept: beam.PCollection[pa.RecordBatch]
    """Documents, with the columns of the input."""
    removed: beam.PCollection[pa.RecordBatch]
    """Rows of `finpile.ledger.LEDGER_SCHEMA`: removed documents and spans. `duplicate_of` names the document that this
    transform keeps; a later one may remove it."""


def removed_rows(removals: pa.Table, documents: pa.Table) -> pa.Table:
    """`REMOVED_SCHEMA` of removals that name batches; `documents` has `id` and `num_copies` of all of them."""
    copies = documents["num_copies"].take(pc.index_in(removals["id"], documents["id"].combine_chunks()))
    return removals.append_column("num_copies", copies).select(REMOVED_SCHEMA.names).cast(REMOVED_SCHEMA)


class ApplyRemovals(Composite):
    """Named batches, and the removals of `stage` as (origin, `REMOVED_SCHEMA`), to `Outputs`.

    With `spans` and `short` (by batch), spans are cut out of the texts and short documents are removed too.
    """

    def __init__(self, stage: str, scope: Scope) -> None:
        super().__init__()
        self._stage = stage
        self._scope = scope

    def expand(self, inputs: dict[str, beam.PCollection]) -> Outputs:
        stage, scope = self._stage, self._scope

        def apply(name: int, tables: Received) -> tuple[pa.RecordBatch, pa.RecordBatch]:
            return applied(name, tables, stage, scope)

        sent = {
            "batch": inputs["named"] | "Batches" >> beam.Map(to_batch),
            "removals": inputs["removals"] | "Removals" >> beam.Map(_send_removals),
            "copies": inputs["removals"] | "Copies" >> beam.Map(_send_copies),
            **{name: tables for name, tables in inputs.items() if name in ("spans", "short")},
        }
        both = sent | Join("Apply", apply, tuple[pa.RecordBatch, pa.RecordBatch])
        return Outputs(both | "Kept" >> beam.FlatMap(first_output), both | "Removed" >> beam.FlatMap(second_output))


def applied(name: int, tables: Received, stage: str, scope: Scope) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The kept documents of one batch, and its rows of the ledger."""
    batch = tables["batch"]
    documents = documents_of(name, batch, scope)
    spans = tables.get("spans", SPAN_SCHEMA.empty_table())
    ledger = span_rows(documents, spans, stage)
    texts = cut_rows(documents["text"].combine_chunks(), spans)
    if spans.num_rows:
        at = batch.schema.get_field_index("text")
        batch = batch.set_column(at, batch.schema.field(at), texts.cast(batch.schema.field(at).type))
    at = documents.schema.get_field_index("text")
    documents = documents.set_column(at, documents.schema.field(at), texts)
    removals = _staged([tables[name] for name in ("removals", "short") if name in tables], stage)
    keep = np.ones(batch.num_rows, bool)
    keep[removals["row"].to_numpy()] = False
    kept = _with_copies(batch, tables.get("copies")).filter(pa.array(keep))
    return _one_batch(kept), _one_batch(pa.concat_tables([ledger, removal_rows(documents, removals)]))


def first_output(outputs: tuple[pa.RecordBatch, pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if outputs[0].num_rows:
        yield outputs[0]


def second_output(outputs: tuple[pa.RecordBatch, pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if outputs[1].num_rows:
        yield outputs[1]


def _staged(tables: list[pa.Table], stage: str) -> pa.Table:
    """Removals and short documents as one table, in the order of the rows."""
    empty = REMOVED_SCHEMA.empty_table()
    joined = pa.concat_tables([empty, *tables], promote_options="default")
    return joined.append_column("stage", pa.array([stage] * joined.num_rows, pa.string())).sort_by("row")


def _with_copies(batch: pa.Table, copies: pa.Table | None) -> pa.Table:
    if copies is None or "num_copies" not in batch.schema.names:
        return batch
    at = batch.schema.get_field_index("num_copies")
    counts = batch["num_copies"].to_numpy().astype(np.int64)
    np.add.at(counts, copies["kept_row"].to_numpy(), copies["num_copies"].to_numpy())
    return batch.set_column(at, batch.schema.field(at), pa.array(counts).cast(batch.schema.field(at).type))


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _send_removals(removals: tuple[int, pa.Table]) -> PartitionedTables:
    return to_batches(removals[0], removals[1])


def _send_copies(removals: tuple[int, pa.Table]) -> PartitionedTables:
    copies = removals[1].select(["kept_batch", "kept_row", "num_copies"])
    return to_batches(removals[0], copies, "kept_batch")
