"""Checks of counts: documents and ledger contain what the manifest counts in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.digest import add, metadata_digest, multiset_digest, to_hex
from finpile.document import text_views
from finpile.layout import Layout, read_published, row_of
from finpile.ledger import count_removed
from finpile.manifest import published
from finpile.report.licenses import license_counts
from finpile.split import HELDOUT
from finpile.stages import dedup_stages
from finpile.verify.check import Advance, Check
from finpile.verify.parts import parts_more

_Row = Mapping[str, Any]
_Label = tuple[str, str]


def checks(layout: Layout, manifest: Mapping[str, Any], advance: Advance) -> list[Check]:
    """Reads documents and ledger once more; `advance` receives the bytes read."""
    stages = {stage["stage"]: stage["counts"] for stage in manifest["stages"]}
    documents = {path: _count_documents(layout, path, advance) for path in published(manifest, "documents")}
    ledger = {path: _count_ledger(layout, path, advance) for path in published(manifest, "removed")}
    wrong = [*_differ(stages["split"]["documents"], documents), *_differ(stages["split"]["ledger"], ledger)]
    return [
        Check.of(
            "counts and digests of every file of documents and ledger", wrong, f"{len(documents) + len(ledger)} files"
        ),
        _stages_count_their_removals(stages, documents, ledger),
    ]


def _count_documents(layout: Layout, path: str, advance: Advance) -> dict[str, Any]:
    table = read_published(storage.join(layout.root, path))
    advance(table.nbytes)
    dataset, source = row_of(path)
    return {
        "dataset": dataset,
        "source": source,
        "rows": table.num_rows,
        "documents": table.num_rows,
        "heldout": pc.sum(pc.equal(table["split"], HELDOUT)).as_py() or 0,
        "text_bytes": _sum(pc.binary_length(table["text"])),
        "licenses": license_counts(table),
        "digest": to_hex(add(multiset_digest(table["id"].to_pylist(), text_views(table)))),
        "metadata_digest": to_hex(metadata_digest(table)),
    }


def _count_ledger(layout: Layout, path: str, advance: Advance) -> dict[str, Any]:
    table = read_published(storage.join(layout.root, path))
    advance(table.nbytes)
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
    found = _Removals(ledger.values())
    wrong = []
    dedup = [name for name in dedup_stages() if name in stages]
    for stage in dedup:
        if stages[stage]["removed"] != found.num_docs(stage):
            wrong.append(f"{stage} counts {stages[stage]['removed']} documents, the ledger {found.num_docs(stage)}")
    kept: Counter[_Label] = Counter()
    kept_bytes: Counter[_Label] = Counter()
    for entry in documents.values():
        kept[entry["dataset"], entry["source"]] += entry["documents"]
        kept_bytes[entry["dataset"], entry["source"]] += entry["text_bytes"]
    more = parts_more(stages["clean"])
    for stage in ("ingest", "clean"):
        for row in stages[stage]["sources"]:
            label = (row["dataset"], row["source"])
            later = ("clean", *dedup) if stage == "ingest" else dedup
            expected = {
                "documents": kept[label]
                + sum(found.num_docs(name, label) for name in later)
                - (more[label] if stage == "ingest" else 0),
                "removed": found.reasons(stage, label),
                "removed_bytes": found.sum("num_bytes", stage, label),
            }
            if stage == "clean":
                expected["spans"] = found.sum("num_spans", stage, label)
                expected["text_bytes"] = kept_bytes[label] + sum(found.sum("num_bytes", name, label) for name in dedup)
            wrong += [
                f"{'/'.join(label)}: {name} of {stage} is {row[name]}, documents and ledger give {value}"
                for name, value in expected.items()
                if row[name] != value
            ]
    return Check.of("counts of every stage = documents and ledger", wrong, f"{found.num_rows:,} reasons of sources")


class _Removals:
    """Sums over the counts of the ledger's files."""

    def __init__(self, files: Iterable[_Row]) -> None:
        self._rows = [{**row, "stage": file["stage"]} for file in files for row in file["removed"]]
        self.num_rows = len(self._rows)

    def sum(self, name: str, stage: str, label: _Label | None = None) -> int:
        return sum(row[name] for row in self._of(stage, label))

    def num_docs(self, stage: str, label: _Label | None = None) -> int:
        return self.sum("num_docs", stage, label)

    def reasons(self, stage: str, label: _Label) -> dict[str, int]:
        """Whole documents by reason."""
        counts: Counter[str] = Counter()
        for row in self._of(stage, label):
            counts[row["reason"]] += row["num_docs"]
        return {reason: count for reason, count in counts.items() if count}

    def _of(self, stage: str, label: _Label | None) -> list[dict[str, Any]]:
        return [
            row
            for row in self._rows
            if row["stage"] == stage and (label is None or (row["dataset"], row["source"]) == label)
        ]


def _sum(values: pa.ChunkedArray) -> int:
    return int(pc.sum(values).as_py() or 0)
