"""The kernels that build the encoder's automaton from a trie; the conventions are those of `arrays._hash_kernels`."""

from __future__ import annotations

import numpy as np

from finpile_tokenizer.arrays._array_kernels import doubled
from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, UInt8s, UInt64s
from finpile_tokenizer.arrays.jit import kernel
from finpile_tokenizer.pretokens._pretoken_kernels import DIGIT
from finpile_tokenizer.trie._double_array_kernels import NO_BASE, ROOT_SLOT

# A unit of the automaton, 64 bits: 24 of base, 24 of the slot to continue from if there is no child, 2 of the label's
# class (that of a digit is a class that no byte has: so a digit is never followed), a flag for "in use", 8 of label.
BASE_SHIFT = np.uint64(40)
FAIL_SHIFT = np.uint64(16)
SLOT_MASK = np.uint64(0xFFFFFF)
CLASS_SHIFT = np.uint64(9)
CLASS_MASK = np.uint64(0x600)
LABEL_AND_USE = np.uint64(0x1FF)
IN_USE = np.uint64(0x100)
_AFTER_DIGIT = np.uint64(3)

# A choice, 16 bytes: a float64 of score; then, as two 32-bit words, 10 bits of length and 22 of id, and the position of
# the next choice in the table (counted in float64s).
LENGTH_SHIFT = np.uint32(22)
ID_MASK = np.uint32((1 << 22) - 1)
MAX_PIECES = 1 << 22
MAX_PIECE_BYTES = (1 << 10) - 1

# 2^64 / golden ratio: Knuth's multiplicative hash (TAOCP 3, 6.4); the upper half of the product chooses the slot.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_ONE = np.uint64(1)


@kernel
def link_suffixes(order: Int32s, parents: Int32s, labels: UInt8s, nodes: Int32s, bases: Int32s, fails: Int32s) -> None:
    """Writes each node's longest proper suffix that is a node too.

    `order` has the nodes by depth and `nodes` the node of each slot; `fails` is 0, the root, beforehand.
    Source: Aho and Corasick, Communications of the ACM 18 (1975), 333-340.
    """
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


@kernel
def list_pieces(order: Int32s, fails: Int32s, pieces: Int32s, longest: Int32s, shorter: Int32s, inside: UInt8s) -> None:
    """Writes the lists of the pieces that end each node's string, longest first.

    `longest[node]` is the longest piece that ends it, `shorter[piece]` the next shorter one; -1, the value of both
    beforehand, if there is none. `inside[node]` becomes 1 if the string is a proper suffix of a piece.
    """
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


@kernel
def find_winners(
    depths: Int32s,
    longest: Int32s,
    shorter: Int32s,
    inside: UInt8s,
    piece_bytes: Int64s,
    scores: Float64s,
    margin: float,
    best: Float64s,
    path: Int32s,
    starts: Int64s,
    winners: Int32s,
) -> Int32s:
    """The pieces that can end a best segmentation when the automaton is at a node, longest first, for each node.

    Those of node n are `winners[starts[n]:starts[n + 1]]`; `starts` is written, `winners` is room for the first of
    them. The module `automaton` explains which pieces are left out. Nodes are in preorder: `path` holds the nodes, and
    `best` the scores, of all prefixes of the current node's string; `best[stop, start]` is the score of the best
    segmentation of its bytes from start to stop.
    """
    depth_limit = path.size
    total = 0
    for node in range(1, depths.size):
        stop = depths[node]
        path[stop] = node
        for start in range(stop):
            best[stop, start] = -np.inf
        best[stop, stop] = 0.0
        piece = longest[node]
        while piece >= 0:
            edge = stop - piece_bytes[piece]
            for start in range(edge + 1):
                score = best[edge, start] + scores[piece]
                if score > best[stop, start]:
                    best[stop, start] = score
            piece = shorter[piece]
        if total + depth_limit > winners.size:
            winners = doubled(winners)
        piece = longest[node]
        while piece >= 0:
            edge = stop - piece_bytes[piece]
            bound = scores[piece] + margin
            before = path[edge]
            wins = best[stop, edge] <= bound
            if wins and edge > 0 and not inside[before]:
                wins = False
                for index in range(starts[before], starts[before + 1]):
                    other = winners[index]
                    if best[stop, edge - piece_bytes[other]] <= scores[other] + bound:
                        wins = True
            if wins:
                winners[total] = piece
                total += 1
            piece = shorter[piece]
        starts[node + 1] = total
    return winners


@kernel
def share_choices(
    starts: Int64s,
    winners: Int32s,
    piece_bytes: Int64s,
    table: Int32s,
    firsts: Int32s,
    pieces: Int32s,
    following: Int32s,
) -> int:
    """Writes the lists of winners of two bytes and more such that equal ends of lists are shared.

    `firsts` is the first choice of each node, `pieces` and `following` the piece and the next choice of each choice;
    choice 0 is the end of every list. `table` is an empty hash table of a power of two. Returns the number of choices.
    """
    mask = np.uint64(table.size - 1)
    total = 1
    for node in range(firsts.size):
        choice = np.int32(0)
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
    return total


@kernel
def pack_units(
    order: Int32s, labels: UInt8s, slots: Int32s, bases: Int32s, fails: Int32s, classes: UInt8s, units: UInt64s
) -> None:
    """Writes the units of the automaton, by slot; the others are 0 beforehand.

    A node without children always continues at its longest suffix: it takes the base and the fall-back of that one.
    """
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
