"""The loops that make the encoder's automaton of a trie, compiled by Numba; the conventions are those of `_kernels`."""

from __future__ import annotations

import numba
import numpy as np

from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, UInt8s, UInt64s
from finpile_tokenizer.pretokens._kernels import DIGIT, doubled
from finpile_tokenizer.trie._double_array_kernels import NO_BASE, ROOT_SLOT

# A unit of the automaton, 64 bits: 24 of base, 24 of where to go on if there is no child, 2 of the label's class
# (a digit's is its own, which no byte has: so a digit is never followed), a flag for "in use", 8 of label.
BASE_SHIFT = np.uint64(40)
FAIL_SHIFT = np.uint64(16)
SLOT_MASK = np.uint64(0xFFFFFF)
CLASS_SHIFT = np.uint64(9)
CLASS_MASK = np.uint64(0x600)
LABEL_AND_USE = np.uint64(0x1FF)
IN_USE = np.uint64(0x100)
_AFTER_DIGIT = np.uint64(3)

# A choice, 16 bytes: a float64 of score; then, as two 32-bit words, 10 bits of length and 22 of id, and where in the
# table (counted in float64s) the next choice is.
LENGTH_SHIFT = np.uint32(22)
ID_MASK = np.uint32((1 << 22) - 1)
MAX_PIECES = 1 << 22
MAX_PIECE_BYTES = (1 << 10) - 1
#: Choice 0 ends every list and is never taken. Its length is any that keeps it from waiting for the last best score.
_NO_CHOICE_LENGTH = 8

# 2^64 / golden ratio: Knuth's multiplicative hash (TAOCP 3, 6.4); the upper half of the product chooses the slot.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_ONE = np.uint64(1)


@numba.njit(cache=True, nogil=True)
def nodes_by_depth(depths: Int32s) -> Int32s:
    """All nodes, those of smaller depth first."""
    starts = np.zeros(depths.max() + 2, np.int64)
    for node in range(depths.size):
        starts[depths[node] + 1] += 1
    for depth in range(starts.size - 1):
        starts[depth + 1] += starts[depth]
    order = np.zeros(depths.size, np.int32)
    for node in range(depths.size):
        order[starts[depths[node]]] = node
        starts[depths[node]] += 1
    return order


@numba.njit(cache=True, nogil=True)
def link_suffixes(
    order: Int32s, parents: Int32s, labels: UInt8s, slots: Int32s, bases: Int32s, num_slots: int
) -> Int32s:
    """Each node's longest proper suffix that is a node too (`order` as of `nodes_by_depth`).

    Source: Aho and Corasick, Communications of the ACM 18 (1975), 333-340.
    """
    nodes = np.zeros(num_slots, np.int32)
    for node in range(slots.size):
        nodes[slots[node]] = node
    fails = np.zeros(slots.size, np.int32)
    for index in range(1, order.size):
        node = order[index]
        label = labels[node]
        suffix = parents[node]
        while suffix != 0:
            suffix = fails[suffix]
            child = nodes[bases[suffix] ^ label]
            if child != 0 and parents[child] == suffix:
                fails[node] = child
                break
    return fails


@numba.njit(cache=True, nogil=True)
def list_pieces(order: Int32s, fails: Int32s, pieces: Int32s, num_pieces: int) -> tuple[Int32s, Int32s, UInt8s]:
    """`(longest, shorter, inside)`, from which the pieces that end a node's string can be listed, longest first.

    `longest[node]` is the longest piece that ends it, `shorter[piece]` the next; -1 where there is none. `inside[node]`
    says that the string is a proper suffix of a piece.
    """
    longest = np.full(order.size, -1, np.int32)
    shorter = np.full(num_pieces, -1, np.int32)
    inside = np.zeros(order.size, np.uint8)
    for index in range(1, order.size):
        node = order[index]
        longest[node] = longest[fails[node]]
        if pieces[node] >= 0:
            shorter[pieces[node]] = longest[node]
            longest[node] = pieces[node]
            suffix = fails[node]
            while suffix != 0 and not inside[suffix]:
                inside[suffix] = 1
                suffix = fails[suffix]
    return longest, shorter, inside


@numba.njit(cache=True, nogil=True)
def find_winners(
    depths: Int32s,
    longest: Int32s,
    shorter: Int32s,
    inside: UInt8s,
    piece_bytes: Int64s,
    scores: Float64s,
    margin: float,
) -> tuple[Int64s, Int32s]:
    """The pieces that can end a best segmentation where the automaton is at a node: longest first, and for each node.

    Returns `(starts, winners)`: those of node n are `winners[starts[n]:starts[n + 1]]`. `automaton` says what is left
    out and why. Nodes are in preorder: `path` holds the nodes, and `best` the scores, of all beginnings of the present
    node's string; `best[stop, start]` is the score of the best segmentation of its bytes from start to stop.
    """
    depth_limit = depths.max() + 1
    best = np.zeros((depth_limit, depth_limit), np.float64)
    path = np.zeros(depth_limit, np.int32)
    starts = np.zeros(depths.size + 1, np.int64)
    winners = np.zeros(2 * depths.size + depth_limit, np.int32)
    total = 0
    for node in range(1, depths.size):
        stop = depths[node]
        path[stop] = node
        row = best[stop]
        row[:stop] = -np.inf
        row[stop] = 0.0
        piece = longest[node]
        while piece >= 0:
            edge = stop - piece_bytes[piece]
            for start in range(edge + 1):
                row[start] = max(row[start], best[edge, start] + scores[piece])
            piece = shorter[piece]
        if total + depth_limit > winners.size:
            winners = doubled(winners)
        piece = longest[node]
        while piece >= 0:
            edge = stop - piece_bytes[piece]
            bound = scores[piece] + margin
            before = path[edge]
            wins = row[edge] <= bound
            if wins and edge > 0 and not inside[before]:
                wins = False
                for index in range(starts[before], starts[before + 1]):
                    other = winners[index]
                    if row[edge - piece_bytes[other]] <= scores[other] + bound:
                        wins = True
            if wins:
                winners[total] = piece
                total += 1
            piece = shorter[piece]
        starts[node + 1] = total
    return starts, winners[:total].copy()


@numba.njit(cache=True, nogil=True)
def share_choices(starts: Int64s, winners: Int32s, piece_bytes: Int64s) -> tuple[Int32s, Int32s, Int32s]:
    """The lists of winners of two bytes and more, written so that equal ends of lists are one.

    Returns `(first choice of each node, piece of each choice, next choice of each)`; choice 0 is the list's end.
    """
    num_slots = 2
    while num_slots < 2 * winners.size:
        num_slots *= 2
    mask = np.uint64(num_slots - 1)
    table = np.zeros(num_slots, np.int32)
    pieces = np.zeros(winners.size + 1, np.int32)
    following = np.zeros(winners.size + 1, np.int32)
    firsts = np.zeros(starts.size - 1, np.int32)
    total = 1
    for node in range(firsts.size):
        choice = 0
        for index in range(starts[node + 1] - 1, starts[node] - 1, -1):
            piece = winners[index]
            if piece_bytes[piece] < 2:
                continue
            key = (np.uint64(piece) << _HALF) | np.uint64(choice)
            at = ((key * _GOLDEN) >> _HALF) & mask
            while table[at] != 0 and (pieces[table[at]] != piece or following[table[at]] != choice):
                at = (at + _ONE) & mask
            if table[at] == 0:
                pieces[total] = piece
                following[total] = choice
                table[at] = total
                total += 1
            choice = table[at]
        firsts[node] = choice
    return firsts, pieces[:total].copy(), following[:total].copy()


@numba.njit(cache=True, nogil=True)
def pack_units(
    order: Int32s, labels: UInt8s, slots: Int32s, bases: Int32s, fails: Int32s, num_slots: int, classes: UInt8s
) -> UInt64s:
    """The units of the automaton, by slot.

    A node without children would always go on to its longest suffix: it takes that one's base and goes on from there
    to where that one would go.
    """
    units = np.zeros(num_slots, np.uint64)
    units[ROOT_SLOT] = np.uint64(ROOT_SLOT) << FAIL_SHIFT
    for index in range(1, order.size):
        node = order[index]
        kind = np.uint64(classes[labels[node]])
        if kind == np.uint64(DIGIT):
            kind = _AFTER_DIGIT
        fail = np.uint64(slots[fails[node]])
        base = np.uint64(bases[node])
        if bases[node] == NO_BASE:
            base = units[fail] >> BASE_SHIFT
            fail = (units[fail] >> FAIL_SHIFT) & SLOT_MASK
        units[slots[node]] = (
            (base << BASE_SHIFT) | (fail << FAIL_SHIFT) | (kind << CLASS_SHIFT) | IN_USE | np.uint64(labels[node])
        )
    return units


@numba.njit(cache=True, nogil=True)
def pack_choices(pieces: Int32s, following: Int32s, piece_bytes: Int64s, scores: Float64s) -> Float64s:
    """The table of choices, two float64s each."""
    table = np.zeros(2 * pieces.size, np.float64)
    words = table.view(np.uint32)
    table[0] = -np.inf
    words[2] = np.uint32(_NO_CHOICE_LENGTH) << LENGTH_SHIFT
    for choice in range(1, pieces.size):
        piece = pieces[choice]
        table[2 * choice] = scores[piece]
        words[4 * choice + 2] = (np.uint32(piece_bytes[piece]) << LENGTH_SHIFT) | np.uint32(piece)
        words[4 * choice + 3] = 2 * following[choice]
    return table
