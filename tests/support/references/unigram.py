"""Reference implementations of the kernels, directly from the definitions."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

_PRETOKEN = re.compile(rb"[A-Za-z ]+|[0-9]|[^A-Za-z0-9 ]+")


def pretokenize(text: bytes) -> list[bytes]:
    """The pretokens, from the regular expression."""
    return _PRETOKEN.findall(text)


def count_pretokens(texts: Iterable[bytes], max_bytes: int) -> dict[bytes, int]:
    """The frequency of each pretoken, in order of bytes; pretokens longer than `max_bytes` are split."""
    counter = Counter(
        pretoken[start : start + max_bytes]
        for text in texts
        for pretoken in pretokenize(text)
        for start in range(0, len(pretoken), max_bytes)
    )
    return dict(sorted(counter.items()))


def segmentations(text: bytes, pieces: Mapping[bytes, float]) -> Iterator[tuple[bytes, ...]]:
    """All segmentations of `text` into pieces."""
    if not text:
        yield ()
    for length in range(1, len(text) + 1):
        if text[:length] in pieces:
            for rest in segmentations(text[length:], pieces):
                yield (text[:length], *rest)


def best_score(text: bytes, pieces: Mapping[bytes, float]) -> float:
    """The log probability of the best segmentation of one pretoken, by enumeration."""
    return max(math.fsum(pieces[piece] for piece in way) for way in segmentations(text, pieces))


def viterbi(text: bytes, pieces: Mapping[bytes, float]) -> list[bytes]:
    """The best segmentation of one pretoken, with the tie rule of the encoder.

    Starts are visited from left to right and pieces from short to long. Only a strictly better score replaces an
    earlier one.
    """
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


def seeds(counts: Mapping[bytes, int], max_bytes: int, num_wanted: int) -> dict[bytes, int]:
    """The seed pieces with frequency times length: the bytes that occur, by value, then the best longer strings."""
    frequencies: Counter[bytes] = Counter()
    followers: defaultdict[bytes, set[bytes]] = defaultdict(set)
    for pretoken, frequency in counts.items():
        for start in range(len(pretoken)):
            for end in range(start + 1, min(start + max_bytes, len(pretoken)) + 1):
                frequencies[pretoken[start:end]] += frequency
                followers[pretoken[start:end]].add(pretoken[end : end + 1])
    scores = {piece: frequency * len(piece) for piece, frequency in frequencies.items()}
    # The end of a pretoken counts as the following byte b"".
    candidates = (piece for piece, after in followers.items() if len(after) > 1 or b"" in after)
    longer = [piece for piece in candidates if len(piece) > 1 and frequencies[piece] > 1]
    best = sorted(longer, key=lambda piece: (-scores[piece], piece))[:num_wanted]
    return {piece: scores[piece] for piece in [*sorted(filter(_is_byte, scores)), *best]}


def expected_counts(counts: Mapping[bytes, int], pieces: Mapping[bytes, float]) -> tuple[dict[bytes, float], float]:
    """The E-step: the expected count of each piece, and the log probability of the text."""
    expected = dict.fromkeys(pieces, 0.0)
    log_likelihood = 0.0
    for pretoken, frequency in counts.items():
        ways = {way: math.exp(_score(way, pieces)) for way in segmentations(pretoken, pieces)}
        total = math.fsum(ways.values())
        log_likelihood += frequency * math.log(total)
        for way, probability in ways.items():
            for piece in way:
                expected[piece] += frequency * probability / total
    return expected, log_likelihood


def maximization(expected: Mapping[bytes, float]) -> dict[bytes, float]:
    """The M-step: log probabilities of the bytes and of the pieces whose expected count is at least 0.5."""
    kept = {piece: max(count, 0.5) for piece, count in expected.items() if count >= 0.5 or _is_byte(piece)}
    total = digamma(math.fsum(kept.values()))
    return {piece: digamma(count) - total for piece, count in kept.items()}


def digamma(value: float) -> float:
    """The digamma function, by its recurrence and two terms of its asymptotic series."""
    steps = max(0, math.ceil(1000 - value))
    far = value + steps
    return math.log(far) - 1 / (2 * far) - 1 / (12 * far * far) - math.fsum(1 / (value + step) for step in range(steps))


def best_segmentation(text: bytes, pieces: Mapping[bytes, float]) -> tuple[bytes, ...]:
    """The most probable segmentation of a pretoken in training; ties prefer long pieces first."""
    return max(segmentations(text, pieces), key=lambda way: (_score(way, pieces), [len(piece) for piece in way]))


def best_path_counts(counts: Mapping[bytes, int], pieces: Mapping[bytes, float]) -> dict[bytes, int]:
    """The count of each piece in the most probable segmentations of the pretokens."""
    used = dict.fromkeys(pieces, 0)
    for pretoken, frequency in counts.items():
        for piece in best_segmentation(pretoken, pieces):
            used[piece] += frequency
    return used


def removal_loss(piece: bytes, pieces: Mapping[bytes, float], path_counts: Mapping[bytes, int]) -> float:
    """The decrease of the mean log probability of a used piece if the other pieces replace `piece`."""
    others = {other: score for other, score in pieces.items() if other != piece}
    if next(segmentations(piece, others), None) is None:
        return math.inf
    instead = best_segmentation(piece, others)
    count, total = path_counts[piece], sum(path_counts.values())
    if count == 0 or _score(instead, pieces) > pieces[piece]:
        return -math.inf
    total_after = total + count * (len(instead) - 1)
    after = math.fsum(math.log((path_counts[part] + count) / total_after) for part in instead)
    return count / total * (math.log(count / total) - after)


def train(counts: Mapping[bytes, int], vocab_size: int, max_bytes: int, num_seeds: int) -> dict[bytes, float]:
    """The trained pieces with their log probabilities."""
    scores = seeds(counts, max_bytes, num_seeds)
    pieces = {piece: math.log(score / sum(scores.values())) for piece, score in scores.items()}
    wanted = int(1.1 * vocab_size)
    while True:
        for _ in range(2):
            pieces = maximization(expected_counts(counts, pieces)[0])
        if len(pieces) <= wanted:
            break
        used = best_path_counts(counts, pieces)
        losses = {piece: removal_loss(piece, pieces, used) for piece in pieces}
        by_loss = sorted(pieces, key=lambda piece: -losses[piece])
        num_useful = sum(loss > -math.inf for loss in losses.values())
        num_kept = min(max(wanted, int(0.75 * len(pieces))), max(num_useful, wanted))
        kept = {*by_loss[:num_kept], *filter(_is_byte, pieces)}
        pieces = {piece: score for piece, score in pieces.items() if piece in kept}
    by_score = sorted(pieces, key=lambda piece: (not _is_byte(piece), -pieces[piece]))
    total = math.log(math.fsum(math.exp(pieces[piece]) for piece in by_score[:vocab_size]))
    return {piece: pieces[piece] - total for piece in by_score[:vocab_size]}


def _is_byte(piece: bytes) -> bool:
    return len(piece) == 1


def _score(way: Iterable[bytes], pieces: Mapping[bytes, float]) -> float:
    return math.fsum(pieces[piece] for piece in way)
