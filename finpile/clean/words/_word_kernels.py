"""Numba kernels that split a text into words and count what published rules measure on them.

A text is an array of code points; `classes` has the bits below for each code point. See `finpile.clean.words.words`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from finpile_tokenizer.arrays._array_kernels import doubled
from finpile_tokenizer.arrays.jit import inner, kernel

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

#: Bits of a character's class: white space; letter; letter, digit or combining mark; upper case; lower case; what ends
#: a line; what ends a sentence.
SPACE, ALPHA, WORD, UPPER, LOWER, LINE_END, STOP = (1 << bit for bit in range(7))

_DOT, _COMMA, _AT, _SLASH, _COLON, _HASH, _HYPHEN = (np.uint32(ord(sign)) for sign in ".,@/:#-")
_ELLIPSIS, _BULLET, _APOSTROPHE, _QUOTE = (np.uint32(ord(sign)) for sign in "\u2026\u2022'\u2019")
_LESS, _EQUALS, _GREATER, _TILDE = (np.uint32(ord(sign)) for sign in "<=>~")
_EN_DASH, _EM_DASH, _NEWLINE, _CARRIAGE_RETURN = (np.uint32(ord(sign)) for sign in "\u2013\u2014\n\r")
_LETTER_D, _LETTER_E, _LETTER_L, _LETTER_M, _LETTER_N, _LETTER_R, _LETTER_S, _LETTER_T, _LETTER_V, _LETTER_W = (
    np.uint32(ord(sign)) for sign in "delmnrstvw"
)

#: Indices of what `measure` returns.
(NUM_WORDS, NUM_PROPER, PROPER_CHARS, NUM_ALPHA, NUM_STOP_WORDS, NUM_HASHES, NUM_ELLIPSES, NUM_LINES, NUM_BULLETS,
 NUM_ELLIPSIS_ENDS, NUM_FULL_LINES, NUM_STOP_ENDS, NUM_SHORT_LINES, NUM_NEWLINES) = range(14)  # fmt: skip
_NUM_COUNTS = 14


@inner
def _class_of(point: Any, classes: U8) -> Any:
    return classes[point] if point < classes.shape[0] else np.uint8(0)


@inner
def _sign_end(points: U32, at: Any, end: Any) -> Any:
    """The end of the sign at `at`: one character; equal dots, and equal hyphens, in a row are one sign."""
    stop = at + 1
    if points[at] in (_DOT, _HYPHEN):
        while stop < end and points[stop] == points[at]:
            stop += 1
    return stop


@inner
def _is_address(points: U32, start: Any, end: Any) -> Any:
    """Whether a run is a URL or an e-mail address: it holds `@` or `://`, or starts with `www.`."""
    is_www = end - start > 4 and points[start] == points[start + 1] == points[start + 2] == _LETTER_W
    if is_www and points[start + 3] == _DOT:
        return True
    for at in range(start, end):
        if points[at] == _AT:
            return True
        if points[at] == _COLON and at + 2 < end and points[at + 1] == _SLASH and points[at + 2] == _SLASH:
            return True
    return False


@inner
def _contraction(points: U32, start: Any, end: Any) -> Any:
    """Where the contraction that ends a run begins: 's 'd 'm 'll 're 've n't; `end` without one."""
    if end - start >= 3 and points[end - 2] in (_APOSTROPHE, _QUOTE):
        last = points[end - 1] | np.uint32(32)
        if last == _LETTER_T and points[end - 3] | np.uint32(32) == _LETTER_N and end - start > 3:
            return end - 3
        if last in (_LETTER_S, _LETTER_D, _LETTER_M):
            return end - 2
    if end - start >= 4 and points[end - 3] in (_APOSTROPHE, _QUOTE):
        first, last = points[end - 2] | np.uint32(32), points[end - 1] | np.uint32(32)
        if (first == _LETTER_L and last == _LETTER_L) or (first in (_LETTER_R, _LETTER_V) and last == _LETTER_E):
            return end - 3
    return end


@inner
def _divides(points: U32, at: Any, end: Any, classes: U8) -> Any:
    """Whether the sign from `at` to `end`, with a character on each side, divides a run: it is a word of its own."""
    sign = points[at]
    before, after = _class_of(points[at - 1], classes), _class_of(points[end], classes)
    if sign == _DOT:
        return before & LOWER != 0 and after & UPPER != 0 if end == at + 1 else before & after & WORD != 0
    if sign in (_ELLIPSIS, _HYPHEN, _EN_DASH, _EM_DASH, _TILDE):
        return before & after & WORD != 0
    if sign == _COMMA:
        return before & after & ALPHA != 0
    if sign in (_COLON, _SLASH, _LESS, _EQUALS, _GREATER):
        return before & WORD != 0 and after & ALPHA != 0
    return False


@inner
def _middle(points: U32, start: Any, end: Any, classes: U8) -> Any:
    """Where the middle of a run starts and ends: what is left without the signs at both ends."""
    first, last = start, end
    while first < end and not _class_of(points[first], classes) & WORD:
        first += 1
    while last > first and not _class_of(points[last - 1], classes) & WORD:
        last -= 1
    if last < end and last > first and points[last] == _DOT and _class_of(points[last - 1], classes) & ALPHA:
        one_letter = last - first == 1 or points[last - 2] == _DOT
        if one_letter and (last + 1 == end or points[last + 1] != _DOT):
            last += 1  # the period of U.S. and of initials
    return first, last


@kernel
def split(points: U32, classes: U8) -> Any:
    """The words of a text: where each starts, and where it ends."""
    size = points.shape[0]
    starts, ends = np.empty(size // 4 + 16, np.int64), np.empty(size // 4 + 16, np.int64)
    num_words = at = end = first = last = np.int64(0)
    is_address = False
    while at < size:
        if at == end:  # behind a run
            if _class_of(points[at], classes) & SPACE:
                at += 1
                end = at
                continue
            while end < size and _class_of(points[end], classes) & WORD:
                end += 1
            if end > at and (end == size or _class_of(points[end], classes) & SPACE):  # letters and digits alone
                if num_words == starts.shape[0]:
                    starts, ends = doubled(starts), doubled(ends)
                starts[num_words], ends[num_words] = at, end
                num_words += 1
                at = end
                continue
            while end < size and not _class_of(points[end], classes) & SPACE:
                end += 1
            first, last = _middle(points, at, end, classes)
            is_address = last > first and _is_address(points, first, last)
        if at < first or at >= last:
            stop = _sign_end(points, at, first if at < first else end)
        elif (
            at > first
            and not is_address
            and not _class_of(points[at], classes) & WORD
            and _divides(points, at, _sign_end(points, at, last), classes)
        ):
            stop = _sign_end(points, at, last)
        elif is_address or (at > first and _contraction(points, first, last) == at):
            stop = last
        else:
            stop = at + 1
            contraction = _contraction(points, first, last)
            while stop < last and stop != contraction:
                if not _class_of(points[stop], classes) & WORD:
                    sign_end = _sign_end(points, stop, last)
                    if sign_end < last and _divides(points, stop, sign_end, classes):
                        break
                    stop = sign_end
                else:
                    stop += 1
        if num_words == starts.shape[0]:
            starts, ends = doubled(starts), doubled(ends)
        starts[num_words], ends[num_words] = at, stop
        num_words += 1
        at = stop
    return starts[:num_words], ends[:num_words]


@inner
def _is_stop_word(points: U32, start: Any, end: Any, letters: U32, bounds: I64) -> Any:
    """The index of a word among those written one after the other in `letters`; -1 for another word."""
    length = end - start
    for index in range(bounds.shape[0] - 1):
        if bounds[index + 1] - bounds[index] != length:
            continue
        same = True
        for i in range(length):
            if letters[bounds[index] + i] != points[start + i]:
                same = False
                break
        if same:
            return index
    return -1


@kernel
def measure_words(points: U32, classes: U8, starts: I64, ends: I64, letters: U32, bounds: I64) -> I64:
    """Counts over the words, by the first indices above; `letters` and `bounds` are the stop words."""
    counts = np.zeros(_NUM_COUNTS, np.int64)
    is_seen = np.zeros(bounds.shape[0], np.uint8)
    counts[NUM_WORDS] = starts.shape[0]
    for index in range(starts.shape[0]):
        start, end = starts[index], ends[index]
        bits = np.uint8(0)
        for at in range(start, end):
            bits |= _class_of(points[at], classes)
        if bits & WORD:
            counts[NUM_PROPER] += 1
            counts[PROPER_CHARS] += end - start
        counts[NUM_ALPHA] += bits & ALPHA != 0
        stop_word = _is_stop_word(points, start, end, letters, bounds)
        if stop_word >= 0 and not is_seen[stop_word]:
            is_seen[stop_word] = 1
            counts[NUM_STOP_WORDS] += 1
    return counts


@kernel
def measure_lines(points: U32, classes: U8, short_line: Any, any_line_end: Any) -> I64:
    """Counts over the lines and the signs, by the last indices above.

    Lines end at `\\n`, and with `any_line_end` at each character that ends one for `str.splitlines`.
    """
    counts = np.zeros(_NUM_COUNTS, np.int64)
    size = points.shape[0]
    start = at = 0
    num_dots = 0
    while at <= size:
        point = points[at] if at < size else _NEWLINE
        if point == _DOT:
            num_dots += 1
            if num_dots == 3:
                counts[NUM_ELLIPSES] += 1
                num_dots = 0
        else:
            num_dots = 0
            counts[NUM_ELLIPSES] += point == _ELLIPSIS
            counts[NUM_HASHES] += point == _HASH
        is_end = point == _NEWLINE or (any_line_end and _class_of(point, classes) & LINE_END != 0)
        if is_end:
            counts[NUM_NEWLINES] += at < size and point == _NEWLINE
            if at < size or start < size:
                _measure_line(points, start, at, classes, short_line, counts)
            if any_line_end and point == _CARRIAGE_RETURN and at + 1 < size and points[at + 1] == _NEWLINE:
                at += 1
                counts[NUM_NEWLINES] += 1
            start = at + 1
        at += 1
    return counts


@inner
def _measure_line(points: U32, start: Any, end: Any, classes: U8, short_line: Any, counts: I64) -> None:
    counts[NUM_LINES] += 1
    first, last = start, end
    while first < last and _class_of(points[first], classes) & SPACE:
        first += 1
    while last > first and _class_of(points[last - 1], classes) & SPACE:
        last -= 1
    if first == last:
        return
    counts[NUM_BULLETS] += points[first] == _BULLET or points[first] == _HYPHEN
    is_dots = last - first >= 3 and points[last - 1] == points[last - 2] == points[last - 3] == _DOT
    counts[NUM_ELLIPSIS_ENDS] += is_dots or points[last - 1] == _ELLIPSIS
    counts[NUM_FULL_LINES] += 1
    counts[NUM_STOP_ENDS] += _class_of(points[end - 1], classes) & STOP != 0
    counts[NUM_SHORT_LINES] += end - start <= short_line


@kernel
def have_visible(points: U32, classes: U8, starts: I64, ends: I64) -> npt.NDArray[np.bool_]:
    """Whether each part of a text has a character that is not white space."""
    found = np.zeros(starts.shape[0], np.bool_)
    for index in range(starts.shape[0]):
        for at in range(starts[index], ends[index]):
            if not _class_of(points[at], classes) & SPACE:
                found[index] = True
                break
    return found
