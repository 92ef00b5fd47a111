"""What the near-duplicate setting of a build finds: its S-curve, and what the stage met."""

from __future__ import annotations

from dataclasses import dataclass

from finpile.config import NearConfig
from finpile.report.figures import Cell
from finpile.report.table import Column, Row, Table

#: Where the curve is read off.
JACCARDS = (0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, kw_only=True, slots=True)
class NearFacts:
    """The setting, its curve at `JACCARDS`, and the stage's counts."""

    config: NearConfig
    curve: tuple[float, ...]
    """Probability that two documents of that Jaccard similarity become a candidate pair."""
    num_candidate_pairs: int
    """Distinct pairs that share a band."""
    num_large_buckets: int
    """Bands shared by so many documents that only some of their pairs became candidates."""
    num_compared_pairs: int
    """Pairs looked at: candidates not yet joined by others, and members of a group against its kept copy."""
    num_verified_pairs: int
    """Those of them that are near duplicates."""
    num_removed: int
    """Documents."""


def near_table(facts: NearFacts) -> Table:
    """The curve; setting and counts stand below it."""
    near = facts.config
    alike = " and of the same numbers" if near.numbers == "keep" else ""
    return Table(
        name="near",
        title="Near duplicates",
        caption=(
            f"Runs of {near.ngram} words, {near.bands:,} bands of {near.rows:,} MinHash values. Documents of Jaccard "
            f"similarity J{alike} become a candidate pair with probability 1 − (1 − J^{near.rows})^{near.bands}; a "
            f"candidate is a near duplicate where the edit similarity of its words is above {near.edit_similarity}."
        ),
        columns=(
            Column(key="jaccard", title="Jaccard similarity"),
            Column(key="candidate_probability", title="P(candidate)"),
        ),
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
