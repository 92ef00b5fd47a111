"""Runs a plan over batches of documents that are elements of a Beam pipeline.

A batch travels to a step together with what is known about it: replies to it, its spans and its removed rows. Tables
travel through the runner's shuffle; nothing is written to files.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.dedup.cuts import cut_documents, join_spans
from finpile.dedup.documents import Scope
from finpile.dedup.ledger_rows import removal_rows, span_rows
from finpile.dedup.near import clusters
from finpile.dedup.near.clusters import PAIR_ORDER, with_group
from finpile.dedup.plan import (
    IS_REMOVED,
    NUMBER,
    REMOVAL_SCHEMA,
    SPAN_SCHEMA,
    Exchange,
    Groups,
    Part,
    Pass,
    Plan,
    Sent,
)
from finpile.documents.document import with_column
from finpile.errors import ConfigError, InputError
from finpile.plugins import stages
from finpile_pipelines.exchange.arrow_bytes import one_batch
from finpile_pipelines.exchange.partition import PartitionedTables, by_range
from finpile_pipelines.executors.batches import (
    PARTITIONS,
    Composite,
    Join,
    Received,
    batches_in,
    documents_of,
    named_batches,
    scope_of,
    to_batch,
    to_batches,
    to_partitions,
    with_batches,
    with_shards,
)
from finpile_pipelines.executors.connected_components import by_number
from finpile_pipelines.executors.request_reply import partition_of

#: Tables by batch: the batch itself, its spans and its removals; the batches before they are sent anywhere.
_BATCH, _SPANS, _REMOVALS, _NAMED = "batch", "spans", "removals", "named"
_KEPT = "kept "
_PLACE = (NUMBER, "batch", "row")
_Tables = dict[str, beam.PCollection[Any]]
_TWO = tuple[PartitionedTables, PartitionedTables]
#: Removals with the names of batches.
_EMPTY_REMOVALS = with_batches(REMOVAL_SCHEMA.empty_table(), np.empty(0, np.int64))


class Outputs(NamedTuple):
    """The two outputs of a transform, both collections of `pa.RecordBatch`."""

    kept: beam.PCollection[pa.RecordBatch]
    """Documents, with the columns of the input."""
    removed: beam.PCollection[pa.RecordBatch]
    """Rows of `finpile.documents.ledger.LEDGER_SCHEMA`: removed documents and spans. `duplicate_of` names the document
    that this transform keeps; a later one may remove it."""


class PlanOverElements(Composite):
    """Runs the plan of a stage on batches; returns `Outputs(kept, removed)`.

    Raises: ConfigError for a plan whose number of rounds is unknown: a pipeline has a fixed number of steps.
    """

    def __init__(self, stage: str, plan: Plan, scope: Scope, partitions: int = PARTITIONS) -> None:
        super().__init__()
        if any(one.rounds == "fixpoint" for one in plan.passes):
            raise ConfigError(f"{stage}.rounds is 'fixpoint': {type(self).__name__} needs a number of rounds")
        self._steps = _Steps(stage, scope, partitions, _Opened(plan))
        self._plan = plan

    def expand(self, batches: beam.PCollection[pa.RecordBatch]) -> Outputs:
        steps = self._steps
        named = batches | "Name" >> beam.FlatMap(named_batches, steps.scope)
        known: _Tables = {_NAMED: named, _BATCH: named | "Batches" >> beam.Map(_send_batch)}
        for one in self._plan.passes:
            for number in range(1, int(one.rounds) + 1):
                known = known | f"{one.name}{number}" >> _Round(steps, one, number)
        if _REMOVALS in known and stages.find(steps.stage).copy_reasons:
            counts = {_BATCH: named | "Counts" >> beam.Map(_send_counts), _REMOVALS: known[_REMOVALS]}
            known["copies"] = counts | Join("Copies", _send_copies, PartitionedTables)
        both = _join(known, "Apply", steps.apply, tuple[pa.RecordBatch, pa.RecordBatch])
        return Outputs(both | "Kept" >> beam.FlatMap(first_output), both | "Removed" >> beam.FlatMap(second_output))


class _Opened:
    """What a plan reads, opened once in each process."""

    def __init__(self, plan: Plan) -> None:
        self._tables = plan.read().tables
        self._open = plan.open
        self._found: list[Any] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_found": []}

    def get(self) -> Any:
        """What `Plan.open` returned."""
        if not self._found:
            self._found.append(self._open(self._tables))
        return self._found[0]


class _Round(Composite):
    """One round of a pass: what is known of batches before it, and after it."""

    def __init__(self, steps: "_Steps", one: Pass, number: int) -> None:
        super().__init__()
        self._steps = replace(steps, one=one, round=number)
        self._one = one

    def expand(self, known: _Tables) -> _Tables:
        steps, one = self._steps, self._one
        received = dict(known)
        for step in one.steps:
            if isinstance(step, Groups):
                return _with_removals(known, known | step.name >> _Groups(steps, step))
            sent = _join(received, step.name, partial(steps.send, step), _TWO)
            rows = sent | f"{step.name}Rows" >> beam.Map(_first)
            if step.keeps is not None:
                received[_KEPT + step.name] = sent | f"{step.name}Kept" >> beam.Map(_second)
            received[step.name] = {"rows": rows} | Join(f"{step.name}Answer", partial(_answer, step), PartitionedTables)
        if one.decide is None:
            return _with_removals(known, received[one.steps[-1].name])
        decide = partial(steps.decide, one.decide)
        decided = _join(received, "Decide", decide, _TWO)
        found = _with_removals(known, decided | "Removals" >> beam.Map(_first))
        return {**found, _SPANS: decided | "Spans" >> beam.Map(_second)} if one.cuts else found


class _Groups(Composite):
    """A pass over groups: what is known of batches, to removals by batch."""

    def __init__(self, steps: "_Steps", step: Groups) -> None:
        super().__init__()
        self._steps = _GroupSteps(steps, step)

    def expand(self, known: _Tables) -> beam.PCollection[PartitionedTables]:
        steps = self._steps
        sent = _join(known, "Keys", steps.send_keys, _TWO)
        found = {"keys": sent | "KeyRows" >> beam.Map(_first)} | Join("ByKey", steps.pair, PartitionedTables)
        pairs = {"pairs": found} | Join("ByNumber", _distinct, tuple[int, pa.Table])
        edges = pairs | "Edges" >> beam.Map(_send_edges)
        named = {
            "places": sent | "Places" >> beam.Map(_second),
            "pairs": pairs | "Pairs" >> beam.Map(_send_back),
            "groups": {"edges": edges} | Join("Groups", steps.connect, PartitionedTables),
        }
        grouped = named | Join("Members", steps.members, _TWO)
        members = {**known, "members": grouped | "MembersByBatch" >> beam.Map(_first)}
        texts = _join(members, "Texts", steps.send_texts, PartitionedTables)
        by_group = {"texts": texts, "pairs": grouped | "PairsByGroup" >> beam.Map(_second)}
        return by_group | Join("Resolve", steps.resolve, PartitionedTables)


@dataclass(frozen=True)
class _Steps:
    """The steps of a plan. It is pickled for the workers."""

    stage: str
    scope: Scope
    partitions: int
    opened: _Opened
    one: Pass | None = None
    round: int = 1

    def part(self, name: int, tables: Received, reads: tuple[str, ...]) -> Part | None:
        """The documents of a batch that are left, and what it received; None if none is left."""
        documents = cut_documents(documents_of(tables[_BATCH], self.scope, reads), _spans(tables))
        is_removed = np.zeros(documents.num_rows, bool)
        is_removed[_removals(tables)["row"].to_numpy()] = True
        if self.one is not None and self.one.sees_removed:
            documents = documents.append_column(IS_REMOVED, pa.array(is_removed))
        else:
            documents = documents.filter(pa.array(~is_removed)).combine_chunks()
        return Part(documents=documents, number=0, scope=scope_of(documents)) if documents.num_rows else None

    def send(self, step: Exchange, name: int, tables: Received) -> tuple[PartitionedTables, PartitionedTables]:
        """The rows of a batch, by hash; what it keeps, to itself."""
        part = self.part(name, tables, step.reads)
        sent = Sent(step.sends.empty_table()) if part is None else step.rows(self._known(part, name, tables)[0])
        rows = with_batches(sent.rows, np.array([name]))
        kept = to_batch(name, sent.kept) if sent.kept is not None else to_batch(name, pa.table({}))
        return to_partitions(name, rows, partition_of(rows[step.key], self.partitions)), kept

    def decide(
        self, decide: Callable[[Part], Any], name: int, tables: Received
    ) -> tuple[PartitionedTables, PartitionedTables]:
        """What a batch loses, and all its spans so far, to itself."""
        one, spans = self.one, _spans(tables)
        part = self.part(name, tables, one.reads if one is not None else ())
        if part is None:
            return to_batch(name, pa.table({})), to_batch(name, spans)
        known, names = self._known(part, name, tables)
        decision = decide(known)
        removals = with_batches(decision.removals, names)
        return to_batch(name, removals), to_batch(name, join_spans(spans, decision.spans))

    def apply(self, name: int, tables: Received) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The kept documents of a batch, and its rows of the ledger."""
        batch = tables[_BATCH]
        documents, spans = documents_of(batch, self.scope), _spans(tables)
        cut = cut_documents(documents, spans)
        if spans.num_rows:
            batch = with_column(batch, "text", cut["text"])
        removals = _removals(tables).sort_by("row")
        removals = removals.append_column("stage", pa.repeat(self.stage, removals.num_rows))
        keep = np.ones(batch.num_rows, bool)
        keep[removals["row"].to_numpy()] = False
        kept = _with_copies(batch, tables.get("copies")).filter(pa.array(keep))
        ledger = pa.concat_tables([span_rows(documents, spans, self.stage), removal_rows(cut, removals)])
        return one_batch(kept), one_batch(ledger)

    def _known(self, part: Part, name: int, tables: Received) -> tuple[Part, Any]:
        """The part with what it received, and the names of the batches that its numbers mean: 0 is itself."""
        exchanges = [step for step in (self.one.steps if self.one is not None else ()) if isinstance(step, Exchange)]
        replies = {step: tables[step.name] for step in exchanges if step.name in tables}
        names = batches_in(replies.values(), name)
        found = {
            step.name: with_shards(replies[step], names).select(step.replies.names).cast(step.replies).combine_chunks()
            if step in replies
            else step.replies.empty_table()
            for step in exchanges
        }
        kept = {
            step.name: tables.get(_KEPT + step.name, step.keeps.empty_table())
            for step in exchanges
            if step.keeps is not None
        }
        return replace(part, replies=found, kept=kept, round=self.round, opened=self.opened.get()), names


@dataclass(frozen=True)
class _GroupSteps:
    """The steps of a pass over groups. It is pickled for the workers."""

    steps: _Steps
    step: Groups

    def send_keys(self, name: int, tables: Received) -> tuple[PartitionedTables, PartitionedTables]:
        """Keys of the documents of a batch, by key; the places of the documents, by number."""
        part = self._part(name, tables)
        if part is None:
            return to_batch(name, pa.table({})), to_batch(name, pa.table({}))
        partitions = self.steps.partitions
        keys, documents = self.step.keys(part), with_batches(part.documents, np.array([name]))
        places = documents.select(_PLACE)
        return (
            to_partitions(name, keys, by_range(keys["key"].to_numpy(), partitions)),
            to_partitions(name, places, by_number(places[NUMBER].to_numpy(), partitions)),
        )

    def pair(self, partition: int, tables: Received) -> PartitionedTables:
        """The candidate pairs of a range of keys, by their smaller number."""
        pairs = self.step.pairs(tables["keys"]).rows
        return to_partitions(partition, pairs, by_number(pairs["a"].to_numpy(), self.steps.partitions))

    def connect(self, _: int, tables: Received) -> PartitionedTables:
        """The groups of all documents that have a candidate, by number."""
        found = clusters.components(tables["edges"].rename_columns(["a", "b"]))
        return to_partitions(0, found, by_number(found["doc"].to_numpy(), self.steps.partitions))

    def members(self, partition: int, tables: Received) -> tuple[PartitionedTables, PartitionedTables]:
        """The members of groups, by batch, and the pairs with their group, by group, for a range of numbers."""
        _check_distinct(tables["places"])
        found = tables.get("groups", clusters.GROUP_SCHEMA.empty_table())
        members = with_group(tables["places"], NUMBER, found)
        pairs = with_group(tables.get("pairs", clusters.PAIR_SCHEMA.empty_table()), "a", found)
        return (
            to_batches(partition, members.select(["batch", "row", "group"])),
            to_partitions(partition, pairs, pairs["group"].to_numpy() % self.steps.partitions),
        )

    def send_texts(self, name: int, tables: Received) -> PartitionedTables:
        """The documents of a batch that are in a group, by group."""
        part = self._part(name, tables) if "members" in tables else None
        if part is None:
            return to_batch(name, pa.table({}))
        members = tables["members"].sort_by("row")
        at = np.searchsorted(part.documents["row"].to_numpy(), members["row"].to_numpy())
        documents = part.documents.take(pa.array(at)).append_column("group", members["group"])
        rows = with_batches(documents, np.array([name]))
        return to_partitions(name, rows, members["group"].to_numpy() % self.steps.partitions)

    def resolve(self, partition: int, tables: Received) -> PartitionedTables:
        """The removals of a partition of groups, by batch."""
        names = batches_in([tables["texts"]])
        found = self.step.resolve(with_shards(tables["texts"], names), tables["pairs"].sort_by(PAIR_ORDER)).rows
        return to_batches(partition, with_batches(found, names))

    def _part(self, name: int, tables: Received) -> Part | None:
        part = self.steps.part(name, tables, self.step.reads)
        return None if part is None else self.step.prepared(part)


def _join(known: _Tables, label: str, work: Callable[[int, Received], Any], output: Any) -> beam.PCollection[Any]:
    """`work` on each batch and what is known about it. If nothing else is, the batch is not sent through a shuffle."""
    tables = {name: sent for name, sent in known.items() if name != _NAMED}
    if len(tables) > 1:
        return tables | Join(label, work, output)
    return known[_NAMED] | label >> beam.Map(_alone, work).with_output_types(output)


def _alone(named: tuple[int, pa.RecordBatch], work: Callable[[int, Received], Any]) -> Any:
    return work(named[0], {_BATCH: pa.Table.from_batches([named[1]])})


def _answer(step: Exchange, partition: int, tables: Received) -> PartitionedTables:
    """The replies to the rows of a range of hashes, by batch."""
    names = batches_in([tables["rows"]])
    rows = with_shards(tables["rows"], names).select(step.sends.names).cast(step.sends)
    return to_batches(partition, with_batches(step.answer(rows).rows, names))


def _with_removals(known: _Tables, removals: beam.PCollection[PartitionedTables]) -> _Tables:
    if _REMOVALS in known:
        removals = (known[_REMOVALS], removals) | "AllRemovals" >> beam.Flatten()
    return {**known, _REMOVALS: removals}


def _spans(tables: Received) -> pa.Table:
    return tables.get(_SPANS, SPAN_SCHEMA.empty_table())


def _removals(tables: Received) -> pa.Table:
    return tables.get(_REMOVALS, _EMPTY_REMOVALS)


def _check_distinct(places: pa.Table) -> None:
    """Raises: InputError if two documents have one number, which means one text."""
    numbers = np.sort(places[NUMBER].to_numpy())
    if (numbers[1:] == numbers[:-1]).any():
        raise InputError("two documents have equal texts: apply ExactDuplicates before NearDuplicates")


def _distinct(partition: int, tables: Received) -> tuple[int, pa.Table]:
    return partition, clusters.distinct_pairs(tables["pairs"])


def _send_batch(named: tuple[int, pa.RecordBatch]) -> PartitionedTables:
    return to_batch(named[0], pa.Table.from_batches([named[1]]))


def _send_counts(named: tuple[int, pa.RecordBatch]) -> PartitionedTables:
    """How many documents each document of a batch represents."""
    name, batch = named
    ones = pa.array(np.ones(batch.num_rows, np.int64))
    counts = batch["num_copies"].cast(pa.int64()) if "num_copies" in batch.schema.names else ones
    return to_batch(name, pa.table({"num_copies": counts}))


def _send_copies(name: int, tables: Received) -> PartitionedTables:
    """How many documents the removed ones of a batch represented, to the batches of their kept copies."""
    removals = _removals(tables)
    copies = removals.append_column("num_copies", tables[_BATCH]["num_copies"].take(removals["row"]))
    copies = copies.filter(pc.is_valid(copies["kept_batch"]))
    return to_batches(name, copies.select(["kept_batch", "kept_row", "num_copies"]), "kept_batch")


def _send_edges(pairs: tuple[int, pa.Table]) -> PartitionedTables:
    """The edges of a spanning forest of the pairs, to the one key where groups are connected."""
    return PartitionedTables(f"{pairs[0]:016x}", {0: clusters.components(pairs[1])})


def _send_back(pairs: tuple[int, pa.Table]) -> PartitionedTables:
    return to_batch(*pairs)


def _first(sent: tuple[PartitionedTables, PartitionedTables]) -> PartitionedTables:
    return sent[0]


def _second(sent: tuple[PartitionedTables, PartitionedTables]) -> PartitionedTables:
    return sent[1]


def first_output(outputs: tuple[pa.RecordBatch, pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if outputs[0].num_rows:
        yield outputs[0]


def second_output(outputs: tuple[pa.RecordBatch, pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if outputs[1].num_rows:
        yield outputs[1]


def _with_copies(batch: pa.Table, copies: pa.Table | None) -> pa.Table:
    if copies is None or "num_copies" not in batch.schema.names:
        return batch
    counts = batch["num_copies"].to_numpy().astype(np.int64)
    np.add.at(counts, copies["kept_row"].to_numpy(), copies["num_copies"].to_numpy())
    return with_column(batch, "num_copies", pa.array(counts))
