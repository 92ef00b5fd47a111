"""Numba kernels that bring UTF-8 texts into the normal form (`finpile.clean.stage.normalise`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from finpile_tokenizer.arrays._array_kernels import copy_to
from finpile_tokenizer.arrays.jit import inner, kernel

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

_TAB, _LF, _VT, _FF, _CR, _SPACE, _DEL = 9, 10, 11, 12, 13, 32, 127
#: UTF-8 of the no-break space.
_C2, _A0 = 0xC2, 0xA0
#: The first byte of U+0300: all characters below it are in NFC, and none combines with what is before it.
_FIRST_MARK = 0xCC


@kernel
def find_normal(data: U8, offsets: I64, is_normal: U8) -> None:
    """Sets `is_normal` for texts of ASCII in normal form; the loop over bytes has no branches."""
    for row in range(is_normal.shape[0]):
        text = data[offsets[row] : offsets[row + 1]]
        size = text.shape[0]
        if size < 3:
            is_normal[row] = _is_short_normal(text)
            continue
        here, before, before_that = text[2:], text[1:-1], text[:-2]
        wrong = np.uint8(0)
        for at in range(size - 2):
            byte, one, two = here[at], before[at], before_that[at]
            wrong |= (byte >= _DEL) | (byte < _TAB) | ((byte > _LF) & (byte < _SPACE))
            wrong |= (byte == _LF) & ((one == _SPACE) | (one == _TAB) | ((one == _LF) & (two == _LF)))
        is_normal[row] = wrong == 0 and _is_inside(text[0]) and _is_second(text[0], text[1]) and text[-1] > _SPACE


@inner
def _is_short_normal(text: U8) -> Any:
    """Texts of up to two bytes."""
    if text.shape[0] == 0:
        return True
    return _is_inside(text[0]) and text[-1] > _SPACE and text[-1] < _DEL


@inner
def _is_inside(byte: Any) -> Any:
    """Whether a text of ASCII in normal form may begin with the byte."""
    return byte == _TAB or (byte >= _SPACE and byte < _DEL)


@inner
def _is_second(first: Any, byte: Any) -> Any:
    return _is_inside(byte) or (byte == _LF and first > _SPACE)


@kernel
def write_normal(data: U8, offsets: I64, is_normal: U8, is_special: U8, out: U8, ends: I64, is_done: U8) -> None:
    """Writes the normal forms one after the other, and where each ends. Those of texts `is_normal` are copies.

    A text with a character that `is_special`, a table by code point, or one above it, gets no form, and is not done.
    `out` has the size of all texts.
    """
    filled = np.int64(0)  # a literal would be a type of its own to compile `_write_text` for
    for row in range(is_done.shape[0]):
        text = data[offsets[row] : offsets[row + 1]]
        if is_normal[row]:
            end = filled + text.shape[0]
            copy_to(text, out[filled:end])
        else:
            end = _write_text(text, is_special, out, filled)
        is_done[row] = end >= 0
        filled = max(filled, end)
        ends[row] = filled


@inner
def _write_text(text: U8, is_special: U8, out: U8, begin: Any) -> Any:
    """Where the form ends; -1 if it is not written."""
    at, end, size = 0, begin, text.shape[0]
    while at < size:
        byte = text[at]
        if (byte >= _SPACE and byte < _DEL) or byte == _TAB:
            out[end] = byte
            end += 1
            at += 1
        elif byte >= 0x80:
            width = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            if byte >= _FIRST_MARK and _is_special_at(text, at, width, is_special):
                return -1
            for index in range(width):
                out[end + index] = text[at + index]
            end += width
            at += width
        else:
            at += 1
            if byte >= _LF and byte <= _CR:
                if byte == _CR and at < size and text[at] == _LF:
                    at += 1
                end = _without_blanks(out, begin, end)
                if end > begin and not (end - begin >= 2 and out[end - 1] == _LF and out[end - 2] == _LF):
                    out[end] = _LF
                    end += 1
    end = _without_blanks(out, begin, end)
    while end > begin and out[end - 1] == _LF:
        end -= 1
    return end


@inner
def _without_blanks(out: U8, begin: Any, end: Any) -> Any:
    """The end without the spaces, tabs and no-break spaces before it."""
    while end > begin:
        if out[end - 1] == _SPACE or out[end - 1] == _TAB:
            end -= 1
        elif end - begin >= 2 and out[end - 1] == _A0 and out[end - 2] == _C2:
            end -= 2
        else:
            break
    return end


@inner
def _is_special_at(text: U8, at: Any, width: Any, is_special: U8) -> Any:
    code = _code_at(text, at, width)
    return code >= is_special.shape[0] or is_special[code] != 0


@inner
def _code_at(text: U8, at: Any, width: Any) -> Any:
    """The code point of a character of two bytes or more."""
    code = np.int64(text[at]) & (0x7F >> width)
    for index in range(1, width):
        code = code << 6 | np.int64(text[at + index]) & 63
    return code


@kernel
def most_marks_in_a_row(data: U8, is_mark: U8) -> Any:
    """The length, in characters, of the longest run of those that `is_mark`, a table by code point, names."""
    longest = run = at = 0
    size = data.shape[0]
    while at < size:
        byte = data[at]
        if byte < _FIRST_MARK:
            run = 0
            at += 1 if byte < 0x80 else 2
            continue
        width = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        code = _code_at(data, at, width)
        at += width
        run = run + 1 if code < is_mark.shape[0] and is_mark[code] else 0
        longest = max(longest, run)
    return longest
