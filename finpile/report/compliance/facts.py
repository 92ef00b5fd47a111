"""What the papers of a build or snapshot are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from finpile.config.rows import entries_of
from finpile.documents.digest import add, from_hex, to_hex
from finpile.documents.document import Label, label_of
from finpile.output.layout import Layout
from finpile.output.manifest import counts_by_stage
from finpile.output.snapshots import BUILD, numbers, read_snapshot
from finpile.output.takedowns import read_takedowns
from finpile.plugins.format import FORMATS
from finpile.report.compliance.stated import Given, Statement
from finpile.report.compliance.survey import Survey
from finpile.report.dataset_card.contents import CardFacts


@dataclass(frozen=True, kw_only=True)
class PaperFacts:
    """A build or snapshot, its documents, and what was stated."""

    layout: Layout
    manifest: Mapping[str, Any]
    manifest_sha256: str
    given: Given
    survey: Survey

    @cached_property
    def card(self) -> CardFacts:
        return CardFacts.of(self.manifest)

    @property
    def stated(self) -> Statement:
        return self.given.stated

    @cached_property
    def counts(self) -> Mapping[str, Mapping[str, Any]]:
        """Of each stage."""
        return counts_by_stage(self.manifest)

    @cached_property
    def entries(self) -> dict[Label, list[Mapping[str, Any]]]:
        """The entries of the corpus file of each source."""
        return entries_of(self.manifest["config"])

    @cached_property
    def kinds(self) -> dict[Label, str | None]:
        """The kind of each source."""
        return {label: kind_of(entries) for label, entries in self.entries.items()}

    @cached_property
    def takedowns(self) -> pa.Table:
        """All documents that were taken down, `TAKEDOWN_SCHEMA`."""
        return read_takedowns(self.layout, self.manifest)

    @cached_property
    def digests(self) -> dict[Label, str]:
        """Of the published documents of each source: ids and texts, in any order and any files."""
        return digests_of(self.manifest)

    def formats_of(self, label: Label) -> list[str]:
        """Of its entries."""
        return sorted({entry["format"] for entry in self.entries[label]})

    def tokens_of(self, label: Label) -> int | None:
        """Of its training documents; None for a build or snapshot without the stage."""
        row = next(row for row in self.card.rows if label_of(row) == label)
        found: int | None = row.get("tokens")
        return found


def kind_of(entries: Sequence[Mapping[str, Any]]) -> str | None:
    """That of the entries of a row, or of their formats; None if it is not stated, or they have different ones."""
    kinds = {entry.get("kind") or FORMATS.get(entry["format"]).kind for entry in entries}
    return kinds.pop() if len(kinds) == 1 else None


def digests_of(manifest: Mapping[str, Any]) -> dict[Label, str]:
    """The digest of the published documents of each source (`finpile.documents.digest`)."""
    sums: dict[Label, int] = {}
    for file in counts_by_stage(manifest)["split"]["documents"]:
        sums[label_of(file)] = add(sums.get(label_of(file), 0), from_hex(file["digest"]))
    return {label: to_hex(digest) for label, digest in sorted(sums.items())}


def manifest_url(layout: Layout, manifest: Mapping[str, Any], checksum: str) -> str:
    """Where the manifest of that checksum is; `manifest` is the current one."""
    if manifest["checksum"] == checksum:
        return layout.manifest
    for number in numbers(layout):
        if read_snapshot(layout, number)["checksum"] == checksum:
            return layout.snapshot(number)
    return ""


def removals_of(takedowns: pa.Table) -> list[int]:
    """The numbers of the snapshots that took documents down."""
    return sorted(set(takedowns["snapshot"].to_pylist()) - {BUILD})
