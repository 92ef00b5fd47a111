"""Checks of counts: documents and ledger contain what the manifest counts in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from finpile.counts.dates import DateCounts
from finpile.counts.published import counts_of_documents, sum_of_documents, sum_of_removed
from finpile.counts.stages import StageCounts
from finpile.documents.document import Label, label_of
from finpile.documents.ledger import count_removed
from finpile.filings.facts import fact_counts
from finpile.output.layout import facts_part, row_of, values_in_path
from finpile.output.takedowns import TAKEDOWN
from finpile.plugins.stages import dedup_stages
from finpile.verify.check import Check
from finpile.verify.output import Output

_Row = Mapping[str, Any]

#: What follows from documents and ledger of the counts by source.
_COUNTED = {
    "ingest": ("documents", "removed", "removed_bytes"),
    "clean": ("documents", "removed", "removed_bytes", "spans", "text_bytes"),
}
_OF_DATES = ("undated", "unreadable_dates")
_OF_FACTS = ("unit", "shown", "hidden", "start")
_NOTED = ("stage", "dataset", "source", "id", "reason", "detail", "start", "timestamp")


def checks(output: Output) -> list[Check]:
    """Reads documents and ledger."""
    stages = output.counts
    facts = {path: fact_counts(output.table(path, _OF_FACTS)) for path in output.paths("facts")}
    documents = {
        path: {**_count_documents(path, output.parts(path)), **facts.get(facts_part(path), {})}
        for path in output.paths("documents")
    }
    ledger = {path: _count_ledger(path, output.parts(path)) for path in output.paths("removed")}
    wrong = [*_differ(stages["split"]["documents"], documents), *_differ(stages["split"]["ledger"], ledger)]
    return [
        Check.of(
            "counts and digests of every file of documents and ledger", wrong, f"{len(documents) + len(ledger)} files"
        ),
        _stages_count_their_removals(stages, documents, ledger),
        _dates_are_counted(output),
    ]


def _count_documents(path: str, parts: Iterable[pa.Table]) -> dict[str, Any]:
    dataset, source = row_of(path)
    counts = sum_of_documents(map(counts_of_documents, parts))
    return {"dataset": dataset, "source": source, "rows": counts["documents"], **counts}


def _count_ledger(path: str, parts: Iterable[pa.Table]) -> dict[str, Any]:
    counted = [(part.num_rows, count_removed(part)) for part in parts]
    num_rows, removed = sum(number for number, _ in counted), sum_of_removed(rows for _, rows in counted)
    return {"stage": values_in_path(path)["stage"], "rows": num_rows, "removed": removed}


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


def _dates_are_counted(output: Output) -> Check:
    """Checks the documents without a date, and those with one that could not be used, by source.

    `clean` counted those that were taken down since, too: each is one of them or none.
    """
    dates, taken_down = DateCounts(), Counter[Label]()
    for path, table in output.tables("documents", ["timestamp"]):
        dates.add(row_of(path), table)
    for path, table in output.tables("removed", _NOTED):
        if path.startswith(f"removed/stage={TAKEDOWN}/"):
            taken_down.update(map(label_of, table.select(["dataset", "source"]).to_pylist()))
        dates.add_removed(table)
    rows, wrong = output.counts["clean"]["sources"], []
    for row in rows:
        for name in _OF_DATES:
            least = dates.counts.of("clean", label_of(row)).value(name)
            most = least + taken_down[label_of(row)]
            if not least <= row[name] <= most:
                given = f"{least}" if least == most else f"{least} to {most}"
                which = f"{row['dataset']}/{row['source']}: {name}"
                wrong.append(f"{which} of clean is {row[name]}, documents and ledger give {given}")
    counted = f"{sum(row['undated'] for row in rows):,} undated documents"
    return Check.of("dates that clean did not find = documents and ledger", wrong, counted)
