"""The n most probable segmentations of a text, exactly.

Pretokens are independent, so a segmentation of the text is a choice of one for each pretoken, and its loss against the
best is the sum of its losses in the pretokens that differ. A pretoken's segmentations are ranked by the
Viterbi algorithm with n ways kept at each byte, and only as far as they are needed; the sums are taken in order from a
heap. All comparisons of sums are exact: they are made on integers, for every float64 is a multiple of 2^-1074.

Source: n ways at each place, Chow and Schwartz, HLT 1989; sums in order, Lawler, Management Science 18 (1972), 401-405.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Float64s, Int64s, UInt8s, byte_buffers
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.pretokens.pretokenizer import pretoken_starts
from finpile_tokenizer.segmentations import _nbest_kernels
from finpile_tokenizer.trie.hashed import PieceIndex

_UNITS_PER_NAT = 1 << 1074

#: A pretoken of more bytes is worked on in blocks of about the square root of its length.
MIN_BLOCK_BYTES = 256
_FIRST_WAYS = 4


class _Sum(NamedTuple):
    """A segmentation of the text; the fields are in the order that decides which comes first."""

    loss: int
    """In units of 2^-1074 nats."""
    changes: tuple[tuple[int, int], ...]
    """`(pretoken, rank)` for each pretoken that is not segmented in the best way, the last pretoken first."""
    last: int
    """The last pretoken that is changed, in the order of the losses of their second best segmentations."""


def encode_nbest(index: PieceIndex, text: bytes, best_ids: list[int], n: int) -> list[tuple[list[int], float]]:
    """See `UnigramTokenizer.encode_nbest`; `best_ids` are those of `encode`."""
    if n < 1:
        raise TokenizerError(f"n is {n}: expected 1 or more")
    array = pa.array([text], pa.large_binary())
    _, data = byte_buffers(array)
    edges = np.append(pretoken_starts(array)[0], len(text))
    two_best = _nbest_kernels.two_best(
        data, edges, index.units, index.pieces, index.log_probs, MIN_BLOCK_BYTES, index.longest
    )
    ways = {
        pretoken: _Ways(index, data, int(edges[pretoken]), int(edges[pretoken + 1]))
        for pretoken in _cheapest_to_change(two_best, n - 1)
    }
    best = sum(map(_exact, two_best[:, 0].tolist()))
    tokens = np.searchsorted(np.cumsum(index.piece_bytes[best_ids]), edges, side="right").tolist()
    found = []
    for each in islice(_sums(ways), n):
        ids: list[int] = []
        done = 0
        for pretoken, rank in reversed(each.changes):
            ids += best_ids[done : tokens[pretoken]] + ways[pretoken].ids(rank)
            done = tokens[pretoken + 1]
        found.append((ids + best_ids[done:], (best - each.loss) / _UNITS_PER_NAT))
    return found


class _Ways:
    """The segmentations of one pretoken in order, ranked as far as requested so far."""

    def __init__(self, index: PieceIndex, data: UInt8s, start: int, stop: int) -> None:
        self._index, self._data, self._start, self._stop = index, data, start, stop
        self._scores: list[int] = []
        self._ids: list[list[int]] = []
        self._requested = 0

    def has(self, rank: int) -> bool:
        """Whether there are more than `rank` segmentations."""
        while rank >= self._requested and len(self._ids) == self._requested:
            self._requested = 2 * self._requested or _FIRST_WAYS
            scores, self._ids = best_ways(self._index, self._data, self._start, self._stop, self._requested)
            self._scores = [_exact(score) for score in scores.tolist()]
        return rank < len(self._ids)

    def loss(self, rank: int) -> int:
        """The loss of the segmentation of this rank against the best."""
        return self._scores[0] - self._scores[rank]

    def ids(self, rank: int) -> list[int]:
        """The segmentation of this rank."""
        return self._ids[rank]


def _cheapest_to_change(two_best: Float64s, most: int) -> list[int]:
    """The pretokens, at most `most`, whose second best segmentations lose least, in that order; of equals the first.

    No other pretoken is changed in the `most` best segmentations after the first: to change it alone is worse than to
    change any one of these alone.
    """
    open_ = np.flatnonzero(two_best[:, 1] > -np.inf)
    losses = two_best[open_, 0] - two_best[open_, 1]
    if most < len(open_):
        # Rounded losses are in the same order as exact ones, but for ties.
        open_ = open_[losses <= np.partition(losses, most)[most]]
    exact = {pretoken: _exact(two_best[pretoken, 0]) - _exact(two_best[pretoken, 1]) for pretoken in open_.tolist()}
    return sorted(exact, key=lambda pretoken: (exact[pretoken], pretoken))[:most]


def _sums(ways: dict[int, _Ways]) -> Iterator[_Sum]:
    """All choices of a segmentation for each pretoken, in order.

    `ways` is in the order of `_cheapest_to_change`. Each choice is reached from one other, which comes before it: the
    last changed pretoken was one rank better; or it was not changed; or the one before it was, instead.
    """
    pretokens = list(ways)
    yield _Sum(0, (), -1)
    heap = [_changed(_Sum(0, (), -1), ways, pretokens, 0, 1)] if pretokens else []
    while heap:
        here = heapq.heappop(heap)
        yield here
        rank = dict(here.changes)[pretokens[here.last]]
        if ways[pretokens[here.last]].has(rank + 1):
            heapq.heappush(heap, _changed(here, ways, pretokens, here.last, rank + 1))
        if here.last + 1 < len(pretokens):
            heapq.heappush(heap, _changed(here, ways, pretokens, here.last + 1, 1))
            if rank == 1:
                without = _changed(here, ways, pretokens, here.last, 0)
                heapq.heappush(heap, _changed(without, ways, pretokens, here.last + 1, 1))


def _changed(sum_: _Sum, ways: dict[int, _Ways], pretokens: list[int], last: int, rank: int) -> _Sum:
    """The same choice but for the rank in one pretoken."""
    pretoken = pretokens[last]
    ways[pretoken].has(rank)
    changes = dict(sum_.changes)
    loss = sum_.loss + ways[pretoken].loss(rank) - ways[pretoken].loss(changes.pop(pretoken, 0))
    if rank:
        changes[pretoken] = rank
    return _Sum(loss, tuple(sorted(changes.items(), reverse=True)), last)


def _exact(number: float) -> int:
    """A float64 in units of 2^-1074."""
    numerator, denominator = number.as_integer_ratio()
    return numerator * (_UNITS_PER_NAT // denominator)


def best_ways(index: PieceIndex, data: UInt8s, start: int, stop: int, n: int) -> tuple[Float64s, list[list[int]]]:
    """The scores and the ids of the n best segmentations of one pretoken, or of all there are.

    Of a long pretoken, the ways at the beginning of each block are kept, and the blocks are worked on again, from the
    last to the first, to follow the ways back: memory is about `32 * n * sqrt(pretoken bytes * longest piece)`.
    """
    length = stop - start
    block_bytes = min(length, max(MIN_BLOCK_BYTES, math.isqrt(length * index.longest)))
    rows = _Rows(index, block_bytes, n)
    beginnings = []
    for first in range(start, stop, block_bytes):
        if first > start:
            rows.carry()
        beginnings.append((first, rows.beginning()))
        rows.advance(data, first, stop)
    end = stop - beginnings[-1][0]
    scores = rows.scores[end, : rows.counts[end]].copy()
    at_rows, at_ranks = np.full(len(scores), end), np.arange(len(scores))
    parts = [rows.trace(at_rows, at_ranks)]
    for first, beginning in reversed(beginnings[:-1]):
        rows.begin(beginning)
        rows.advance(data, first, stop)
        at_rows += block_bytes
        parts.append(rows.trace(at_rows, at_ranks))
    return scores, [[piece for part in reversed(parts) for piece in part[way]] for way in range(len(scores))]


class _Rows:
    """The n best ways to each byte of a block: the arrays that `_nbest_kernels` works on."""

    def __init__(self, index: PieceIndex, block_bytes: int, n: int) -> None:
        self._index, self._block_bytes = index, block_bytes
        shape = (block_bytes + index.longest, n)
        self.scores = np.empty(shape, np.float64)
        self._pieces = np.empty(shape, np.int32)
        self._ranks = np.empty(shape, np.int32)
        self.counts = np.zeros(shape[0], np.int64)
        self.scores[0, 0] = 0.0
        self.counts[0] = 1

    @property
    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return self.scores, self._pieces, self._ranks, self.counts

    def advance(self, data: UInt8s, first: int, stop: int) -> None:
        """Extends the ways within the block that begins at byte `first` of a pretoken that ends at `stop`."""
        last = min(first + self._block_bytes, stop)
        index = self._index
        _nbest_kernels.advance(data, first, last, stop, index.units, index.pieces, index.log_probs, *self._arrays)

    def carry(self) -> None:
        """Continues with the next block."""
        _nbest_kernels.carry(self._block_bytes, *self._arrays)

    def beginning(self) -> tuple[npt.NDArray[Any], ...]:
        """A copy of the rows that a block begins with."""
        return tuple(array[: self._index.longest].copy() for array in self._arrays)

    def begin(self, beginning: tuple[npt.NDArray[Any], ...]) -> None:
        """Begins a block anew."""
        self.counts[:] = 0
        for array, rows in zip(self._arrays, beginning, strict=True):
            array[: len(rows)] = rows

    def trace(self, rows: Int64s, ranks: Int64s) -> list[list[int]]:
        """The ids of each way within the block; see `_nbest_kernels.trace`."""
        ids, counts = _nbest_kernels.trace(rows, ranks, self._pieces, self._ranks, self._index.piece_bytes)
        return [part.tolist() for part in np.split(ids, np.cumsum(counts)[:-1])]
