"""The kernels that lay a trie out as a double array; the conventions are those of `arrays._hash_kernels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from finpile_tokenizer.arrays._array_kernels import doubled
from finpile_tokenizer.arrays.buffers import Int32s, Int64s, UInt8s
from finpile_tokenizer.arrays.jit import inlined, inner, kernel
from finpile_tokenizer.trie._hashed_kernels import shared_bytes

_BLOCK = 256
#: Slots of the arrays that `place_nodes` starts with.
FIRST_SLOTS = 2 * _BLOCK
#: The root's base is 0, so its child by byte c is slot c; the first block is kept for them.
ROOT_SLOT = 256
#: The base of nodes without children, and of no other: a unit found by it has another label.
NO_BASE = 256
#: A slot's number must fit the 24 bits of a unit (see `_automaton_kernels`).
MAX_SLOTS = 1 << 24

#: Free slots tried for a node's children before a fresh block is opened: from the list's end, and from its beginning.
_MAX_TRIES = 1024
_MAX_OLD_TRIES = 64
#: Eight units of 64 bits are a cache line. Up to this many children are put into their parent's line if they fit.
_LINE = 8
_MAX_NEAR = 3


@kernel
def fill_nodes(
    offsets: Int64s,
    data: UInt8s,
    ids: Int32s,
    path: Int32s,
    parents: Int32s,
    labels: UInt8s,
    depths: Int32s,
    pieces: Int32s,
) -> None:
    """Writes the trie of pieces in order of their bytes: parent, label, depth and piece of each node.

    Nodes are numbered in preorder, children by their labels; node 0 is the root. `pieces` is -1 and all else 0
    beforehand; `path` is room for one number more than the longest piece has bytes.
    """
    total = 1
    for piece in range(ids.size):
        begin, end = offsets[piece], offsets[piece + 1]
        for depth in range(shared_bytes(offsets, data, piece) + 1, end - begin + 1):
            parents[total] = path[depth - 1]
            labels[total] = data[begin + depth - 1]
            depths[total] = depth
            path[depth] = total
            total += 1
        pieces[path[end - begin]] = ids[piece]


@kernel
def group_by_parent(parents: Int32s, starts: Int32s, children: Int32s) -> None:
    """Groups the nodes by parent: the children of node n become `children[starts[n]:starts[n + 1]]`.

    `starts` has two numbers more than there are nodes, the first of which serves the counting; it is 0 beforehand.
    """
    for node in range(1, parents.size):
        starts[parents[node] + 2] += 1
    for node in range(parents.size):
        starts[node + 2] += starts[node + 1]
    for node in range(1, parents.size):
        place = parents[node] + 1
        children[starts[place]] = node
        starts[place] += 1


@inner
def _append_free(first: int, last: int, next_free: Int32s, previous_free: Int32s, tail: int) -> int:
    """Links the slots `first` to `last` behind `tail` of the list of free slots; returns the new tail."""
    for slot in range(first, last):
        next_free[tail] = slot
        previous_free[slot] = tail
        tail = slot
    next_free[tail] = -1
    return tail


@inner
def _unlink(slot: int, next_free: Int32s, previous_free: Int32s, tail: int) -> int:
    """Takes the slot out of the list of free slots; returns the list's tail."""
    before: int = previous_free[slot]
    after: int = next_free[slot]
    next_free[before] = after
    if after < 0:
        return before
    previous_free[after] = before
    return tail


@inlined
def _fits(base: int, labels: Int64s, num_labels: int, taken: UInt8s, base_used: UInt8s) -> bool:
    if base_used[base]:
        return False
    for index in range(num_labels):  # noqa: SIM110 - Numba compiles no generator
        if taken[base ^ labels[index]]:
            return False
    return True


@inner
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

    A few children are placed near their parent, in `slot`. If they do not fit there, an only child fills the oldest
    hole. Several children are placed in a newer block, which has adjacent holes; so is an only child if the oldest
    holes do not suit it, because their bases may all be used.
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


@kernel
def place_nodes(
    starts: Int32s,
    children: Int32s,
    labels: UInt8s,
    taken: UInt8s,
    base_used: UInt8s,
    next_free: Int32s,
    previous_free: Int32s,
    wanted: Int64s,
    slots: Int32s,
    bases: Int32s,
) -> Any:
    """Writes the slot and the base of each node; returns the number of slots, 0 if they are too many.

    The child by byte c of a node with base b is in slot b ^ c. No two nodes share a base: so a slot reached by c that
    holds a node labelled c holds the child of this node and of no other. Nodes are placed in preorder, so that those of
    one path are close together.

    `starts` and `children` are those of `group_by_parent`. The next four arrays have `FIRST_SLOTS` numbers and are 0,
    as is `slots`; `bases` is `NO_BASE`; `wanted` is room for 256 labels.
    """
    num_slots = np.int64(FIRST_SLOTS)  # a literal is a type of its own
    # The root's own slot is never free and serves as the head of the list of free slots.
    slots[0], bases[0] = ROOT_SLOT, 0
    for slot in range(ROOT_SLOT + 1):
        taken[slot] = 1
    base_used[0] = base_used[NO_BASE] = 1
    for index in range(starts[0], starts[1]):
        slots[children[index]] = labels[children[index]]
    tail = _append_free(np.int64(ROOT_SLOT + 1), num_slots, next_free, previous_free, np.int64(ROOT_SLOT))
    for node in range(1, slots.size):
        first = starts[node]
        num_labels = starts[node + 1] - first
        if num_labels == 0:
            continue
        for index in range(num_labels):
            wanted[index] = labels[children[first + index]]
        base = _find_base(slots[node], wanted, num_labels, next_free, previous_free, tail, taken, base_used)
        if base < 0:
            if num_slots + _BLOCK > MAX_SLOTS:
                return 0
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
    return num_slots
