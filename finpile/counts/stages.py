"""Counts of documents by stage and source: one algebra for builds, snapshots, corpora as of a day, `verify`, reports.

`ingest` reads a document, which passes the stages until one of them removes it or `split` publishes it. So the counts
of `ingest` and `clean` follow from where documents ended: `StageCounts` sums the changes that published documents and
rows of the ledger make, and takes them back for documents that are gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from finpile.documents.digest import add, to_hex
from finpile.documents.document import Label, label_of

#: The stages before deduplication, which count by source.
EARLY = ("ingest", "clean")
_DIGESTS = ("digest", "digest_before_filters")


@dataclass(slots=True, kw_only=True)
class Counts:
    """Counts of one source in one stage. They add up, digests modulo 2^128 (`finpile.documents.digest`)."""

    documents: int = 0
    """Documents that pass the stage."""
    text_bytes: int = 0
    """Bytes of the texts that pass `clean`."""
    removed: Counter[str] = field(default_factory=Counter)
    """Whole documents that the stage removes, by reason."""
    removed_bytes: int = 0
    spans: int = 0
    undated: int = 0
    unreadable_dates: int = 0
    parts_more: int = 0
    """Parts that `clean` made documents, less the documents that they are of."""
    digest: int = 0
    """Of the texts that pass `clean`."""
    digest_before_filters: int = 0

    def change(self, by: Counts, sign: int = 1) -> None:
        """Adds `by`, or takes it back with the sign -1."""
        for name in _NUMBERS:
            if number := getattr(by, name):
                setattr(self, name, getattr(self, name) + sign * number)
        for reason, number in by.removed.items():
            self.removed[reason] += sign * number

    @property
    def num_removed(self) -> int:
        """Whole documents that the stage removes."""
        return self.removed.total()

    def value(self, name: str) -> Any:
        """A count as the manifest has it: digests in hex, reasons with documents, by name."""
        if name == "removed":
            return {reason: number for reason, number in sorted(self.removed.items()) if number}
        return to_hex(add(getattr(self, name))) if name in _DIGESTS else getattr(self, name)

    def on(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row of counts, changed in those that it has. Its digests are numbers; in the result they are hex digits."""
        known = {name: row[name] for name in row.keys() & {*_NUMBERS, "removed"}}
        total = Counts(**{**known, "removed": Counter(row["removed"])})
        total.change(self)
        return {**row, **{name: total.value(name) for name in known}}


_NUMBERS = tuple(each.name for each in fields(Counts) if each.name != "removed")


class StageCounts:
    """Sums of `Counts` by stage and source."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Label], Counts] = {}

    @classmethod
    def of_published(cls, documents: Iterable[Mapping[str, Any]], ledger: Iterable[Mapping[str, Any]]) -> Self:
        """Those of a corpus, from the counts of its files as the manifest has them in the stage `split`."""
        counts = cls()
        for entry in documents:
            counts.add_kept(entry)
        for entry in ledger:
            counts.add_removed(entry["stage"], entry["removed"])
        return counts

    def of(self, stage: str, label: Label) -> Counts:
        """The counts of a source; zeros if there are none."""
        return self._found.get((stage, label)) or Counts()

    def total(self, stage: str) -> Counts:
        """The counts of a stage, over all sources."""
        total = Counts()
        for (found, _), counts in self._found.items():
            if found == stage:
                total.change(counts)
        return total

    def change(self, stage: str, label: Label, by: Counts, sign: int = 1) -> None:
        """Adds to the counts of a source, or takes back."""
        if (counts := self._found.get((stage, label))) is None:
            counts = self._found[stage, label] = Counts()
        counts.change(by, sign)

    def merge(self, other: StageCounts, sign: int = 1) -> None:
        """Adds all counts of another sum, or takes them back."""
        for (stage, label), counts in other._found.items():
            self.change(stage, label, counts, sign)

    def add_kept(self, entry: Mapping[str, Any]) -> None:
        """Adds published documents: they pass all stages."""
        self._pass(EARLY, label_of(entry), entry["documents"], entry["text_bytes"])

    def add_removed(self, stage: str, rows: Iterable[Mapping[str, Any]], sign: int = 1) -> None:
        """Adds what `stage` removed, as `finpile.documents.ledger.count_removed` counts rows of the ledger; or takes it
        back.

        A document that a stage removes passes the stages before it; a span is part of the text that passed them.
        """
        before = EARLY[: EARLY.index(stage)] if stage in EARLY else EARLY
        for row in rows:
            removed = Counter({row["reason"]: row["num_docs"]})
            by = Counts(removed=removed, removed_bytes=row["num_bytes"], spans=row["num_spans"])
            self.change(stage, label_of(row), by, sign)
            self._pass(before, label_of(row), row["num_docs"], row["num_bytes"], sign)

    def add_parts(self, label: Label, more: int) -> None:
        """Adds parts that `clean` made documents: `ingest` has read `more` documents less."""
        self.change("clean", label, Counts(parts_more=more))
        self.change("ingest", label, Counts(documents=more), -1)

    def _pass(self, stages: Iterable[str], label: Label, documents: int, text_bytes: int, sign: int = 1) -> None:
        for stage in stages:
            self.change(
                stage, label, Counts(documents=documents, text_bytes=text_bytes if stage == "clean" else 0), sign
            )
