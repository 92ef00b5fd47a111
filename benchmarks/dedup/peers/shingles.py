"""The words and shingles that the MinHash peers are fed with: the cheapest way that Python has to make them."""

from __future__ import annotations

NGRAM = 5
NUM_PERMUTATIONS = 256


def shingles(text: str) -> list[str]:
    """Runs of 5 words between white space, joined by blanks; of a text of fewer words the whole."""
    words = text.lower().split()
    if len(words) < NGRAM:
        return [" ".join(words)]
    return list(map(" ".join, zip(*(words[at:] for at in range(NGRAM)), strict=False)))
