"""Growth of a corpus by its snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from finpile.output.layout import Layout
from finpile.output.manifest import SNAPSHOT, counts_by_stage
from finpile.output.snapshots import load_snapshot, numbers
from finpile.report.figures import count
from finpile.report.files import write_table
from finpile.report.table import Row, Table, columns


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """The figures of one snapshot; number 0 is the build."""

    number: int
    documents: int
    """Of the snapshot, held-out ones too."""
    text_bytes: int
    removed: int
    """Documents in its ledger, those that were taken down too."""
    taken_down: int
    """By this snapshot."""
    new_tokens: int | None
    """Training tokens that it added; None for a snapshot without tokens."""
    files_added: int
    files_rewritten: int


def growth_of(layout: Layout) -> list[Growth]:
    """The figures of the snapshots that are there; none for a build without any.

    Raises: InputError as `load_snapshot`.
    """
    return [_growth(load_snapshot(layout, number)) for number in numbers(layout)]


def write_growth(layout: Layout, rows: Sequence[Growth]) -> list[str]:
    """Writes `snapshots/growth.{md,csv,tex,json}`; returns the files."""
    return write_table(layout.snapshots, growth_table(rows))


def growth_table(rows: Sequence[Growth]) -> Table:
    """One row for each snapshot."""
    titles = {
        "number": "Snapshot",
        "documents": "Docs",
        "text_bytes": "Text bytes",
        "removed": "Removed docs",
        "taken_down": "Taken down",
        "new_tokens": "New tokens",
        "files_added": "Files added",
        "files_rewritten": "Files rewritten",
    }
    return Table(
        name="growth",
        title="Growth by snapshot",
        caption="Documents of each snapshot, held-out ones too, the bytes of their texts, and the documents in its "
        "ledger; the documents that it took down, the training tokens and the files that it added, and the earlier "
        "files that it replaced. Snapshot 0 is the build. A dash: the snapshot has no tokens.",
        columns=columns(titles),
        rows=tuple(Row(cells=tuple(count(getattr(row, key)) for key in titles)) for row in rows),
    )


def _growth(manifest: Mapping[str, Any]) -> Growth:
    counts = counts_by_stage(manifest)
    facts = manifest.get(SNAPSHOT)
    split = counts["split"]
    of_build = counts.get("tokens", {}).get("stream_tokens")
    added = (facts.get("tokens") or {}).get("stream_tokens") if facts else of_build
    num_files = sum(len(stage["files"]) for stage in manifest["stages"])
    return Growth(
        number=facts["number"] if facts else 0,
        documents=_sum(split["documents"], "documents"),
        text_bytes=_sum(split["documents"], "text_bytes"),
        removed=_sum((row for file in split["ledger"] for row in file["removed"]), "num_docs"),
        taken_down=facts.get("taken_down", {}).get("documents", 0) if facts else 0,
        new_tokens=added,
        files_added=len(facts["added"]) if facts else num_files,
        files_rewritten=len(facts["rewritten"]) if facts else 0,
    )


def _sum(rows: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(row[key] for row in rows)
