"""An open-addressing hash table of byte strings, and the kernels that group, sum and gather them.

Conventions of all kernels of this package: `offsets` (int64, one more than items) and `data` (uint8) are the buffers of
an Arrow large_binary array. No kernel creates a Python object, all release the GIL, and no result depends on the number
of threads. Hot indices are unsigned, because Numba then omits the check for negative ones. Each kernel has a reference
implementation in the tests.
"""

from __future__ import annotations

import numpy as np

from finpile_tokenizer.arrays.buffers import Float64s, Int64s, UInt8s, UInt64s
from finpile_tokenizer.arrays.jit import inlined, inner, kernel

# FNV-1a, 64 bits. Source: http://www.isthe.com/chongo/tech/comp/fnv/
FNV_BASIS = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)
# 2^64 / golden ratio: spreads FNV's low bits over the high ones before they choose a slot (Knuth, TAOCP 3, 6.4).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
LOWER = np.uint64(0xFFFFFFFF)
UPPER = np.uint64(0xFFFFFFFF00000000)
_ONE = np.uint64(1)

#: Fields of a table's entry; entry e has the numbers `entries[WIDTH * e]` to `entries[WIDTH * e + WIDTH - 1]`.
START, LENGTH, COUNT, HASH = 0, 1, 2, 3
WIDTH = 4

#: Slots of the smallest table: a power of two.
FIRST_SLOTS = 1 << 13


@inlined
def mixed(value: np.uint64) -> np.uint64:
    """FNV's value with its high half folded in: the low bits choose a slot, the high ones are the tag."""
    value *= _GOLDEN
    return value ^ (value >> _HALF)


@inlined
def probe(slots: UInt64s, entries: Int64s, data: UInt8s, value: np.uint64, start: int, length: int) -> np.uint64:
    """The slot of the table that holds these bytes, or the empty slot (0) at which to insert them.

    The upper half of a slot is that of the hash value, the lower half is the entry's number plus one. So the entry,
    which is elsewhere in memory, is rarely read in vain.
    """
    mask = np.uint64(slots.size - 1)
    tag = value & UPPER
    at = value & mask
    while slots[at] != 0:
        if slots[at] & UPPER == tag:
            entry = WIDTH * (np.int64(slots[at] & LOWER) - 1)
            if entries[entry + LENGTH] == length:
                other = entries[entry + START]
                index = 0
                while index < length and data[start + index] == data[other + index]:
                    index += 1
                if index == length:
                    break
        at = (at + _ONE) & mask
    return at


@inner
def rehashed(entries: Int64s, total: int, num_slots: int) -> UInt64s:
    """A new table of `num_slots` (a power of two) with the same entries."""
    slots = np.empty(num_slots, np.uint64)
    for index in range(num_slots):
        slots[index] = 0
    mask = np.uint64(num_slots - 1)
    for entry in range(total):
        value = np.uint64(entries[WIDTH * entry + HASH])
        at = value & mask
        while slots[at] != 0:
            at = (at + _ONE) & mask
        slots[at] = (value & UPPER) | np.uint64(entry + 1)
    return slots


@kernel
def fill_groups(offsets: Int64s, data: UInt8s, slots: UInt64s, entries: Int64s, groups: Int64s, firsts: Int64s) -> int:
    """Gives equal items the same number, in order of first occurrence, and returns how many distinct items there are.

    Writes the number of each item to `groups`, and to `firsts` the first item of each number. `slots` is an empty table
    of a power of two, at least twice the items; `entries` has room for one entry an item.
    """
    total = 0
    for item in range(offsets.size - 1):
        start, stop = offsets[item], offsets[item + 1]
        value = FNV_BASIS
        for position in range(start, stop):
            value = (value ^ np.uint64(data[position])) * FNV_PRIME
        value = mixed(value)
        at = probe(slots, entries, data, value, start, stop - start)
        if slots[at] == 0:
            entries[WIDTH * total + START] = start
            entries[WIDTH * total + LENGTH] = stop - start
            firsts[total] = item
            total += 1
            slots[at] = (value & UPPER) | np.uint64(total)
        groups[item] = np.int64(slots[at] & LOWER) - 1
    return total


@kernel
def add_compensated(groups: Int64s, values: Float64s, sums: Float64s, errors: Float64s) -> None:
    """Adds each value to its group's sum by Neumaier's compensated summation, in the order given.

    `sums + errors` are the sums; both are zero beforehand. Source: Neumaier, Z. Angew. Math. Mech. 54 (1974), 39-51.
    """
    for item in range(groups.size):
        group = groups[item]
        value = values[item]
        before = sums[group]
        after = before + value
        if abs(before) >= abs(value):
            errors[group] += (before - after) + value
        else:
            errors[group] += (value - after) + before
        sums[group] = after


@kernel
def copy_ranges(data: UInt8s, starts: Int64s, offsets: Int64s, out: UInt8s) -> None:
    """Copies `data[starts[i]:]` to `out[offsets[i]:offsets[i + 1]]` for each range i."""
    for item in range(starts.size):
        source, target = starts[item], offsets[item]
        for index in range(offsets[item + 1] - target):
            out[target + index] = data[source + index]
