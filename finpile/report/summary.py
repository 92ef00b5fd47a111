"""What became of each source's documents, from a build's manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finpile.tree import DEDUP_STAGES

#: Where the documents count that a stage removed; those of ingest are records that never became one.
_COLUMNS = {"clean": "cleaned_out", **{stage: stage for stage in DEDUP_STAGES}}


def source_rows(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row for each source: documents read, removed by stage, kept on each side of the split.

    `read` counts every record found, readable or not, so `read = unreadable + cleaned_out + exact + near + substring +
    overlap + contamination + train + held_out`. `reasons` has the removed documents by reason.
    """
    stages = {stage["stage"]: stage["counts"] for stage in manifest["stages"]}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for ingested in stages["ingest"]["sources"]:
        unreadable = sum(ingested["removed"].values())
        rows[(ingested["dataset"], ingested["source"])] = {
            "dataset": ingested["dataset"],
            "source": ingested["source"],
            "read": ingested["documents"] + unreadable,
            "unreadable": unreadable,
            **dict.fromkeys((*_COLUMNS.values(), "train", "held_out"), 0),
            "reasons": {},
        }
    for part in stages["split"]["documents"]:
        row = rows[(part["dataset"], part["source"])]
        row["train"] += part["documents"] - part["heldout"]
        row["held_out"] += part["heldout"]
    for part in stages["split"]["ledger"]:
        for removed in part["removed"]:
            row = rows[(removed["dataset"], removed["source"])]
            row["reasons"][removed["reason"]] = row["reasons"].get(removed["reason"], 0) + removed["num_docs"]
            if part["stage"] in _COLUMNS:
                row[_COLUMNS[part["stage"]]] += removed["num_docs"]
    return [rows[key] for key in sorted(rows)]
