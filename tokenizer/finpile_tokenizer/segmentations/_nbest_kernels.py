"""The kernels of the n best segmentations of a pretoken; the conventions are those of `arrays._hash_kernels`.

The n best ways to each byte are kept in order: by falling score, summed from left to right; of equal scores, that with
the longer last piece first; then, that whose way to the last piece's start ranks higher there. The first of all is
that of `encode`. A way ends with the piece `pieces[row, rank]`, and continues the way of rank `ranks[row, rank]` to
that piece's start. Row i of a block that begins at byte `first` is that of byte `first + i`.

A long pretoken is worked on in blocks; only the last rows of a block are carried over to the next.
"""

from __future__ import annotations

import numpy as np

from finpile_tokenizer.arrays._array_kernels import fill
from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, UInt8s, UInt32s
from finpile_tokenizer.arrays.jit import inner, kernel
from finpile_tokenizer.trie._hashed_kernels import NO_SLOT, ROOT, TERMINAL, next_slot


@kernel
def advance(
    data: UInt8s,
    first: int,
    last: int,
    stop: int,
    units: UInt32s,
    index_pieces: Int32s,
    log_probs: Float64s,
    scores: Float64s,
    pieces: Int32s,
    ranks: Int32s,
    counts: Int64s,
) -> None:
    """Extends the ways to the bytes `first` to `last` of a pretoken that ends at `stop` by every piece there.

    `scores`, `pieces` and `ranks` have n columns, of which the first `counts[row]` are in use.
    """
    for position in range(first, last):
        slot = ROOT
        for at in range(position, stop):
            slot = next_slot(units, slot, data[at])
            if slot == NO_SLOT:
                break
            if units[slot] & TERMINAL:
                piece = index_pieces[slot]
                _merge(position - first, at + 1 - first, piece, log_probs[piece], scores, pieces, ranks, counts)


@inner
def _merge(
    source: int, target: int, piece: int, score: float, scores: Float64s, pieces: Int32s, ranks: Int32s, counts: Int64s
) -> None:
    """Merges the ways to `source`, each with the piece added, into those to `target`; of equals, the old go first."""
    most = scores.shape[1]
    num_old, num_new = counts[target], counts[source]
    if num_old == most and scores[source, 0] + score <= scores[target, most - 1]:
        return
    old, new = 0, 0
    while old + new < most and (old < num_old or new < num_new):
        if new == num_new or (old < num_old and scores[target, old] >= scores[source, new] + score):
            old += 1
        else:
            new += 1
    counts[target] = old + new
    # From the back, so that no row is overwritten before it is moved.
    while new > 0:
        into = old + new - 1
        if old > 0 and scores[target, old - 1] < scores[source, new - 1] + score:
            old -= 1
            scores[target, into] = scores[target, old]
            pieces[target, into] = pieces[target, old]
            ranks[target, into] = ranks[target, old]
        else:
            new -= 1
            scores[target, into] = scores[source, new] + score
            pieces[target, into] = piece
            ranks[target, into] = new


@kernel
def carry(num_rows: int, scores: Float64s, pieces: Int32s, ranks: Int32s, counts: Int64s) -> None:
    """Makes the rows from `num_rows` on the first ones, and all others empty."""
    for row in range(counts.size):
        counts[row] = counts[row + num_rows] if row + num_rows < counts.size else 0
        for rank in range(counts[row]):
            scores[row, rank] = scores[row + num_rows, rank]
            pieces[row, rank] = pieces[row + num_rows, rank]
            ranks[row, rank] = ranks[row + num_rows, rank]


@kernel
def trace(rows: Int64s, at_ranks: Int64s, pieces: Int32s, ranks: Int32s, piece_bytes: Int64s) -> tuple[Int32s, Int64s]:
    """Follows ways back through one block: `(the pieces of all, from left to right; how many of each)`.

    `rows` and `at_ranks` are the place of each way; they are set to the place at which it leaves the block: row 0 or
    before.
    """
    counts = np.zeros(rows.size, np.int64)
    for way in range(rows.size):
        row, rank = rows[way], at_ranks[way]
        while row > 0:
            counts[way] += 1
            row, rank = row - piece_bytes[pieces[row, rank]], np.int64(ranks[row, rank])
    ids = np.empty(counts.sum(), np.int32)
    stop = 0
    for way in range(rows.size):
        stop += counts[way]
        at, row, rank = stop, rows[way], at_ranks[way]
        while row > 0:
            at -= 1
            ids[at] = pieces[row, rank]
            row, rank = row - piece_bytes[pieces[row, rank]], np.int64(ranks[row, rank])
        rows[way], at_ranks[way] = row, rank
    return ids, counts


@kernel
def two_best(
    data: UInt8s,
    edges: Int64s,
    units: UInt32s,
    index_pieces: Int32s,
    log_probs: Float64s,
    num_rows: int,
    longest: int,
) -> Float64s:
    """The scores of the best and the second best segmentation of each pretoken, or -inf if there is no second.

    Pretoken i is `data[edges[i]:edges[i + 1]]`. Blocks have `num_rows` rows and are all that is kept.
    """
    best = np.full((edges.size - 1, 2), -np.inf)
    scores = np.empty((num_rows + longest, 2), np.float64)
    pieces, ranks = np.empty(scores.shape, np.int32), np.empty(scores.shape, np.int32)
    counts = np.zeros(num_rows + longest, np.int64)
    for pretoken in range(edges.size - 1):
        first, stop = edges[pretoken], edges[pretoken + 1]
        scores[0, 0] = 0.0
        counts[0] = 1
        while stop - first > num_rows:
            advance(data, first, first + num_rows, stop, units, index_pieces, log_probs, scores, pieces, ranks, counts)
            carry(num_rows, scores, pieces, ranks, counts)
            first += num_rows
        advance(data, first, stop, stop, units, index_pieces, log_probs, scores, pieces, ranks, counts)
        for rank in range(counts[stop - first]):
            best[pretoken, rank] = scores[stop - first, rank]
        fill(counts[: stop - first + 1], 0)
    return best
