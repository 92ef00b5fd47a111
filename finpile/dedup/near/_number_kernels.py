"""Numba kernels that hash the numbers of a text. Reference: `finpile.dedup.near.numbers.number_sequence`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from finpile_tokenizer.arrays._hash_kernels import FNV_BASIS, FNV_PRIME
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile.dedup._hash_kernels import I64, U8, U64, mix

_ZERO, _NINE = 0x30, 0x39
_BLANK = np.uint64(0x20)
#: UTF-8 lead bytes: of the signs that include ½ and ²; of U+0640, from which other scripts have digits; of U+2000; of
#: the last ideographs; of U+F000. From U+2000 up to the ideographs, only superscripts (U+2040-207F) and number forms
#: (U+2140-21BF) have digits or fractions; of the letters that share a lead byte with Arabic or full-width digits, texts
#: have many more.
_SIGNS, _ARABIC, _SYMBOLS, _IDEOGRAPHIC_END, _FORMS = 0xC2, 0xD9, 0xE2, 0xE9, 0xEF


@kernel
def hash_bytes(data: U8) -> Any:
    """Returns the FNV-1a hash of the bytes, mixed."""
    state = FNV_BASIS
    for byte in data:
        state = (state ^ np.uint64(byte)) * FNV_PRIME
    return mix(state)


def _beginnings() -> npt.NDArray[np.bool_]:
    """By byte, whether a digit or a fraction may begin with it."""
    may_begin = np.zeros(256, np.bool_)
    may_begin[_ZERO : _NINE + 1] = True
    may_begin[[_SIGNS, *range(_ARABIC, _SYMBOLS + 1)]] = True
    may_begin[_IDEOGRAPHIC_END + 1 :] = True
    return may_begin


_MAY_BEGIN = _beginnings()
#: Bytes that are looked at together.
_BLOCK = np.uint64(64)


@inner
def _next_beginning(data: U8, start: Any, stop: Any) -> Any:
    """The place, from `start` on, of the first byte with which a digit or a fraction may begin, or `stop`.

    Indices are unsigned, which avoids a test for negative indices at each byte.
    """
    at, end = np.uint64(start), np.uint64(stop)
    while at + _BLOCK <= end:
        found = np.uint64(0)
        for i in range(_BLOCK):  # without a branch, so that the loop is vectorized
            byte = data[at + np.uint64(i)]
            found |= np.uint64(byte >= _SIGNS) | np.uint64(byte >= _ZERO) & np.uint64(byte <= _NINE)
        if found != np.uint64(0):
            break
        at += _BLOCK
    while at < end and not _MAY_BEGIN[data[at]]:
        at += np.uint64(1)
    return np.int64(at)


@inner
def _size_of_number(data: U8, at: int, end: int) -> Any:
    """The bytes of the run of ASCII digits, or of the sign ², ³, ¹, ¼, ½ or ¾, that begins at `at`; 0 if none does."""
    if data[at] == _SIGNS:
        return 2 if at + 1 < end and (0xBC <= data[at + 1] <= 0xBE or data[at + 1] in (0xB2, 0xB3, 0xB9)) else 0
    after = at
    while after < end and _ZERO <= data[after] <= _NINE:
        after += 1
    return after - at


@inner
def _may_be_digit(data: U8, at: int, end: int) -> Any:
    """Whether the character that begins at `at` may be a digit or a fraction that `_size_of_number` does not know."""
    byte = data[at]
    if byte == _ARABIC:
        return at + 1 < end and 0xA0 <= data[at + 1] <= 0xA9
    if byte == _SYMBOLS:
        return at + 1 < end and (0x85 <= data[at + 1] <= 0x86 or data[at + 1] == 0x81)
    if byte == _FORMS:
        return at + 2 < end and data[at + 1] == 0xBC and 0x90 <= data[at + 2] <= 0x99
    return _ARABIC < byte < _SYMBOLS or byte > _IDEOGRAPHIC_END


@kernel
def hash_numbers(data: U8, offsets: I64, keys: U64, plain: U8) -> None:
    """Sets `keys[doc]` to `hash_bytes` of the runs of ASCII digits, and the signs ¹²³¼½¾, joined by spaces.

    Sets `plain[doc]` to 0 if the text may have other digits or fractions, else to 1; a key is valid only if it is 1.
    """
    for doc in range(keys.shape[0]):
        state = FNV_BASIS
        plain[doc] = 1
        is_first = True  # a space is written only between numbers
        at, end = offsets[doc], offsets[doc + 1]
        while True:
            at = _next_beginning(data, at, end)
            if at == end:
                break
            size = _size_of_number(data, at, end)
            if size == 0 and _may_be_digit(data, at, end):
                plain[doc] = 0
                break
            if size and not is_first:
                state = (state ^ _BLANK) * FNV_PRIME
            is_first = is_first and size == 0
            for i in range(at, at + size):
                state = (state ^ np.uint64(data[i])) * FNV_PRIME
            at += max(size, 1)
        keys[doc] = mix(state)
