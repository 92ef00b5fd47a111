"""Exact duplicates between batches.

digests --by digest--> removals --by batch--> kept, removed
"""

from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa

from finpile.dedup import exact
from finpile.dedup.documents import Scope
from finpile.dedup.order import Order
from finpile.document import digest_bits
from finpile_pipelines.exchange.partition import PartitionedTables, by_range
from finpile_pipelines.transforms.batches import (
    PARTITIONS,
    Composite,
    Join,
    Received,
    documents_of,
    named_batches,
    to_partitions,
    with_batches,
    with_shards,
)
from finpile_pipelines.transforms.outputs import ApplyRemovals, Outputs, removed_rows

_SENT = ("batch", "row", "id", "scope", "priority", "timestamp", "num_copies")


class ExactDuplicates(Composite):
    """Keeps one document of each set of equal texts; returns `Outputs(kept, removed)`.

    Of equal texts the one of the smallest `priority` is kept, then the earliest `timestamp`, then the smallest id.

    Args:
        order: `time` keeps the earliest one, then that of the smallest `priority`; see `finpile.dedup.order`.
        scope: `dataset` compares documents with the same value in `dataset`, `corpus` all of them.
        fold: The differences that equal texts may have.
        partitions: Partitions of the shuffle by digest: about one for each 100,000 documents.

    Limits: a partition's digests (about 150 bytes a document) are held in memory as one table, and so is one batch.
    Text passes through the shuffle once.
    """

    def __init__(
        self,
        scope: Scope = "dataset",
        fold: exact.Fold = "none",
        partitions: int = PARTITIONS,
        order: Order = "priority",
    ) -> None:
        super().__init__()
        self._order: Order = order
        self._scope = scope
        self._fold = fold
        self._partitions = partitions

    def expand(self, batches: beam.PCollection[pa.RecordBatch]) -> Outputs:
        scope, fold, partitions = self._scope, self._fold, self._partitions

        def send(named: tuple[int, pa.RecordBatch]) -> PartitionedTables:
            documents = documents_of(*named, scope)
            return digests_to_partitions(named[0], documents, fold, partitions)

        named = batches | "Name" >> beam.FlatMap(named_batches, scope)
        sent = named | "Digest" >> beam.Map(send)
        removals = {"rows": sent} | Join(
            "ByDigest", partial(equal_documents, exact.REASON, self._order), tuple[int, pa.Table]
        )
        inputs: Any = {"named": named, "removals": removals}
        outputs: Outputs = inputs | ApplyRemovals("exact", scope)
        return outputs


def digests_to_partitions(name: int, documents: pa.Table, fold: exact.Fold, partitions: int) -> PartitionedTables:
    """The rows that decide which of equal texts is kept, by the range of their digest."""
    digests = exact.document_digests(documents, fold)
    columns = {name: documents[name] for name in _SENT}
    rows = pa.table({**columns, "digest": digests, "text_digest": documents["digest"]})
    return to_partitions(name, rows, by_range(digest_bits(digests), partitions))


def equal_documents(reason: str, order: Order, partition: int, tables: Received) -> tuple[int, pa.Table]:
    """The removals, for `reason`, of one range of digests."""
    rows, names = with_shards(tables["rows"])
    found = exact.find_duplicates(rows.select(exact.ROW_SCHEMA.names), reason, order)
    return partition, removed_rows(with_batches(found, names), rows)
