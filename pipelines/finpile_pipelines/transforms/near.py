"""Near duplicates between batches.

band keys --by key--> candidate pairs --by number--> distinct pairs --to one key--> connected groups
groups, pairs and documents' places --by number--> members by batch, pairs by group
members' texts, pairs --by group--> removals --by batch--> kept, removed
"""

from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from finpile.config import NearConfig
from finpile.dedup.documents import Scope
from finpile.dedup.near import buckets, clusters, groups, minhash
from finpile.dedup.near.numbers import part_by_numbers
from finpile.dedup.order import Order, order_keys
from finpile.errors import InputError
from finpile_pipelines.dedup.connected_components import by_number
from finpile_pipelines.exchange.partition import PartitionedTables, by_range
from finpile_pipelines.transforms.batches import (
    PARTITIONS,
    Composite,
    Join,
    Received,
    documents_of,
    named_batches,
    scope_of,
    to_batch,
    to_batches,
    to_partitions,
    with_batches,
    with_shards,
)
from finpile_pipelines.transforms.outputs import ApplyRemovals, Outputs, removed_rows

_PLACE = ("number", "batch", "row")


class NearDuplicates(Composite):
    """Keeps one document of each cluster of near duplicates; returns `Outputs(kept, removed)`.

    A document is removed only if it is itself a near duplicate of the document that is kept for it. That is the one of
    the smallest `priority`, then the earliest `timestamp`, then the smallest digest.

    Args:
        near: The setting, or its name: `paper` (9,000 hashes, as in the paper) or `fast` (256 hashes).
        scope: `dataset` compares documents with the same value in `dataset`, `corpus` all of them.
        partitions: Partitions of each shuffle: about one for each 16 MiB of text.
        order: `time` keeps the earliest one, and no decision depends on a later document; see `finpile.dedup.order`.

    Texts must be distinct within a scope: apply `ExactDuplicates` first. Equal texts fail the pipeline.

    Limits: one worker joins all candidate pairs into groups; it holds at most one edge (about 100 bytes) for each
    document that has a candidate and each partition. All texts of one group are held in memory, and so is one batch.
    Text passes through the shuffle twice; texts of groups, once more.
    """

    def __init__(
        self,
        near: NearConfig | str = "paper",
        scope: Scope = "dataset",
        partitions: int = PARTITIONS,
        order: Order = "priority",
    ) -> None:
        super().__init__()
        self._near = NearConfig.named(near) if isinstance(near, str) else near
        self._scope = scope
        self._partitions = partitions
        self._order: Order = order

    def expand(self, batches: beam.PCollection[pa.RecordBatch]) -> Outputs:
        steps = _Steps(self._near, self._scope, self._partitions, self._order)
        table, tables = tuple[int, pa.Table], tuple[int, pa.Table, pa.Table]
        named = batches | "Name" >> beam.FlatMap(named_batches, self._scope)
        keys = named | "Keys" >> beam.Map(steps.send_keys)
        found = {"keys": keys} | Join("ByBandKey", steps.pair, PartitionedTables)
        pairs = {"pairs": found} | Join("ByNumber", steps.distinct, table)
        edges = pairs | "Edges" >> beam.Map(_send_edges)
        connected = {"edges": edges} | Join("Groups", steps.connect, PartitionedTables)
        sent = {
            "places": named | "Places" >> beam.Map(steps.send_places),
            "pairs": pairs | "Pairs" >> beam.Map(_send_back),
            "groups": connected,
        }
        grouped = sent | Join("Members", steps.members, tables)
        texts = {
            "batch": named | "Batches" >> beam.Map(to_batch),
            "members": grouped | "MembersByBatch" >> beam.Map(_send_members),
        } | Join("Texts", steps.send_texts, PartitionedTables)
        by_group = {"texts": texts, "pairs": grouped | "PairsByGroup" >> beam.Map(steps.send_pairs)}
        removals = by_group | Join("Resolve", steps.resolve, table)
        inputs: Any = {"named": named, "removals": removals}
        outputs: Outputs = inputs | ApplyRemovals("near", self._scope)
        return outputs


class _Steps:
    """The steps, with the settings that they share."""

    def __init__(self, near: NearConfig, scope: Scope, partitions: int, order: Order) -> None:
        self._near = near
        self._scope = scope
        self._partitions = partitions
        self._order: Order = order

    def send_keys(self, named: tuple[int, pa.RecordBatch]) -> PartitionedTables:
        """Band keys and the numbers of their documents, by key."""
        documents = documents_of(*named, self._scope)
        keys = part_by_numbers(minhash.band_keys(documents, self._near), documents, self._near)
        keys = minhash.keys_in_scope(keys, scope_of(documents))
        places = order_keys(documents, self._order) if self._order == "time" else None
        rows = buckets.key_rows(keys, documents["number"].to_numpy(), places)
        return to_partitions(named[0], rows, by_range(rows["key"].to_numpy(), self._partitions))

    def send_places(self, named: tuple[int, pa.RecordBatch]) -> PartitionedTables:
        """The places of the documents, by number."""
        rows = documents_of(*named, self._scope).select(_PLACE)
        return to_partitions(named[0], rows, by_number(rows["number"].to_numpy(), self._partitions))

    def pair(self, partition: int, tables: Received) -> PartitionedTables:
        """The candidate pairs of a range of keys, by their smaller number."""
        pairs = buckets.pairs(tables["keys"], self._order).replace_schema_metadata(None)
        return to_partitions(partition, pairs, by_number(pairs["a"].to_numpy(), self._partitions))

    def distinct(self, partition: int, tables: Received) -> tuple[int, pa.Table]:
        return partition, clusters.distinct_pairs(tables["pairs"])

    def connect(self, _: int, tables: Received) -> PartitionedTables:
        """The groups of all documents that have a candidate, by number."""
        found = clusters.components(tables["edges"].rename_columns(["a", "b"]))
        return to_partitions(0, found, by_number(found["doc"].to_numpy(), self._partitions))

    def members(self, partition: int, tables: Received) -> tuple[int, pa.Table, pa.Table]:
        """The members of groups, and the pairs with their group, for a range of numbers."""
        _check_distinct(tables["places"])
        found = tables.get("groups", clusters.GROUP_SCHEMA.empty_table())
        pairs = tables.get("pairs", clusters.PAIR_SCHEMA.empty_table())
        members = groups.with_group(tables["places"], "number", found)
        return partition, members, groups.with_group(pairs, "a", found)

    def send_pairs(self, grouped: tuple[int, pa.Table, pa.Table]) -> PartitionedTables:
        """The pairs, by group."""
        return to_partitions(grouped[0], grouped[2], grouped[2]["group"].to_numpy() % self._partitions)

    def send_texts(self, name: int, tables: Received) -> PartitionedTables:
        """The documents of a batch that are in a group, by group."""
        if "members" not in tables:
            return PartitionedTables(f"{name:016x}", {})
        members = tables["members"].sort_by("row")
        documents = documents_of(name, tables["batch"], self._scope).take(members["row"])
        documents = documents.append_column("group", members["group"])
        return to_partitions(name, documents, members["group"].to_numpy() % self._partitions)

    def resolve(self, partition: int, tables: Received) -> tuple[int, pa.Table]:
        """The removals of a partition of groups."""
        rows, names = with_shards(tables["texts"])
        pairs = tables["pairs"].sort_by(groups.PAIR_ORDER)
        found, _ = groups.resolve_groups(rows, pairs, self._near, order=self._order)
        return partition, removed_rows(with_batches(found, names), rows)


def _check_distinct(places: pa.Table) -> None:
    """Raises: InputError if two documents have one number, which means one text."""
    numbers = np.sort(places["number"].to_numpy())
    if (numbers[1:] == numbers[:-1]).any():
        raise InputError("two documents have equal texts: apply ExactDuplicates before NearDuplicates")


def _send_edges(pairs: tuple[int, pa.Table]) -> PartitionedTables:
    """The edges of a spanning forest of the pairs, to the one key where groups are connected."""
    found = clusters.components(pairs[1])
    return PartitionedTables(f"{pairs[0]:016x}", {0: found})


def _send_back(pairs: tuple[int, pa.Table]) -> PartitionedTables:
    return PartitionedTables(f"{pairs[0]:016x}", {pairs[0]: pairs[1]})


def _send_members(grouped: tuple[int, pa.Table, pa.Table]) -> PartitionedTables:
    return to_batches(grouped[0], grouped[1].select(["batch", "row", "group"]))
