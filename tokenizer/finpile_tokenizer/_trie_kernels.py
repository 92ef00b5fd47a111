"""The loops that build the trie and encode by it, compiled by Numba; the conventions are those of `_kernels`."""

from __future__ import annotations

import numba
import numpy as np

from finpile_tokenizer._buffers import Float64s, Int32s, Int64s, UInt8s, UInt32s
from finpile_tokenizer._kernels import doubled, pretoken_stop

# A unit of the trie: 22 bits of base, one terminal flag, one flag for "in use", 8 bits of label.
LABEL_AND_USE = np.uint32(0x1FF)
IN_USE = np.uint32(0x100)
TERMINAL = np.uint32(0x200)
BASE_SHIFT = np.uint32(10)
MAX_SLOTS = 1 << 22
_BLOCK = 256
#: Free slots tried for a node's children before a fresh block is opened: from the list's end, and from its beginning.
_MAX_TRIES = 1024
_MAX_OLD_TRIES = 64

_ONE = np.uint64(1)
#: Room at first, in bytes, for the way back through one pretoken.
_FIRST_LENGTH = 1 << 12


@numba.njit(cache=True, nogil=True)
def _append_free(first: int, last: int, next_free: Int64s, previous_free: Int64s, tail: int) -> int:
    """Links the slots `first` to `last` behind `tail` of the list of free slots; returns the new tail."""
    for slot in range(first, last):
        next_free[tail] = slot
        previous_free[slot] = tail
        tail = slot
    next_free[tail] = -1
    return tail


@numba.njit(cache=True, nogil=True)
def _fits(base: int, labels: Int64s, num_labels: int, taken: UInt8s, base_used: UInt8s) -> bool:
    if base == 0 or base_used[base]:
        return False
    for index in range(num_labels):  # noqa: SIM110 - Numba compiles no generator
        if taken[base ^ labels[index]]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def _find_base(
    labels: Int64s,
    num_labels: int,
    next_free: Int64s,
    previous_free: Int64s,
    tail: int,
    taken: UInt8s,
    base_used: UInt8s,
) -> int:
    """An unused base with which the slots of all these labels are free, or 0.

    An only child fills the oldest hole. Several go into a newer block, where holes lie side by side; so does an only
    child whom the oldest holes do not suit, for their bases may all be used.
    """
    if num_labels == 1:
        candidate = next_free[0]
        for _ in range(_MAX_OLD_TRIES):
            if candidate < 0:
                break
            base: int = candidate ^ labels[0]
            if _fits(base, labels, num_labels, taken, base_used):
                return base
            candidate = next_free[candidate]
    candidate = tail
    for _ in range(_MAX_TRIES):
        if candidate == 0:
            break
        base = candidate ^ labels[0]
        if _fits(base, labels, num_labels, taken, base_used):
            return base
        candidate = previous_free[candidate]
    return 0


@numba.njit(cache=True, nogil=True)
def _unlink(slot: int, next_free: Int64s, previous_free: Int64s, tail: int) -> int:
    """Takes the slot out of the list of free slots; returns the list's tail."""
    before: int = previous_free[slot]
    after: int = next_free[slot]
    next_free[before] = after
    if after < 0:
        return before
    previous_free[after] = before
    return tail


@numba.njit(cache=True, nogil=True)
def _children(offsets: Int64s, data: UInt8s, low: int, high: int, depth: int, labels: Int64s, edges: Int64s) -> int:
    """Groups the pieces `low` to `high` by their byte at `depth`: fills `labels` and the `edges` between the groups."""
    num_labels = 0
    for piece in range(low, high):
        label = np.int64(data[offsets[piece] + depth])
        if num_labels == 0 or labels[num_labels - 1] != label:
            labels[num_labels] = label
            edges[num_labels] = piece
            num_labels += 1
    edges[num_labels] = high
    return num_labels


@numba.njit(cache=True, nogil=True)
def build_trie(offsets: Int64s, data: UInt8s, ids: Int32s) -> tuple[UInt32s, Int32s, bool]:
    """Lays the trie of the pieces (distinct, not empty, sorted by bytes) out as a double array.

    Returns `(units, piece of each slot or -1, fits)`; slot 0 is the root; `fits` is False when 22 bits of base are too
    few. The child by byte c of a node with base b is slot b ^ c. No two nodes share a base, and base 0 is kept for
    leaves: so a slot reached by c whose label is c is the child, and no one else's.
    """
    units = np.zeros(_BLOCK, np.uint32)
    pieces = np.zeros(_BLOCK, np.int32)  # the id plus one; 0 where no piece ends
    taken = np.zeros(_BLOCK, np.uint8)
    base_used = np.zeros(_BLOCK, np.uint8)
    # Slot 0, the root, is never free and serves as the head of the list of free slots.
    next_free = np.zeros(_BLOCK, np.int64)
    previous_free = np.zeros(_BLOCK, np.int64)
    taken[0] = 1
    tail = _append_free(1, _BLOCK, next_free, previous_free, 0)
    num_slots = _BLOCK

    # Breadth first, so that the nodes nearest to the root, the hottest, lie together.
    nodes = np.zeros((offsets[-1] - offsets[0] + 1, 4), np.int64)  # slot, first piece, last piece, depth
    nodes[0, 2] = offsets.size - 1
    num_nodes, node = 1, 0
    labels, edges = np.empty(_BLOCK, np.int64), np.empty(_BLOCK + 1, np.int64)
    while node < num_nodes:
        slot, low, high, depth = nodes[node]
        node += 1
        if low < high and offsets[low + 1] - offsets[low] == depth:
            units[slot] |= TERMINAL
            pieces[slot] = ids[low] + 1
            low += 1
        num_labels = _children(offsets, data, low, high, depth, labels, edges)
        if num_labels == 0:
            continue
        base = _find_base(labels, num_labels, next_free, previous_free, tail, taken, base_used)
        if base == 0:
            if num_slots + _BLOCK > MAX_SLOTS:
                return units, pieces, False
            if num_slots == units.size:
                units, pieces, taken, base_used = doubled(units), doubled(pieces), doubled(taken), doubled(base_used)
                next_free, previous_free = doubled(next_free), doubled(previous_free)
            base = num_slots
            num_slots += _BLOCK
            tail = _append_free(base, num_slots, next_free, previous_free, tail)
        base_used[base] = 1
        units[slot] |= np.uint32(base) << BASE_SHIFT
        for index in range(num_labels):
            child = base ^ labels[index]
            taken[child] = 1
            units[child] = IN_USE | np.uint32(labels[index])
            tail = _unlink(child, next_free, previous_free, tail)
            nodes[num_nodes, 0] = child
            nodes[num_nodes, 1] = edges[index]
            nodes[num_nodes, 2] = edges[index + 1]
            nodes[num_nodes, 3] = depth + 1
            num_nodes += 1
    return units[:num_slots].copy(), pieces[:num_slots] - np.int32(1), True


@numba.njit(cache=True, nogil=True)
def encode_documents(
    offsets: Int64s,
    data: UInt8s,
    first: int,
    last: int,
    classes: UInt8s,
    units: UInt32s,
    scores: Float64s,
    pieces: Int32s,
    piece_bytes: Int64s,
    ring: Float64s,
) -> tuple[Int32s, Int64s]:
    """Best segmentation of documents `first` to `last`: `(ids of all, number of ids of each)`.

    Within a pretoken, scores start at 0.0 and `best[end] = best[start] + score` is replaced only by a strictly greater
    sum, starts from left to right and pieces from short to long: the order of additions, and hence the rounding and
    the choice among ties, of the Unigram model in HF tokenizers (encode_optimized, models/unigram/model.rs).

    `ring` holds the best scores of the next positions only (its length a power of two above the longest piece), all
    -inf between calls; the way back takes 4 bytes for each byte of the longest pretoken.
    """
    mask = np.uint64(ring.size - 1)
    minus_infinity = -np.inf
    counts = np.zeros(last - first, np.int64)
    ids = np.empty(offsets[last] - offsets[first], np.int32)
    came_by = np.zeros(_FIRST_LENGTH, np.int32)
    total = 0
    for document in range(first, last):
        before = total
        position = offsets[document]
        end = offsets[document + 1]
        while position < end:
            stop = pretoken_stop(data, position, end, classes)
            while came_by.size <= stop - position:
                came_by = np.zeros(2 * came_by.size, np.int32)
            origin = np.uint64(position)
            limit = np.uint64(stop)
            ring[origin & mask] = 0.0
            start = origin
            while start < limit:
                so_far = ring[start & mask]
                ring[start & mask] = minus_infinity
                unit = units[0]
                at = start
                while at < limit:
                    byte = np.uint32(data[at])
                    slot = (unit >> BASE_SHIFT) ^ byte
                    unit = units[slot]
                    if (unit & LABEL_AND_USE) != (byte | IN_USE):
                        break
                    at += _ONE
                    if unit & TERMINAL:
                        score = so_far + scores[slot]
                        if score > ring[at & mask]:
                            ring[at & mask] = score
                            came_by[at - origin] = slot
                start += _ONE
            ring[limit & mask] = minus_infinity
            here = stop - position
            tokens_before = total
            while here > 0:
                piece = pieces[came_by[here]]
                ids[total] = piece
                total += 1
                here -= piece_bytes[piece]
            low, high = tokens_before, total - 1
            while low < high:
                ids[low], ids[high] = ids[high], ids[low]
                low += 1
                high -= 1
            position = stop
        counts[document - first] = total - before
    return ids[:total].copy(), counts
