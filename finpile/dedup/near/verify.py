"""Near duplicates: verifies candidate pairs. A document is removed only if it is itself similar to the kept copy.

Two documents are near duplicates if the edit similarity of their word sequences, 1 - distance / longer length, is
above the threshold and, with `numbers: keep`, their sequences of numbers are equal. The Jaccard similarity is only
reported; it is not a criterion.

Two tests avoid costly distances without changing a decision: the lengths must differ by at most the number of edits
allowed, and d edits leave at least longer - q + 1 - q d runs of q words in common (q-gram lemma, with q = 1 and 2).
Documents of more than `LONG_WORDS` words are aligned at the runs of `_ANCHOR_WORDS` words that occur once in both; the
distance is the sum over the gaps between them. The sum is an upper bound of the distance, so it may miss a pair that is
barely similar but never accepts a pair that is not. Its cost is linear in practice; the cost of the distance is
quadratic (27 s for a million words).

Source: Lee et al. 2022, section 4.2; Ukkonen 1992, Approximate string-matching with q-grams.
"""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from rapidfuzz.distance import Levenshtein

from finpile.config import NearConfig
from finpile.dedup import _hash_kernels
from finpile.dedup._hash_kernels import I64, U64
from finpile.dedup.near import _pair_kernels, clusters, minhash
from finpile.dedup.near.numbers import number_sequence, part_by_numbers

#: The most words of a document for which the distance is computed exactly (about 0.1 s at worst).
LONG_WORDS = 65_536
#: Number of words above which the q-gram tests cost less than a distance computation that they avoid.
_SHORT_WORDS = 1024
#: Words of the runs at which long documents are aligned.
_ANCHOR_WORDS = 5
#: First guess of the distance: near duplicates differ in few words, and a small distance is found in linear time.
_FEW_EDITS = 64
#: Number of rounds in which the documents of a component that are not similar to its kept copy form new components.
#: Without a limit, a chain of n documents, each similar to its neighbours only, would cost n^2 / 4 comparisons.
MOST_ROUNDS = 16
#: Words whose hashes a group holds, 8 bytes each: those of the documents compared last. In a large group, most pairs
#: have the kept copy in common.
MOST_WORDS = 1 << 24
#: The most bytes of a word whose hash depends on the place of each of them (`finpile.dedup._hash_kernels.hash_words`).
_MOST_HASHED = 64
#: All words of more bytes, and shorter ones: a character has up to 3 bytes, or is a word of its own.
_LONG_WORD = re.compile(
    rb"(?:[0-9A-Za-z]|[\xc3-\xdf][\x80-\xbf]|[\xe0\xe1][\x80-\xbf]{2}|\xe2[\x82-\xbf][\x80-\xbf]){22,}"
)
#: `w` for all bytes of such words.
_WORD_BYTES = bytes(ord("w" if _hash_kernels.FOLD[byte] and byte < 0xE3 else " ") for byte in range(256))
#: Number of pairs compared before the pairs that have become connected are skipped.
_STRIDE = 1 << 14

Pair = tuple[int, int]


class NearDuplicate(NamedTuple):
    """A removed document, the kept copy, and their similarity."""

    removed: int
    kept: int
    jaccard: float
    """Over the distinct shingles of both."""
    edit_similarity: float
    """Over words, in (threshold, 1]; a lower bound if one of them is longer than `LONG_WORDS`."""


class Resolution(NamedTuple):
    """The decisions for a group of candidates."""

    removed: list[NearDuplicate]
    """Ascending by `removed`."""
    num_compared: int
    """Compared pairs: candidates that other pairs had not yet connected, and members with their kept copy."""
    num_verified: int
    """Compared pairs that are near duplicates."""


def resolve_group(texts: Sequence[bytes], pairs: Iterable[Sequence[int]] | I64, config: NearConfig) -> Resolution:
    """Decides a group of documents, given in order of preference.

    `pairs` are the candidates, as indices into `texts`, in any order. In each component of verified pairs the first
    document is kept, and each document that is verified against it is removed, whether or not that pair was a
    candidate; the procedure is repeated for the remaining documents. Documents that remain after `MOST_ROUNDS` rounds
    are compared with their candidates only: in order, each document that is not yet removed is kept, and the later
    documents that are verified against it are removed. The number of comparisons is thus linear in documents and pairs.
    """
    judge = PairVerifier(texts, config)
    edges = _distinct(pairs)
    removed: list[NearDuplicate] = []
    for _ in range(MOST_ROUNDS):
        left = np.zeros(len(texts), dtype=bool)
        for kept, *others in _verified_components(edges, judge):
            left[others] = True
            removed += (found := judge.duplicates(kept, others))
            left[[row.removed for row in found]] = False
        edges = edges[left[edges].all(axis=1)]
        if len(edges) == 0:
            break
    removed += _first_come(edges, judge)
    return Resolution(sorted(removed), *judge.counts())


def resolve_in_order(texts: Sequence[bytes], pairs: Iterable[Sequence[int]] | I64, config: NearConfig) -> Resolution:
    """Decides a group of documents, given in order: a document is removed if a kept earlier candidate verifies.

    `pairs` are the candidates, as indices into `texts`, in any order. The kept copy of a removed document is the first
    such candidate. The kept documents are thus the lexicographically first maximal independent set of the graph of
    verified candidate pairs, and no decision depends on a later document.
    """
    judge = PairVerifier(texts, config)
    return Resolution(sorted(_first_come(_distinct(pairs), judge)), *judge.counts())


def resolve_across(
    texts: Sequence[bytes], pairs: Iterable[Sequence[int]] | I64, asked: Sequence[bool], config: NearConfig
) -> Resolution:
    """Removes the `asked` documents that are near duplicates of a document that is not `asked`; keeps all others.

    `pairs` are the candidates, as indices into `texts`, in any order. The kept copy of a removed document is the first
    against which it is verified.
    """
    judge = PairVerifier(texts, config)
    removed: dict[int, NearDuplicate] = {}
    for a, b in _distinct(pairs).tolist():
        if asked[a] != asked[b]:
            kept, other = (b, a) if asked[a] else (a, b)
            if other not in removed:
                removed |= {row.removed: row for row in judge.duplicates(kept, [other])}
    return Resolution([removed[doc] for doc in sorted(removed)], *judge.counts())


def find_near_duplicates(texts: pa.Array | pa.ChunkedArray, config: NearConfig) -> list[NearDuplicate]:
    """Returns the near duplicates among texts in memory, ascending by `removed`. `texts` are in order of preference.

    >>> find_near_duplicates(pa.array(["Oil rose on Monday.", "Oil  rose on MONDAY", "Gold fell."]), minhash.FAST)
    [NearDuplicate(removed=1, kept=0, jaccard=1.0, edit_similarity=1.0)]
    """
    keys = part_by_numbers(minhash.band_keys(texts, config), texts, config)
    docs = np.repeat(np.arange(len(keys)), config.bands)
    pairs = clusters.candidate_pairs(pa.table({"key": keys.ravel(), "doc": docs}))
    bodies = texts.cast(pa.large_binary())
    removed: list[NearDuplicate] = []
    for members, edges in _groups(pairs):
        local = np.searchsorted(members, edges)
        found = resolve_group(bodies.take(pa.array(members)).to_pylist(), local, config).removed
        removed += [row._replace(removed=int(members[row.removed]), kept=int(members[row.kept])) for row in found]
    return sorted(removed)


def _groups(pairs: pa.Table) -> Iterator[tuple[I64, I64]]:
    """Yields the documents of each connected group, ascending, and its pairs."""
    table = clusters.components(pairs)
    docs, labels = table["doc"].to_numpy(), table["group"].to_numpy()
    edges = np.stack([pairs["a"].to_numpy(), pairs["b"].to_numpy()], axis=1)
    of_edge = labels[np.searchsorted(docs, edges[:, 0])]
    by_doc, by_edge = np.argsort(labels, kind="stable"), np.argsort(of_edge, kind="stable")
    names, sizes = np.unique(labels, return_counts=True)
    edge_ends = np.searchsorted(of_edge[by_edge], names, side="right")
    return zip(np.split(docs[by_doc], np.cumsum(sizes)[:-1]), np.split(edges[by_edge], edge_ends[:-1]), strict=True)


class PairVerifier:
    """Compares documents of one group and caches the results, and the words of those compared last."""

    def __init__(self, texts: Sequence[bytes], config: NearConfig) -> None:
        self._texts = texts
        self._config = config
        self._words: OrderedDict[int, array[int]] = OrderedDict()
        self._num_words = 0
        self._numbers: dict[int, bytes] = {}
        self._digests: dict[bytes, bytes] = {}  # of a million documents, most have the same
        self._similarities: dict[int, float | None] = {}

    def counts(self) -> Pair:
        """Returns the number of compared pairs, and of the near duplicates among them."""
        verified = sum(similarity is not None for similarity in self._similarities.values())
        return len(self._similarities), verified

    def duplicates(self, kept: int, others: Iterable[int]) -> list[NearDuplicate]:
        """Returns those of `others` that are near duplicates of `kept`."""
        close = [(doc, found) for doc in others if (found := self.edit_similarity(kept, doc)) is not None]
        if not close:
            return []
        mine = self._shingles_of(kept)
        return [NearDuplicate(doc, kept, _jaccard(mine, self._shingles_of(doc)), found) for doc, found in close]

    def edit_similarity(self, a: int, b: int) -> float | None:
        """Returns the edit similarity of two near duplicates, None for other pairs."""
        pair = a << 32 | b  # one number, where a tuple of two takes three times the memory
        if pair not in self._similarities:
            self._similarities[pair] = self._compare(a, b)
        return self._similarities[pair]

    def _compare(self, a: int, b: int) -> float | None:
        left, right = self._words_of(a), self._words_of(b)
        longest = max(len(left), len(right))
        limit = most_edits(longest, self._config.edit_similarity)
        if abs(len(left) - len(right)) > limit:  # true for documents without words, whose limit is below 0
            return None
        if self._config.numbers == "keep" and self._numbers_of(a) != self._numbers_of(b):
            return None
        distance = _distance(left, right, limit)
        return None if distance > limit else 1 - distance / longest

    def _words_of(self, doc: int) -> array[int]:
        words = self._words.get(doc)
        if words is not None:
            self._words.move_to_end(doc)
            return words
        self._words[doc] = words = compared_words(self._texts[doc])
        self._num_words += len(words)
        while self._num_words > MOST_WORDS and len(self._words) > 2:  # the two that are compared
            self._num_words -= len(self._words.popitem(last=False)[1])
        return words

    def _shingles_of(self, doc: int) -> U64:
        """Returns the distinct shingles of a document, ascending."""
        return np.unique(_shingles(self._words_of(doc), self._config.ngram))

    def _numbers_of(self, doc: int) -> bytes:
        """Returns a digest of the document's sequence of numbers."""
        if doc not in self._numbers:
            sequence = number_sequence(self._texts[doc])
            digest = hashlib.blake2b(sequence, digest_size=16).digest()
            self._numbers[doc] = self._digests.setdefault(digest, digest)
        return self._numbers[doc]


def most_edits(longest: int, threshold: float) -> int:
    """Returns the largest distance at which the edit similarity is above `threshold`.

    `longest` is the number of words of the longer document. The result is exact, unlike with floats: at .8, 15 words
    allow 2 edits, not 3. It is below 0 if no similarity can be above the threshold.
    """
    return math.ceil((1 - Fraction(str(threshold))) * longest) - 1


def compared_words(text: bytes) -> array[int]:
    """Returns a number for each word, in order; words of more than 64 bytes have a digest in place of their hash.

    The hash of a word is a cyclic polynomial with a period of 64 bytes: longer words that are different, such as 72 and
    200 times the same letter, can have equal ones.
    """
    if b"w" * (_MOST_HASHED + 1) not in text.translate(_WORD_BYTES):
        return word_hashes(text)
    words, at = array("Q"), 0
    for long in _LONG_WORD.finditer(text):
        if len(long[0]) > _MOST_HASHED:
            words += word_hashes(text[at : long.start()])
            words.append(int.from_bytes(hashlib.blake2b(long[0].lower(), digest_size=8).digest()))
            at = long.end()
    return words + word_hashes(text[at:])


def word_hashes(text: bytes) -> array[int]:
    """Returns the 64-bit hashes of a text's words, in order."""
    data = np.frombuffer(text or bytes(1), dtype=np.uint8)
    out = np.empty(len(data) // 2 + 1, dtype=np.uint64)
    count = _hash_kernels.hash_words(data, 0, len(text), out)
    words = array("Q")
    words.frombytes(out[:count].tobytes())
    return words


def _distinct(pairs: Iterable[Sequence[int]] | I64) -> I64:
    """Returns the distinct pairs of different documents, smaller index first, ascending: shape (pairs, 2)."""
    rows = np.asarray(pairs if isinstance(pairs, np.ndarray) else list(pairs), dtype=np.int64).reshape(-1, 2)
    low, high = rows.min(axis=1), rows.max(axis=1)
    packed = np.unique((low << 32 | high)[low != high])
    return np.stack([packed >> 32, packed & 0xFFFFFFFF], axis=1)


def _verified_components(edges: I64, judge: PairVerifier) -> list[list[int]]:
    """Returns the components of the edges that are near duplicates, each ascending.

    Documents that are already connected are not compared.
    """
    docs, ends = np.unique(edges, return_inverse=True)
    ends = ends.reshape(-1, 2)
    parent = list(range(len(docs)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = at = parent[parent[at]]
        return at

    for start in range(0, len(ends), _STRIDE):
        some = ends[start : start + _STRIDE]
        if start:  # most edges of a large group connect documents that are already connected
            roots = np.fromiter(map(root, range(len(docs))), np.int64, len(docs))
            some = some[roots[some[:, 0]] != roots[some[:, 1]]]
        for a, b in some.tolist():
            low, high = sorted((root(a), root(b)))
            if low != high and judge.edit_similarity(int(docs[a]), int(docs[b])) is not None:
                parent[high] = low
    members: dict[int, list[int]] = {}
    for at, doc in enumerate(docs.tolist()):
        members.setdefault(root(at), []).append(doc)
    return list(members.values())


def _first_come(edges: I64, judge: PairVerifier) -> list[NearDuplicate]:
    """Keeps, in order, each document that is not yet removed, and removes its later candidates verified against it."""
    removed: dict[int, NearDuplicate] = {}
    bounds = np.flatnonzero(np.r_[True, edges[1:, 0] != edges[:-1, 0], True]) if len(edges) else np.zeros(1, np.int64)
    for start, end in pairwise(bounds.tolist()):
        kept = int(edges[start, 0])
        if kept not in removed:
            others = [doc for doc in edges[start:end, 1].tolist() if doc not in removed]
            removed |= {row.removed: row for row in judge.duplicates(kept, others)}
    return list(removed.values())


def _jaccard(left: U64, right: U64) -> float:
    """Returns the Jaccard similarity of two sorted sets."""
    common = _pair_kernels.count_common(left, right)
    return float(common / (len(left) + len(right) - common))


def _distance(left: array[int], right: array[int], limit: int) -> int:
    """Returns the distance in words, or any number above `limit` if the distance exceeds `limit`.

    For long documents it is an upper bound: see the module's docstring.
    """
    longest = max(len(left), len(right))
    if longest > _SHORT_WORDS and not _may_be_close(left, right, limit):
        return limit + 1
    if longest > LONG_WORDS:
        return _aligned_distance(left, right, limit)
    return int(Levenshtein.distance(left, right, score_cutoff=limit, score_hint=_FEW_EDITS))


def _may_be_close(left: array[int], right: array[int], limit: int) -> bool:
    """False if too few words, or pairs of words, are in common for a distance of at most `limit` (q-gram lemma)."""
    longest = max(len(left), len(right))
    for q in (1, 2):
        required = longest - q + 1 - q * limit
        if (
            required > 0
            and _pair_kernels.count_common(*(np.sort(_shingles(words, q)) for words in (left, right))) < required
        ):
            return False
    return True


def _aligned_distance(left: array[int], right: array[int], limit: int) -> int:
    """Returns an upper bound of the distance, by alignment at common runs of words. Stops when it exceeds `limit`."""
    at_left, at_right = _anchors(left, right)
    begins = np.stack([np.r_[0, at_left + 1], np.r_[0, at_right + 1]], axis=1)
    ends = np.stack([np.r_[at_left, len(left)], np.r_[at_right, len(right)]], axis=1)
    gaps = np.flatnonzero((ends > begins).any(axis=1))
    total = 0
    for (i, j), (i_end, j_end) in zip(begins[gaps].tolist(), ends[gaps].tolist(), strict=True):
        longer = max(i_end - i, j_end - j)
        if longer > LONG_WORDS or i == i_end or j == j_end:
            total += longer
        else:
            total += Levenshtein.distance(left[i:i_end], right[j:j_end], score_cutoff=limit - total)
        if total > limit:
            break
    return total


def _anchors(left: array[int], right: array[int]) -> tuple[I64, I64]:
    """Returns the positions in both documents of runs of `_ANCHOR_WORDS` that occur exactly once in each.

    The positions are a longest sequence that ascends in both documents.
    """
    once = []
    for words in (left, right):
        shingles, first, counts = np.unique(_shingles(words, _ANCHOR_WORDS), return_index=True, return_counts=True)
        once.append((shingles[counts == 1], first[counts == 1]))
    (left_once, left_first), (right_once, right_first) = once
    _, a, b = np.intersect1d(left_once, right_once, assume_unique=True, return_indices=True)
    order = np.argsort(left_first[a])
    at_left, at_right = left_first[a][order], right_first[b][order]
    chosen = _pair_kernels.longest_increasing(at_right)
    return at_left[chosen], at_right[chosen]


def _shingles(words: array[int], ngram: int) -> U64:
    """Returns the hash of each shingle, in order."""
    hashes = np.frombuffer(words, dtype=np.uint64) if words else np.empty(0, np.uint64)
    out = np.empty(max(len(hashes), 1), dtype=np.uint64)
    return out[: _hash_kernels.hash_shingles(hashes, ngram, out)]
