"""Near duplicates, by band keys over all shards. `finpile.dedup.near` hashes, pairs and verifies.

    keys      band keys of each text --by key--> candidate pairs --by number--> each pair once
    groups    connected components of the pairs, by number (`connected_components`)
    members   the rows of each shard that are in a group, and the pairs of each group (`cluster_members`)
    texts     texts of those rows --by group--> verified, resolved --by shard--> removals

All of this is one pipeline, unless the pairs are too many for the memory of one task: then each round of the
connected components is a pipeline, and so is the rest.

A document's number is a hash of its scope and text, so pairs do not depend on how the corpus is cut into shards. A
process holds one shard, or one partition of an exchange, which is about as large, and all texts of one group.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from finpile import storage
from finpile.config import CorpusConfig, NearConfig, to_dict
from finpile.dedup.near import buckets, clusters, groups, minhash, verify
from finpile.dedup.near.numbers import part_by_numbers
from finpile.dedup.near.warmup import EARLIER_GROUP, NEAR_GROUPS
from finpile.dedup.order import Order, order_keys
from finpile.sizes import num_partitions
from finpile_pipelines.dedup.cluster_members import PLACE_SCHEMA, ClusterMembers
from finpile_pipelines.dedup.connected_components import (
    ConnectedComponents,
    by_number,
    connect_in_memory,
    sum_outcomes,
    write_partition,
)
from finpile_pipelines.dedup.remaining import RemainingDocuments, documents_of, order_setting, remaining_documents
from finpile_pipelines.dedup.removals import NOT_CONFIGURED, WriteRemovals, removal_table
from finpile_pipelines.exchange.partition import (
    ExchangeByPartition,
    PartitionedTables,
    by_range,
    split_by_partition,
)
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After, Gather, Tasks, sum_of
from finpile_pipelines.progress import report_part, report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef
from finpile_pipelines.stage import Context, Outcome, Sizes, Stage, Step, StepInput, Work

#: A table is cut into at most 32 pieces of at least 64 rows.
_PIECES, _PIECE_ROWS = 32, 64
#: Shares of the stage's work: keys and pairs, connected groups, their members, comparison of texts.
_WORKS = (0.6, 0.05, 0.05, 0.3)
_DECIDED = ("compared_pairs", "verified_pairs", "removed")
#: Bands whose keys make a partition for each shard; of fewer bands up to 4 shards share one.
_BANDS_OF_PARTITION, _SHARDS_OF_UNIT = 450, 4
#: MinHash values of a text that take about as long to compute as the text takes to read.
_LIGHT_HASHES = 256

#: Bytes of a text, about.
DOCUMENT_BYTES = 2048


def settings(context: Context) -> list[Any] | None:
    """The settings on which the stage's outcome depends."""
    near = context.config.dedup.near
    return None if near is None else [to_dict(near), *order_setting(context.config)]


def work(context: Context) -> Work:
    """The text, once for each 256 hash values."""
    near = context.config.dedup.near
    hashes = near.bands * near.rows if near else 1
    return Work(size_bytes=context.text_bytes() * -(-hashes // _LIGHT_HASHES))


def run(context: Context) -> Outcome:
    """Marks near duplicates among the documents that earlier stages left in the clean shards.

    Counts: `candidate_pairs` are distinct; `large_buckets` gave only some of their pairs; `compared_pairs` were
    compared, and `verified_pairs` of them are near duplicates: a pair that others connect need not be compared.
    """
    near = context.config.dedup.near
    if near is None:
        return Outcome(counts=NOT_CONFIGURED)
    comparison = Comparison(remaining_documents(context))
    stage = NearStage(context.engine, near, context.refs, comparison, context.folder, context.sizes)
    return Outcome(counts=stage.run())


def near_kernels(config: CorpusConfig) -> Sequence[str]:
    """Groups of kernels, the longest compilation first."""
    if config.dedup.near is None:
        return ()
    return (*NEAR_GROUPS, EARLIER_GROUP) if config.dedup.order == "time" else NEAR_GROUPS


def steps(config: CorpusConfig) -> Sequence[Step]:
    """One, for documents that share a band key."""
    near = config.dedup.near
    if near is None:
        return ()
    size = max(1, DOCUMENT_BYTES // near.bands)
    return [Step(name="groups", keys=partial(_keys, near), bytes_of_key=size, reach="connected", run=_run_step)]


def _run_step(context: Context) -> str:
    run(context)
    return context.folder


def _keys(near: NearConfig, step: StepInput, ref: ShardRef) -> pa.Table:
    return keys_of(Comparison(documents_of(step)), ref, near)


STAGE = Stage(name="near", settings=settings, run=run, kernels=near_kernels, work=work, steps=steps)


class Comparison:
    """Selects the documents to compare and decides the groups; `overlap` overrides it."""

    stage = "near"

    def __init__(self, reader: RemainingDocuments) -> None:
        self.reader = reader

    @property
    def order(self) -> Order:
        """The order in which copies are preferred."""
        return self.reader.order

    def key_scope(self, ref: ShardRef) -> str:
        """Documents of different scopes share no band key."""
        return self.reader.scope(ref)

    def read(self, ref: ShardRef) -> Iterator[pa.Table]:
        """The documents to compare, each with a `number` of its own."""
        return self.reader.read(ref)

    def pairs(self, rows: pa.Table) -> pa.Table:
        """The candidate pairs of a key partition."""
        return buckets.pairs(rows, self.order)

    def resolve(self, members: pa.Table, pairs: np.ndarray[Any, Any], near: NearConfig) -> verify.Resolution:
        """Decides a group of documents in order of preference; `pairs` are rows of `members`."""
        return groups.RULES[self.order](members, pairs, near)

    def describe(self, resolved: verify.NearDuplicate) -> dict[str, str]:
        """The reason and the detail of the ledger's row."""
        return groups.describe(resolved)


def _shards_of_unit(bands: int) -> int:
    """The number of shards whose keys share a partition."""
    return max(1, min(_SHARDS_OF_UNIT, _BANDS_OF_PARTITION // bands))


class NearStage:
    """The steps of the stage, and the files between them."""

    def __init__(
        self,
        engine: Engine,
        near: NearConfig,
        refs: Sequence[ShardRef],
        comparison: Comparison,
        folder: str,
        sizes: Sizes,
    ) -> None:
        self._engine = engine
        self._near = near
        self._refs = tuple(refs)
        self._comparison = comparison
        self._folder = folder
        self._partitions = num_partitions(len(refs), _shards_of_unit(near.bands))
        self._members = ClusterMembers(folder, tuple(ref.index for ref in refs), self._partitions)
        self._pairs_in_memory = sizes.pairs_in_memory
        self._are_few = len(refs) <= sizes.shards_in_memory

    def run(self) -> dict[str, int]:
        """Runs all steps; returns counts."""
        most = self._pairs_in_memory
        engine, name, transport = self._engine, self._comparison.stage, self._engine.exchange_transport
        pairing, joining, gathering, deciding = _WORKS

        def construct(pipeline: beam.Pipeline) -> None:
            num_pairs = self._pair(pipeline, pairing)
            connected = self._connect(pipeline, joining, After(num_pairs, lambda number: number <= most))
            if not self._are_few:
                connected = self._members.construct(pipeline, transport, gathering, After(connected))
            self._decide(pipeline, deciding, After(connected))

        engine.run(name, construct)
        num_pairs = sum_outcomes(self._at("pairs.json"), "pairs")
        if num_pairs <= most:
            grouped = sum_outcomes(self._at("groups.json"), "documents")
        else:
            grouped = ConnectedComponents(engine.part(1, 1), self._folder, self._partitions).run()
            engine.part(1, 1).run(f"{name}: verify", self._construct_rest)
        storage.remove_tree(self._at("scratch"))
        return {
            "candidate_pairs": num_pairs,
            "large_buckets": sum_outcomes(self._at("pairs.json"), "large_buckets"),
            "grouped_documents": grouped,
            **{name: sum_outcomes(self._at("tasks.json"), name) for name in _DECIDED},
        }

    def _construct_rest(self, pipeline: beam.Pipeline) -> None:
        """The steps after the connected components."""
        written = self._members.construct(pipeline, self._engine.exchange_transport, 0.1)
        self._decide(pipeline, 0.9, After(written))

    def _pair(self, pipeline: beam.Pipeline, work: float) -> beam.PCollection[Passed]:
        """Writes the places of documents by shard, and pairs by range of numbers; the summary is the pairs' number."""
        near, partitions, comparison, url = self._near, self._partitions, self._comparison, self._at("pairs.json")
        places, pairs = self._at("places"), self._at("pairs")

        def send(ref: ShardRef) -> PartitionedTables:
            keys, rows = _key_rows(comparison, ref, near)
            write_partition(places, ref.index, rows)
            return PartitionedTables(
                f"{ref.index:06d}", split_by_partition(keys, by_range(keys["key"].to_numpy(), partitions))
            )

        def pair(bucket: tuple[int, pa.Table]) -> tuple[int, pa.Table]:
            return bucket[0], comparison.pairs(bucket[1])

        def send_pairs(found: tuple[int, pa.Table]) -> PartitionedTables:
            ranges = by_number(found[1]["a"].to_numpy(), partitions)
            return PartitionedTables(f"{found[0]:06d}", split_by_partition(found[1], ranges))

        def write(received: tuple[int, pa.Table]) -> dict[str, Any]:
            distinct = clusters.distinct_pairs(received[1])
            write_partition(pairs, received[0], distinct)
            return {"partition": received[0], "pairs": distinct.num_rows}

        keys = pipeline | "Documents" >> Tasks(self._refs, 0.7 * work, note="keys") | "Keys" >> beam.Map(send)
        paired = keys | self._exchange("ByBandKey", 0.2 * work) | "Pairs" >> beam.Map(pair)
        sent = paired | "SendPairs" >> beam.Map(send_pairs) | self._exchange("ByNumber", 0.1 * work)
        outcomes = (sent | "Distinct" >> beam.Map(write), paired | "Large" >> beam.Map(_num_large))
        return outcomes | "AllPairs" >> beam.Flatten() | "GatherPairs" >> Gather(url, sum_of("pairs"))

    def _connect(self, pipeline: beam.Pipeline, work: float, after: After) -> beam.PCollection[Passed]:
        """One task: the groups of all pairs and, for a few shards, their members."""
        folder, partitions, members, are_few = self._folder, self._partitions, self._members, self._are_few

        def connect(_: int) -> dict[str, Any]:
            num_documents = connect_in_memory(folder, partitions)
            if are_few:
                members.write_all()
            return {"documents": num_documents}

        tasks = Tasks([0], work, after=after, note="groups")
        connected = pipeline | "AllOfThem" >> tasks | "Connect" >> beam.Map(connect)
        return connected | "GatherGroups" >> Gather(self._at("groups.json"), after=after)

    def _decide(self, pipeline: beam.Pipeline, work: float, after: After) -> None:
        """Collects the texts of each group, decides it, and writes the removals by shard."""
        near, partitions, comparison, url = self._near, self._partitions, self._comparison, self._at("tasks.json")
        members = self._members

        def send(ref: ShardRef) -> PartitionedTables:
            table = _grouped_rows(comparison, ref, members.members(ref.index))
            parts = split_by_partition(table, table["group"].to_numpy() % partitions) if table else {}
            return PartitionedTables(f"{ref.index:06d}", parts)

        def resolve(received: tuple[int, pa.Table]) -> tuple[pa.Table, dict[str, Any]]:
            pairs = members.pairs(received[0])
            removals, counts = groups.resolve_groups(
                received[1], pairs, near, comparison.resolve, comparison.describe, comparison.order
            )
            return removal_table(removals, comparison.stage), {"partition": received[0], **counts}

        tasks = Tasks(self._refs, 0.3 * work, after=after, note="verify")
        grouped = pipeline | "Groups" >> tasks | "Texts" >> beam.Map(send) | self._exchange("ByGroup", 0.7 * work)
        resolved = grouped | "Resolve" >> beam.Map(resolve)
        removals, counted = resolved | "Removals" >> beam.Map(_removals), resolved | "Counts" >> beam.Map(_counts)
        outcomes = (removals | WriteRemovals(self._engine, self._folder), counted) | beam.Flatten()
        _ = outcomes | "GatherRemovals" >> Gather(url, after=after)

    def _at(self, name: str) -> str:
        return storage.join(self._folder, name)

    def _exchange(self, label: str, share: float) -> ExchangeByPartition:
        transport, scratch = self._engine.exchange_transport, self._at("scratch")
        return ExchangeByPartition(transport, scratch, label, share / self._partitions)


def _key_rows(comparison: Comparison, ref: ShardRef, near: NearConfig) -> tuple[pa.Table, pa.Table]:
    """A row for each band of each document that has words, and the place of each document."""
    order = comparison.order
    keyed, rows = [buckets.key_schema(order).empty_table()], [PLACE_SCHEMA.empty_table()]
    for table in _pieces(comparison.read(ref)):
        of_bands = part_by_numbers(minhash.band_keys(table, near), table, near)
        keys = minhash.keys_in_scope(of_bands, comparison.key_scope(ref))
        places = order_keys(table, order) if order == "time" else None
        keyed.append(buckets.key_rows(keys, table["number"].to_numpy(), places))
        rows.append(table.select(PLACE_SCHEMA.names).cast(PLACE_SCHEMA))
        report_progress(table.num_rows, table["text"].nbytes)
    return pa.concat_tables(keyed), pa.concat_tables(rows)


def keys_of(comparison: Comparison, ref: ShardRef, near: NearConfig) -> pa.Table:
    """The `key` and the `row` of each band of each document that has words."""
    found = [pa.table({"key": pa.array([], pa.uint64()), "row": pa.array([], pa.int32())})]
    for table in _pieces(comparison.read(ref)):
        of_bands = part_by_numbers(minhash.band_keys(table, near), table, near)
        keys = minhash.keys_in_scope(of_bands, comparison.key_scope(ref))
        worded = keys != minhash.NO_KEY
        rows = np.broadcast_to(table["row"].to_numpy()[:, np.newaxis], keys.shape)[worded]
        found.append(pa.table({"key": keys[worded], "row": rows}))
        report_progress(table.num_rows, table["text"].nbytes)
    return pa.concat_tables(found)


def _pieces(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The tables in pieces of rows, each reported as progress: with thousands of hashes a table takes seconds."""
    whole = list(tables)
    num_rows, done = sum(table.num_rows for table in whole), 0
    for table in whole:
        size = max(_PIECE_ROWS, -(-table.num_rows // _PIECES))
        for first in range(0, table.num_rows, size):
            piece = table.slice(first, size)
            yield piece
            done += piece.num_rows
            report_part(done / num_rows)


def _num_large(paired: tuple[int, pa.Table]) -> dict[str, Any]:
    return {"partition": paired[0], "large_buckets": int(paired[1].schema.metadata[clusters.LARGE_BUCKETS])}


def _removals(resolved: tuple[pa.Table, dict[str, Any]]) -> pa.Table:
    return resolved[0]


def _counts(resolved: tuple[pa.Table, dict[str, Any]]) -> dict[str, Any]:
    return resolved[1]


def _grouped_rows(comparison: Comparison, ref: ShardRef, members: pa.Table) -> pa.Table | None:
    """The shard's documents that are in a group, given `members` by row; None if there are none."""
    if members.num_rows == 0:
        return None
    rows, groups = members["row"].to_numpy(), members["group"].to_numpy()
    tables = []
    for table in comparison.read(ref):
        mine = table["row"].to_numpy()
        at = np.minimum(np.searchsorted(rows, mine), len(rows) - 1)
        found = rows[at] == mine
        tables.append(table.filter(pa.array(found)).append_column("group", pa.array(groups[at[found]])))
    return pa.concat_tables(tables)
