"""Numba kernels that pair, group and compare documents. tests/finpile/dedup has a slow reference for each kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile.dedup._hash_kernels import I64, U64, mix

_ZERO, _ONE, _U32 = np.uint64(0), np.uint64(1), np.uint64(32)


@kernel
def count_common(left: U64, right: U64) -> int:
    """Returns the size of the intersection of two sorted multisets."""
    i = j = common = 0
    while i < left.shape[0] and j < right.shape[0]:
        if left[i] == right[j]:
            common += 1
            i += 1
            j += 1
        elif left[i] < right[j]:
            i += 1
        else:
            j += 1
    return common


@kernel
def longest_increasing(values: I64) -> I64:
    """Returns the indices of a longest strictly increasing subsequence, by patience sorting; ties: the first found."""
    num = values.shape[0]
    tails = np.empty(num, np.int64)  # index of the smallest end of a run of each length
    before = np.empty(num, np.int64)
    length = 0
    for i in range(num):
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            if values[tails[middle]] < values[i]:
                low = middle + 1
            else:
                high = middle
        before[i] = tails[low - 1] if low > 0 else -1
        tails[low] = i
        length = max(length, low + 1)
    chosen = np.empty(length, np.int64)
    at = tails[length - 1] if length > 0 else -1
    for k in range(length - 1, -1, -1):
        chosen[k] = at
        at = before[at]
    return chosen


@inner
def _put(pair: Any, table: U64) -> int:
    """Inserts a pair into an open-addressed set; returns 1 if it is new, else 0."""
    mask = np.uint64(table.shape[0] - 1)
    slot = mix(pair) & mask
    while table[slot] != _ZERO:
        if table[slot] == pair:
            return 0
        slot = (slot + _ONE) & mask
    table[slot] = pair
    return 1


@inner
def _room(table: U64, size: int) -> U64:
    """Returns the set itself if it is less than half full, else a copy of twice the size."""
    if 2 * size < table.shape[0]:
        return table
    larger = np.zeros(2 * table.shape[0], np.uint64)
    for pair in table:
        if pair != _ZERO:
            _put(pair, larger)
    return larger


@kernel
def pair_buckets(starts: I64, docs: U64, max_all_pairs: int) -> U64:
    """Returns the distinct pairs `first << 32 | second` of the buckets `docs[starts[b]:starts[b + 1]]`, unordered.

    `docs` ascend strictly within a bucket and are below 2^32. A bucket of more than `max_all_pairs` documents gives
    only the pairs of its first document with each other one, and of each document with the next.
    """
    table, size = np.zeros(1024, np.uint64), np.int64(0)  # a literal is a type of its own
    for bucket in range(starts.shape[0] - 1):
        first, last = starts[bucket], starts[bucket + 1]
        small = last - first <= max_all_pairs
        for i in range(first, last - 1):
            stop = last if small or i == first else i + 2
            for j in range(i + 1, stop):
                table = _room(table, size)
                size += _put(docs[i] << _U32 | docs[j], table)
    pairs: U64 = table[table != _ZERO]
    return pairs


@kernel
def pair_earlier(starts: I64, docs: U64, num_first: int, begin: int) -> U64:
    """Returns the distinct pairs `smaller << 32 | larger` of the buckets `docs[starts[b]:starts[b + 1]]`, unordered.

    `docs` are different within a bucket and below 2^32. Each document from position `begin` (1 or more) of its bucket
    on is paired with the documents before it among the first `num_first` of the bucket, and with its predecessor.
    """
    table, size = np.zeros(1024, np.uint64), np.int64(0)  # a literal is a type of its own
    for bucket in range(starts.shape[0] - 1):
        first = starts[bucket]
        for i in range(first + begin, starts[bucket + 1]):
            stop = min(i, first + num_first)
            for step in range(stop - first + (stop < i)):
                j = first + step if first + step < stop else i - 1
                table = _room(table, size)
                size += _put(min(docs[i], docs[j]) << _U32 | max(docs[i], docs[j]), table)
    pairs: U64 = table[table != _ZERO]
    return pairs


@kernel
def smallest_connected(num: int, left: I64, right: I64) -> I64:
    """Returns for each node 0..num-1 the smallest node of its component under the edges `left[e], right[e]`."""
    parent = np.arange(num)
    for edge in range(left.shape[0]):
        a, b = left[edge], right[edge]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a < b:
            parent[b] = a
        else:
            parent[a] = b
    for node in range(num):  # parents are smaller than their children, so one ascending pass flattens
        parent[node] = parent[parent[node]]
    return parent
