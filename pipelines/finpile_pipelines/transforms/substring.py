"""Repeated substrings between batches.

    minimizers --by hash--> shared ones --by batch--> contexts --by hash--> repeated windows --by batch--> spans

A round's spans are all that has been cut so far; the next round reads the batches through them. After the last round,
of texts that have become equal one is kept.
"""

from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from finpile.config import SubstringConfig
from finpile.dedup.documents import Scope
from finpile.dedup.exact import Fold
from finpile.dedup.order import Order
from finpile.dedup.substring import repeats
from finpile.dedup.substring.spans import SHORT_SCHEMA, SPAN_SCHEMA, cut_rows, join_spans, short_documents
from finpile.dedup.substring.texts import shard_of
from finpile.errors import ConfigError
from finpile.splitmix import GOLDEN
from finpile_pipelines.dedup.alphabet import open_alphabet
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
from finpile_pipelines.transforms.exact import digests_to_partitions, equal_documents
from finpile_pipelines.transforms.outputs import ApplyRemovals, Outputs

STAGE = "substring"
_NEVER = np.iinfo(np.int64).max


class RepeatedSubstrings(Composite):
    """Cuts text of `min_length` or more that occurs elsewhere too; returns `Outputs(kept, removed)`.

    `removed` has a row for each span. It also has a row for each document of which cuts leave too little, or which they
    make equal to another one. Of several copies of a window one stays (`keep: first`): that in the document of the
    smallest `priority`, then of the earliest `timestamp`, then of the smallest digest.

    Args:
        substring: The setting, or its `min_length` in bytes.
        scope: `dataset` compares documents with the same value in `dataset`, `corpus` all of them.
        fold: The differences that equal texts may have after the cuts.
        root: The folder that `substring.tokenizer` is relative to.
        partitions: Partitions of each shuffle: about one for each 16 MiB of text.
        order: `time` keeps the earliest copy, then that of the smallest `priority`; see `finpile.dedup.order`.

    Texts must be distinct within a scope: apply `ExactDuplicates` first.

    Limits: `rounds` is a number, since a pipeline has a fixed number of steps. One worker holds the surroundings of all
    windows with one minimizer: text that a million documents share comes to one partition (`finpile build` refines such
    minimizers). Text passes through the shuffle three times a round, and once in the end.

    Raises:
        ConfigError: `rounds` is `fixpoint`, or the tokenizer cannot be read.
    """

    def __init__(
        self,
        substring: SubstringConfig | int = 200,
        scope: Scope = "dataset",
        fold: Fold = "none",
        root: str = ".",
        partitions: int = PARTITIONS,
        order: Order = "priority",
    ) -> None:
        super().__init__()
        config = SubstringConfig(min_length=substring) if isinstance(substring, int) else substring
        if config.rounds == "fixpoint":
            raise ConfigError("substring.rounds is 'fixpoint': RepeatedSubstrings needs a number of rounds")
        self._num_rounds = config.rounds
        self._steps = _Steps(config, open_alphabet(config, root), scope, fold, partitions, order)

    def expand(self, batches: beam.PCollection[pa.RecordBatch]) -> Outputs:
        steps = self._steps
        named = batches | "Name" >> beam.FlatMap(named_batches, steps.scope)
        batch = named | "Batches" >> beam.Map(to_batch)
        cuts: dict[str, beam.PCollection[PartitionedTables]] = {}
        for number in range(1, self._num_rounds + 1):
            cuts = {"batch": batch, **cuts} | f"Round{number}" >> _Round(steps, number)
        left = {"batch": batch, **cuts} | Join("Left", steps.send_left, PartitionedTables)
        equal = partial(equal_documents, repeats.DUPLICATE, steps.order)
        removals = {"rows": left} | Join("LeftByDigest", equal, tuple[int, pa.Table])
        inputs: Any = {"named": named, "removals": removals, **cuts}
        outputs: Outputs = inputs | ApplyRemovals(STAGE, steps.scope)
        return outputs


class _Round(Composite):
    """One pass: `batch`, and the `spans` and `short` of the rounds before, to `spans` and `short`, all by batch."""

    def __init__(self, steps: "_Steps", number: int) -> None:
        super().__init__()
        self._steps = steps
        self._number = number

    def expand(
        self, inputs: dict[str, beam.PCollection[PartitionedTables]]
    ) -> dict[str, beam.PCollection[PartitionedTables]]:
        steps = self._steps
        minimizers = inputs | Join("Minimizers", steps.send_minimizers, PartitionedTables)
        shared = {"minimizers": minimizers} | Join("Shared", _share, PartitionedTables)
        known = {**inputs, "shared": shared}
        contexts = known | Join("Contexts", steps.send_contexts, PartitionedTables)
        matches = {"contexts": contexts} | Join("Matches", steps.match, PartitionedTables)
        cut = {**known, "matches": matches} | Join(
            "Cut", partial(steps.cut, self._number), tuple[int, pa.Table, pa.Table]
        )
        return {"spans": cut | "Spans" >> beam.Map(_send_spans), "short": cut | "Short" >> beam.Map(_send_short)}


class _Steps:
    """The steps, with the settings that they share."""

    def __init__(
        self, config: SubstringConfig, alphabet: Any, scope: Scope, fold: Fold, partitions: int, order: Order
    ) -> None:
        self.scope = scope
        self._config = config
        self._alphabet = alphabet
        self._fold = fold
        self._partitions = partitions
        self.order: Order = order

    def send_minimizers(self, name: int, tables: Received) -> PartitionedTables:
        """The minimizers of a batch, by hash."""
        documents = self._remaining(name, tables)
        if documents.num_rows == 0:
            return _nothing(name)
        texts = self._alphabet.symbols(documents["text"])
        return self._by_hash(name, repeats.minimizers(texts, self._config, scope_of(documents), 0))

    def send_contexts(self, name: int, tables: Received) -> PartitionedTables:
        """The contexts of a batch around minimizers that others have too, by hash."""
        documents = self._remaining(name, tables)
        if documents.num_rows == 0 or "shared" not in tables:
            return _nothing(name)
        texts, shard = self._alphabet.symbols(documents["text"]), shard_of(0, documents, self.order)
        shared = tables["shared"].select(["hash", "crowded"])
        return self._by_hash(name, repeats.contexts(texts, shard, shared, self._config, scope_of(documents)))

    def match(self, partition: int, tables: Received) -> PartitionedTables:
        """The repeated windows of the contexts of a range of hashes, by batch."""
        rows, names = with_shards(tables["contexts"])
        found = repeats.match_contexts(rows.select(repeats.CONTEXT_SCHEMA.names), self._config, self._alphabet.widths)
        return to_batches(partition, with_batches(found, names))

    def cut(self, number: int, name: int, tables: Received) -> tuple[int, pa.Table, pa.Table]:
        """All spans of a batch so far (`SPAN_SCHEMA`), and all its documents that are too short (`SHORT_SCHEMA`)."""
        spans, short = _cuts(tables)
        documents = self._remaining(name, tables)
        if documents.num_rows == 0 or "shared" not in tables:
            return name, spans, short
        texts, shard = self._alphabet.symbols(documents["text"]), shard_of(0, documents, self.order)
        shared, matches = tables["shared"].select(["hash", "crowded"]), _matches_of(name, tables)
        new = repeats.cover(texts, shard, shared, matches, self._config, scope_of(documents)).spans
        too_short = short_documents(documents, new, self._config.min_chars)
        return name, join_spans(spans, new, number), pa.concat_tables([short, too_short])

    def send_left(self, name: int, tables: Received) -> PartitionedTables:
        """What the cuts left of a batch, by digest."""
        documents = self._remaining(name, tables)
        return digests_to_partitions(name, documents, self._fold, self._partitions)

    def _remaining(self, name: int, tables: Received) -> pa.Table:
        """The documents of a batch that are not removed, their texts without the spans."""
        documents = documents_of(name, tables["batch"], self.scope)
        spans, short = _cuts(tables)
        at = documents.schema.get_field_index("text")
        texts = cut_rows(documents["text"].combine_chunks(), spans)
        keep = np.ones(documents.num_rows, bool)
        keep[short["row"].to_numpy()] = False
        remaining = documents.set_column(at, documents.schema.field(at), texts).filter(pa.array(keep))
        return remaining.combine_chunks()

    def _by_hash(self, name: int, rows: pa.Table) -> PartitionedTables:
        rows = rows.append_column("batch", pa.array(np.full(rows.num_rows, name, np.int64)))
        return to_partitions(name, rows, by_range(rows["hash"].to_numpy() * GOLDEN, self._partitions))


def _share(partition: int, tables: Received) -> PartitionedTables:
    """The minimizers of a range of hashes that occur at least twice, by batch."""
    rows, names = with_shards(tables["minimizers"])
    found = repeats.shared_minimizers(rows.select(repeats.MINIMIZER_SCHEMA.names), crowd=_NEVER)
    return to_batches(partition, with_batches(found, names))


def _matches_of(name: int, tables: Received) -> pa.Table:
    """The matches of a batch, which is shard 0; each other batch that has a kept copy is a shard from 1."""
    if "matches" not in tables:
        return repeats.MATCH_SCHEMA.empty_table()
    found = tables["matches"]
    kept = found["kept_batch"].to_numpy()
    numbers = np.unique(kept, return_inverse=True)[1]
    shards = np.where(kept == name, 0, numbers + 1).astype(np.int32)
    rows = found.append_column("kept_shard", pa.array(shards))
    rows = rows.append_column("shard", pa.array(np.zeros(len(shards), np.int32)))
    return rows.select(repeats.MATCH_SCHEMA.names).combine_chunks()


def _cuts(tables: Received) -> tuple[pa.Table, pa.Table]:
    return tables.get("spans", SPAN_SCHEMA.empty_table()), tables.get("short", SHORT_SCHEMA.empty_table())


def _nothing(name: int) -> PartitionedTables:
    return PartitionedTables(f"{name:016x}", {})


def _send_spans(cut: tuple[int, pa.Table, pa.Table]) -> PartitionedTables:
    return PartitionedTables(f"{cut[0]:016x}", {cut[0]: cut[1]})


def _send_short(cut: tuple[int, pa.Table, pa.Table]) -> PartitionedTables:
    return PartitionedTables(f"{cut[0]:016x}", {cut[0]: cut[2]})
