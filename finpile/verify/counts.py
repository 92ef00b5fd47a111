"""Checks of counts: documents and ledger contain what the manifest counts in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.counts.published import counts_of_documents
from finpile.counts.stages import StageCounts, label_of
from finpile.documents.ledger import count_removed
from finpile.filings.facts import fact_counts
from finpile.output.layout import facts_part, row_of
from finpile.plugins.stages import dedup_stages
from finpile.verify.check import Check
from finpile.verify.output import Output

_Row = Mapping[str, Any]

#: What follows from documents and ledger of the counts by source.
_COUNTED = {
    "ingest": ("documents", "removed", "removed_bytes"),
    "clean": ("documents", "removed", "removed_bytes", "spans", "text_bytes"),
}


def checks(output: Output) -> list[Check]:
    """Reads documents and ledger."""
    stages = output.counts
    facts = {path: fact_counts(table) for path, table in output.tables("facts", ["unit", "shown", "hidden", "start"])}
    documents = {
        path: {**_count_documents(path, table), **facts.get(facts_part(path), {})}
        for path, table in output.tables("documents")
    }
    ledger = {path: _count_ledger(table) for path, table in output.tables("removed")}
    wrong = [*_differ(stages["split"]["documents"], documents), *_differ(stages["split"]["ledger"], ledger)]
    return [
        Check.of(
            "counts and digests of every file of documents and ledger", wrong, f"{len(documents) + len(ledger)} files"
        ),
        _stages_count_their_removals(stages, documents, ledger),
    ]


def _count_documents(path: str, table: pa.Table) -> dict[str, Any]:
    dataset, source = row_of(path)
    return {"dataset": dataset, "source": source, "rows": table.num_rows, **counts_of_documents(table)}


def _count_ledger(table: pa.Table) -> dict[str, Any]:
    (stage,) = pc.unique(table["stage"]).to_pylist()
    return {"stage": stage, "rows": table.num_rows, "removed": count_removed(table)}


def _differ(recorded: Iterable[_Row], found: Mapping[str, _Row]) -> list[str]:
    """Entries of the manifest that differ from the files on disk, as messages."""
    listed = {entry["path"]: entry for entry in recorded}
    wrong = [f"{path} is not counted in the manifest" for path in sorted(found.keys() - listed.keys())]
    for path, entry in sorted(listed.items()):
        here = found.get(path, {})
        names = [name for name, value in here.items() if entry.get(name) != value]
        wrong += [f"{path}: {name} is not that of the manifest" for name in (names if here else ["existence"])]
    return wrong


def _stages_count_their_removals(
    stages: Mapping[str, _Row], documents: Mapping[str, _Row], ledger: Mapping[str, _Row]
) -> Check:
    """Checks the removals that each stage counts, and the documents that `clean` counts, by source."""
    found = StageCounts.of_published(documents.values(), ledger.values())
    for row in stages["clean"]["sources"]:
        found.add_parts(label_of(row), row.get("parts_more", 0))
    wrong = []
    for stage in (name for name in dedup_stages() if name in stages):
        counted, removed = stages[stage]["removed"], found.total(stage).num_removed
        if counted != removed:
            wrong.append(f"{stage} counts {counted} documents, the ledger {removed}")
    for stage, names in _COUNTED.items():
        for row in stages[stage]["sources"]:
            counts = found.of(stage, label_of(row))
            wrong += [
                f"{row['dataset']}/{row['source']}: {name} of {stage} is {row[name]}, documents and ledger give "
                f"{counts.value(name)}"
                for name in names
                if row[name] != counts.value(name)
            ]
    reasons = sum(len(file["removed"]) for file in ledger.values())
    return Check.of("counts of every stage = documents and ledger", wrong, f"{reasons:,} reasons of sources")
