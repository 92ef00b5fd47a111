"""The loops that lay a trie out as a double array, compiled by Numba; the conventions are those of `_kernels`."""

from __future__ import annotations

import numba
import numpy as np

from finpile_tokenizer.arrays.buffers import Int32s, Int64s, UInt8s
from finpile_tokenizer.pretokens._kernels import doubled

_BLOCK = 256
#: The root's base is 0, so its child by byte c is slot c; the first block is kept for them.
ROOT_SLOT = 256
#: No node's base, hence that of those without children: what is found by it is labelled otherwise.
NO_BASE = 256
#: A slot's number must fit the 24 bits of a unit (see `_automaton_kernels`).
MAX_SLOTS = 1 << 24

#: Free slots tried for a node's children before a fresh block is opened: from the list's end, and from its beginning.
_MAX_TRIES = 1024
_MAX_OLD_TRIES = 64
#: Eight units of 64 bits are a cache line. Up to so many children are put into their parent's line if they fit.
_LINE = 8
_MAX_NEAR = 3


@numba.njit(cache=True, nogil=True)
def fill_nodes(
    offsets: Int64s, data: UInt8s, ids: Int32s, num_nodes: int, longest: int
) -> tuple[Int32s, UInt8s, Int32s, Int32s]:
    """The trie of pieces in order of their bytes: `(parent, label, depth, piece or -1)` of each node.

    Nodes are numbered in preorder, children by their labels; node 0 is the root.
    """
    parents = np.zeros(num_nodes, np.int32)
    labels = np.zeros(num_nodes, np.uint8)
    depths = np.zeros(num_nodes, np.int32)
    pieces = np.full(num_nodes, -1, np.int32)
    path = np.zeros(longest + 1, np.int32)
    total = 1
    for piece in range(ids.size):
        begin, end = offsets[piece], offsets[piece + 1]
        shared = 0
        if piece > 0:
            before = offsets[piece - 1]
            most = min(begin - before, end - begin)
            while shared < most and data[before + shared] == data[begin + shared]:
                shared += 1
        for depth in range(shared + 1, end - begin + 1):
            parents[total] = path[depth - 1]
            labels[total] = data[begin + depth - 1]
            depths[total] = depth
            path[depth] = total
            total += 1
        pieces[path[end - begin]] = ids[piece]
    return parents, labels, depths, pieces


@numba.njit(cache=True, nogil=True)
def _group_by_parent(parents: Int32s) -> tuple[Int32s, Int32s]:
    """`(starts, children)`: the children of node n are `children[starts[n]:starts[n + 1]]`."""
    num_nodes = parents.size
    starts = np.zeros(num_nodes + 1, np.int32)
    for node in range(1, num_nodes):
        starts[parents[node] + 1] += 1
    for node in range(num_nodes):
        starts[node + 1] += starts[node]
    filled = starts.copy()
    children = np.zeros(num_nodes, np.int32)
    for node in range(1, num_nodes):
        children[filled[parents[node]]] = node
        filled[parents[node]] += 1
    return starts, children


@numba.njit(cache=True, nogil=True)
def _append_free(first: int, last: int, next_free: Int32s, previous_free: Int32s, tail: int) -> int:
    """Links the slots `first` to `last` behind `tail` of the list of free slots; returns the new tail."""
    for slot in range(first, last):
        next_free[tail] = slot
        previous_free[slot] = tail
        tail = slot
    next_free[tail] = -1
    return tail


@numba.njit(cache=True, nogil=True)
def _unlink(slot: int, next_free: Int32s, previous_free: Int32s, tail: int) -> int:
    """Takes the slot out of the list of free slots; returns the list's tail."""
    before: int = previous_free[slot]
    after: int = next_free[slot]
    next_free[before] = after
    if after < 0:
        return before
    previous_free[after] = before
    return tail


@numba.njit(cache=True, nogil=True)
def _fits(base: int, labels: Int64s, num_labels: int, taken: UInt8s, base_used: UInt8s) -> bool:
    if base_used[base]:
        return False
    for index in range(num_labels):  # noqa: SIM110 - Numba compiles no generator
        if taken[base ^ labels[index]]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def _find_base(
    slot: int,
    labels: Int64s,
    num_labels: int,
    next_free: Int32s,
    previous_free: Int32s,
    tail: int,
    taken: UInt8s,
    base_used: UInt8s,
) -> int:
    """An unused base with which the slots of all these labels are free, or -1.

    A few go near their parent, in `slot`. Failing that, an only child fills the oldest hole. Several go into a newer
    block, where holes lie side by side; so does an only child whom the oldest holes do not suit, for their bases may
    all be used.
    """
    if num_labels <= _MAX_NEAR:
        line = slot - slot % _LINE
        for near in range(line, line + _LINE):
            base: int = near ^ labels[0]
            if _fits(base, labels, num_labels, taken, base_used):
                return base
    if num_labels == 1:
        candidate = next_free[ROOT_SLOT]
        for _ in range(_MAX_OLD_TRIES):
            if candidate < 0:
                break
            base = candidate ^ labels[0]
            if _fits(base, labels, num_labels, taken, base_used):
                return base
            candidate = next_free[candidate]
    candidate = tail
    for _ in range(_MAX_TRIES):
        if candidate == ROOT_SLOT:
            break
        base = candidate ^ labels[0]
        if _fits(base, labels, num_labels, taken, base_used):
            return base
        candidate = previous_free[candidate]
    return -1


@numba.njit(cache=True, nogil=True)
def place_nodes(parents: Int32s, labels: UInt8s) -> tuple[Int32s, Int32s, int]:
    """Lays the nodes out: `(slot of each node, base of each node, number of slots)`; 0 slots if there are too many.

    The child by byte c of a node with base b is in slot b ^ c. No two nodes share a base: so a slot reached by c that
    holds a node labelled c holds the child, and no one else's. Nodes are placed in preorder, so that those of one path
    lie close together.
    """
    starts, children = _group_by_parent(parents)
    slots = np.zeros(parents.size, np.int32)
    bases = np.full(parents.size, NO_BASE, np.int32)
    num_slots = 2 * _BLOCK
    taken = np.zeros(num_slots, np.uint8)
    base_used = np.zeros(num_slots, np.uint8)
    # The root's own slot is never free and serves as the head of the list of free slots.
    next_free = np.zeros(num_slots, np.int32)
    previous_free = np.zeros(num_slots, np.int32)
    slots[0], bases[0] = ROOT_SLOT, 0
    taken[: ROOT_SLOT + 1] = 1
    base_used[0] = base_used[NO_BASE] = 1
    for index in range(starts[0], starts[1]):
        slots[children[index]] = labels[children[index]]
    tail = _append_free(ROOT_SLOT + 1, num_slots, next_free, previous_free, np.int64(ROOT_SLOT))
    wanted = np.empty(_BLOCK, np.int64)
    for node in range(1, parents.size):
        first = starts[node]
        num_labels = starts[node + 1] - first
        if num_labels == 0:
            continue
        for index in range(num_labels):
            wanted[index] = labels[children[first + index]]
        base = _find_base(slots[node], wanted, num_labels, next_free, previous_free, tail, taken, base_used)
        if base < 0:
            if num_slots + _BLOCK > MAX_SLOTS:
                return slots, bases, 0
            if num_slots == taken.size:
                taken, base_used = doubled(taken), doubled(base_used)
                next_free, previous_free = doubled(next_free), doubled(previous_free)
            base = num_slots
            num_slots += _BLOCK
            tail = _append_free(base, num_slots, next_free, previous_free, tail)
        base_used[base] = 1
        bases[node] = base
        for index in range(num_labels):
            slot = base ^ wanted[index]
            taken[slot] = 1
            tail = _unlink(slot, next_free, previous_free, tail)
            slots[children[first + index]] = slot
    return slots, bases, num_slots
