"""Numba kernels of `suffix_array.py`; `test_suffix_array.py` has the reference implementations.

The suffix that begins at position p is called p. A suffix smaller than its right neighbour p + 1 is of type S, a larger
one of type L; the last is L, for the empty suffix is smaller than any. An S right behind an L is a *valley* ("LMS" in
the literature). A bucket is the range of the suffix array whose suffixes begin with one symbol: first L, then S.

While an order is induced, a suffix array entry is 0 (empty), p > 0 (the suffix p - 1 follows from it in this pass) or
~p (nothing follows from it in this pass). So a pass reads the text only where it writes, at p and p - 1.

Indices from an array are unsigned: Numba then omits its test for negative indices.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

from finpile.dedup._hash_kernels import I64, U8

#: uint8 or uint32; inside the recursion also uint64.
Text: TypeAlias = npt.NDArray[Any]
#: int32 up to 2^31 - 1 symbols, else int64.
Index: TypeAlias = npt.NDArray[np.signedinteger[Any]]

#: Bits of a flag byte: a window begins here; it equals the one before it in suffix order.
HAS_WINDOW, EQUALS_PREVIOUS = 1, 2
_AT = np.uint64


@njit(cache=True, nogil=True)
def count_symbols(text: Text, counts: Index) -> None:
    """Adds to `counts[c]` how often c occurs."""
    for i in range(text.size):
        counts[_AT(text[i])] += 1


@njit(cache=True, nogil=True)
def list_valleys(text: Text, out: Index) -> int:
    """Writes all valleys, ascending, to the end of `out`; returns how many there are.

    Of n symbols fewer than half begin valleys; one entry before theirs, in the second half of `out`, is written too.
    """
    first = out.size
    after = text[text.size - 1]
    is_s = False
    for i in range(text.size - 2, -1, -1):
        symbol = text[i]
        was_s = is_s
        is_s = (symbol < after) | ((symbol == after) & was_s)
        out[first - 1] = i + 1  # overwritten unless i + 1 is one: a branch would be guessed wrong too often
        first -= was_s & (not is_s)
        after = symbol
    return out.size - first


@njit(cache=True, nogil=True)
def place_at_ends(text: Text, valleys: Index, ends: Index, suffixes: Index) -> None:
    """Moves `valleys`, the last first, to the ends of their buckets; zeros elsewhere in `suffixes`.

    `valleys` are at the start of `suffixes`, sorted, or a list elsewhere. `ends[c]` is the end of bucket c and moves.
    """
    for i in range(valleys.size - 1, -1, -1):
        position = valleys[i]
        valleys[i] = 0
        symbol = _AT(text[_AT(position)])
        ends[symbol] -= 1
        suffixes[_AT(ends[symbol])] = position


@njit(cache=True, nogil=True)
def induce_l(text: Text, heads: Index, suffixes: Index, keep: bool) -> None:
    """From valleys at their buckets' ends, sets the suffixes of type L; then turns all signs for `induce_s`.

    `heads[c]` is the begin of bucket c and moves. Without `keep`, only what `induce_s` starts from stays.
    """
    last = text.size - 1
    symbol = _AT(text[last])
    rising = last > 0 and text[last - 1] < text[last]
    suffixes[_AT(heads[symbol])] = ~last if rising else last
    heads[symbol] += 1
    for i in range(suffixes.size):
        entry = np.int64(suffixes[i])
        if entry > 0:
            suffixes[i] = ~entry if keep else 0
            position = entry - 1
            symbol = _AT(text[_AT(position)])
            before = _AT(text[_AT(position - (position > 0))])
            place = _AT(heads[symbol])
            heads[symbol] += 1
            suffixes[place] = position ^ -np.int64(before < symbol)
        elif keep or entry < 0:
            suffixes[i] = ~entry


@njit(cache=True, nogil=True)
def induce_s(text: Text, ends: Index, suffixes: Index, keep: bool) -> None:
    """From the suffixes of type L, sets those of type S. With `keep`, `suffixes` is then the suffix array.

    `ends[c]` is the end of bucket c and moves. Without `keep`, only valleys stay, as ~p, in the order of their text up
    to the next valley.
    """
    for i in range(suffixes.size - 1, -1, -1):
        entry = np.int64(suffixes[i])
        if entry > 0:
            if not keep:
                suffixes[i] = 0
            position = entry - 1
            symbol = _AT(text[_AT(position)])
            before = _AT(text[_AT(position - (position > 0))])
            ends[symbol] -= 1
            final = (before > symbol) | (keep & (position == 0))
            suffixes[_AT(ends[symbol])] = position ^ -np.int64(final)
        elif keep:
            suffixes[i] = ~entry


@njit(cache=True, nogil=True)
def compact_valleys(suffixes: Index) -> None:
    """Moves the entries ~p, in order and as p, to the start; later entries keep their values."""
    count = 0
    for i in range(suffixes.size):
        entry = suffixes[i]
        if entry < 0:
            suffixes[count] = ~entry
            count += 1


@njit(cache=True, nogil=True)
def name_valleys(text: Text, suffixes: Index, num_valleys: int) -> int:
    """Numbers the distinct texts from valley to next valley, from 1 on in the order of `suffixes[:num_valleys]`.

    The name of valley p goes to `suffixes[num_valleys + p // 2]`: valleys are never neighbours. Zeros between. Returns
    how many names there are.
    """
    names = suffixes[num_valleys:]
    names[:] = 0
    after, next_valley, is_s = text[text.size - 1], text.size, False
    for i in range(text.size - 2, -1, -1):
        symbol = text[i]
        was_s = is_s
        is_s = (symbol < after) | ((symbol == after) & was_s)
        if was_s and not is_s:
            # The last one ends with the text and equals no other: no other has this length.
            names[(i + 1) >> 1] = text.size if next_valley == text.size else next_valley - i - 1
            next_valley = i + 1
        after = symbol
    name = 0
    previous, previous_length = np.int64(0), np.int64(-1)
    for i in range(num_valleys):
        position = np.int64(suffixes[i])
        length = np.int64(names[_AT(position >> 1)])
        differ = length != previous_length
        if not differ:
            k = 0
            while k <= length and text[_AT(position + k)] == text[_AT(previous + k)]:
                k += 1
            differ = k <= length
        name += differ
        names[_AT(position >> 1)] = name
        previous, previous_length = position, length
    return name


@njit(cache=True, nogil=True)
def gather_names(suffixes: Index, num_valleys: int) -> None:
    """Moves the names, less 1 and in text order, to the end of `suffixes`."""
    target = suffixes.size
    for i in range(suffixes.size - 1, num_valleys - 1, -1):
        if suffixes[i] > 0:
            target -= 1
            suffixes[target] = suffixes[i] - 1


@njit(cache=True, nogil=True)
def look_up(order: Index, valleys: Index) -> None:
    """Replaces the number of a valley by its position."""
    for i in range(order.size):
        order[i] = valleys[_AT(order[i])]


@njit(cache=True, nogil=True)
def predecessors(suffixes: Index, previous: Index) -> None:
    """Writes to `previous[p]` the suffix before p in `suffixes`, -1 for the first."""
    before = np.int64(-1)
    for i in range(suffixes.size):
        position = np.int64(suffixes[i])
        previous[_AT(position)] = before
        before = position


@njit(cache=True, nogil=True)
def permuted_lcp(text: Text, previous: Index) -> None:
    """Replaces `previous[p]` by how many symbols suffix p shares with that suffix.

    p + 1 shares at least one symbol less than p does, so the number falls by one and is counted up from there.
    """
    shared = 0
    for position in range(text.size):
        other = np.int64(previous[position])
        if other < 0:
            shared = 0
        else:
            stop = text.size - (position if position > other else other)
            while shared < stop and text[_AT(position + shared)] == text[_AT(other + shared)]:
                shared += 1
        previous[position] = shared
        shared -= shared > 0


@njit(cache=True, nogil=True)
def flag_windows(offsets: I64, min_length: int, flags: U8) -> None:
    """Sets `HAS_WINDOW` where `min_length` symbols of one document begin."""
    for document in range(offsets.size - 1):
        for position in range(offsets[document], offsets[document + 1] - min_length + 1):
            flags[position] |= HAS_WINDOW


@njit(cache=True, nogil=True)
def earliest_of_equals(suffixes: Index, flags: U8, earliest: I64) -> None:
    """Writes to `earliest[p]` the smallest position whose window equals p's, if there are two such positions.

    Suffixes that begin with equal symbols are neighbours in `suffixes`; those that run over their document's end stand
    among them and are left out.
    """
    begin = 0
    while begin < suffixes.size:
        end = begin + 1
        while end < suffixes.size and flags[_AT(suffixes[end])] & EQUALS_PREVIOUS:
            end += 1
        if end - begin > 1:
            smallest, num_windows = np.int64(flags.size), 0
            for i in range(begin, end):
                if flags[_AT(suffixes[i])] & HAS_WINDOW:
                    smallest = min(smallest, np.int64(suffixes[i]))
                    num_windows += 1
            for i in range(begin, end):
                if num_windows > 1 and flags[_AT(suffixes[i])] & HAS_WINDOW:
                    earliest[_AT(suffixes[i])] = smallest
        begin = end
