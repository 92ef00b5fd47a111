"""Numba kernels that hash the numbers of a text. Reference: `finpile.dedup.near.numbers.number_sequence`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from finpile.dedup._hash_kernels import I64, U8, U64, mix

#: FNV-1a, 64 bits. Source: Fowler, Noll, Vo, http://www.isthe.com/chongo/tech/comp/fnv/
FNV_OFFSET = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)

_ZERO, _NINE = 0x30, 0x39
_BLANK = np.uint64(0x20)
#: UTF-8 lead bytes: of the signs that include ½; of U+0640, from which other scripts have digits; of U+2000; of the
#: last ideographs. Between the last two, only number forms (U+2140-21BF) have digits or fractions.
_SIGNS, _FAR, _SYMBOLS, _IDEOGRAPHIC_END = 0xC2, 0xD9, 0xE2, 0xE9


@njit(cache=True, nogil=True)
def hash_bytes(data: U8) -> Any:
    """Returns the FNV-1a hash of the bytes, mixed."""
    state = FNV_OFFSET
    for byte in data:
        state = (state ^ np.uint64(byte)) * FNV_PRIME
    return mix(state)


@njit(cache=True, nogil=True)
def _may_be_digit(data: U8, at: int, end: int) -> Any:
    """Whether the multi-byte character that begins at `at` may be a digit or a fraction."""
    byte = data[at]
    if byte < _FAR:
        return byte == _SIGNS and at + 1 < end and 0xBC <= data[at + 1] <= 0xBE
    if byte == _SYMBOLS:
        return at + 1 < end and 0x85 <= data[at + 1] <= 0x86
    return byte < _SYMBOLS or byte > _IDEOGRAPHIC_END


@njit(cache=True, nogil=True)
def hash_numbers(data: U8, offsets: I64, keys: U64, plain: U8) -> None:
    """Sets `keys[doc]` to `hash_bytes` of the runs of ASCII digits of each text, joined by spaces.

    Sets `plain[doc]` to 0 if the text may have other digits or fractions, else to 1; a key is valid only if it is 1.
    """
    for doc in range(keys.shape[0]):
        state = FNV_OFFSET
        fresh = True  # no number yet: a space is written only between numbers
        inside = False
        plain[doc] = 1
        for i in range(offsets[doc], offsets[doc + 1]):
            byte = data[i]
            if _ZERO <= byte <= _NINE:
                if not inside and not fresh:
                    state = (state ^ _BLANK) * FNV_PRIME
                state = (state ^ np.uint64(byte)) * FNV_PRIME
                inside, fresh = True, False
                continue
            inside = False
            if byte >= _SIGNS and _may_be_digit(data, i, offsets[doc + 1]):
                plain[doc] = 0
                break
        keys[doc] = mix(state)
