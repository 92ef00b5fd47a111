"""What a build has for the pages: its files, the pass over them, and the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.clean.stage.clean import REASONS as CLEAN
from finpile.documents.sums import add_counts
from finpile.explorer.counts import DocumentCounts, RemovalCounts
from finpile.explorer.facts import fact_bounds
from finpile.explorer.papers import papers
from finpile.explorer.scan import Names, scan_documents, scan_removals
from finpile.explorer.site import plain
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.output.published_files import Advance, PublishedFiles
from finpile.output.snapshots import number_of, read_copies
from finpile.plugins import stages
from finpile.plugins.filter import FILTERS
from finpile.plugins.format import FORMATS
from finpile.sources import REASONS as INGEST

_SUMS = ("stored_bytes", "decompressed_bytes", "record_bytes", "ledger_bytes", "member_bytes", "documents")
#: Receives the rows of one source or stage, and returns which of them the pages list.
Sink = Callable[[pa.Table], pa.Array]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A finished build, or the current snapshot of one."""

    layout: Layout
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, out: str) -> Corpus:
        """Raises: InputError if OUT holds no finished build; IntegrityError if its manifest is damaged."""
        layout = Layout(out)
        return cls(layout, load_manifest(layout))

    @property
    def checksum(self) -> str:
        """Identifies the state of the build of which pages are made."""
        return str(self.manifest["checksum"])

    @property
    def files(self) -> PublishedFiles:
        return PublishedFiles(self.layout, self.manifest)

    @property
    def num_bytes(self) -> int:
        """Of the files that `summarise` reads."""
        return sum(file.record.size_bytes for file in self.files.below("documents", "removed"))


def summarise(
    corpus: Corpus, documents: Sink, removals: Sink, advance: Advance = lambda amount: None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Passes all rows to `documents` and `removals`, and returns the summary of the build, and its counts by month.

    Raises: IntegrityError if a file is missing or damaged.
    """
    files, manifest = corpus.files, corpus.manifest
    places = {**files.places("documents"), **files.places("removed")}
    names, kept, removed = Names(), DocumentCounts(), RemovalCounts()
    bounds = fact_bounds(manifest["config"])
    copies = read_copies(corpus.layout, manifest)
    for rows in scan_documents(files, places, names, copies, bounds, advance):
        kept.add(rows, documents(rows))
    for rows in scan_removals(files, places, names, advance):
        removed.add(rows, removals(rows))
    inputs = _input_bytes(files, names)
    config = manifest["config"]
    private = set(config.get("reports", {}).get("private", ()))
    summary = {
        "name": manifest["name"],
        "finpile": manifest["finpile"],
        "checksum": corpus.checksum,
        "snapshot": number_of(manifest),
        "heldout_after": config.get("heldout", {}).get("after"),
        "sources": [
            {"dataset": dataset, "source": source, "private": dataset in private} for dataset, source in names.sources
        ],
        "stages": list(stages.ledger_stages()),
        "reasons": [
            {"stage": stage, "reason": reason, "meaning": _meaning(stage, reason)} for stage, reason in names.reasons
        ],
        "files": names.files,
        "bounds": bounds,
        "documents": kept.summary(),
        "removals": removed.summary(),
        "inputs": inputs,
        "papers": papers(corpus.layout, manifest),
    }
    return summary, {"documents": kept.months(), "removals": removed.months()}


def _input_bytes(files: PublishedFiles, names: Names) -> list[dict[str, Any]]:
    """The sums of the accounts of each source; `structure` by kind. Bytes of members are those of rows of their own.

    Of a build without accounts, as that of `finpile dedup`, none.
    """
    counted = (
        {
            "source": names.source(row["dataset"], row["source"]),
            "files": int(row["archive"] is None),
            "structure": dict(row["structure"]),
            **{name: row[name] for name in _SUMS},
            "stored_bytes": row["stored_bytes"] if row["archive"] is None else 0,  # else they are of the archive
        }
        for file in files.below("inputs")
        for row in file.table().to_pylist()
    )
    return add_counts(counted, ["source"])


def _meaning(stage: str, reason: str) -> str:
    """What a row of this stage with this reason is about; empty for a reason of a format or filter of another
    package."""
    if stage == "ingest":
        own = (FORMATS.get(name).reasons for name in FORMATS.built_in)
        return next((found[reason] for found in (INGEST, *own) if reason in found), "")
    if stage == "clean":
        rules = (FILTERS.get(name).reasons for name in FILTERS.built_in)
        return next((found[reason] for found in (CLEAN, *rules) if reason in found), "")
    return next((one.meaning for one in stages.find(stage).reasons if one.name == reason), "")


def records(corpus: Corpus, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By id: the kept document, None for one that was removed, and its rows of the ledger; as JSON.

    Raises: IntegrityError if a file is missing or damaged.
    """
    wanted = pa.array(sorted(ids), pa.string())
    texts: dict[str, dict[str, Any]] = {}

    for file in corpus.files.below("documents", "removed"):
        for row in file.matching(("id",), lambda group: pc.is_in(group["id"], wanted)).to_pylist():
            entry = texts.setdefault(row["id"], {"document": None, "removals": []})
            if file.path.startswith("documents/"):
                entry["document"] = plain(row)
            else:
                entry["removals"].append(plain(row))
    return texts
