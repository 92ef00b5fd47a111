"""Numba kernels of exact substrings: where a text may be cut, and which seams a cut may leave."""

from __future__ import annotations

import numpy as np
from numba import njit

from finpile.dedup._hash_kernels import (
    I64,
    U8,
)

#: The edges of cuts lie between characters, words or lines.
SNAPS = {"none": 0, "word": 1, "line": 2}
_NONE, _WORD = 0, 1


@njit(cache=True, nogil=True)
def trim(data: U8, bounds: I64, spans: I64, snap: int) -> I64:
    """The spans of `_cover_kernels.cover`, shrunk to whole characters, words or lines.

    A cut joins what is before it to what is after it. Its seam is a place where the joined text could be cut too, so
    no two words or lines become one: where white space would be lost on both sides, that of one side stays.
    """
    out = np.empty_like(spans)
    num_out, i = 0, 0
    while i < spans.shape[0]:
        j = i + 1
        while j < spans.shape[0] and spans[j, 0] == spans[i, 0] and spans[j, 1] == spans[j - 1, 2]:
            j += 1
        low, high = bounds[spans[i, 0]], bounds[spans[i, 0] + 1]
        begin, end = _shrunk(data, low, high, low + spans[i, 1], low + spans[j - 1, 2], snap)
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
def _shrunk(data: U8, low: int, high: int, begin: int, end: int, snap: int) -> tuple[int, int]:
    """The cut `begin` to `end` of the text `data[low:high]`, as small as `snap` demands; empty where nothing is left.

    Of the white space on both sides, that with more line feeds stays; of equal ones the first.
    """
    while begin < end and not _may_cut(data, low, high, begin, snap):
        begin += 1
    while end > begin and not _may_cut(data, low, high, end, snap):
        end -= 1
    if snap != _WORD or begin == low or end == high or _ends_word(data, low, begin) or _space(data, end, high) > 0:
        return begin, end
    after, before = begin, end
    lines_after = lines_before = 0
    while after < end and _space(data, after, high) > 0:
        lines_after += data[after] == 0x0A
        after += _space(data, after, high)
    while before > after and _space_before(data, after, before) > 0:
        lines_before += data[before - 1] == 0x0A
        before -= _space_before(data, after, before)
    if lines_before > lines_after:
        return begin, before
    return after, end


@njit(cache=True, nogil=True)
def _may_cut(data: U8, low: int, high: int, at: int, snap: int) -> bool:
    """Whether a text `data[low:high]` may be cut at `at`."""
    if at in (low, high):
        return True
    if data[at] & 0xC0 == 0x80:
        return False
    if snap == _WORD:
        return bool(_space(data, at, high) > 0 or _ends_word(data, low, at))
    return bool(snap == _NONE or data[at - 1] == 0x0A)


@njit(cache=True, nogil=True)
def _ends_word(data: U8, low: int, at: int) -> bool:
    """Whether white space ends at `at`, or a stop of a script that writes none between words."""
    return bool(_space_before(data, low, at) > 0 or _ideographic_stop_before(data, low, at))


@njit(cache=True, nogil=True)
def _space(data: U8, at: int, high: int) -> int:
    """The bytes of the white-space character that begins at `at`; 0 where none does.

    Unicode's White_Space without those that forbid a break (U+00A0, U+2007, U+202F): they hold numbers together.
    """
    if at >= high:
        return 0
    lead = data[at]
    if lead == 0x20 or 0x09 <= lead <= 0x0D:
        return 1
    if lead == 0xC2:
        return 2 if at + 1 < high and data[at + 1] == 0x85 else 0
    if at + 2 >= high or lead not in (0xE1, 0xE2, 0xE3):
        return 0
    middle, last = data[at + 1], data[at + 2]
    if lead == 0xE1:
        return 3 if middle == 0x9A and last == 0x80 else 0
    if lead == 0xE3:
        return 3 if middle == 0x80 and last == 0x80 else 0
    if middle == 0x80:
        return 3 if (0x80 <= last <= 0x8A and last != 0x87) or last in (0xA8, 0xA9) else 0
    return 3 if middle == 0x81 and last == 0x9F else 0


@njit(cache=True, nogil=True)
def _space_before(data: U8, low: int, at: int) -> int:
    """The bytes of the white-space character that ends at `at`; 0 where none does."""
    for size in range(1, 4):
        if at - size >= low and _space(data, at - size, at) == size:
            return size
    return 0


@njit(cache=True, nogil=True)
def _ideographic_stop_before(data: U8, low: int, at: int) -> bool:
    """Whether U+3001, U+3002, U+FF01, U+FF0C, U+FF1B or U+FF1F ends at `at`."""
    if at - 3 < low:
        return False
    lead, middle, last = data[at - 3], data[at - 2], data[at - 1]
    if lead == 0xE3:
        return bool(middle == 0x80 and last in (0x81, 0x82))
    return bool(lead == 0xEF and middle == 0xBC and last in (0x81, 0x8C, 0x9B, 0x9F))
