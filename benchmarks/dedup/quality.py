"""The quality of a deduplication: similarity of removed documents to the kept ones, and similar pairs that are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.common.mix import Mix
from benchmarks.common.report import say, table
from benchmarks.dedup.truth import Pairs, SimilarPairs, edited_pairs, jaccard

#: Pairs are looked for from this exact Jaccard similarity on.
LEAST_JACCARD = 0.2
_EDIT_SIMILARITY = 0.8
_BOUNDS = (0.1, 0.5, 0.8)

_ABOUT = (
    "Removed documents by their exact Jaccard similarity (5-word shingles, nothing hashed) with the document that was "
    "kept instead, each tool's clusters taken from its own output; and pairs of documents that are both still "
    "there though their edit similarity over words is above {above}. All such pairs of a Jaccard similarity of {least} "
    "or more were looked for: {pairs:,}, of which {same:,} have the same numbers in the same order; the others FinPile "
    "keeps on purpose."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a tool did with the documents of a mix, which are numbered in its order."""

    copy_of: Mapping[int, int]
    """Of each removed document the one that was kept for it."""
    num_kept: int


def compare_quality(mix: Mix, outcomes: Mapping[str, Outcome], truth: SimilarPairs) -> str:
    """The section on quality; `truth` holds the pairs of `LEAST_JACCARD` on."""
    say("quality: pairs of similar documents")
    pairs, same_numbers = edited_pairs(mix.texts, truth.pairs, _EDIT_SIMILARITY)
    about = _ABOUT.format(above=_EDIT_SIMILARITY, least=LEAST_JACCARD, pairs=len(pairs), same=int(same_numbers.sum()))
    rows = [[name, *_row(mix, outcome, pairs, same_numbers)] for name, outcome in outcomes.items()]
    head = ["tool", "removed", *(f"J < {bound}" for bound in _BOUNDS), "pairs left in", "of the same numbers"]
    return f"## Removed and remaining documents\n\n{about}\n\n{table(head, rows)}"


def _row(mix: Mix, outcome: Outcome, pairs: Pairs, same_numbers: npt.NDArray[np.bool_]) -> list[str]:
    say(f"quality: {len(outcome.copy_of):,} removed documents")
    alike = np.array([jaccard(mix.texts[gone], mix.texts[kept]) for gone, kept in outcome.copy_of.items()], float)
    gone = np.zeros(len(mix.ids), bool)
    gone[list(outcome.copy_of)] = True
    left = ~gone[pairs].any(axis=1)
    counts = [len(alike), *((alike < bound).sum() for bound in _BOUNDS), left.sum(), (left & same_numbers).sum()]
    return [f"{count:,}" for count in counts]
