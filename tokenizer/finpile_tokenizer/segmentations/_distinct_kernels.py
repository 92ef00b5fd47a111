"""The kernels of sampling without replacement; the conventions are those of `_segmentation_kernels`.

Every segmentation has a perturbed score: its log probability plus a Gumbel number of its own. The k largest are a
sample without replacement. They are found from the top: the largest score of the whole lattice is drawn first, then, at
each choice, the largest score of each piece there; only candidates for the k largest are followed.

Source: Kool, van Hoof and Welling, ICML 2019 (arXiv:1903.06059), sections 3 and 4; here the best first, not a beam.
"""

from __future__ import annotations

import math

import numpy as np

from finpile_tokenizer.arrays._array_kernels import doubled
from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, UInt8s, UInt32s
from finpile_tokenizer.arrays.jit import inner, kernel
from finpile_tokenizer.segmentations._segmentation_kernels import (
    drawn,
    fill_choices,
    fill_document,
    stream_key,
    uniform,
)

_FIRST_ROOM = 1 << 10


@inner
def _capped(gumbel: float, peak: float, cap: float) -> float:
    """A Gumbel value conditioned on the largest of its siblings' being `cap`; unconditioned, that largest is `peak`.

    Source: Kool, van Hoof and Welling, ICML 2019 (arXiv:1903.06059), appendix B.3.
    """
    if gumbel == peak:
        return cap
    # Where the gap is wide, its part in the sum is less than the sum's rounding.
    shift = cap - gumbel + math.log(-math.expm1(gumbel - peak))
    return cap - max(0.0, shift) - math.log1p(math.exp(-abs(shift)))


@kernel
def sample_distinct(
    data: UInt8s,
    k: int,
    seed: np.uint64,
    classes: UInt8s,
    units: UInt32s,
    pieces: Int32s,
    piece_bytes: Int64s,
    scores: Float64s,
    longest: int,
) -> tuple[Int32s, Int64s, Float64s, Float64s]:
    """The segmentations of one text that have the `k` largest perturbed scores, these falling; all if fewer exist.

    Returns `(all ids, number of ids of each, log probability of each, perturbed score of each)`. Takes 16 bytes for
    each byte of the text and 44 for each choice in each segmentation followed, of which there are about `k`.
    """
    end = data.size
    log_beta = np.empty(end, np.float64)
    terms, choices = np.empty(longest, np.float64), np.empty(longest, np.int32)
    gumbels, child_keys = np.empty(longest, np.float64), np.empty(longest, np.uint64)
    fill_document(data, 0, end, classes, units, pieces, scores, terms, log_beta)

    # A node is a segmentation of the text up to `position`; node 0 is that of nothing. Where one piece alone begins,
    # there is no choice and hence no node; the piece is noted in `forced`.
    forced = np.full(end, -1, np.int32)
    parents, last_pieces = np.zeros(_FIRST_ROOM, np.int64), np.zeros(_FIRST_ROOM, np.int32)
    positions, keys = np.zeros(_FIRST_ROOM, np.int64), np.zeros(_FIRST_ROOM, np.uint64)
    log_probs, perturbed = np.zeros(_FIRST_ROOM, np.float64), np.zeros(_FIRST_ROOM, np.float64)
    keys[0] = stream_key(seed, 0, 0)
    perturbed[0] = -math.log(-math.log(uniform(keys[0])))
    num_nodes = 1
    # The nodes still to be followed, their perturbed scores rising; more than k are never needed.
    waiting = np.zeros(_FIRST_ROOM, np.int64)
    num_waiting = 1
    found = np.zeros(_FIRST_ROOM, np.int64)
    num_found = 0
    while num_waiting > 0 and num_found < k:
        num_waiting -= 1
        node = waiting[num_waiting]
        position, num_choices = positions[node], 0
        while position < end:
            if forced[position] < 0:
                num_choices = fill_choices(
                    data, position, 0, end, classes, units, pieces, scores, log_beta, terms, choices
                )
                if num_choices > 1:
                    break
                forced[position] = choices[0]
            position += piece_bytes[forced[position]]
        if position == end:
            if num_found == found.size:
                found = doubled(found)
            found[num_found] = node
            num_found += 1
            continue
        peak = -np.inf
        for index in range(num_choices):
            child_keys[index] = drawn(keys[node], piece_bytes[choices[index]])
            terms[index] += log_probs[node]
            gumbels[index] = terms[index] - math.log(-math.log(uniform(child_keys[index])))
            peak = max(peak, gumbels[index])
        for index in range(num_choices):
            value = _capped(gumbels[index], peak, perturbed[node])
            if num_waiting == k and value <= perturbed[waiting[0]]:
                continue
            if num_nodes == parents.size:
                parents, last_pieces, positions = doubled(parents), doubled(last_pieces), doubled(positions)
                keys, log_probs, perturbed = doubled(keys), doubled(log_probs), doubled(perturbed)
            parents[num_nodes], last_pieces[num_nodes] = node, choices[index]
            positions[num_nodes] = position + piece_bytes[choices[index]]
            keys[num_nodes], log_probs[num_nodes], perturbed[num_nodes] = child_keys[index], terms[index], value
            if num_waiting == waiting.size:
                waiting = doubled(waiting)
            num_waiting = _insert(waiting, num_waiting, k, num_nodes, perturbed)
            num_nodes += 1
    ids, counts = _ways(parents, last_pieces, positions, found[:num_found], forced, piece_bytes)
    return ids, counts, log_probs[found[:num_found]], perturbed[found[:num_found]]


@inner
def _insert(waiting: Int64s, num_waiting: int, most: int, node: int, perturbed: Float64s) -> int:
    """Inserts a node in the rising order; if `most` wait, the first is dropped. Returns how many wait."""
    if num_waiting == most:
        place = 0
        while place + 1 < num_waiting and perturbed[waiting[place + 1]] < perturbed[node]:
            waiting[place] = waiting[place + 1]
            place += 1
        waiting[place] = node
        return num_waiting
    place = num_waiting
    while place > 0 and perturbed[waiting[place - 1]] > perturbed[node]:
        waiting[place] = waiting[place - 1]
        place -= 1
    waiting[place] = node
    return num_waiting + 1


@inner
def _ways(
    parents: Int64s, last_pieces: Int32s, positions: Int64s, ends: Int64s, forced: Int32s, piece_bytes: Int64s
) -> tuple[Int32s, Int64s]:
    """The pieces of the segmentations that the nodes `ends` lead to: `(all of them, how many of each)`."""
    counts = np.zeros(ends.size, np.int64)
    ids = np.empty(_FIRST_ROOM, np.int32)
    chosen = np.zeros(forced.size, np.int32)
    total = 0
    for index in range(ends.size):
        node = ends[index]
        while node > 0:
            chosen[positions[node] - piece_bytes[last_pieces[node]]] = last_pieces[node]
            node = parents[node]
        before, position = total, 0
        while position < forced.size:
            piece = forced[position] if forced[position] >= 0 else chosen[position]
            if total == ids.size:
                ids = doubled(ids)
            ids[total] = piece
            total += 1
            position += piece_bytes[piece]
        counts[index] = total - before
    return ids[:total].copy(), counts
