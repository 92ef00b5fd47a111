"""All pairs of near duplicates, by comparison of words and without hashes of shingles: the reference of `near`."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence

import numpy as np
from rapidfuzz.distance import Levenshtein

from finpile.config import NearConfig
from finpile.dedup.near.numbers import number_sequence
from finpile.dedup.near.verify import most_edits, word_hashes

#: Places of two documents, the smaller first.
Pairs = list[tuple[int, int]]

#: Counters of hashes of words. Two texts that differ in n words differ by 2 n in them at most.
_COUNTERS = 128


def near_pairs(texts: Sequence[bytes], near: NearConfig) -> Pairs:
    """All pairs of near duplicates, the earlier document first, by comparison of words. Under `numbers: keep` only
    documents with equal sequences of numbers can be some."""
    words = [word_hashes(text) for text in texts]
    groups: dict[bytes, list[int]] = {}
    for place, text in enumerate(texts):
        if len(words[place]):
            numbers = number_sequence(text) if near.numbers == "keep" else b""
            groups.setdefault(hashlib.blake2b(numbers, digest_size=16).digest(), []).append(place)
    found: Pairs = []
    for group in groups.values():
        found += _near_pairs_of(words, sorted(group, key=lambda place: len(words[place])), near)
    return sorted(found)


def _near_pairs_of(
    words: Sequence[array[int]], by_length: Sequence[int], near: NearConfig
) -> Iterator[tuple[int, int]]:
    """The pairs of near duplicates among documents in ascending order of their length in words."""
    lengths = np.array([len(words[place]) for place in by_length])
    limits = np.array([most_edits(length, near.edit_similarity) for length in lengths.tolist()])
    counts = np.stack(
        [np.bincount(np.frombuffer(words[place], np.uint64) % _COUNTERS, minlength=_COUNTERS) for place in by_length]
    ).astype(np.int16)
    for number, short in enumerate(by_length):
        later = slice(number + 1, int(np.searchsorted(lengths - limits, lengths[number], side="right")))
        differences = np.abs(counts[later] - counts[number]).sum(axis=1)
        for at in (number + 1 + np.flatnonzero(differences <= 2 * limits[later])).tolist():
            long, limit = by_length[at], int(limits[at])
            if Levenshtein.distance(words[short], words[long], score_cutoff=limit) <= limit:
                yield min(short, long), max(short, long)
