"""The hashed trie of the pieces, compiled by Numba; the conventions are those of `_kernels`."""

from __future__ import annotations

import numba
import numpy as np

from finpile_tokenizer.arrays.buffers import Int32s, Int64s, UInt8s, UInt32s

# A unit of the trie: 23 bits of the parent's slot, 8 bits of label, one flag where a piece ends; 0 is empty.
_LABEL_BITS = np.uint64(8)
_KEY_SHIFT = np.uint32(1)
TERMINAL = np.uint32(1)
#: Slot 0 says "no such child"; slot 1 is the root. Both are taken by a unit that no child has: its parent is slot 0.
NUM_RESERVED = 2
NO_SLOT = np.uint64(0)
ROOT = np.uint64(1)
_ONE = np.uint64(1)

# 2^64 / golden ratio: Knuth's multiplicative hash (TAOCP 3, 6.4). A slot is chosen by the product's bits from 40 on:
# they depend on all bits of the key, and the 23 that the largest table needs are there.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HASH_SHIFT = np.uint64(40)


@numba.njit(cache=True, nogil=True)
def count_nodes(offsets: Int64s, data: UInt8s) -> int:
    """The number of distinct beginnings (not empty) of the pieces, which are in order of their bytes."""
    total = 0
    for piece in range(offsets.size - 1):
        begin, end = offsets[piece], offsets[piece + 1]
        shared = 0
        if piece > 0:
            before = offsets[piece - 1]
            most = min(begin - before, end - begin)
            while shared < most and data[before + shared] == data[begin + shared]:
                shared += 1
        total += end - begin - shared
    return total


@numba.njit(cache=True, nogil=True)
def fill_index(offsets: Int64s, data: UInt8s, num_slots: int) -> tuple[UInt32s, Int32s]:
    """The hashed trie of the pieces in `num_slots` slots (a power of two): `(units, piece of each slot or -1)`."""
    units = np.zeros(num_slots, np.uint32)
    pieces = np.full(num_slots, -1, np.int32)
    units[:NUM_RESERVED] = TERMINAL
    mask = np.uint64(num_slots - 1)
    for piece in range(offsets.size - 1):
        slot = ROOT
        for index in range(offsets[piece], offsets[piece + 1]):
            key = (slot << _LABEL_BITS) | np.uint64(data[index])
            slot = ((key * _GOLDEN) >> _HASH_SHIFT) & mask
            while units[slot] != 0 and (units[slot] >> _KEY_SHIFT) != np.uint32(key):
                slot = (slot + _ONE) & mask
            if units[slot] == 0:
                units[slot] = np.uint32(key) << _KEY_SHIFT
        units[slot] |= TERMINAL
        pieces[slot] = piece
    return units, pieces


@numba.njit(cache=True, nogil=True, inline="always")
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
