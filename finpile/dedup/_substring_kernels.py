"""Numba kernels of exact substrings. Slow twins: tests/finpile/dedup/test_substrings.py and the suffix array.

Symbols are bytes (uint8) or token ids (uint32); `offsets` bound the documents. With `k` symbols of a k-gram and `w`
k-grams of a window, a window is `w + k - 1` symbols of one document and its minimizer its k-gram of smallest hash, the
leftmost of equal ones. An *entry* is a longest run of windows (within `PIECE` of them) that have the same minimizer;
its *content* is all symbols of these windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from finpile.dedup._kernels import GOLDEN, I64, U8, U64, mix

#: Windows scanned at once: what bounds the memory of a scan, however long a document is.
PIECE = 1 << 16
#: Places of the minimizer that windows of the largest slices have; a power of two.
SLICE = 16
#: What is known of a piece: nobody else has its key; it is to be compared; nothing yet.
UNIQUE, SENT, UNKNOWN = 0, 1, 2
#: Symbols compared at once, without a test between them: vectors.
_STRIDE = 32

#: In the place of the distance to a copy where none is known.
_NO_COPY = np.int64(np.iinfo(np.int64).min)
_ZERO, _ONE = np.uint64(0), np.uint64(1)


@njit(cache=True, nogil=True)
def scan(
    symbols: Any, begin: int, num: int, k: int, w: int, scope: Any, hashes: U64, suffix: I64, out: I64, keys: U64
) -> int:
    """The entries of the windows `begin` to `begin + num`: (minimizer, first window) to `out`, their hashes to `keys`.

    Returns how many there are. `hashes` has room for `num + w - 1`, `suffix` for `w`. No key is zero.
    """
    state, leaving = _ZERO, _ONE
    for i in range(begin, begin + k):
        state = state * GOLDEN + np.uint64(symbols[i]) + _ONE
        leaving = leaving * GOLDEN
    hashes[0] = mix(state)
    for i in range(1, num + w - 1):
        new, old = np.uint64(symbols[begin + i + k - 1]), np.uint64(symbols[begin + i - 1])
        state = state * GOLDEN + new + _ONE - (old + _ONE) * leaving
        hashes[i] = mix(state)
    count, last = 0, -1
    for block in range(0, num, w):  # of k-grams: a window is the tail of one block and the head of the next
        best = block + w - 1
        suffix[w - 1] = best
        for j in range(w - 2, -1, -1):
            if hashes[block + j] <= hashes[best]:
                best = block + j
            suffix[j] = best
        head = -1
        for j in range(min(w, num - block)):
            minimizer = suffix[j]
            if j > 0:
                new_gram = block + w + j - 1
                if head < 0 or hashes[new_gram] < hashes[head]:
                    head = new_gram
                if hashes[head] < hashes[minimizer]:
                    minimizer = head
            if minimizer != last:
                out[count, 0], out[count, 1] = begin + minimizer, begin + block + j
                keys[count] = max(hashes[minimizer] ^ scope, _ONE)
                count += 1
                last = minimizer
    return count


@njit(cache=True, nogil=True)
def _slot_of(key: Any, table: U64) -> Any:
    """Where `key` stands in an open-addressed set, or the empty slot where it would."""
    mask = np.uint64(table.shape[0] - 1)
    slot = mix(key) & mask
    while table[slot] != _ZERO and table[slot] != key:
        slot = (slot + _ONE) & mask
    return np.int64(slot)


@njit(cache=True, nogil=True)
def count_minimizers(symbols: Any, offsets: I64, k: int, w: int, scope: Any) -> tuple[U64, I64]:
    """The distinct hashes of all minimizers, in no order, and of each (how often it was met, in how many runs).

    A run is of neighbours that have the same hash, as in periodic text: their contexts are the same but for its ends.
    """
    hashes, suffix = np.empty(PIECE + w, np.uint64), np.empty(w, np.int64)
    out, keys = np.empty((PIECE, 2), np.int64), np.empty(PIECE, np.uint64)
    table, times = np.zeros(1024, np.uint64), np.zeros((1024, 2), np.int64)
    size = 0
    for doc in range(offsets.shape[0] - 1):
        num_windows = offsets[doc + 1] - offsets[doc] - (w + k - 1) + 1
        for piece in range(0, num_windows, PIECE):
            num = min(PIECE, num_windows - piece)
            count = scan(symbols, offsets[doc] + piece, num, k, w, scope, hashes, suffix, out, keys)
            for entry in range(count):
                slot = _slot_of(keys[entry], table)
                times[slot, 0] += 1
                times[slot, 1] += entry == 0 or keys[entry] != keys[entry - 1]
                if table[slot] != _ZERO:
                    continue
                table[slot] = keys[entry]
                size += 1
                if 2 * size > table.shape[0]:
                    table, times = _grown(table, times)
    met = table != _ZERO
    return table[met], times[met]


@njit(cache=True, nogil=True)
def _grown(table: U64, times: I64) -> tuple[U64, I64]:
    larger, copied = np.zeros(2 * table.shape[0], np.uint64), np.zeros((2 * table.shape[0], 2), np.int64)
    for i in range(table.shape[0]):
        if table[i] != _ZERO:
            slot = _slot_of(table[i], larger)
            larger[slot], copied[slot] = table[i], times[i]
    return larger, copied


@njit(cache=True, nogil=True)
def as_set(keys: U64) -> U64:
    """Distinct keys, none zero, as an open-addressed set."""
    size = 16
    while size < 2 * keys.shape[0] + 1:
        size *= 2
    table = np.zeros(size, np.uint64)
    for key in keys:
        table[_slot_of(key, table)] = key
    return table


@njit(cache=True, nogil=True)
def _equal(symbols: Any, left: int, right: int, length: int) -> bool:
    """Whether `length` symbols from `left` and from `right` are the same."""
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


@njit(cache=True, nogil=True)
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
    """The entries, in pieces (`_piece`), that are not known to be unique, each content once.

    Returns contexts (document, first window, windows, place of the minimizer in the content, occurrences, documents
    that have it), their hashes, and which context each occurrence is, in order, as runs (context, length). A context
    stands at its earliest occurrence: the document of lowest `rank`, then the first position. `factors` are random, one
    a symbol of the longest content.
    """
    length = w + k - 1
    hashes, suffix = np.empty(PIECE + w, np.uint64), np.empty(w, np.int64)
    out, keys = np.empty((PIECE + 1, 2), np.int64), np.empty(PIECE, np.uint64)
    found, found_keys, contents = np.empty((1024, 7), np.int64), np.empty(1024, np.uint64), np.empty(1024, np.uint64)
    table = np.zeros(2048, np.int64)  # context + 1
    runs = np.empty((1024, 2), np.int64)
    size, num_runs, latest = 0, 0, -1
    previous, period, periodic_to = 0, 0, 0  # symbols from `previous` to there stand `period` before, too
    for doc in range(offsets.shape[0] - 1):
        num_windows = offsets[doc + 1] - offsets[doc] - length + 1
        for piece in range(0, num_windows, PIECE):
            num = min(PIECE, num_windows - piece)
            begin = offsets[doc] + piece
            count = scan(symbols, begin, num, k, w, scope, hashes, suffix, out, keys)
            out[count, 1] = begin + num
            for entry in range(count):
                first, end = out[entry, 1], out[entry + 1, 1]
                while first < end:
                    before = out[entry, 0] - first
                    windows, key, state = _piece(
                        symbols, out[entry, 0], first, end, length, w, keys[entry], shared, crowded, factors, finest
                    )
                    if state == UNIQUE:
                        first += windows
                        continue
                    context, step, reach = latest, first - previous, first + windows + length - 1
                    is_latest = latest >= 0 and found[latest, 2] == windows and found[latest, 3] == before
                    if is_latest:  # in periodic text most of it is known to be
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
                                found, found_keys, contents = _twice(found), _twice(found_keys), _twice(contents)
                            context = size
                            found[context, 0], found[context, 1], found[context, 2] = doc, first, windows
                            found[context, 3], found[context, 4] = before, 0
                            found[context, 5], found[context, 6] = 0, -1  # documents, the latest of them
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
                    if context == latest:
                        runs[num_runs - 1, 1] += 1
                    else:
                        if num_runs == runs.shape[0]:
                            runs = _twice(runs)
                        runs[num_runs, 0], runs[num_runs, 1] = context, 1
                        num_runs += 1
                    latest = context
                    first += windows
    return found[:size, :6], found_keys[:size], runs[:num_runs]


@njit(cache=True, nogil=True)
def _piece(
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
    """What the next windows of an entry, from `first` on, are sent by: (how many, key, `UNIQUE`, `SENT` or `UNKNOWN`).

    By the minimizer's hash `key`; where that is crowded, by slices of `SLICE` places of the minimizer in its window; by
    slices of half the places where these are crowded, and so on. A slice's key is of the symbols that all of its
    windows have. Slices are cut alike in all copies, wherever the entry begins. Keys of slices of `finest` places and
    more are in `shared` and `crowded`, if they belong there; of smaller ones it is `UNKNOWN`.
    """
    if shared[_slot_of(key, shared)] == _ZERO:
        return end - first, key, UNIQUE
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


@njit(cache=True, nogil=True)
def count_pieces(
    symbols: Any, offsets: I64, k: int, w: int, scope: Any, shared: U64, crowded: U64, factors: U64, finest: int
) -> tuple[U64, I64]:
    """The keys of all pieces that are `UNKNOWN` yet, each once, and of each (occurrences, distinct contents)."""
    length = w + k - 1
    hashes, suffix = np.empty(PIECE + w, np.uint64), np.empty(w, np.int64)
    out, keys = np.empty((PIECE + 1, 2), np.int64), np.empty(PIECE, np.uint64)
    table, times = np.zeros(1024, np.uint64), np.zeros((1024, 2), np.int64)
    met, no_times = np.zeros(1024, np.uint64), np.zeros((1024, 2), np.int64)
    size, num_contents = 0, 0
    for doc in range(offsets.shape[0] - 1):
        num_windows = offsets[doc + 1] - offsets[doc] - length + 1
        for block in range(0, num_windows, PIECE):
            num = min(PIECE, num_windows - block)
            begin = offsets[doc] + block
            count = scan(symbols, begin, num, k, w, scope, hashes, suffix, out, keys)
            out[count, 1] = begin + num
            for entry in range(count):
                if crowded[_slot_of(keys[entry], crowded)] == _ZERO:
                    continue
                first, end = out[entry, 1], out[entry + 1, 1]
                while first < end:
                    windows, key, state = _piece(
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


@njit(cache=True, nogil=True)
def _content(symbols: Any, first: int, windows: int, before: int, length: int, factors: U64) -> Any:
    """A hash of what makes two contexts the same."""
    content = mix(np.uint64(before) * GOLDEN + np.uint64(windows))
    for i in range(windows + length - 1):
        content += (np.uint64(symbols[first + i]) + _ONE) * factors[i]
    return mix(content)


@njit(cache=True, nogil=True)
def _same(symbols: Any, context: I64, first: int, windows: int, before: int, length: int) -> bool:
    return bool(
        context[2] == windows and context[3] == before and _equal(symbols, context[1], first, windows + length - 1)
    )


@njit(cache=True, nogil=True)
def _placed(contents: U64, size: int) -> I64:
    """The table of contexts, of `size` slots."""
    table = np.zeros(size, np.int64)
    mask = np.uint64(size - 1)
    for context in range(contents.shape[0]):
        slot = contents[context] & mask
        while table[slot] != 0:
            slot = (slot + _ONE) & mask
        table[slot] = context + 1
    return table


@njit(cache=True, nogil=True)
def _twice(array: Any) -> Any:
    """A copy with room for twice the rows."""
    larger = np.empty((2 * array.shape[0], *array.shape[1:]), array.dtype)
    larger[: array.shape[0]] = array
    return larger


@njit(cache=True, nogil=True)
def gather(symbols: Any, firsts: I64, sizes: I64) -> Any:
    """The symbols `firsts[i]` to `firsts[i] + sizes[i]`, one after the other."""
    total = 0
    for size in sizes:
        total += size
    out = np.empty(total, symbols.dtype)
    at = 0
    for i in range(firsts.shape[0]):
        out[at : at + sizes[i]] = symbols[firsts[i] : firsts[i] + sizes[i]]
        at += sizes[i]
    return out


@njit(cache=True, nogil=True)
def match(
    symbols: Any,
    offsets: I64,
    groups: I64,
    before: I64,
    weight: I64,
    may_keep: U8,
    may_go: U8,
    rank: I64,
    anchor: I64,
    widths: I64,
    length: int,
    least: int,
    most: int,
) -> I64:
    """Which windows of contexts are equal to others, within groups of contexts that have one minimizer.

    Contexts `groups[g]` to `groups[g + 1]` make a group. `rank` (the document's) and `anchor` (the byte where the
    minimizer stands) order their earliest occurrences. The weights of all contexts that have a window add up; where the
    sum is `least` to `most`, it goes from the contexts that `may_go`, for the earliest of those that `may_keep` it.
    Returns rows (context, first window, windows, context that holds the copy kept, byte where that begins): runs of
    windows. `widths[symbol]` is the symbol's length in bytes.

    A window is told from others by its place around the minimizer and its hash, and proven equal by the symbols that
    two contexts share on either side of their minimizers.
    """
    # Place by place of the minimizer in the window, so that what is kept beside the symbols is a few numbers a context,
    # not a window.
    room, tick = 64, 0
    states, runs, shares, classes, class_hashes, buckets, stamps = _room_for(room)
    out = np.empty((64, 5), np.int64)
    num_out = 0
    leaving = _ONE
    for _ in range(length):
        leaving = leaving * GOLDEN
    for group in range(groups.shape[0] - 1):
        low, high = groups[group], groups[group + 1]
        if weight[low:high].sum() < least:
            continue
        if high - low > room:
            while room < high - low:
                room *= 2
            states, runs, shares, classes, class_hashes, buckets, stamps = _room_for(room)
        size = 1
        while size < 2 * (high - low):
            size *= 2
        mask = np.uint64(size - 1)
        shares[: high - low, 0] = -1
        runs[: high - low, 1] = -1
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
                        mine, other = shares[context - low], classes[candidate, 0]
                        if mine[0] != other:
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
                    classes[which, 0], classes[which, 1], classes[which, 2] = context, 0, -1
                classes[which, 1] += weight[context]
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
                        out = _twice(out)
                    row = out[num_out]
                    row[0], row[1], row[2], row[3] = context, before[context] - place, 1, kept
                    row[4] = anchor[kept] - _width(symbols, widths, offsets[kept] + before[kept] - place, place)
                    run[2] = num_out
                    num_out += 1
                run[1] = kept
    return out[:num_out]


@njit(cache=True, nogil=True)
def _room_for(size: int) -> tuple[U64, I64, I64, I64, U64, I64, I64]:
    """What `match` knows of the contexts of a group, and of the distinct windows in one place."""
    states = np.empty(size, np.uint64)  # the hash of the window before
    runs = np.empty((size, 3), np.int64)  # the class of its window, the copy that its open run is for, that run's row
    shares = np.empty((size, 3), np.int64)  # the context compared with last, and what it shares on either side
    classes = np.empty((size, 3), np.int64)  # the first context that has it, their weight, the context of the copy kept
    return (
        states,
        runs,
        shares,
        classes,
        np.empty(size, np.uint64),
        np.empty(2 * size, np.int64),
        np.zeros(2 * size, np.int64),
    )


@njit(cache=True, nogil=True)
def _width(symbols: Any, widths: I64, start: int, num: int) -> int:
    """Bytes of `num` symbols from `start`."""
    total = 0
    for i in range(start, start + num):
        total += widths[symbols[i]]
    return total


@njit(cache=True, nogil=True)
def _extents(symbols: Any, offsets: I64, before: I64, left: int, right: int) -> tuple[int, int]:
    """How many symbols two contexts share before, and from, their minimizers on."""
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


@njit(cache=True, nogil=True)
def cover(
    symbols: Any,
    offsets: I64,
    byte_of: I64,
    k: int,
    w: int,
    scope: Any,
    shared: U64,
    crowded: U64,
    factors: U64,
    finest: int,
    runs: I64,
    answer_bounds: I64,
    answers: I64,
    own: I64,
    keep_first: bool,
) -> tuple[I64, I64]:
    """The bytes that repeated windows cover: rows (document, start, end, answer's kept document, offset there).

    `runs` are those of `distinct_contexts`; context c has the rows `answer_bounds[c]` to `answer_bounds[c + 1]` of
    `answers`: (first window, windows, kept document, offset of the first window's copy there), ascending. `own[d]` is
    the local number of kept document d, or -1. Symbol i begins at byte `byte_of[i]` (at i itself where that is empty).
    With `keep_first` the occurrence that is its own earliest copy is left out. Offset -1: no other copy is known.

    Rows of a document ascend; where they touch they are one span, cut where the copy changes. Each is the longest that
    its place allows, so their choice depends on the windows alone. Returns the rows and the repeated windows by
    document.
    """
    length = w + k - 1
    hashes, suffix = np.empty(PIECE + w, np.uint64), np.empty(w, np.int64)
    out, keys = np.empty((PIECE + 1, 2), np.int64), np.empty(PIECE, np.uint64)
    spans, num_spans = np.empty((64, 5), np.int64), 0
    repeated = np.zeros(offsets.shape[0] - 1, np.int64)
    run, used = 0, 0
    state = np.empty((3, 5), np.int64)  # what is open: the merged run of windows, the span, the best to follow it
    for doc in range(offsets.shape[0] - 1):
        num_windows = offsets[doc + 1] - offsets[doc] - length + 1
        base = _byte(byte_of, offsets[doc])
        state[:, 0] = -1
        for piece in range(0, num_windows, PIECE):
            num = min(PIECE, num_windows - piece)
            begin = offsets[doc] + piece
            count = scan(symbols, begin, num, k, w, scope, hashes, suffix, out, keys)
            out[count, 1] = begin + num
            for entry in range(count):
                first, end = out[entry, 1], out[entry + 1, 1]
                while first < end:
                    windows, _, fate = _piece(
                        symbols, out[entry, 0], first, end, length, w, keys[entry], shared, crowded, factors, finest
                    )
                    if fate == UNIQUE:
                        first += windows
                        continue
                    context = runs[run, 0]
                    used += 1
                    if used == runs[run, 1]:
                        run, used = run + 1, 0
                    for row in range(answer_bounds[context], answer_bounds[context + 1]):
                        window = first + answers[row, 0]
                        start, kept, offset = _byte(byte_of, window) - base, answers[row, 2], answers[row, 3]
                        if own[kept] == doc and offset == start:
                            if keep_first:
                                continue
                            offset = -1
                        last = window + answers[row, 1] - 1
                        repeated[doc] += answers[row, 1]
                        reach = _byte(byte_of, last + length) - base
                        merged = state[0]
                        if (
                            merged[0] >= 0
                            and merged[4] + 1 == window
                            and merged[2] == kept
                            and (offset - start == merged[3] if offset >= 0 else merged[3] == _NO_COPY)
                        ):
                            merged[1], merged[4] = reach, last
                            continue
                        if merged[0] >= 0:
                            spans, num_spans = _follow(state, doc, spans, num_spans)
                        merged[0], merged[1], merged[2], merged[4] = start, reach, kept, last
                        merged[3] = offset - start if offset >= 0 else _NO_COPY
                    first += windows
        if state[0, 0] >= 0:
            spans, num_spans = _follow(state, doc, spans, num_spans)
            while state[1, 0] >= 0:
                spans, num_spans = _close(state, doc, spans, num_spans)
    return spans[:num_spans], repeated


@njit(cache=True, nogil=True)
def _byte(byte_of: I64, symbol: int) -> int:
    return byte_of[symbol] if byte_of.shape[0] else symbol


@njit(cache=True, nogil=True)
def _follow(state: I64, doc: int, spans: I64, num_spans: int) -> tuple[I64, int]:
    """Hands the run of windows state[0] on: it opens a span, or may follow the open one, after closing what it can."""
    new, current, best = state[0], state[1], state[2]
    while current[0] >= 0 and new[0] > current[1]:
        spans, num_spans = _close(state, doc, spans, num_spans)
    if current[0] < 0:
        current[:] = new
    elif new[1] > current[1] and (best[0] < 0 or new[1] > best[1]):
        best[:] = new
    return spans, num_spans


@njit(cache=True, nogil=True)
def _close(state: I64, doc: int, spans: I64, num_spans: int) -> tuple[I64, int]:
    """Writes the open span; the best to follow it, if any, is open then, from where that one ended."""
    current, best = state[1], state[2]
    if num_spans == spans.shape[0]:
        spans = _twice(spans)
    row = spans[num_spans]
    row[0], row[1], row[2], row[3] = doc, current[0], current[1], current[2]
    row[4] = current[0] + current[3] if current[3] != _NO_COPY else -1
    end = current[1]
    current[:] = best
    if best[0] >= 0:
        current[0] = end
        best[0] = -1
    return spans, num_spans + 1


@njit(cache=True, nogil=True)
def trim(data: U8, bounds: I64, spans: I64, snap: int) -> I64:
    """The spans of `cover`, shrunk so that what is kept is cut between characters, words (`snap` 1) or lines (2)."""
    out = np.empty_like(spans)
    num_out, i = 0, 0
    while i < spans.shape[0]:
        j = i + 1
        while j < spans.shape[0] and spans[j, 0] == spans[i, 0] and spans[j, 1] == spans[j - 1, 2]:
            j += 1
        low, high = bounds[spans[i, 0]], bounds[spans[i, 0] + 1]
        begin, end = low + spans[i, 1], low + spans[j - 1, 2]
        while begin < end and not _may_cut(data, low, high, begin, snap):
            begin += 1
        while end > begin and not _may_cut(data, low, high, end, snap):
            end -= 1
        for row in range(i, j):
            start, stop = max(spans[row, 1], begin - low), min(spans[row, 2], end - low)
            if start < stop:
                out[num_out] = spans[row]
                out[num_out, 1], out[num_out, 2] = start, stop
                if spans[row, 4] >= 0:
                    out[num_out, 4] = spans[row, 4] + start - spans[row, 1]
                num_out += 1
        i = j
    return out[:num_out]


@njit(cache=True, nogil=True)
def _may_cut(data: U8, low: int, high: int, at: int, snap: int) -> bool:
    """Whether a text `data[low:high]` may be cut at `at`."""
    if at in (low, high):
        return True
    if data[at] & 0xC0 == 0x80:
        return False
    if snap == 1:
        return bool(_is_space(data[at]) or _is_space(data[at - 1]))
    return bool(snap == 0 or data[at - 1] == 0x0A)


@njit(cache=True, nogil=True)
def _is_space(byte: int) -> bool:
    return byte == 0x20 or 0x09 <= byte <= 0x0D
