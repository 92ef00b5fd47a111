"""The table of near duplicates: the S-curve of the setting and the counts of the stage."""

from __future__ import annotations

from dataclasses import dataclass

from finpile.config import NearConfig
from finpile.report.figures import Cell
from finpile.report.table import Row, Table, columns

#: Jaccard similarities at which the table has the value of the curve.
JACCARDS = (0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, kw_only=True, slots=True)
class NearFacts:
    """The setting, its curve at `JACCARDS`, and the counts of the stage."""

    config: NearConfig
    curve: tuple[float, ...]
    """Probability that two documents with that Jaccard similarity become a candidate pair."""
    num_candidate_pairs: int
    """Distinct pairs that share a band."""
    num_large_buckets: int
    """Bands shared by too many documents to make all of their pairs candidates."""
    num_compared_pairs: int
    """Compared pairs: candidates not yet connected by other pairs, and members of a group with its kept copy."""
    num_verified_pairs: int
    """Compared pairs that are near duplicates."""
    num_removed: int
    """Documents removed."""


def near_table(facts: NearFacts) -> Table:
    """The curve as rows; setting and counts as caption and footnotes."""
    near = facts.config
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
            for jaccard, probability in zip(JACCARDS, facts.curve, strict=True)
        ),
        footnotes=(
            f"Candidate pairs: {facts.num_candidate_pairs:,}; compared: {facts.num_compared_pairs:,}, near duplicates "
            f"among these: {facts.num_verified_pairs:,}; documents removed: {facts.num_removed:,}.",
            f"Buckets too large to give all their pairs: {facts.num_large_buckets:,}.",
        ),
    )
