"""Numba kernels of a text's numbers. Their slow twin is `finpile.dedup.near.numbers.number_sequence`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from finpile.dedup._hash_kernels import (
    I64,
    U8,
    U64,
    mix,
)

#: FNV-1a, 64 bits. Source: Fowler, Noll, Vo, http://www.isthe.com/chongo/tech/comp/fnv/
FNV_OFFSET = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)

_ZERO, _NINE = 0x30, 0x39
_BLANK = np.uint64(0x20)
#: First bytes: of the signs among which ½ is, of U+0640, where other scripts' digits begin, of U+2000, and of the last
#: ideographs; between the last two only number forms (U+2140-21BF) matter.
_SIGNS, _FAR, _SYMBOLS, _IDEOGRAPHIC_END = 0xC2, 0xD9, 0xE2, 0xE9


@njit(cache=True, nogil=True)
def hash_bytes(data: U8) -> Any:
    """FNV-1a, mixed."""
    state = FNV_OFFSET
    for byte in data:
        state = (state ^ np.uint64(byte)) * FNV_PRIME
    return mix(state)


@njit(cache=True, nogil=True)
def _may_be_digit(data: U8, at: int, end: int) -> Any:
    """Whether a character of several bytes that begins here may be a digit or a fraction."""
    byte = data[at]
    if byte < _FAR:
        return byte == _SIGNS and at + 1 < end and 0xBC <= data[at + 1] <= 0xBE
    if byte == _SYMBOLS:
        return at + 1 < end and 0x85 <= data[at + 1] <= 0x86
    return byte < _SYMBOLS or byte > _IDEOGRAPHIC_END


@njit(cache=True, nogil=True)
def hash_numbers(data: U8, offsets: I64, keys: U64, plain: U8) -> None:
    """For each text `hash_bytes` of its runs of ASCII digits, joined by blanks; `plain` 0 where it may have others."""
    for doc in range(keys.shape[0]):
        state = FNV_OFFSET
        fresh = True  # no number yet, so that none is parted from the one before
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
