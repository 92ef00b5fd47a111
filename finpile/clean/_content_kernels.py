"""Numba kernels that write what is between the tags of a page: words, white space and character references."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from finpile.clean._name_kernels import LENGTH_SHIFT
from finpile.clean._reference_kernels import read_reference
from finpile.clean._tag_kernels import BANG, I64, LT, QUESTION, SLASH, U8, is_letter, is_space
from finpile.clean._writer_kernels import (
    FAILED,
    IS_DROPPED,
    IS_STARTED,
    PRE_DEPTH,
    WRITTEN,
    Page,
    has_room,
    put_byte,
    start_text,
    write_blank,
)

_AMPERSAND, _LINE, _RETURN, _BLANK = (np.uint8(byte) for byte in b"&\n\r ")


@njit(cache=True, nogil=True)
def _put_code(page: Page, code: int) -> None:
    """One character in UTF-8."""
    out, written = page.out, page.state[WRITTEN]
    if code < 0x80:
        out[written] = code
        written += 1
    elif code < 0x800:
        out[written], out[written + 1] = 0xC0 | code >> 6, 0x80 | code & 63
        written += 2
    elif code < 0x10000:
        out[written], out[written + 1], out[written + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63
        written += 3
    else:
        out[written], out[written + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 63
        out[written + 2], out[written + 3] = 0x80 | code >> 6 & 63, 0x80 | code & 63
        written += 4
    page.state[WRITTEN] = written


@njit(cache=True, nogil=True)
def _write_reference(data: U8, words: I64, page: Page, at: int, stop: int) -> Any:
    """Writes the reference at `at`, or an ampersand; returns where it ends."""
    state = page.state
    end, code, entity = read_reference(data, at, stop, words)
    if end < 0:
        state[FAILED] = 1
        return stop
    length = entity >> LENGTH_SHIFT
    if entity == 0 and code < 0:
        code = np.int64(_AMPERSAND)
    if length == 1:
        code = entity & 255
    if 0 <= code <= 32 and state[PRE_DEPTH] == 0:
        write_blank(page)
        return end
    if state[IS_DROPPED]:
        return end
    if not state[IS_STARTED]:
        start_text(page)
    if code >= 0:
        _put_code(page, code)
    else:
        for place in range(length):
            page.out[state[WRITTEN]] = entity >> 8 * place & 255
            state[WRITTEN] += 1
    return end


@njit(cache=True, nogil=True)
def is_markup(data: U8, at: int) -> Any:
    """Whether the `<` at `at` is more than text."""
    if at + 1 >= data.shape[0]:
        return False
    byte = data[at + 1]
    return is_letter(byte) or byte in (SLASH, BANG, QUESTION)


@njit(cache=True, nogil=True)
def skip_space(data: U8, at: int, stop: int) -> Any:
    while at < stop and is_space(data[at]):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _write_words(data: U8, at: int, stop: int, page: Page) -> Any:
    """Writes text up to a `<` or an ampersand, its white space one blank; the first byte is neither."""
    state, out = page.state, page.out
    written = state[WRITTEN]
    was_space = False
    while at < stop:
        byte = data[at]
        if byte in (_AMPERSAND, LT):
            break
        # Without a branch for the ends of words. A vertical tab is in no page that is read here.
        space = (byte == 32) | (np.uint8(byte - 9) <= 4)
        out[written] = _BLANK if space else byte
        written += 1 - (space & was_space)
        was_space = space
        at += 1
    state[WRITTEN] = written
    return at


@njit(cache=True, nogil=True)
def _write_lines(data: U8, at: int, stop: int, page: Page) -> Any:
    """As `_write_words`, inside <pre>: white space as it is, line ends as line feeds."""
    state, out = page.state, page.out
    written = state[WRITTEN]
    while at < stop and data[at] not in (_AMPERSAND, LT):
        byte = data[at]
        if byte == _RETURN:
            at += at + 1 < stop and data[at + 1] == _LINE
            byte = _LINE
        out[written] = byte
        written += 1
        at += 1
    state[WRITTEN] = written
    return at


@njit(cache=True, nogil=True)
def write_text(data: U8, words: I64, page: Page, at: int, stop: int, ends_at_markup: Any) -> Any:
    """Writes the text up to `stop` or to the next markup; returns where that is."""
    state = page.state
    if not has_room(page, 2 * (stop - at)):
        state[FAILED] = 1
    while at < stop and not state[FAILED]:
        byte = data[at]
        if byte == LT and ends_at_markup and is_markup(data, at):
            break
        if byte == _AMPERSAND:
            at = _write_reference(data, words, page, at, stop)
        elif state[PRE_DEPTH] == 0 and is_space(byte):
            write_blank(page)
            at = skip_space(data, at, stop)
        elif state[IS_DROPPED]:
            at += 1
        else:
            if not state[IS_STARTED]:
                start_text(page)
            if byte == LT:
                put_byte(page, byte, 1)
                at += 1
            elif state[PRE_DEPTH]:
                at = _write_lines(data, at, stop, page)
            else:
                at = _write_words(data, at, stop, page)
    return at
