"""Numba kernels of repeated substrings: shrink cuts to whole characters, words or lines."""

from __future__ import annotations

import numpy as np
from finpile_tokenizer.arrays._array_kernels import copy_to
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile.dedup._hash_kernels import I64, U8

#: The units between which the edges of a cut are: characters, words or lines.
SNAPS = {"none": 0, "word": 1, "line": 2}
_NONE, _WORD = 0, 1


@kernel
def trim(data: U8, bounds: I64, spans: I64, snap: int) -> I64:
    """Returns the spans of `_cover_kernels.cover`, shrunk to whole characters, words or lines.

    A cut joins the text before it to the text after it. The joined text may itself be cut at the seam, so no two words
    or lines become one: if a cut would remove the white space on both sides, the white space of one side is kept.
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
                copy_to(spans[row], out[num_out])
                out[num_out, 1], out[num_out, 2] = start, stop
                if spans[row, 4] >= 0:
                    out[num_out, 4] = spans[row, 4] + start - spans[row, 1]
                num_out += 1
        i = j
    return out[:num_out]


@inner
def _shrunk(data: U8, low: int, high: int, begin: int, end: int, snap: int) -> tuple[int, int]:
    """Returns the cut `begin` to `end` of the text `data[low:high]`, shrunk as `snap` requires; it may be empty.

    The side whose white space has more line feeds keeps its white space; on a tie, the first side.
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


@inner
def _may_cut(data: U8, low: int, high: int, at: int, snap: int) -> bool:
    """Whether a text `data[low:high]` may be cut at `at`."""
    if at in (low, high):
        return True
    if data[at] & 0xC0 == 0x80:
        return False
    if snap == _WORD:
        return bool(_space(data, at, high) > 0 or _ends_word(data, low, at))
    return bool(snap == _NONE or data[at - 1] == 0x0A)


@inner
def _ends_word(data: U8, low: int, at: int) -> bool:
    """Whether white space ends at `at`, or a full stop or comma of a script that writes no spaces between words."""
    return bool(_space_before(data, low, at) > 0 or _ideographic_stop_before(data, low, at))


@inner
def _space(data: U8, at: int, high: int) -> int:
    """Returns the size in bytes of the white-space character that begins at `at`, or 0 if there is none.

    White space is Unicode's White_Space without the no-break characters U+00A0, U+2007 and U+202F, which group digits.
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


@inner
def _space_before(data: U8, low: int, at: int) -> int:
    """Returns the size in bytes of the white-space character that ends at `at`, or 0 if there is none."""
    for size in range(1, 4):
        if at - size >= low and _space(data, at - size, at) == size:
            return size
    return 0


@inner
def _ideographic_stop_before(data: U8, low: int, at: int) -> bool:
    """Whether U+3001, U+3002, U+FF01, U+FF0C, U+FF1B or U+FF1F ends at `at`."""
    if at - 3 < low:
        return False
    lead, middle, last = data[at - 3], data[at - 2], data[at - 1]
    if lead == 0xE3:
        return bool(middle == 0x80 and last in (0x81, 0x82))
    return bool(lead == 0xEF and middle == 0xBC and last in (0x81, 0x8C, 0x9B, 0x9F))
