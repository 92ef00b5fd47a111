"""The pairs that are similar, found without MinHash: the reference for all engines.

Words here are runs of letters, digits and underscores, lower-cased; a shingle is five of them in a row, or all of a
text that has fewer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

_I64: TypeAlias = npt.NDArray[np.int64]
Pairs: TypeAlias = _I64
"""Shape (pairs, 2): numbers of documents, the smaller first."""

#: A shingle of more documents brings none of them together; pairs that have only such in common are not looked for.
MAX_DOCUMENTS = 128
#: Benchmarks look for pairs from this exact Jaccard similarity on.
LEAST_JACCARD = 0.2

_NGRAM = 5
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SimilarPairs:
    """Pairs of documents and the exact Jaccard similarity of their sets of shingles."""

    pairs: Pairs
    jaccard: npt.NDArray[np.float64]


def words_of(text: str) -> list[str]:
    """The words of a text."""
    return _WORD.findall(text.lower())


def shingles_of(text: str) -> list[str]:
    """The shingles of a text, in order."""
    words = words_of(text)
    return [" ".join(words[at : at + _NGRAM]) for at in range(max(1, len(words) - _NGRAM + 1))]


def jaccard(left: str, right: str) -> float:
    """Of the sets of shingles of two texts, exact."""
    a, b = set(shingles_of(left)), set(shingles_of(right))
    return len(a & b) / len(a | b)


def similar_pairs(texts: Sequence[str], least: float, shingles: Callable[[str], list[str]]) -> SimilarPairs:
    """All pairs of at least this Jaccard similarity, but for those that share only very common shingles."""
    sets = [np.unique(np.fromiter(map(hash, shingles(text)), np.int64)) for text in texts]
    sizes = np.array([len(each) for each in sets])
    values = np.concatenate(sets)
    documents = np.repeat(np.arange(len(sets)), sizes)
    order = np.argsort(values, kind="stable")
    documents, values = documents[order], values[order]
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    counts = np.diff(np.r_[starts, len(values)])
    common = np.repeat(counts > MAX_DOCUMENTS, counts)
    num_common = np.bincount(documents[common], minlength=len(sets))
    packed = np.concatenate(list(_packed_pairs(documents, starts, counts)))
    found, num_shared = np.unique(packed, return_counts=True)
    a, b = found >> 32, found & 0xFFFFFFFF
    most_shared = num_shared + np.minimum(num_common[a], num_common[b])
    possible = most_shared * (1 + least) >= least * (sizes[a] + sizes[b])
    pairs = np.stack([a[possible], b[possible]], axis=1)
    exact = np.array([_jaccard_of(sets[i], sets[j]) for i, j in pairs.tolist()], np.float64)
    return SimilarPairs(pairs=pairs[exact >= least], jaccard=exact[exact >= least])


def edited_pairs(texts: Sequence[str], pairs: Pairs, above: float) -> tuple[Pairs, npt.NDArray[np.bool_]]:
    """Those of the pairs whose edit similarity over words is above this, and whether their numbers are the same."""
    words = {i: words_of(texts[i]) for i in np.unique(pairs).tolist()}
    close = [
        (i, j)
        for i, j in pairs.tolist()
        if Levenshtein.normalized_similarity(words[i], words[j], score_cutoff=above) > above
    ]
    same = [_NUMBER.findall(texts[i]) == _NUMBER.findall(texts[j]) for i, j in close]
    return np.array(close, np.int64).reshape(-1, 2), np.array(same, bool)


def _packed_pairs(documents: _I64, starts: _I64, counts: _I64) -> Iterator[_I64]:
    """For each shingle of 2 to MAX_DOCUMENTS documents all their pairs, as smaller << 32 | larger."""
    yield np.empty(0, np.int64)
    for size in range(2, MAX_DOCUMENTS + 1):
        groups = starts[counts == size]
        if len(groups):
            members = documents[groups[:, None] + np.arange(size)]  # ascending, for the sort was stable
            left, right = np.triu_indices(size, 1)
            yield ((members[:, left] << 32) | members[:, right]).ravel()


def _jaccard_of(left: _I64, right: _I64) -> float:
    shared = len(np.intersect1d(left, right, assume_unique=True))
    return shared / (len(left) + len(right) - shared)
