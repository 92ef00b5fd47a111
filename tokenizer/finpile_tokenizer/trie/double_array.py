"""The prefixes of all pieces as a trie, laid out as a double array, from which the encoder's automaton is built.

Node n has a slot and a base; its child by byte c is in slot `base ^ c`, if the node there is labelled c.

Source: Aoe, IEEE Trans. Software Eng. 15 (1989), 1066-1077 (double array); the XOR addressing follows Yata's
Darts-clone (https://github.com/s-yata/darts-clone).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Int32s, UInt8s, byte_buffers, order_by_bytes
from finpile_tokenizer.arrays.groups import group_items
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.trie import _double_array_kernels, _hashed_kernels

_NUM_LABELS = 256


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Trie:
    """One entry for each node in each array; node 0 is the root, and nodes are numbered in preorder."""

    parents: Int32s
    """The node of the string without its last byte."""
    labels: UInt8s
    """That last byte."""
    depths: Int32s
    """The string's length in bytes."""
    pieces: Int32s
    """The id of the piece that the string is, or -1."""
    slots: Int32s
    """The slot of the node."""
    bases: Int32s
    """The base of its children's slots."""
    num_slots: int
    """Slots in all, those left empty included."""


def build_trie(pieces: pa.LargeBinaryArray) -> Trie:
    """The trie of the pieces, whose ids are their positions in the array.

    Raises:
        TokenizerError: a piece is empty or occurs twice, or there are too many of them for 24 bits of slots.
    """
    order = order_by_bytes(pieces)
    offsets, data = byte_buffers(pieces.take(pa.array(order)))
    lengths = np.diff(offsets)
    if len(pieces) and lengths.min() == 0:
        raise TokenizerError("a piece is empty: it would be found everywhere and cover no text")
    _, firsts = group_items(offsets, data)
    if len(firsts) != len(pieces):
        raise TokenizerError(f"{len(pieces) - len(firsts)} of {len(pieces)} pieces occur in the vocabulary twice")
    num_nodes = 1 + _hashed_kernels.count_nodes(offsets, data)
    _check_room(num_nodes, len(pieces), num_nodes <= _double_array_kernels.MAX_SLOTS)
    ids, longest = order.astype(np.int32), int(lengths.max(initial=0))
    parents, depths, slots = (np.zeros(num_nodes, np.int32) for _ in range(3))
    labels, piece_of = np.zeros(num_nodes, np.uint8), np.full(num_nodes, -1, np.int32)
    path = np.zeros(longest + 1, np.int32)
    _double_array_kernels.fill_nodes(offsets, data, ids, path, parents, labels, depths, piece_of)
    bases = np.full(num_nodes, _double_array_kernels.NO_BASE, np.int32)
    num_slots = _place_nodes(parents, labels, slots, bases)
    _check_room(num_nodes, len(pieces), num_slots > 0)
    return Trie(
        parents=parents, labels=labels, depths=depths, pieces=piece_of, slots=slots, bases=bases, num_slots=num_slots
    )


def _place_nodes(parents: Int32s, labels: UInt8s, slots: Int32s, bases: Int32s) -> int:
    """Writes the slot and the base of each node; returns the number of slots, 0 if they are too many."""
    starts, children = np.zeros(len(parents) + 2, np.int32), np.zeros(len(parents), np.int32)
    _double_array_kernels.group_by_parent(parents, starts, children)
    first_slots = _double_array_kernels.FIRST_SLOTS
    num_slots: int = _double_array_kernels.place_nodes(
        starts,
        children,
        labels,
        np.zeros(first_slots, np.uint8),
        np.zeros(first_slots, np.uint8),
        np.zeros(first_slots, np.int32),
        np.zeros(first_slots, np.int32),
        np.empty(_NUM_LABELS, np.int64),
        slots,
        bases,
    )
    return num_slots


def _check_room(num_nodes: int, num_pieces: int, fits: bool) -> None:
    if not fits:
        raise TokenizerError(
            f"{num_pieces} pieces have {num_nodes - 1} distinct beginnings, which do not fit the encoder's "
            f"{_double_array_kernels.MAX_SLOTS} slots: use fewer or shorter pieces"
        )
