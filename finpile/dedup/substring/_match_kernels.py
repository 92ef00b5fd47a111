"""Numba kernels of repeated substrings: compares the windows of contexts that have the same minimizer."""

from __future__ import annotations

from typing import Any

import numpy as np
from finpile_tokenizer.arrays._array_kernels import doubled_rows, fill
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile.dedup._hash_kernels import I64, U8, U64, mix
from finpile.splitmix import GOLDEN

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@kernel
def match(
    symbols: Any,
    offsets: I64,
    groups: I64,
    before: I64,
    weight: I64,
    document: I64,
    may_keep: U8,
    may_go: U8,
    rank: I64,
    anchor: I64,
    widths: I64,
    length: int,
    least: int,
    most: int,
) -> I64:
    """Returns the windows that are equal within groups of contexts that have the same minimizer.

    The result has one row per run of windows: (context, first window, number of windows, context of the kept copy, byte
    at which that copy begins).

    Contexts `groups[g]` to `groups[g + 1]` form a group. `rank` (of the document) and `anchor` (the first byte of the
    minimizer) order the earliest occurrences of contexts. The weight of a window is the sum of the weights of all
    contexts that contain it; of those with one `document`, which follow each other, the first one counts, but -1 is no
    document. If it is between `least` and `most`, the window is removed from the contexts with `may_go`, and the
    earliest context with `may_keep` has the kept copy. `widths[symbol]` is the length of a symbol in bytes.

    Windows are classified by the position of the minimizer and by hash. Equality is proven by the number of symbols
    that two contexts share before and after their minimizers.
    """
    # The outer loop is over the position of the minimizer in the window, so that memory beside the symbols is a few
    # numbers per context, not per window.
    room, tick = np.int64(64), 0  # a literal is a type of its own
    states, runs, shares, classes, class_hashes, buckets, stamps = _room_for(room)
    out = np.empty((64, 5), np.int64)
    num_out = 0
    leaving = _ONE
    for _ in range(length):
        leaving = leaving * GOLDEN
    for group in range(groups.shape[0] - 1):
        low, high = groups[group], groups[group + 1]
        total = 0
        for context in range(low, high):
            total += weight[context]
        if total < least:
            continue
        if high - low > room:
            while room < high - low:
                room *= 2
            states, runs, shares, classes, class_hashes, buckets, stamps = _room_for(room)
        size = 1
        while size < 2 * (high - low):
            size *= 2
        mask = np.uint64(size - 1)
        fill(shares[: high - low, 0], -1)
        fill(runs[: high - low, 1], -1)
        nearest, farthest = length, 0
        for context in range(low, high):
            farthest = max(farthest, before[context])
            nearest = min(nearest, before[context] - (offsets[context + 1] - offsets[context] - length))
        for place in range(farthest, nearest - 1, -1):
            tick += 1
            num_classes = 0
            for context in range(low, high):
                first = offsets[context] + before[context] - place
                if first < offsets[context] or first + length > offsets[context + 1]:
                    runs[context - low, 0] = -1
                    continue
                state = _ZERO
                if first == offsets[context]:
                    for i in range(first, first + length):
                        state = state * GOLDEN + np.uint64(symbols[i]) + _ONE
                else:
                    new, old = np.uint64(symbols[first + length - 1]), np.uint64(symbols[first - 1])
                    state = states[context - low] * GOLDEN + new + _ONE - (old + _ONE) * leaving
                states[context - low] = state
                hashed = mix(state)
                slot = hashed & mask
                which = -1
                while stamps[slot] == tick:
                    candidate = buckets[slot]
                    if class_hashes[candidate] == hashed:
                        # Equal to an earlier context of the class: to its first one, or to the one compared last.
                        mine, other = shares[context - low], classes[candidate, 0]
                        if mine[0] < 0 or runs[mine[0] - low, 0] != candidate:
                            mine[0] = other
                            mine[1], mine[2] = _extents(symbols, offsets, before, context, other)
                        if place <= mine[1] and length - place <= mine[2]:
                            which = candidate
                            break
                    slot = (slot + _ONE) & mask
                if which < 0:
                    which = num_classes
                    num_classes += 1
                    stamps[slot], buckets[slot], class_hashes[which] = tick, which, hashed
                    classes[which, 0], classes[which, 1], classes[which, 2], classes[which, 3] = context, 0, -1, -1
                if document[context] < 0 or document[context] != classes[which, 3]:
                    classes[which, 1] += weight[context]
                classes[which, 3] = document[context]
                kept = classes[which, 2]
                if may_keep[context] and (
                    kept < 0
                    or rank[context] < rank[kept]
                    or (rank[context] == rank[kept] and anchor[context] < anchor[kept])
                ):
                    classes[which, 2] = context
                runs[context - low, 0] = which
            for context in range(low, high):
                run = runs[context - low]
                which = run[0]
                kept = -1
                if which >= 0 and may_go[context] and least <= classes[which, 1] <= most:
                    kept = classes[which, 2]
                if kept >= 0 and kept == run[1]:
                    out[run[2], 2] += 1
                elif kept >= 0:
                    if num_out == out.shape[0]:
                        out = doubled_rows(out)
                    row = out[num_out]
                    row[0], row[1], row[2], row[3] = context, before[context] - place, 1, kept
                    row[4] = anchor[kept] - _width(symbols, widths, offsets[kept] + before[kept] - place, place)
                    run[2] = num_out
                    num_out += 1
                run[1] = kept
    return out[:num_out]


@inner
def _room_for(size: int) -> tuple[U64, I64, I64, I64, U64, I64, I64]:
    """Returns the arrays of `match` for `size` contexts of a group and their distinct windows at one position."""
    states = np.empty(size, np.uint64)  # hash of the previous window
    runs = np.empty((size, 3), np.int64)  # class of the window, kept copy of the open run, row of that run
    shares = np.empty((size, 3), np.int64)  # context compared last, symbols shared before and after the minimizer
    classes = np.empty((size, 4), np.int64)  # first context with the window, total weight, context of the kept copy,
    # document of the last one
    return (
        states,
        runs,
        shares,
        classes,
        np.empty(size, np.uint64),
        np.empty(2 * size, np.int64),
        np.zeros(2 * size, np.int64),
    )


@inner
def _width(symbols: Any, widths: I64, start: int, num: int) -> int:
    """Returns the size in bytes of the `num` symbols from `start`."""
    total = 0
    for i in range(start, start + num):
        total += widths[symbols[i]]
    return total


@inner
def _extents(symbols: Any, offsets: I64, before: I64, left: int, right: int) -> tuple[int, int]:
    """Returns the number of symbols that two contexts share before their minimizers, and from the minimizers on."""
    a, b = offsets[left] + before[left], offsets[right] + before[right]
    num_before = 0
    while (
        num_before < before[left]
        and num_before < before[right]
        and symbols[a - num_before - 1] == symbols[b - num_before - 1]
    ):
        num_before += 1
    room = min(offsets[left + 1] - a, offsets[right + 1] - b)
    num_after = 0
    while num_after < room and symbols[a + num_after] == symbols[b + num_after]:
        num_after += 1
    return num_before, num_after
