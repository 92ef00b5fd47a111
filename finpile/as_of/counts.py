"""The counts of a corpus as of a day: what its stages would count, from its documents and its ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import stages
from finpile.clean.clean import BEFORE_FILTERS
from finpile.clean.dating import DATE_REASONS
from finpile.clean.parts import divided
from finpile.digest import add, multiset_digest, to_hex
from finpile.document import text_views
from finpile.ledger import Spans
from finpile.takedowns import TAKEDOWN

Label = tuple[str, str]
"""Dataset and source."""

_PARTS, _FACTS = "parts_more", ("facts", "facts_found")


class Ledger:
    """What the rows of the ledger say about documents."""

    def __init__(self) -> None:
        self.copies: Counter[str] = Counter()
        """The documents that were removed as copies of each one."""
        self.spans = Spans()
        self._named: set[str] = set()

    def add(self, rows: pa.Table) -> None:
        """Adds the rows of one stage."""
        stage = rows["stage"][0].as_py()
        is_copy = stage in stages.copy_stages()
        for row in rows.to_pylist():
            if row["start"] is None:
                if row["duplicate_of"] is not None:
                    self._named.add(row["duplicate_of"])
                    self.copies[row["duplicate_of"]] += is_copy
            else:
                self.spans.add(row)

    def missing(self, ids: set[str]) -> str | None:
        """A document that is named by a removed one, and is neither kept nor removed; None if there is none."""
        return min(self._named - ids, default=None)


class Texts:
    """Numbers and digests of the texts before deduplication and before the filters, by source."""

    def __init__(self, ledger: Ledger, manifest: Mapping[str, Any]) -> None:
        """`manifest` is that of the whole build."""
        self._ledger = ledger
        cleaned = next(stage["counts"]["sources"] for stage in manifest["stages"] if stage["stage"] == "clean")
        self._divided = {(row["dataset"], row["source"]) for row in cleaned if _PARTS in row}
        self._documents_with_parts: dict[Label, set[str]] = {}
        self._num_parts: Counter[Label] = Counter()
        self.ids: set[str] = set()
        self.digests: Counter[Label] = Counter()
        self.digests_before: Counter[Label] = Counter()
        self.undated: Counter[Label] = Counter()
        self.unreadable_dates: Counter[Label] = Counter()

    def add(self, documents: pa.Table) -> None:
        """Adds kept documents of one source."""
        label = (documents["dataset"][0].as_py(), documents["source"][0].as_py())
        self.undated[label] += documents["timestamp"].null_count
        for locator in documents["locator"].to_pylist() if label in self._divided else ():
            self._add_part(label, locator)
        for identifier, view in zip(documents["id"].to_pylist(), text_views(documents), strict=True):
            self._add(label, identifier, bytes(view))

    def add_removed(self, rows: pa.Table) -> None:
        """Adds the documents that one stage removed as a whole, and the dates that `clean` could not use."""
        stage = rows["stage"][0].as_py()
        if stage == "clean":
            has_note = pc.is_in(rows["reason"], pa.array(sorted(DATE_REASONS)))
            noted = rows.filter(has_note).select(["dataset", "source", "id"]).to_pylist()
            for dataset, source, _ in {(row["dataset"], row["source"], row["id"]) for row in noted}:
                self.unreadable_dates[dataset, source] += 1
        for row in rows.filter(pc.is_null(rows["start"])).to_pylist():
            label = (row["dataset"], row["source"])
            if label in self._divided:
                self._add_part(label, row["locator"])
            if stage == TAKEDOWN:
                continue  # a tombstone has no text
            if stage in stages.dedup_stages():
                self.undated[label] += row["timestamp"] is None
                self._add(label, row["id"], row["removed_text"])
            elif stage == "clean" and row["reason"] not in BEFORE_FILTERS:
                self.digests_before[label] += multiset_digest([row["id"]], [row["removed_text"]])
                if row["reason"] == "undated":  # its notes are in the row
                    self.undated[label] += 1
                    self.unreadable_dates[label] += bool(row["detail"])

    def parts_more(self, label: Label) -> int:
        """Parts that are documents of their own, less the documents that they are of."""
        return self._num_parts[label] - len(self._documents_with_parts.get(label, ()))

    def _add_part(self, label: Label, locator: str) -> None:
        if (document := divided(locator)) is not None:
            self._num_parts[label] += 1
            self._documents_with_parts.setdefault(label, set()).add(document)

    def _add(self, label: Label, identifier: str, left: bytes) -> None:
        self.ids.add(identifier)
        text, spans = left, self._ledger.spans
        for stage in reversed(stages.dedup_stages()):
            text = spans.before(stage, identifier, text)
        self.digests[label] += multiset_digest([identifier], [text])
        before = spans.before("clean", identifier, text)
        self.digests_before[label] += multiset_digest([identifier], [before])


def stage_counts(
    manifest: Mapping[str, Any], documents: list[dict[str, Any]], removed: list[dict[str, Any]], texts: Texts
) -> dict[str, dict[str, Any]]:
    """The counts of each stage up to `split`, as its build would have them where reports and `verify` read them.

    Files and bytes of inputs are those of the whole build. Figures of Inline XBRL are not counted before deduplication:
    the ledger has no metadata.
    """
    whole = {stage["stage"]: stage["counts"] for stage in manifest["stages"]}
    rows = [{**row, "stage": entry["stage"]} for entry in removed for row in entry["removed"]]
    dedup = [name for name in stages.dedup_stages() if name in whole]
    counts: dict[str, dict[str, Any]] = {
        name: {
            **({"asked": whole[name]["asked"]} if "asked" in whole[name] else {}),
            "removed": _sum(rows, "num_docs", name),
        }
        for name in dedup
    }
    for name, later in (("ingest", ["clean", *dedup]), ("clean", dedup)):
        counts[name] = {"sources": [_source(row, name, later, documents, rows) for row in whole[name]["sources"]]}
    for row in counts["ingest"]["sources"]:
        row["documents"] -= texts.parts_more((row["dataset"], row["source"]))
    for row in counts["clean"]["sources"]:
        label = (row["dataset"], row["source"])
        if more := texts.parts_more(label):
            row[_PARTS] = more
        kept = sum(entry["text_bytes"] for entry in documents if (entry["dataset"], entry["source"]) == label)
        row["text_bytes"] = kept + sum(_sum(rows, "num_bytes", name, label) for name in dedup)
        row["spans"] = _sum(rows, "num_spans", "clean", label)
        row["digest"] = to_hex(add(texts.digests[label]))
        row["digest_before_filters"] = to_hex(add(texts.digests_before[label]))
        row["undated"] = texts.undated[label]
        row["unreadable_dates"] = texts.unreadable_dates[label]
    return {**counts, "split": {"documents": documents, "ledger": removed}}


def _source(
    whole: Mapping[str, Any],
    stage: str,
    later: Iterable[str],
    documents: Iterable[Mapping[str, Any]],
    rows: list[dict[str, Any]],
) -> dict[str, Any]:
    """The counts of a source in the stage `ingest` or `clean`."""
    label = (whole["dataset"], whole["source"])
    reasons: Counter[str] = Counter()
    for row in rows:
        if row["stage"] == stage and (row["dataset"], row["source"]) == label:
            reasons[row["reason"]] += row["num_docs"]
    kept = sum(entry["documents"] for entry in documents if (entry["dataset"], entry["source"]) == label)
    return {
        **{name: value for name, value in whole.items() if name not in (_PARTS, *_FACTS)},
        "documents": kept + sum(_sum(rows, "num_docs", name, label) for name in later),
        "removed": {reason: count for reason, count in sorted(reasons.items()) if count},
        "removed_bytes": _sum(rows, "num_bytes", stage, label),
    }


def _sum(rows: Iterable[Mapping[str, Any]], name: str, stage: str, label: Label | None = None) -> int:
    return sum(
        row[name]
        for row in rows
        if row["stage"] == stage and (label is None or (row["dataset"], row["source"]) == label)
    )
