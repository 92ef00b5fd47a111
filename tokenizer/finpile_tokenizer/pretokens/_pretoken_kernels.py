"""The kernels of pretokenizing and counting; the conventions are those of `arrays._hash_kernels`.

A pretoken is `data[start:stop]`.
"""

from __future__ import annotations

import numpy as np

from finpile_tokenizer.arrays._array_kernels import doubled
from finpile_tokenizer.arrays._hash_kernels import (
    COUNT,
    FNV_BASIS,
    FNV_PRIME,
    HASH,
    LENGTH,
    LOWER,
    START,
    UPPER,
    WIDTH,
    mixed,
    probe,
    rehashed,
)
from finpile_tokenizer.arrays.buffers import Int64s, UInt8s, UInt64s
from finpile_tokenizer.arrays.jit import inlined, kernel

#: Pretoken classes. A run of equal class is one pretoken, except that each digit is a pretoken of its own.
OTHER, ALPHABETIC, DIGIT = 0, 1, 2


@inlined
def pretoken_stop(data: UInt8s, start: int, stop: int, classes: UInt8s) -> int:
    """The end of the pretoken that starts at `start`, in a document that ends at `stop`."""
    kind = classes[data[start]]
    position = start + 1
    if kind == DIGIT:
        return position
    while position < stop and classes[data[position]] == kind:
        position += 1
    return position


@kernel
def pretoken_starts(offsets: Int64s, data: UInt8s, classes: UInt8s, counts: Int64s, starts: Int64s) -> int:
    """Writes the starts of all pretokens and the number of pretokens of each document; returns how many there are."""
    total = 0
    for document in range(offsets.size - 1):
        first = total
        position = offsets[document]
        while position < offsets[document + 1]:
            starts[total] = position
            total += 1
            position = pretoken_stop(data, position, offsets[document + 1], classes)
        counts[document] = total - first
    return total


@kernel
def count_pretokens(
    offsets: Int64s, data: UInt8s, classes: UInt8s, max_bytes: int, slots: UInt64s, entries: Int64s
) -> tuple[Int64s, int]:
    """`(entries, how many)` of the distinct pretokens, in order of first occurrence: see `arrays._hash_kernels`.

    A pretoken longer than `max_bytes` is counted as consecutive parts of `max_bytes`, the last one shorter. `slots` is
    an empty table; `entries` is the room for the first entries, at least one.
    """
    total = 0
    for document in range(offsets.size - 1):
        position = offsets[document]
        end = offsets[document + 1]
        while position < end:
            start = position
            limit = min(end, start + max_bytes)
            kind = classes[data[start]]
            value = FNV_BASIS
            while True:
                value = (value ^ np.uint64(data[position])) * FNV_PRIME
                position += 1
                if position == limit or kind == DIGIT or classes[data[position]] != kind:
                    break
            value = mixed(value)
            at = probe(slots, entries, data, value, start, position - start)
            if slots[at] != 0:
                entries[WIDTH * (np.int64(slots[at] & LOWER) - 1) + COUNT] += 1
                continue
            entry = WIDTH * total
            if entry == entries.size:
                entries = doubled(entries)
            entries[entry + START] = start
            entries[entry + LENGTH] = position - start
            entries[entry + COUNT] = 1
            entries[entry + HASH] = np.int64(value)
            total += 1
            slots[at] = (value & UPPER) | np.uint64(total)
            if 2 * total > slots.size:
                slots = rehashed(entries, total, 2 * slots.size)
    return entries, total
