"""The mixture in the stage `tokens`: copies of documents, and the pass that counts tokens for shares and fractions.

    count    keys and lengths of documents --by selection key--> sorted files, from which the copies are settled

`finpile.tokens.copies` has the rules.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.config import CorpusConfig, to_dict
from finpile.config.mixture import WeightConfig, exactly, weights
from finpile.dedup import exact
from finpile.documents.document import Label, digest_bits
from finpile.documents.split import TRAIN
from finpile.output.layout import row_of
from finpile.output.work_folder import WorkFolder
from finpile.tokens.copies import (
    LENGTH_SCHEMA,
    DocumentClass,
    class_indices,
    classes_of,
    copies_of,
    need_counts,
    positions,
    selection_keys,
    settle,
)
from finpile.tokens.tokenizers.protocol import Tokenizer
from finpile_pipelines import graph
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, by_range, split_by_partition
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import Gather

_COUNTS = ("documents", "tokens", "effective_documents", "effective_tokens")


@dataclass(frozen=True, slots=True)
class Mixture:
    """The weights of the rows of a corpus."""

    weights: Mapping[Label, WeightConfig]

    @classmethod
    def of(cls, config: CorpusConfig) -> "Mixture | None":
        """That of a corpus file; None for one without."""
        return None if config.mixture is None else cls(weights(config.mixture, config.rows))

    @property
    def classes(self) -> list[DocumentClass]:
        """The classes of documents, without what depends on numbers of tokens."""
        return classes_of(self.weights)

    @property
    def needs_counts(self) -> bool:
        """Whether copies depend on numbers of tokens."""
        return need_counts(self.classes)

    @property
    def sources(self) -> tuple[Label, ...]:
        """The rows, in the order of their numbers in token shards."""
        return tuple(sorted(self.weights))

    def settings(self) -> list[Any]:
        """Values on which the outcome of the stage depends."""
        return [[*row, to_dict(weight)] for row, weight in self.weights.items()]

    def train_bytes(self, files: Sequence[Mapping[str, Any]]) -> int:
        """Bytes of the texts of all copies, about: an upper bound, but for rows whose tokens are of other lengths."""
        largest = {row: Fraction(0) for row in self.weights}
        for entry in self.classes:
            largest[entry.row] = max(largest[entry.row], entry.weight or Fraction(0))
        shares = sum((exactly(weight.share) for weight in self.weights.values() if weight.share), Fraction(0))
        by_epochs = sum((file["text_bytes"] * largest[row_of(file["path"])] for file in files), Fraction(0))
        return int(by_epochs / (1 - shares))


class MixedFile:
    """The copies of the documents of one shard of documents, and their counts by class."""

    def __init__(self, classes: Sequence[DocumentClass], row: Label) -> None:
        self._classes = classes
        self._row = row
        self._source = sorted({entry.row for entry in classes}).index(row)
        self._sums = np.zeros((len(_COUNTS), len(classes)), np.int64)

    def copies(self, rows: pa.Table) -> Iterator[pa.Table]:
        """The first, second, ... copies of training documents, each with its position as `digest`, and its source.

        `rows` has `digest`, `id`, `ids`, `split` and `num_copies`. Held-out documents have one copy.
        """
        is_train = pc.equal(rows["split"], TRAIN).to_numpy()
        indices = class_indices(self._classes, self._row, rows["num_copies"])
        num_copies = copies_of(self._classes, indices, rows["digest"], rows["id"])
        num_tokens = pc.list_value_length(rows["ids"]).to_numpy().astype(np.int64)
        counted = (np.ones_like(num_tokens), num_tokens, num_copies, num_copies * num_tokens)
        for sums, values in zip(self._sums, counted, strict=True):
            np.add.at(sums, indices, np.where(is_train, values, 0))
        num_copies = np.where(is_train, num_copies, 1)
        for copy in range(int(num_copies.max(initial=0))):
            has_copy = num_copies > copy
            some = rows if has_copy.all() else rows.filter(pa.array(has_copy))
            some = some.set_column(0, "digest", positions(some["digest"], copy))
            yield some.append_column("source", pa.array(np.full(some.num_rows, self._source, np.int64)))

    def counts(self) -> list[dict[str, Any]]:
        """Of the classes of the shard's row."""
        return [
            {**entry.to_json(), **dict(zip(_COUNTS, sums, strict=True))}
            for entry, sums in zip(self._classes, self._sums.T.tolist(), strict=True)
            if entry.row == self._row
        ]


def sum_counts(files: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The classes of documents with the sums of their counts over all files."""
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for entry in chain.from_iterable(files):
        key = (entry["dataset"], entry["source"], entry["least"])
        sums = found.setdefault(key, {**entry, **dict.fromkeys(_COUNTS, 0)})
        for name in _COUNTS:
            sums[name] += entry[name]
    return [found[key] for key in sorted(found)]


def lengths_of(
    tables: Iterator[pa.Table], tokenizer: Tokenizer, path: str, mixture: Mixture, partitions: int
) -> Iterator[PartitionedTables]:
    """The tokens of the training documents of one shard, by partition of their selection keys (`LENGTH_SCHEMA`)."""
    classes, row, origin = mixture.classes, row_of(path), path.replace("/", "-")
    for number, table in enumerate(tables):
        lengths = pc.list_value_length(tokenizer.encode_array(table["text"]))
        columns = {
            "class": pa.array(class_indices(classes, row, table["num_copies"]), pa.int32()),
            "key": selection_keys(exact.document_digests(table)),
            "id": table["id"],
            "num_tokens": lengths.cast(pa.int64()),
        }
        rows = pa.table(columns).filter(pc.equal(table["split"], TRAIN)).cast(LENGTH_SCHEMA)
        partition = by_range(digest_bits(rows["key"]), partitions)
        yield PartitionedTables(f"{origin}-{number:04d}", split_by_partition(rows, partition))


@dataclass(eq=False)
class SettleCopies(graph.PTransform):
    """`lengths_of` all shards in, the classes of documents with the copies of each as JSON out, as summary."""

    mixture: Mixture
    folder: WorkFolder
    exchange: ExchangeByPartition

    def expand(self, lengths: graph.PCollection[PartitionedTables]) -> graph.PCollection[Passed]:
        gather = Gather(self.folder.file("lengths.json"), partial(_settled, self.mixture, self.folder))
        return lengths | self.exchange | "Lengths" >> graph.Map(_write_lengths, self.folder) | gather


def _write_lengths(group: tuple[int, pa.Table], folder: WorkFolder) -> dict[str, Any]:
    rows = group[1].sort_by([("class", "ascending"), ("key", "ascending"), ("id", "ascending")]).combine_chunks()
    storage.write_ipc(folder.numbered("lengths", group[0], "arrow"), LENGTH_SCHEMA, rows.to_batches(), compress=False)
    sums = rows.group_by("class").aggregate([("num_tokens", "sum")]).to_pylist()
    return {"partition": group[0], "tokens": {str(row["class"]): row["num_tokens_sum"] for row in sums}}


def _settled(mixture: Mixture, folder: WorkFolder, outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ordered = sorted(outcomes, key=lambda outcome: outcome["partition"])
    lengths = [{int(index): total for index, total in outcome["tokens"].items()} for outcome in ordered]

    def read(place: int) -> pa.Table:
        url = folder.numbered("lengths", ordered[place]["partition"], "arrow")
        return pa.Table.from_batches(storage.read_ipc(url), LENGTH_SCHEMA)

    return [entry.to_json() for entry in settle(mixture.classes, mixture.weights, lengths, read)]
