"""Likelihood, n-best and sampling by enumeration of all segmentations: a reference implementation for short texts.

`pieces` maps each piece to its log probability; a segmentation is a tuple of pieces. The pretokens and the
segmentations of one are those of `unigram`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TypeAlias

from tests.support.references import unigram as reference

Segmentation: TypeAlias = tuple[bytes, ...]


def log_likelihood(text: bytes, pieces: Mapping[bytes, float]) -> float:
    """The log of the summed probability of all segmentations."""
    total = 0.0
    for ways in _ways_by_pretoken(text, pieces):
        scores = [math.fsum(pieces[piece] for piece in way) for way in ways]
        total += max(scores) + math.log(math.fsum(math.exp(score - max(scores)) for score in scores))
    return total


def segmentations_in_order(text: bytes, pieces: Mapping[bytes, float]) -> list[tuple[Segmentation, float]]:
    """All segmentations with their log probabilities, in the order of `UnigramTokenizer.encode_nbest`."""
    ranked = [sorted(ways, key=lambda way: _order_key(way, pieces)) for ways in _ways_by_pretoken(text, pieces)]

    def total(ranks: tuple[int, ...]) -> Fraction:
        ways = (ways[rank] for ways, rank in zip(ranked, ranks, strict=True))
        return sum((Fraction(_running_sums(way, pieces)[-1]) for way in ways), Fraction(0))

    choices = itertools.product(*(range(len(ways)) for ways in ranked))
    in_order = sorted(choices, key=lambda ranks: (-total(ranks), ranks[::-1]))
    return [
        (tuple(piece for ways, rank in zip(ranked, ranks, strict=True) for piece in ways[rank]), float(total(ranks)))
        for ranks in in_order
    ]


def distribution(text: bytes, pieces: Mapping[bytes, float], alpha: float) -> dict[Segmentation, float]:
    """The probability of each segmentation, proportional to `P ** alpha`."""
    ways = [sum(parts, ()) for parts in itertools.product(*_ways_by_pretoken(text, pieces))]
    scores = [alpha * math.fsum(pieces[piece] for piece in way) for way in ways]
    weights = [math.exp(score - max(scores)) for score in scores]
    return {way: weight / math.fsum(weights) for way, weight in zip(ways, weights, strict=True)}


def drawn_in_turn(probabilities: Mapping[Segmentation, float], k: int) -> dict[tuple[Segmentation, ...], float]:
    """The probability of each sequence of k segmentations, drawn one at a time without replacement."""
    sequences = {}
    for sequence in itertools.permutations(probabilities, k):
        sequences[sequence] = 1.0
        left = 1.0
        for way in sequence:
            sequences[sequence] *= probabilities[way] / left
            left -= probabilities[way]
    return sequences


def _ways_by_pretoken(text: bytes, pieces: Mapping[bytes, float]) -> Iterator[list[Segmentation]]:
    return (list(reference.segmentations(pretoken, pieces)) for pretoken in reference.pretokenize(text))


def _running_sums(way: Segmentation, pieces: Mapping[bytes, float]) -> list[float]:
    return list(itertools.accumulate(pieces[piece] for piece in way))


def _order_key(way: Segmentation, pieces: Mapping[bytes, float]) -> list[tuple[float, int]]:
    """The sort key of ties: from the last piece to the first, the sum up to it and its length, both descending."""
    sums = _running_sums(way, pieces)
    return [(-total, -len(piece)) for total, piece in zip(reversed(sums), reversed(way), strict=True)]
