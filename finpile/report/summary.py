"""What became of each source's documents, from a build's manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from finpile.counts.stages import StageCounts
from finpile.documents.document import Label, label_of
from finpile.documents.split import TRAIN
from finpile.output.manifest import counts_by_stage
from finpile.plugins.stages import dedup_stages, find, names

TOTAL = "TOTAL"


def source_rows(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row for each source: documents read, removed by stage, kept on each side of the split.

    `read` counts every record found, readable or not, and of a document that was divided its parts, so `read =
    unreadable + cleaned_out + exact + near + substring + overlap + contamination + train + held_out`, with a term for
    each optional stage of the build, such as `templates`.
    `removed_bytes` are the bytes in the ledger, including spans removed from kept documents; `tokens` are those of
    training documents, if the build has the stage `tokens`. `undated` is the number of documents without a date, kept
    or not, and `unreadable_dates` of those with an unusable date. `reasons` has the removed documents by reason.
    """
    stages = counts_by_stage(manifest)
    # The column of a stage's removed documents; those of ingest are records that never became one.
    columns = {
        "clean": "cleaned_out",
        **{name: name for name in dedup_stages() if name in stages or not find(name).is_optional},
    }
    rows: dict[Label, dict[str, Any]] = {}
    for ingested in stages["ingest"]["sources"]:
        unreadable = sum(ingested["removed"].values())
        rows[label_of(ingested)] = {
            "dataset": ingested["dataset"],
            "source": ingested["source"],
            "read": ingested["documents"] + unreadable,
            "unreadable": unreadable,
            **dict.fromkeys((*columns.values(), "train", "held_out", "removed_bytes"), 0),
            **({"tokens": 0} if "tokens" in stages else {}),
            "undated": 0,
            "unreadable_dates": 0,
            "reasons": Counter(),
        }
    for cleaned in stages.get("clean", {}).get("sources", ()):
        row = rows[label_of(cleaned)]
        row.update({name: cleaned.get(name, 0) for name in ("undated", "unreadable_dates")})
        row["read"] += cleaned.get("parts_more", 0)
    for part in stages["split"]["documents"]:
        row = rows[label_of(part)]
        row["train"] += part["documents"] - part["heldout"]
        row["held_out"] += part["heldout"]
    found = StageCounts.of_published((), stages["split"]["ledger"])
    for label, row in rows.items():
        for stage in names():
            counts = found.of(stage, label)
            row["reasons"].update(counts.removed)
            row["removed_bytes"] += counts.removed_bytes
            if stage in columns:
                row[columns[stage]] += counts.num_removed
    for part in stages.get("tokens", {}).get("statistics", ()):
        counted = (group["num_tokens"] for group in part["groups"] if group["split"] == TRAIN)
        rows[label_of(part)]["tokens"] += sum(counted)
    return [rows[key] for key in sorted(rows)]


def total_row(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The sum of `source_rows`, by the name of TOTAL."""
    counts = [name for name, value in rows[0].items() if isinstance(value, int)]
    return {"dataset": TOTAL, "source": "", **{name: sum(row[name] for row in rows) for name in counts}}
