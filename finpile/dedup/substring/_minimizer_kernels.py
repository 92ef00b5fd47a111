"""Numba kernels of repeated substrings: minimizers and their contexts.

tests/finpile/dedup/test_substrings.py and test_substring_kernels.py compare them with slow reference implementations
and a suffix array.

Symbols are bytes (uint8) or token ids (uint32); `offsets` bound the documents. A k-gram has `k` symbols and a window
`w` k-grams, so a window is `w + k - 1` symbols of one document. Its minimizer is its k-gram of smallest hash, the
leftmost of equal ones. An *entry* is a maximal run of windows (within a block of `PIECE` windows) that have the same
minimizer; its *content* is all symbols of these windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from finpile_tokenizer.arrays._array_kernels import copy_to, doubled, doubled_rows
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile.dedup._hash_kernels import I64, U64, mix
from finpile.splitmix import GOLDEN

#: Windows scanned at once. It bounds the memory of a scan for documents of any length.
PIECE = 1 << 16
#: Number of minimizer positions that the largest slices cover; a power of two.
SLICE = 16
#: State of a piece: its key occurs nowhere else; its windows are to be compared; not known yet.
UNIQUE, SENT, UNKNOWN = 0, 1, 2
#: Symbols compared at once, without a branch between them, so that the loop is vectorized.
_STRIDE = 32

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@inner
def scan(symbols: Any, begin: int, num: int, k: int, w: int, scope: Any, hashes: U64, out: I64, keys: U64) -> int:
    """Finds the entries of the windows `begin` to `begin + num`; returns their number.

    Writes (minimizer, first window) to `out` and the minimizers' hashes, none of them zero, to `keys`. `hashes` has
    room for `num + w - 1` values. Periodic text takes no longer: an equal hash ends the search for the next minimum.
    In text that is made so that hashes ascend, a window takes up to `w` steps.
    """
    _hash_grams(symbols, begin, num + w - 1, k, hashes)
    count, first, best, least = 0, 0, -1, _ZERO
    while first < num:
        if best < first:  # the minimum has left the window: all others are larger, or as large and further right
            left, best, least = least, first, hashes[first]
            at = first + 1
            while at < first + w and (least != left or count == 0):
                if hashes[at] < least:
                    best, least = at, hashes[at]
                at += 1
        out[count, 0], out[count, 1] = begin + best, begin + first
        keys[count] = max(least ^ scope, _ONE)
        count += 1
        at, stop = first + w, min(best, num - 2) + w + 1  # the last k-gram is the one that comes as the minimum leaves
        while at < stop and hashes[at] >= least:
            at += 1
        if at < stop:
            best, least, first = at, hashes[at], at - w + 1
        else:
            first = best + 1
    return count


@inner
def _hash_grams(symbols: Any, begin: int, num: int, k: int, hashes: U64) -> None:
    """Hashes the `num` k-grams from `begin` on."""
    state, leaving = _ZERO, _ONE
    for i in range(begin, begin + k):
        state = state * GOLDEN + np.uint64(symbols[i]) + _ONE
        leaving = leaving * GOLDEN
    hashes[0] = mix(state)
    for i in range(1, num):
        new, old = np.uint64(symbols[begin + i + k - 1]), np.uint64(symbols[begin + i - 1])
        change = new + _ONE - (old + _ONE) * leaving
        state = state * GOLDEN + change
        hashes[i] = mix(state)


@inner
def _slot_of(key: Any, table: U64) -> Any:
    """Returns the slot of `key` in an open-addressed set, or the empty slot in which to insert it."""
    mask = np.uint64(table.shape[0] - 1)
    slot = mix(key) & mask
    while table[slot] != _ZERO and table[slot] != key:
        slot = (slot + _ONE) & mask
    return np.int64(slot)


@kernel
def list_minimizers(symbols: Any, offsets: I64, k: int, w: int, scope: Any) -> tuple[U64, I64, I64]:
    """Returns the hashes of runs, in order, the entries of each, and the first run of each document, then their number.

    A run is a sequence of adjacent entries with the same hash and equal contexts, as in periodic text.
    """
    length = w + k - 1
    hashes = np.empty(PIECE + w, np.uint64)
    out, keys = np.empty((PIECE + 1, 2), np.int64), np.empty(PIECE, np.uint64)
    found, sizes, bounds = np.empty(1024, np.uint64), np.empty(1024, np.int64), np.zeros(offsets.shape[0], np.int64)
    num_runs, period, periodic_to = 0, 0, 0  # the symbols before `periodic_to` repeat with this period
    for doc in range(offsets.shape[0] - 1):
        num_windows = offsets[doc + 1] - offsets[doc] - length + 1
        for piece in range(0, num_windows, PIECE):
            num = min(PIECE, num_windows - piece)
            count = scan(symbols, offsets[doc] + piece, num, k, w, scope, hashes, out, keys)
            out[count, 1] = offsets[doc] + piece + num
            for entry in range(count):
                if entry > 0 and keys[entry] == keys[entry - 1]:
                    first, end, step = out[entry, 1], out[entry + 1, 1], out[entry, 0] - out[entry - 1, 0]
                    if first - out[entry - 1, 1] == step and end - first == step:
                        if step != period:
                            period, periodic_to = step, first
                        periodic_to = _repeated_to(symbols, max(first, periodic_to), end + length - 1, step)
                        if periodic_to == end + length - 1:
                            sizes[num_runs - 1] += 1
                            continue
                if num_runs == found.shape[0]:
                    found, sizes = doubled(found), doubled(sizes)
                found[num_runs], sizes[num_runs] = keys[entry], 1
                num_runs += 1
        bounds[doc + 1] = num_runs
    return found[:num_runs], sizes[:num_runs], bounds


@inner
def _repeated_to(symbols: Any, first: int, end: int, period: int) -> int:
    """Returns the first place from `first` on whose symbol is not the one a period before, or `end`."""
    while first < end and symbols[first] == symbols[first - period]:
        first += 1
    return first


@inner
def _grown(table: U64, times: I64) -> tuple[U64, I64]:
    larger, copied = np.zeros(2 * table.shape[0], np.uint64), np.zeros((2 * table.shape[0], 2), np.int64)
    for i in range(table.shape[0]):
        if table[i] != _ZERO:
            slot = _slot_of(table[i], larger)
            larger[slot] = table[i]
            copied[slot, 0], copied[slot, 1] = times[i, 0], times[i, 1]
    return larger, copied


@kernel
def as_set(keys: U64) -> U64:
    """Returns distinct keys, none of them zero, as an open-addressed set."""
    size = 16
    while size < 2 * keys.shape[0] + 1:
        size *= 2
    table = np.zeros(size, np.uint64)
    for key in keys:
        table[_slot_of(key, table)] = key
    return table


@inner
def _equal(symbols: Any, left: int, right: int, length: int) -> bool:
    """Whether the `length` symbols from `left` equal those from `right`."""
    i = 0
    while i + _STRIDE <= length:
        differences = _ZERO
        for j in range(i, i + _STRIDE):
            differences |= np.uint64(symbols[left + j] ^ symbols[right + j])
        if differences != _ZERO:
            return False
        i += _STRIDE
    while i < length:
        if symbols[left + i] != symbols[right + i]:
            return False
        i += 1
    return True


@kernel
def distinct_contexts(
    symbols: Any,
    offsets: I64,
    rank: I64,
    k: int,
    w: int,
    scope: Any,
    shared: U64,
    crowded: U64,
    factors: U64,
    finest: int,
) -> tuple[I64, U64, I64]:
    """Returns the distinct contexts: the pieces of entries (`piece_of`) that are not known to be unique.

    Returns rows (document, first window, number of windows, position of the minimizer in the content, occurrences,
    documents with the context), their hashes, and all occurrences, in order, as runs (context, first window, symbols
    from one occurrence to the next, number of occurrences) within documents.
    A row has the position of the context's earliest occurrence: in the document of lowest `rank`, then the first.
    `factors` are random odd numbers, one for each symbol of the longest content.
    """
    length = w + k - 1
    hashes = np.empty(PIECE + w, np.uint64)
    out, keys = np.empty((PIECE + 1, 2), np.int64), np.empty(PIECE, np.uint64)
    found, found_keys, contents = np.empty((1024, 7), np.int64), np.empty(1024, np.uint64), np.empty(1024, np.uint64)
    table = np.zeros(2048, np.int64)  # context + 1
    runs = np.empty((1024, 4), np.int64)
    run = runs[0]
    size, num_runs, first_run, latest = 0, 0, 0, -1
    previous, period, periodic_to = 0, 0, 0  # symbols from `previous` to `periodic_to` repeat with this period
    for doc in range(offsets.shape[0] - 1):
        num_windows = offsets[doc + 1] - offsets[doc] - length + 1
        first_run = num_runs
        for piece in range(0, num_windows, PIECE):
            num = min(PIECE, num_windows - piece)
            begin = offsets[doc] + piece
            count = scan(symbols, begin, num, k, w, scope, hashes, out, keys)
            out[count, 1] = begin + num
            for entry in range(count):
                if shared[_slot_of(keys[entry], shared)] == _ZERO:
                    continue
                first, end = out[entry, 1], out[entry + 1, 1]
                while first < end:
                    before = out[entry, 0] - first
                    windows, key, state = piece_of(
                        symbols, out[entry, 0], first, end, length, w, keys[entry], shared, crowded, factors, finest
                    )
                    if state == UNIQUE:
                        first += windows
                        continue
                    context, step, reach = latest, first - previous, first + windows + length - 1
                    is_latest = latest >= 0 and found[latest, 2] == windows and found[latest, 3] == before
                    if is_latest:  # in periodic text most of the content is already known to be equal
                        unknown = max(first, periodic_to) if step == period else first
                        is_latest = _equal(symbols, unknown - step, unknown, reach - unknown)
                    previous, period, periodic_to = first, step if is_latest else 0, reach
                    if not is_latest:
                        content = _content(symbols, first, windows, before, length, factors)
                        mask = np.uint64(table.shape[0] - 1)
                        slot = content & mask
                        while table[slot] != 0:
                            context = table[slot] - 1
                            if contents[context] == content and _same(
                                symbols, found[context], first, windows, before, length
                            ):
                                break
                            slot = (slot + _ONE) & mask
                        if table[slot] == 0:
                            if size == found.shape[0]:
                                found, found_keys, contents = (
                                    doubled_rows(found),
                                    doubled(found_keys),
                                    doubled(contents),
                                )
                            context = size
                            found[context, 0], found[context, 1], found[context, 2] = doc, first, windows
                            found[context, 3], found[context, 4] = before, 0
                            found[context, 5], found[context, 6] = 0, -1  # number of documents, latest document
                            found_keys[context], contents[context] = key, content
                            table[slot] = context + 1
                            size += 1
                            if 2 * size > table.shape[0]:
                                table = _placed(contents[:size], 2 * table.shape[0])
                    found[context, 4] += 1
                    if found[context, 6] != doc:
                        found[context, 5], found[context, 6] = found[context, 5] + 1, doc
                    if rank[doc] < rank[found[context, 0]]:
                        found[context, 0], found[context, 1] = doc, first
                    if num_runs > first_run and context == latest and (run[3] == 1 or run[2] == step):
                        run[2], run[3] = step, run[3] + 1
                    else:
                        if num_runs == runs.shape[0]:
                            runs = doubled_rows(runs)
                        run = runs[num_runs]
                        run[0], run[1], run[2], run[3] = context, first, 0, 1
                        num_runs += 1
                    latest = context
                    first += windows
    return found[:size, :6], found_keys[:size], runs[:num_runs]


@inner
def piece_of(
    symbols: Any,
    minimizer: int,
    first: int,
    end: int,
    length: int,
    w: int,
    key: Any,
    shared: U64,
    crowded: U64,
    factors: U64,
    finest: int,
) -> tuple[int, Any, int]:
    """Returns the next piece of an entry, from window `first` on.

    The result is (number of windows, key, `UNIQUE`, `SENT` or `UNKNOWN`). The key is the minimizer's hash `key`, which
    is shared. If it is crowded, the entry is divided into slices of `SLICE` minimizer positions each; a crowded slice
    is divided into slices of half the positions, and so on. The key of a slice hashes the symbols that all of its
    windows share. The boundaries of slices are the same in all copies and do not depend on the start of the entry.
    `shared` and `crowded` are complete for slices of `finest` positions and more; smaller slices are `UNKNOWN`.
    """
    if crowded[_slot_of(key, crowded)] == _ZERO:
        return end - first, key, SENT
    before = minimizer - first
    size = SLICE
    while True:
        nearest = before - before % size
        farthest = min(nearest + size, w) - 1
        mixed = key + np.uint64(nearest * SLICE + size) * GOLDEN
        for i in range(length - farthest + nearest):
            mixed += (np.uint64(symbols[minimizer - nearest + i]) + _ONE) * factors[i]
        piece = max(mix(mixed), _ONE)
        windows = min(end - first, before % size + 1)
        if size < finest:
            return windows, piece, UNKNOWN
        if shared[_slot_of(piece, shared)] == _ZERO:
            return windows, piece, UNIQUE
        if size == 1 or crowded[_slot_of(piece, crowded)] == _ZERO:
            return windows, piece, SENT
        size //= 2


@kernel
def count_pieces(
    symbols: Any, offsets: I64, k: int, w: int, scope: Any, shared: U64, crowded: U64, factors: U64, finest: int
) -> tuple[U64, I64]:
    """Returns the distinct keys of all `UNKNOWN` pieces, and for each (occurrences, distinct contents)."""
    length = w + k - 1
    hashes = np.empty(PIECE + w, np.uint64)
    out, keys = np.empty((PIECE + 1, 2), np.int64), np.empty(PIECE, np.uint64)
    table, times = np.zeros(1024, np.uint64), np.zeros((1024, 2), np.int64)
    met, no_times = np.zeros(1024, np.uint64), np.zeros((1024, 2), np.int64)
    size, num_contents = 0, 0
    for doc in range(offsets.shape[0] - 1):
        num_windows = offsets[doc + 1] - offsets[doc] - length + 1
        for block in range(0, num_windows, PIECE):
            num = min(PIECE, num_windows - block)
            begin = offsets[doc] + block
            count = scan(symbols, begin, num, k, w, scope, hashes, out, keys)
            out[count, 1] = begin + num
            for entry in range(count):
                if crowded[_slot_of(keys[entry], crowded)] == _ZERO:
                    continue
                first, end = out[entry, 1], out[entry + 1, 1]
                while first < end:
                    windows, key, state = piece_of(
                        symbols, out[entry, 0], first, end, length, w, keys[entry], shared, crowded, factors, finest
                    )
                    if state == UNKNOWN:
                        slot = _slot_of(key, table)
                        times[slot, 0] += 1
                        content = max(_content(symbols, first, windows, out[entry, 0] - first, length, factors), _ONE)
                        place = _slot_of(content, met)
                        if met[place] == _ZERO:
                            met[place] = content
                            times[slot, 1] += 1
                            num_contents += 1
                            if 2 * num_contents > met.shape[0]:
                                met, no_times = _grown(met, no_times)
                        if table[slot] == _ZERO:
                            table[slot] = key
                            size += 1
                            if 2 * size > table.shape[0]:
                                table, times = _grown(table, times)
                    first += windows
    found = table != _ZERO
    return table[found], times[found]


@inner
def _content(symbols: Any, first: int, windows: int, before: int, length: int, factors: U64) -> Any:
    """Returns a hash of a context: its symbols, its number of windows and the position of its minimizer."""
    content = mix(np.uint64(before) * GOLDEN + np.uint64(windows))
    for i in range(windows + length - 1):
        content += (np.uint64(symbols[first + i]) + _ONE) * factors[i]
    return mix(content)


@inner
def _same(symbols: Any, context: I64, first: int, windows: int, before: int, length: int) -> bool:
    return bool(
        context[2] == windows and context[3] == before and _equal(symbols, context[1], first, windows + length - 1)
    )


@inner
def _placed(contents: U64, size: int) -> I64:
    """Returns an open-addressed table of the contexts with `size` slots."""
    table = np.zeros(size, np.int64)
    mask = np.uint64(size - 1)
    for context in range(contents.shape[0]):
        slot = contents[context] & mask
        while table[slot] != 0:
            slot = (slot + _ONE) & mask
        table[slot] = context + 1
    return table


@kernel
def gather(symbols: Any, firsts: I64, sizes: I64) -> Any:
    """Returns the symbols `firsts[i]` to `firsts[i] + sizes[i]` of all i, concatenated."""
    total = 0
    for size in sizes:
        total += size
    out = np.empty(total, symbols.dtype)
    at = 0
    for i in range(firsts.shape[0]):
        copy_to(symbols[firsts[i] : firsts[i] + sizes[i]], out[at : at + sizes[i]])
        at += sizes[i]
    return out
