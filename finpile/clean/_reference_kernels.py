"""Numba kernels that read character references and the attributes of tags."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from finpile.clean._name_kernels import WINDOWS, entity_of
from finpile.clean._tag_kernels import (
    APOSTROPHE,
    EQUALS,
    FNV_OFFSET,
    FNV_PRIME,
    GT,
    I64,
    QUOTE,
    SLASH,
    U8,
    find,
    is_letter,
    is_space,
)
from finpile.clean._writer_kernels import ATTRIBUTES, MAX_ATTRIBUTES

_AMPERSAND, _SEMICOLON, _HASH, _RETURN = (np.uint8(byte) for byte in b"&;#\r")
_MAX_DIGITS = 7
_MAX_NAME = 40
#: Names of attributes as numbers, their letters from the highest byte on.
_ALT, _STYLE, _HIDDEN = (np.uint64(int.from_bytes(name, "big")) for name in (b"alt", b"style", b"hidden"))
_DISPLAY, _NONE = b"display:", b"none"


@njit(cache=True, nogil=True)
def _number(data: U8, at: int, stop: int, words: I64) -> Any:
    """The number that begins after `&#`."""
    base, first = 10, at
    if at < stop and data[at] | 32 == 120:
        base, first = 16, at + 1
    end, code = first, np.int64(0)
    while end < stop and end - first <= _MAX_DIGITS:
        byte = np.int64(data[end])
        if 48 <= byte <= 57:
            digit = byte - 48
        elif base == 16 and 97 <= byte | 32 <= 102:
            digit = (byte | 32) - 87
        else:
            break
        code = base * code + digit
        end += 1
    if end == first:
        return at - 1, np.int64(-1), np.int64(0)
    if end - first > _MAX_DIGITS or (code < 32 and code != 9 and code != 10) or code > 0x10FFFF:
        return np.int64(-1), np.int64(-1), np.int64(0)
    if 0xD800 <= code < 0xE000 or code == 127:
        return np.int64(-1), np.int64(-1), np.int64(0)
    if 128 <= code < 160:
        code = words[WINDOWS + code - 128]
    return end + (end < stop and data[end] == _SEMICOLON), np.int64(code), np.int64(0)


@njit(cache=True, nogil=True)
def read_reference(data: U8, at: int, stop: int, words: I64) -> Any:
    """The character reference that the ampersand at `at` begins.

    Returns where it ends, or -1 for one that is left to the parser; its code point, or -1; its value in the table of
    entities, or 0. Neither of the latter: the ampersand is text.
    """
    end = at + 1
    if end < stop and data[end] == _HASH:
        return _number(data, end + 1, stop, words)
    state = FNV_OFFSET
    may_lack_semicolon = False
    while end < stop and end - at <= _MAX_NAME and (is_letter(data[end]) or 48 <= data[end] <= 57):
        state = (state ^ np.uint64(data[end])) * FNV_PRIME
        end += 1
        may_lack_semicolon = may_lack_semicolon or entity_of(words, np.int64(state)) < 0
    if end > at + 1 and end < stop and data[end] == _SEMICOLON:
        state = (state ^ np.uint64(_SEMICOLON)) * FNV_PRIME
        entity = entity_of(words, np.int64(state))
        if entity > 0:
            return end + 1, np.int64(-1), np.int64(entity)
    return np.int64(-1) if may_lack_semicolon else at + 1, np.int64(-1), np.int64(0)


@njit(cache=True, nogil=True)
def _matches(data: U8, at: int, stop: int, letters: bytes) -> Any:
    """Whether these letters are here, in any case."""
    if at + len(letters) > stop:
        return False
    for place in range(len(letters)):
        byte = data[at + place]
        if (byte | 32 if 65 <= byte <= 90 else byte) != letters[place]:
            return False
    return True


@njit(cache=True, nogil=True)
def _hides(data: U8, at: int, stop: int, words: I64) -> Any:
    """Whether a style has `display:none` or `display: none`; -1 where a reference may be a part of it."""
    hides = 0
    while at < stop:
        if data[at] == _AMPERSAND:
            at, code, entity = read_reference(data, at, stop, words)
            character = code if code >= 0 else entity & 255
            if at < 0 or character == 32 or character == 58 or is_letter(character):
                return -1
            continue
        if data[at] | 32 == 100 and _matches(data, at, stop, _DISPLAY):
            value = at + len(_DISPLAY)
            value += value < stop and data[value] == 32
            if _matches(data, value, stop, _NONE):
                hides = 1
        at += 1
    return hides


@njit(cache=True, nogil=True)
def _hash_value(data: U8, at: int, stop: int, state: Any) -> Any:
    """The hash of an attribute's value, from that of its name on; 0 for one that may be written in another way."""
    while at < stop:
        if data[at] == _AMPERSAND or data[at] == _RETURN:
            return np.uint64(0)
        state = (state ^ np.uint64(data[at])) * FNV_PRIME
        at += 1
    return state


@njit(cache=True, nogil=True)
def read_attributes(data: U8, words: I64, at: int, has_key: Any, state: I64) -> Any:
    """The attributes of a tag whose name ends at `at`.

    Returns where the tag ends, or -1 where the page ends inside it; whether they are clear, that is, not left to the
    parser; whether they hide the element; where the value of `alt` begins and ends; with `has_key`, a hash of all of
    them in any order (those of more than `MAX_ATTRIBUTES` are not clear).
    """
    size = data.shape[0]
    is_clear, is_hidden = True, False
    num_alts = num_styles = num_attributes = 0
    alt_start: Any = np.int64(0)
    alt_end: Any = np.int64(0)
    key = np.uint64(0)
    while True:
        while at < size and (is_space(data[at]) or data[at] == SLASH):
            at += 1
        if at >= size:
            return np.int64(-1), is_clear, is_hidden, alt_start, alt_end, np.int64(key)
        if data[at] == GT:
            return at + 1, is_clear, is_hidden, alt_start, alt_end, np.int64(key)
        first, name = at, np.uint64(0)
        while at < size:
            byte = data[at]
            if byte in (GT, SLASH) or is_space(byte) or (byte == EQUALS and at > first):
                break
            name = name << np.uint64(8) | np.uint64(byte | 32 if 65 <= byte <= 90 else byte)
            at += 1
        length = at - first
        while at < size and is_space(data[at]):
            at += 1
        start = stop = at
        if at < size and data[at] == EQUALS:
            at += 1
            while at < size and is_space(data[at]):
                at += 1
            start = at
            if at < size and (data[at] == QUOTE or data[at] == APOSTROPHE):
                start = at + 1
                stop = find(data, start, data[at])
                at = stop + 1
            else:
                while at < size and data[at] != GT and not is_space(data[at]):
                    at += 1
                stop = at
        if name == _ALT and length == 3:
            num_alts += 1
            alt_start, alt_end = start, stop
        elif name == _STYLE and length == 5:
            num_styles += 1
            hides = _hides(data, start, stop, words)
            is_clear = is_clear and hides >= 0
            is_hidden = is_hidden or hides > 0
        elif name == _HIDDEN and length == 6:
            is_hidden = True
        if num_alts > 1 or num_styles > 1:
            is_clear = False
        if has_key:
            for place in range(min(num_attributes, MAX_ATTRIBUTES)):
                is_clear = is_clear and state[ATTRIBUTES + place] != np.int64(name)
            value = _hash_value(data, start, stop, (name ^ FNV_OFFSET) * FNV_PRIME)
            if num_attributes == MAX_ATTRIBUTES or length > 8 or value == np.uint64(0):
                is_clear = False
                num_attributes = 0
            state[ATTRIBUTES + num_attributes] = np.int64(name)
            num_attributes += 1
            key += value
