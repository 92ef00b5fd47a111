"""Bits per byte of a build's documents by source, type, year and month: figure 3 of BloombergGPT, and loss by date.

All documents of a split are scored, or a sample: the N documents with the smallest ids of each source. Ids are hashes,
so the sample is unbiased and does not depend on the shards. A document without a date or a type is counted as such.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.document import SUB_SOURCE
from finpile.documents.labels import check_rule, document_labels
from finpile.errors import InputError
from finpile.output import snapshots
from finpile.output.layout import Layout, row_of
from finpile.output.published_files import PublishedFile
from finpile_trainer.evaluation.evaluate import Cost, Score, Scorer

Split = Literal["heldout", "train"]
HELDOUT: Split = "heldout"
TRAIN: Split = "train"
#: Documents whose windows are sorted by length together, so that little is padded.
_DOCUMENTS_AT_ONCE = 64
#: Columns that the rules of labels read, and those that are always read.
_LABEL_COLUMNS = ("url", "locator", "meta")
_COLUMNS = ("id", "text", "timestamp", "split")


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """Some documents of one source."""

    dataset: str
    source: str
    texts: pa.Array
    months: list[str | None]
    """`2021-04`; None without a date."""
    types: list[str | None] | None
    """None if types are not known of any document."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentSet:
    """The documents of one split of the build at `root`."""

    root: str
    split: Split = "heldout"
    limit: int | None = None
    """Documents of each source."""
    type_rule: str | None = None
    """The type of a document, a rule of `finpile.documents.labels`; None: its sub-source, if the shards have them."""

    def __post_init__(self) -> None:
        if self.type_rule is not None:
            check_rule("--types", self.type_rule)

    def batches(self) -> Iterator[LabelledTexts]:
        """All documents, by source, a few at a time.

        Raises: InputError if there are none.
        """
        found = False
        for row, files in document_files(self.root).items():
            for batch in self._chosen(files):
                found = True
                months = pc.strftime(batch["timestamp"], format="%Y-%m").to_pylist()
                yield LabelledTexts(*row, batch["text"], months, self._types(batch, row))
        if not found:
            raise InputError(self._absent())

    def _absent(self) -> str:
        if self.split == "train":
            return f"{self.root}: has no training document; expected the output folder of `finpile build`"
        return (
            f"{self.root}: no document is held out; build with `heldout: {{after: DATE, undated: drop}}`, where DATE "
            "is before the newest documents"
        )

    def _chosen(self, files: Sequence[PublishedFile]) -> Iterator[pa.RecordBatch]:
        """The documents of one source."""
        chosen: pa.Array | None = None
        if self.limit is not None:
            tables = (file.pages(("id", "split")) for file in files)
            ids = (table.filter(pc.equal(table["split"], self.split))["id"].to_pylist() for table in tables)
            chosen = pa.array(heapq.nsmallest(self.limit, chain.from_iterable(ids)), pa.string())
        labels = () if self.type_rule is None else _LABEL_COLUMNS
        for batch in self._read(files, (*_COLUMNS, SUB_SOURCE.name, *labels)):
            kept = batch if chosen is None else batch.filter(pc.is_in(batch.column("id"), chosen))
            if kept.num_rows:
                yield kept

    def _read(self, files: Sequence[PublishedFile], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for file in files:
            for batch in file.batches(columns, num_rows=_DOCUMENTS_AT_ONCE):
                yield batch.filter(pc.equal(batch.column("split"), self.split))

    def _types(self, batch: pa.RecordBatch, row: tuple[str, str]) -> list[str | None] | None:
        if self.type_rule is not None:
            source = pa.repeat(pa.scalar(row[1]), batch.num_rows)
            return document_labels(batch.append_column("source", source), self.type_rule)
        if SUB_SOURCE.name not in batch.schema.names:
            return None
        types: list[str | None] = batch[SUB_SOURCE.name].to_pylist()
        return types


@dataclass(slots=True)
class Breakdown:
    """The scores of one model on one split."""

    total: Score = field(default_factory=Score)
    sources: dict[tuple[str, str], Score] = field(default_factory=dict)
    """By (dataset, source)."""
    types: dict[tuple[str, str, str | None], Score] = field(default_factory=dict)
    """By (dataset, source, type); empty if types are not known."""
    months: dict[str | None, Score] = field(default_factory=dict)
    """By month, `2021-04`; None: documents without a date."""

    def add(self, documents: LabelledTexts, scores: Sequence[Score]) -> None:
        """Adds the scores of some documents."""
        row = (documents.dataset, documents.source)
        types = documents.types or [None] * len(scores)
        for score, month, kind in zip(scores, documents.months, types, strict=True):
            self.total.add(score)
            self.sources.setdefault(row, Score()).add(score)
            self.months.setdefault(month, Score()).add(score)
            if documents.types is not None:
                self.types.setdefault((*row, kind), Score()).add(score)

    def years(self) -> dict[str | None, Score]:
        """The sums of the months."""
        found: dict[str | None, Score] = {}
        for month, score in self.months.items():
            found.setdefault(month and month[:4], Score()).add(score)
        return found

    def to_json(self) -> dict[str, Any]:
        """Lists of groups in order, each with its sums; a type, year or month of null is that of documents without."""
        sources = [
            {"dataset": dataset, "source": source, **score.to_json()}
            for (dataset, source), score in sorted(self.sources.items())
        ]
        types = [
            {"dataset": dataset, "source": source, "type": kind, **score.to_json()}
            for (dataset, source, kind), score in sorted(self.types.items(), key=lambda item: _nulls_last(item[0]))
        ]
        dates = {"year": self.years(), "month": self.months}
        by_date = {
            f"{name}s": [
                {name: value, **score.to_json()}
                for value, score in sorted(groups.items(), key=lambda item: _nulls_last((item[0],)))
            ]
            for name, groups in dates.items()
        }
        return {"total": self.total.to_json(), "sources": sources, "types": types, **by_date}


def _nulls_last(key: tuple[str | None, ...]) -> list[tuple[bool, str]]:
    return [(part is None, part or "") for part in key]


def evaluate(scorer: Scorer, documents: DocumentSet, on_bytes: Callable[[int], None] | None = None) -> Breakdown:
    """The scores of all documents of the set; `on_bytes` is called with the bytes of each scored batch.

    Raises: InputError if there is no document.
    """
    found = Breakdown()
    for batch in documents.batches():
        scores = scorer.score_each(batch.texts)
        found.add(batch, scores)
        if on_bytes:
            on_bytes(sum(score.num_bytes for score in scores))
    return found


def evaluation_cost(scorer: Scorer, documents: DocumentSet) -> Cost:
    """The work of `evaluate`; encodes the texts and does not run the model."""
    costs = [scorer.cost(batch.texts) for batch in documents.batches()]
    return Cost(**{name: sum(getattr(cost, name) for cost in costs) for name in Cost.__slots__})


def document_files(root: str) -> dict[tuple[str, str], list[PublishedFile]]:
    """The document shards of a build by (dataset, source).

    Raises: InputError if there are none; IntegrityError for a damaged manifest.
    """
    found: dict[tuple[str, str], list[PublishedFile]] = {}
    for file in snapshots.document_files(Layout(root)):
        found.setdefault(row_of(file.path), []).append(file)
    if not found:
        raise InputError(f"{root}: has no documents/*.parquet; expected the output folder of `finpile build`")
    return dict(sorted(found.items()))
