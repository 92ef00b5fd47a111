"""The loops of pretokenizing, counting and summing, compiled by Numba; other steps have modules of their own.

Each has a slow twin in `reference` or in the tests.

Conventions: `offsets` (int64, one more than items) and `data` (uint8) are an Arrow large_binary array; a pretoken is
`data[start:stop]`. No kernel makes a Python object, all release the GIL, none depends on the number of threads.
Unsigned indices stand where an index is hot: Numba then leaves out its check for negative indices.
"""

from __future__ import annotations

from typing import TypeVar

import numba
import numpy as np
import numpy.typing as npt

from finpile_tokenizer.arrays.buffers import Float64s, Int64s, UInt8s, UInt64s

_Scalar = TypeVar("_Scalar", bound=np.generic)

#: Pretoken classes. A run of equal class is one pretoken, except that each digit is one by itself.
OTHER, ALPHABETIC, DIGIT = 0, 1, 2

# FNV-1a, 64 bits. Source: http://www.isthe.com/chongo/tech/comp/fnv/
_FNV_BASIS = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
# 2^64 / golden ratio: spreads FNV's low bits over the high ones before they choose a slot (Knuth, TAOCP 3, 6.4).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)
_UPPER = np.uint64(0xFFFFFFFF00000000)
_ONE = np.uint64(1)

#: Columns of a hash table's entry.
START, LENGTH, COUNT, HASH = 0, 1, 2, 3

_FIRST_CAPACITY = 1 << 12


@numba.njit(cache=True, nogil=True, inline="always")
def pretoken_stop(data: UInt8s, start: int, stop: int, classes: UInt8s) -> int:
    """Where the pretoken that starts at `start` ends; `stop` is the document's end."""
    kind = classes[data[start]]
    position = start + 1
    if kind == DIGIT:
        return position
    while position < stop and classes[data[position]] == kind:
        position += 1
    return position


@numba.njit(cache=True, nogil=True)
def pretoken_starts(offsets: Int64s, data: UInt8s, classes: UInt8s) -> tuple[Int64s, Int64s]:
    """The starts of all pretokens of all documents, and how many each document has."""
    counts = np.zeros(offsets.size - 1, np.int64)
    starts = np.empty(offsets[-1] - offsets[0], np.int64)
    total = 0
    for document in range(offsets.size - 1):
        first = total
        position = offsets[document]
        while position < offsets[document + 1]:
            starts[total] = position
            total += 1
            position = pretoken_stop(data, position, offsets[document + 1], classes)
        counts[document] = total - first
    return starts[:total].copy(), counts


@numba.njit(cache=True, nogil=True, inline="always")
def _mixed(value: np.uint64) -> np.uint64:
    """FNV's value with its high half folded in: the low bits choose a slot, the high ones are the tag."""
    value *= _GOLDEN
    return value ^ (value >> _HALF)


@numba.njit(cache=True, nogil=True, inline="always")
def _probe(slots: UInt64s, entries: Int64s, data: UInt8s, value: np.uint64, start: int, length: int) -> np.uint64:
    """The slot of the open-addressing table that holds these bytes, or the empty one (0) where they belong.

    A slot is the upper half of the hash and, in its lower half, the entry's number plus one; so that a look at the
    entry, which lies elsewhere in memory, is seldom in vain.
    """
    mask = np.uint64(slots.size - 1)
    tag = value & _UPPER
    at = value & mask
    while slots[at] != 0:
        if slots[at] & _UPPER == tag:
            entry = np.int64(slots[at] & _LOWER) - 1
            if entries[entry, LENGTH] == length:
                other = entries[entry, START]
                index = 0
                while index < length and data[start + index] == data[other + index]:
                    index += 1
                if index == length:
                    break
        at = (at + _ONE) & mask
    return at


@numba.njit(cache=True, nogil=True)
def _rehash(entries: Int64s, total: int, num_slots: int) -> UInt64s:
    """A fresh table of `num_slots` (a power of two) with the same entries."""
    slots = np.zeros(num_slots, np.uint64)
    mask = np.uint64(num_slots - 1)
    for entry in range(total):
        value = np.uint64(entries[entry, HASH])
        at = value & mask
        while slots[at] != 0:
            at = (at + _ONE) & mask
        slots[at] = (value & _UPPER) | np.uint64(entry + 1)
    return slots


@numba.njit(cache=True, nogil=True)
def doubled(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """An array of twice as many rows that begins with these; the others are zero."""
    larger = np.zeros((2 * array.shape[0], *array.shape[1:]), array.dtype)
    larger[: array.shape[0]] = array
    return larger


@numba.njit(cache=True, nogil=True)
def count_pretokens(offsets: Int64s, data: UInt8s, classes: UInt8s, max_bytes: int) -> Int64s:
    """The distinct pretokens in order of first sight: a row `START, LENGTH, COUNT, HASH` for each.

    A pretoken longer than `max_bytes` is counted as consecutive parts of `max_bytes`, the last one shorter.
    """
    slots = np.zeros(2 * _FIRST_CAPACITY, np.uint64)
    entries = np.zeros((_FIRST_CAPACITY, 4), np.int64)
    total = 0
    for document in range(offsets.size - 1):
        position = offsets[document]
        end = offsets[document + 1]
        while position < end:
            start = position
            limit = min(end, start + max_bytes)
            kind = classes[data[start]]
            value = _FNV_BASIS
            while True:
                value = (value ^ np.uint64(data[position])) * _FNV_PRIME
                position += 1
                if position == limit or kind == DIGIT or classes[data[position]] != kind:
                    break
            value = _mixed(value)
            at = _probe(slots, entries, data, value, start, position - start)
            if slots[at] != 0:
                entries[np.int64(slots[at] & _LOWER) - 1, COUNT] += 1
                continue
            if total == entries.shape[0]:
                entries = doubled(entries)
            entries[total, START] = start
            entries[total, LENGTH] = position - start
            entries[total, COUNT] = 1
            entries[total, HASH] = np.int64(value)
            total += 1
            slots[at] = (value & _UPPER) | np.uint64(total)
            if 2 * total > slots.size:
                slots = _rehash(entries, total, 2 * slots.size)
    return entries[:total].copy()


@numba.njit(cache=True, nogil=True)
def group_items(offsets: Int64s, data: UInt8s) -> tuple[Int64s, Int64s]:
    """Numbers equal items alike: `(group of each item, first item of each group)`, groups in order of first sight."""
    num_items = offsets.size - 1
    num_slots = 2 * _FIRST_CAPACITY
    while num_slots < 2 * num_items:
        num_slots *= 2
    slots = np.zeros(num_slots, np.uint64)
    entries = np.zeros((num_items, 4), np.int64)
    groups = np.empty(num_items, np.int64)
    firsts = np.empty(num_items, np.int64)
    total = 0
    for item in range(num_items):
        start, stop = offsets[item], offsets[item + 1]
        value = _FNV_BASIS
        for position in range(start, stop):
            value = (value ^ np.uint64(data[position])) * _FNV_PRIME
        value = _mixed(value)
        at = _probe(slots, entries, data, value, start, stop - start)
        if slots[at] == 0:
            entries[total, START] = start
            entries[total, LENGTH] = stop - start
            firsts[total] = item
            total += 1
            slots[at] = (value & _UPPER) | np.uint64(total)
        groups[item] = np.int64(slots[at] & _LOWER) - 1
    return groups, firsts[:total].copy()


@numba.njit(cache=True, nogil=True)
def sum_by_group(groups: Int64s, values: Int64s, num_groups: int) -> Int64s:
    """The integer sum of each group."""
    sums = np.zeros(num_groups, np.int64)
    for item in range(groups.size):
        sums[groups[item]] += values[item]
    return sums


@numba.njit(cache=True, nogil=True)
def compensated_sum_by_group(groups: Int64s, values: Float64s, num_groups: int) -> Float64s:
    """The float64 sum of each group, by Neumaier's compensated summation in the order given.

    Source: Neumaier, Z. Angew. Math. Mech. 54 (1974), 39-51.
    """
    sums = np.zeros(num_groups, np.float64)
    errors = np.zeros(num_groups, np.float64)
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
    return sums + errors


@numba.njit(cache=True, nogil=True)
def gather(data: UInt8s, entries: Int64s) -> tuple[Int64s, UInt8s]:
    """The byte ranges of a hash table's entries copied one after the other, as `(offsets, data)`."""
    num_entries = entries.shape[0]
    offsets = np.zeros(num_entries + 1, np.int64)
    for entry in range(num_entries):
        offsets[entry + 1] = offsets[entry] + entries[entry, LENGTH]
    out = np.empty(offsets[-1], np.uint8)
    for entry in range(num_entries):
        source, target = entries[entry, START], offsets[entry]
        for index in range(entries[entry, LENGTH]):
            out[target + index] = data[source + index]
    return offsets, out
