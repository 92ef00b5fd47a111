"""Slow, obvious twins of the kernels: the definitions, to read and to test against."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

_PRETOKEN = re.compile(rb"[A-Za-z ]+|[0-9]|[^A-Za-z0-9 ]+")


def pretokenize(text: bytes) -> list[bytes]:
    """The pretokens, by the regular expression itself."""
    return _PRETOKEN.findall(text)


def count_pretokens(texts: Iterable[bytes], max_bytes: int) -> dict[bytes, int]:
    """Each pretoken's frequency, in order of the pretokens' bytes; longer ones in parts of `max_bytes`."""
    counter = Counter(
        pretoken[start : start + max_bytes]
        for text in texts
        for pretoken in pretokenize(text)
        for start in range(0, len(pretoken), max_bytes)
    )
    return dict(sorted(counter.items()))


def segmentations(text: bytes, pieces: Mapping[bytes, float]) -> Iterator[tuple[bytes, ...]]:
    """Every way to write `text` as a sequence of pieces."""
    if not text:
        yield ()
    for length in range(1, len(text) + 1):
        if text[:length] in pieces:
            for rest in segmentations(text[length:], pieces):
                yield (text[:length], *rest)


def best_score(text: bytes, pieces: Mapping[bytes, float]) -> float:
    """The log probability of the best segmentation of one pretoken, by looking at all of them."""
    return max(math.fsum(pieces[piece] for piece in way) for way in segmentations(text, pieces))


def viterbi(text: bytes, pieces: Mapping[bytes, float]) -> list[bytes]:
    """The segmentation of one pretoken by the rule that settles ties: ends are reached from starts left to right, by
    pieces short to long, and only a strictly better score replaces what was there."""
    longest = max(map(len, pieces))
    best: list[tuple[float, int] | None] = [(0.0, 0), *[None] * len(text)]
    for start in range(len(text)):
        reached = best[start]
        if reached is None:
            continue
        for end in range(start + 1, min(start + longest, len(text)) + 1):
            if text[start:end] in pieces:
                score = pieces[text[start:end]] + reached[0]
                known = best[end]
                if known is None or score > known[0]:
                    best[end] = (score, start)
    return _way_back(text, best)


def _way_back(text: bytes, best: list[tuple[float, int] | None]) -> list[bytes]:
    way: list[bytes] = []
    end = len(text)
    while end > 0:
        reached = best[end]
        if reached is None:
            raise ValueError(f"no sequence of pieces ends at byte {end}")
        way.append(text[reached[1] : end])
        end = reached[1]
    return way[::-1]


def encode(text: bytes, pieces: Mapping[bytes, float]) -> list[bytes]:
    """The pieces of a whole text: the best segmentation of each of its pretokens."""
    return [piece for pretoken in pretokenize(text) for piece in viterbi(pretoken, pieces)]


def merge(models: Iterable[tuple[Mapping[bytes, float], int]]) -> dict[bytes, float]:
    """The average of `(probabilities, weight)` models, absent pieces counting as 0, by exact summation."""
    parts = list(models)
    total = sum(weight for _, weight in parts)
    pieces = sorted({piece for probabilities, _ in parts for piece in probabilities})
    return {piece: math.fsum(model.get(piece, 0.0) * weight for model, weight in parts) / total for piece in pieces}
