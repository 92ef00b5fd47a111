"""The kernels of the hashed trie; the conventions are those of `arrays._hash_kernels`."""

from __future__ import annotations

import numpy as np

from finpile_tokenizer.arrays.buffers import Int32s, Int64s, UInt8s, UInt32s
from finpile_tokenizer.arrays.jit import inlined, kernel

# A unit of the trie: 23 bits of the parent's slot, 8 bits of label, one flag for the end of a piece; 0 is empty.
_LABEL_BITS = np.uint64(8)
_KEY_SHIFT = np.uint32(1)
TERMINAL = np.uint32(1)
#: Slot 0 means "no such child"; slot 1 is the root. Both hold a unit that no child has: its parent is slot 0.
NUM_RESERVED = 2
NO_SLOT = np.uint64(0)
ROOT = np.uint64(1)
_ONE = np.uint64(1)

# 2^64 / golden ratio: Knuth's multiplicative hash (TAOCP 3, 6.4). A slot is chosen by the product's bits from 40 on:
# they depend on all bits of the key, and the 23 that the largest table needs are there.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HASH_SHIFT = np.uint64(40)


@inlined
def shared_bytes(offsets: Int64s, data: UInt8s, piece: int) -> int:
    """The length of the longest common prefix of a piece and the one before it, 0 for the first piece."""
    shared = 0
    if piece > 0:
        before, begin, end = offsets[piece - 1], offsets[piece], offsets[piece + 1]
        while shared < min(begin - before, end - begin) and data[before + shared] == data[begin + shared]:
            shared += 1
    return shared


@kernel
def count_nodes(offsets: Int64s, data: UInt8s) -> int:
    """The number of distinct prefixes (not empty) of the pieces, which are in order of their bytes."""
    total = 0
    for piece in range(offsets.size - 1):
        total += offsets[piece + 1] - offsets[piece] - shared_bytes(offsets, data, piece)
    return total


@kernel
def fill_index(offsets: Int64s, data: UInt8s, units: UInt32s, pieces: Int32s) -> None:
    """Writes the hashed trie of the pieces: `units` and the piece of each slot. Their size is a power of two.

    All units are 0 and all pieces -1 beforehand.
    """
    for slot in range(NUM_RESERVED):
        units[slot] = TERMINAL
    mask = np.uint64(units.size - 1)
    for piece in range(offsets.size - 1):
        at = ROOT
        for index in range(offsets[piece], offsets[piece + 1]):
            key = (at << _LABEL_BITS) | np.uint64(data[index])
            at = ((key * _GOLDEN) >> _HASH_SHIFT) & mask
            while units[at] != 0 and (units[at] >> _KEY_SHIFT) != np.uint32(key):
                at = (at + _ONE) & mask
            if units[at] == 0:
                units[at] = np.uint32(key) << _KEY_SHIFT
        units[at] |= TERMINAL
        pieces[at] = piece


@inlined
def next_slot(units: UInt32s, slot: np.uint64, byte: int) -> np.uint64:
    """The child of a node by a byte, or `NO_SLOT`."""
    mask = np.uint64(units.size - 1)
    key = (slot << _LABEL_BITS) | np.uint64(byte)
    at = ((key * _GOLDEN) >> _HASH_SHIFT) & mask
    while (units[at] >> _KEY_SHIFT) != np.uint32(key):
        if units[at] == 0:
            return NO_SLOT
        at = (at + _ONE) & mask
    return at
