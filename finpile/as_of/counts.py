"""The counts of a corpus as of a day: what its stages would count, from its documents and its ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.clean.stage.parts import divided
from finpile.counts.dates import DateCounts
from finpile.counts.stages import EARLY, StageCounts
from finpile.counts.texts import TextCounts
from finpile.documents.document import Label, label_of, text_views
from finpile.filings.facts import TABLE_COUNTS
from finpile.output.manifest import counts_by_stage
from finpile.plugins import stages

_PARTS, _FACTS = "parts_more", ("facts", "facts_found", *TABLE_COUNTS)
#: What `clean` counts beside that.
_OF_CLEAN = ("text_bytes", "spans", "digest", "digest_before_filters", "undated", "unreadable_dates")


class Ledger:
    """What the rows of the ledger say about other documents."""

    def __init__(self) -> None:
        self.copies: Counter[str] = Counter()
        """The documents that were removed as copies of each one."""
        self._named: set[str] = set()

    def add(self, rows: pa.Table) -> None:
        """Adds the rows of one stage."""
        is_copy = rows["stage"][0].as_py() in stages.copy_stages()
        whole = rows.filter(pc.is_null(rows["start"]))
        named = whole["duplicate_of"].drop_null().to_pylist()
        self._named.update(named)
        if is_copy:
            self.copies.update(named)

    def find(self, ids: Iterable[str]) -> None:
        """Notes documents that are of the day: kept ones, and removed ones that passed `clean`."""
        self._named.difference_update(ids)

    def missing(self) -> str | None:
        """A document that a removed one names and that was not found; None if there is none."""
        return min(self._named, default=None)


class Texts:
    """Digests, dates and parts of the documents that `clean` read, by source. Spans are added first."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        """`manifest` is that of the whole build."""
        cleaned = counts_by_stage(manifest)["clean"]["sources"]
        self._divided = {label_of(row) for row in cleaned if _PARTS in row}
        self._documents_with_parts: dict[Label, set[str]] = {}
        self._num_parts: Counter[Label] = Counter()
        self._dates = DateCounts()
        self._texts = TextCounts()

    def add_spans(self, rows: pa.Table) -> None:
        """Adds the spans among rows of the ledger."""
        self._texts.add_spans(rows)

    def add(self, documents: pa.Table) -> None:
        """Adds kept documents of one source."""
        label = (documents["dataset"][0].as_py(), documents["source"][0].as_py())
        self._dates.add(label, documents)
        for locator in documents["locator"].to_pylist() if label in self._divided else ():
            self._add_part(label, locator)
        for identifier, view in zip(documents["id"].to_pylist(), text_views(documents), strict=True):
            self._texts.add(label, identifier, bytes(view))

    def add_removed(self, rows: pa.Table) -> list[str]:
        """Adds the documents that one stage removed as a whole, and the dates that `clean` could not use.

        Returns the ids of the documents that had passed `clean`.
        """
        cleaned = []
        self._dates.add_removed(rows)
        for row in rows.filter(pc.is_null(rows["start"])).to_pylist():
            label = label_of(row)
            if label in self._divided:
                self._add_part(label, row["locator"])
            if self._texts.add_removed(row):
                cleaned.append(row["id"])
        return cleaned

    def counts(self) -> StageCounts:
        """Those of `clean` that are no sums over files."""
        counts = StageCounts()
        counts.merge(self._texts.counts)
        counts.merge(self._dates.counts)
        for label in self._num_parts:
            counts.add_parts(label, self._num_parts[label] - len(self._documents_with_parts[label]))
        return counts

    def _add_part(self, label: Label, locator: str) -> None:
        if (document := divided(locator)) is not None:
            self._num_parts[label] += 1
            self._documents_with_parts.setdefault(label, set()).add(document)


def stage_counts(
    manifest: Mapping[str, Any], documents: list[dict[str, Any]], removed: list[dict[str, Any]], texts: Texts
) -> dict[str, dict[str, Any]]:
    """The counts of each stage up to `split`, as its build would have them where reports and `verify` read them.

    Files and bytes of inputs are those of the whole build. The text that `ingest` read is not counted, and figures of
    Inline XBRL are not before deduplication: the ledger has no raw text and no metadata.
    """
    whole = counts_by_stage(manifest)
    found = StageCounts.of_published(documents, removed)
    found.merge(texts.counts())
    counts: dict[str, dict[str, Any]] = {
        name: {
            **({"asked": whole[name]["asked"]} if "asked" in whole[name] else {}),
            "removed": found.total(name).num_removed,
        }
        for name in stages.dedup_stages()
        if name in whole
    }
    for name in EARLY:
        counts[name] = {"sources": [_source(row, name, found) for row in whole[name]["sources"]]}
    return {**counts, "split": {"documents": documents, "ledger": removed}}


def _source(whole: Mapping[str, Any], stage: str, found: StageCounts) -> dict[str, Any]:
    """The counts of a source in the stage `ingest` or `clean`."""
    counts = found.of(stage, label_of(whole))
    names = ["documents", "removed", "removed_bytes"]
    if stage == "clean":
        names += [*_OF_CLEAN, *([_PARTS] if counts.parts_more else [])]
    kept = {name: value for name, value in whole.items() if name not in (_PARTS, *_FACTS, "text_bytes")}
    return {**kept, **{name: counts.value(name) for name in names}}
