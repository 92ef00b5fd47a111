"""Counts that need texts: digests of what passed `clean`, and of what its filters read, from documents and ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from finpile.clean.stage.clean import BEFORE_FILTERS
from finpile.counts.stages import Counts, StageCounts
from finpile.documents.digest import multiset_digest
from finpile.documents.document import Label, label_of
from finpile.documents.ledger import Spans
from finpile.output.takedowns import TAKEDOWN
from finpile.plugins import stages


class TextCounts:
    """Restores each text from what is left of it and the spans of the ledger, which are added first."""

    def __init__(self) -> None:
        self.counts = StageCounts()
        """Digests of the stage `clean`."""
        self._spans = Spans()
        self._dedup = tuple(reversed(stages.dedup_stages()))

    def add_spans(self, rows: pa.Table) -> None:
        """Adds the spans among rows of the ledger."""
        self._spans.add(rows)

    def add(self, label: Label, identifier: str, left: bytes) -> dict[str, bytes]:
        """Adds a text that passed `clean`; returns it as it was before each deduplication stage."""
        text, texts = left, {}
        for stage in self._dedup:
            text = texts[stage] = self._spans.before(stage, identifier, text)
        before = self._spans.before("clean", identifier, text)
        digest = multiset_digest([identifier], [text])
        digest_before = digest if before is text else multiset_digest([identifier], [before])
        self.counts.change("clean", label, Counts(digest=digest, digest_before_filters=digest_before))
        return texts

    def add_removed(self, row: Mapping[str, Any]) -> dict[str, bytes]:
        """Adds the text of a removed document, if it has one; returns it as it was before each deduplication stage."""
        if row["stage"] in self._dedup and row["stage"] != TAKEDOWN:  # a tombstone has no text
            return self.add(label_of(row), row["id"], row["removed_text"])
        if row["stage"] == "clean" and row["reason"] not in BEFORE_FILTERS:
            digest = multiset_digest([row["id"]], [row["removed_text"]])
            self.counts.change("clean", label_of(row), Counts(digest_before_filters=digest))
        return {}
