"""The table of near duplicates: the S-curve of the setting and the counts of the stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from finpile.config import NearConfig
from finpile.report.figures import Cell
from finpile.report.table import Row, Table, columns

#: Jaccard similarities at which the table has the value of the curve.
JACCARDS = (0.5, 0.6, 0.7, 0.8, 0.9)


def near_table(near: NearConfig, curve: Sequence[float], counts: Mapping[str, Any]) -> Table:
    """The setting as caption, its curve at `JACCARDS` as rows, the counts of the stage as footnotes."""
    alike = " and of the same numbers" if near.numbers == "keep" else ""
    shingles = "Single words" if near.ngram == 1 else f"Runs of {near.ngram} words"
    return Table(
        name="near",
        title="Near duplicates",
        caption=(
            f"{shingles}, {near.bands:,} bands of {near.rows:,} MinHash values. Documents of Jaccard "
            f"similarity J{alike} become a candidate pair with probability 1 − (1 − J^{near.rows})^{near.bands}; a "
            f"candidate is a near duplicate where the edit similarity of its words is above {near.edit_similarity}."
        ),
        columns=columns({"jaccard": "Jaccard similarity", "candidate_probability": "P(candidate)"}),
        rows=tuple(
            Row(cells=(Cell(f"{jaccard}", jaccard), Cell(f"{probability:.4f}", probability)))
            for jaccard, probability in zip(JACCARDS, curve, strict=True)
        ),
        footnotes=(
            f"Candidate pairs: {counts['candidate_pairs']:,}; compared: {counts['compared_pairs']:,}, near duplicates "
            f"among these: {counts['verified_pairs']:,}; documents removed: {counts['removed']:,}.",
            f"Buckets too large to give all their pairs: {counts['large_buckets']:,}.",
        ),
    )
