"""The seed vocabulary: the substrings of the pretokens with the highest score, frequency times length.

Candidates are the strings of 2 to `max_piece_bytes` bytes within one pretoken that are followed by different bytes or
by the pretoken's end: the nodes of the suffix tree. A string that is always followed by the same byte is not a
candidate, because the longer string occurs as often. Frequencies are those of the text: a position counts as often as
its pretoken occurs.

The suffixes are sorted only as far as a piece may reach, so no full suffix array is built: 4 bytes a position.

Source: Kudo, "Subword Regularization" (arXiv:1804.10959), section 3.2, has the seeds from a suffix array; the
frequencies and the strings that end a pretoken are additions: SentencePiece's trainer omitted both.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, UInt8s, byte_buffers, ranges_of
from finpile_tokenizer.arrays.groups import gather_ranges
from finpile_tokenizer.arrays.threads import map_threads
from finpile_tokenizer.pretokens.counts import PretokenCounts
from finpile_tokenizer.training import _seed_kernels
from finpile_tokenizer.training._seed_kernels import LEFT, LENGTH, NUM_COLUMNS, SCORE, WIDTH
from finpile_tokenizer.training.lattice import NO_PIECE, Lattices, packed_links

#: Source: SentencePiece's default for seed_sentencepiece_size.
SEED_SIZE = 1_000_000
#: Piece numbers have to fit 23 bits, the bytes among them.
MOST_SEEDS = (1 << 23) - 256
#: A suffix is read up to the byte after the longest piece, and that length has to fit 8 bits.
LONGEST_PIECE_BYTES = 254

#: Buckets are handed to threads in ranges of about this many positions.
_RANGE_POSITIONS = 1 << 17
#: Room for the candidates of a range to begin with.
_FIRST_CANDIDATES = 1 << 12
#: Candidates for each one wanted that are held before the worst are dropped.
_MORE_THAN_WANTED = 1.25
#: The first pretoken of each 16 positions is noted, to find a position's pretoken by.
_OWNER_SHIFT = 4


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Seeds:
    """The seed pieces: first the bytes that occur, by value, then strings by falling score, ties by their bytes."""

    pieces: pa.LargeBinaryArray
    scores: Float64s
    """Frequency times length."""
    lattices: Lattices
    """The pretokens' lattices over these pieces."""
    places: Int64s
    """For each piece, a position in the pretokens' bytes at which it occurs."""
    order: Int64s
    """The numbers of the pieces: the single bytes, then strings in the order of their bytes."""


def find_seeds(
    counts: PretokenCounts, *, max_piece_bytes: int, seed_size: int = SEED_SIZE, num_threads: int = 1
) -> Seeds:
    """The bytes that occur and the `seed_size` best candidates; the same for any number of threads."""
    text = _Text.of(counts, max_piece_bytes)
    suffixes = _sort_suffixes(text, max_piece_bytes, seed_size, num_threads)
    strings = suffixes.candidates
    by_score = np.argsort(-strings[:, SCORE], kind="stable")
    values, firsts, frequencies = _bytes_that_occur(text)
    places = np.concatenate([firsts, suffixes.ranks[strings[by_score, LEFT]]]).astype(np.int64)
    lengths = np.concatenate([np.ones(len(values), np.int64), strings[by_score, LENGTH]])
    numbers = np.empty(len(by_score), np.int32)
    numbers[by_score] = np.arange(len(values), len(lengths), dtype=np.int32)
    return Seeds(
        pieces=gather_ranges(text.data, places, lengths),
        scores=np.concatenate([frequencies, strings[by_score, SCORE]]).astype(np.float64),
        lattices=_lattices(text, suffixes, values, lengths, numbers, num_threads),
        places=places,
        order=np.concatenate([np.arange(len(values)), numbers]),
    )


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class _Text:
    """The pretokens one after the other."""

    offsets: Int64s
    data: UInt8s
    frequencies: Int64s
    remaining: UInt8s
    """From each position, the bytes to its pretoken's end, or one more than a piece may have."""
    owners: Int64s
    """The pretoken that each block of `1 << _OWNER_SHIFT` positions begins in."""

    @classmethod
    def of(cls, counts: PretokenCounts, max_piece_bytes: int) -> _Text:
        offsets, data = byte_buffers(counts.pretokens)
        data, offsets = data[offsets[0] : offsets[-1]], offsets - offsets[0]
        blocks = np.arange(0, len(data), 1 << _OWNER_SHIFT)
        remaining = np.empty(len(data), np.uint8)
        _seed_kernels.fill_remaining(offsets, max_piece_bytes + 1, remaining)
        return cls(
            offsets=offsets,
            data=data,
            frequencies=counts.frequencies,
            remaining=remaining,
            owners=np.searchsorted(offsets, blocks, side="right") - 1,
        )


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class _Suffixes:
    """All positions in the order of the bytes from there to the pretoken's end."""

    ranks: Int32s | Int64s
    """The positions in order; int32 if that suffices."""
    candidates: Int64s
    """The best, in the order of their bytes; columns LEFT, WIDTH, LENGTH and SCORE."""
    ranges: list[tuple[int, int]]
    """Ranges of ranks whose candidates lie within them."""


def _sort_suffixes(text: _Text, max_piece_bytes: int, seed_size: int, num_threads: int) -> _Suffixes:
    ranks = _room_for_positions(len(text.data))
    bounds = np.zeros(_seed_kernels.NUM_BUCKETS + 2, np.int64)
    _seed_kernels.bucket_positions(text.data, text.remaining, ranks, bounds)
    bounds = bounds[:-1]
    best = _Best(seed_size)

    def scan(buckets: tuple[int, int]) -> None:
        first, last = buckets
        widest = int(np.diff(bounds[first : last + 1]).max())
        sort_and_scan = _seed_kernels.sort_and_scan
        found, total = sort_and_scan(
            text.data, text.remaining, text.frequencies, text.owners, text.offsets, _OWNER_SHIFT,
            ranks, bounds, first, last, max_piece_bytes, best.least, *_scan_room(widest, ranks.dtype),
        )  # fmt: skip
        best.add(found[: NUM_COLUMNS * total].reshape(total, NUM_COLUMNS))

    ranges = ranges_of(bounds, _RANGE_POSITIONS)
    map_threads(scan, ranges, num_threads)
    return _Suffixes(
        ranks=ranks,
        candidates=best.in_order(),
        ranges=[(int(bounds[first]), int(bounds[last])) for first, last in ranges],
    )


def _scan_room(widest: int, position_type: np.dtype[Any]) -> tuple[npt.NDArray[Any], ...]:
    """The arrays that `_seed_kernels.sort_and_scan` works in, for buckets of up to `widest` positions."""
    return (
        np.zeros(widest + 1, np.uint8),
        np.empty(widest, np.uint64),
        np.empty(widest, np.uint64),
        np.empty(widest, position_type),
        np.empty(widest + 1, np.int64),
        np.empty(2 * _seed_kernels.NESTED + 256 + _seed_kernels.STACK_NUMBERS, np.int64),
        np.empty(3 * (widest // 2 + 1), np.int64),
        np.empty(_FIRST_CANDIDATES * NUM_COLUMNS, np.int64),
    )


def _room_for_positions(size: int) -> Int32s | Int64s:
    return np.empty(size, np.int32) if size < 1 << 31 else np.empty(size, np.int64)


class _Best:
    """The candidates of highest score; those that cannot be among them are dropped early."""

    def __init__(self, num_wanted: int) -> None:
        self.least = 0
        """A candidate of a lower score is not among the best."""
        self._num_wanted = num_wanted
        self._found = list[Int64s]()
        self._lock = threading.Lock()

    def add(self, candidates: Int64s) -> None:
        with self._lock:
            self._found.append(candidates[candidates[:, SCORE] >= self.least])
            if sum(map(len, self._found)) <= _MORE_THAN_WANTED * self._num_wanted:
                return
            found, self._found = self._found, []
        found = self._best_of(found)  # other threads go on adding meanwhile
        with self._lock:
            self._found += found

    def in_order(self) -> Int64s:
        """At most the number wanted, in the order of their bytes; of equal scores, the first ones are chosen."""
        found = np.concatenate([np.empty((0, NUM_COLUMNS), np.int64), *self._best_of(self._found)])
        found = found[np.argsort(found[:, LEFT] << 8 | found[:, LENGTH])]
        above = found[:, SCORE] > self.least
        chosen = above | (np.cumsum(~above) <= self._num_wanted - above.sum())
        best: Int64s = found[chosen]
        return best

    def _best_of(self, found: list[Int64s]) -> list[Int64s]:
        """Those that are not worse than the last of the number wanted."""
        scores = np.concatenate([np.empty(0, np.int64), *(part[:, SCORE] for part in found)])
        if self._num_wanted == 0:
            return []
        if len(scores) > self._num_wanted:
            self.least = max(self.least, int(np.partition(scores, -self._num_wanted)[-self._num_wanted]))
            found = [part[part[:, SCORE] >= self.least] for part in found]
        return found


def _bytes_that_occur(text: _Text) -> tuple[Int64s, Int64s, Int64s]:
    """The byte values, a position of each, and their frequencies in the text that was counted."""
    frequencies, firsts = np.zeros(256, np.int64), np.full(256, -1, np.int64)
    _seed_kernels.byte_frequencies(text.offsets, text.data, text.frequencies, frequencies, firsts)
    values = np.flatnonzero(frequencies)
    return values, firsts[values], frequencies[values]


def _lattices(
    text: _Text, suffixes: _Suffixes, values: Int64s, lengths: Int64s, numbers: Int32s, num_threads: int
) -> Lattices:
    """The lattices over the bytes and the candidates, which have these `numbers`."""
    byte_numbers = np.zeros(256, np.int32)
    byte_numbers[values] = np.arange(len(values), dtype=np.int32)
    longest_piece_at = byte_numbers[text.data]
    parents = np.full(len(lengths), NO_PIECE, np.int32)
    lefts = suffixes.candidates[:, LEFT].copy()
    parents[numbers] = byte_numbers[text.data[suffixes.ranks[lefts]]]
    widths = suffixes.candidates[:, WIDTH].copy()

    def assign(ranks: tuple[int, int]) -> None:
        first, last = np.searchsorted(lefts, ranks)
        stack = np.empty(2 * _seed_kernels.NESTED, np.int64)
        _seed_kernels.assign_longest(
            suffixes.ranks, *ranks, lefts, widths, numbers, first, last, stack, longest_piece_at, parents
        )

    map_threads(assign, suffixes.ranges, num_threads)
    return Lattices(
        offsets=text.offsets,
        frequencies=text.frequencies,
        longest_piece_at=longest_piece_at,
        prefix_links=packed_links(parents, lengths),
    )
