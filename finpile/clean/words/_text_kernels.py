"""Numba kernels over the UTF-8 of a text."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

U8 = npt.NDArray[np.uint8]


@njit(cache=True, nogil=True)
def most_marks_in_a_row(data: U8, is_mark: U8) -> Any:
    """The length, in characters, of the longest run of those that `is_mark`, a table by code point, names."""
    longest = run = at = 0
    size = data.shape[0]
    while at < size:
        byte = data[at]
        if byte < 0xCC:  # U+0300, the first mark, begins with 0xCC
            run = 0
            at += 1 if byte < 0x80 else 2
            continue
        if byte < 0xE0:
            code = (np.int64(byte) & 31) << 6 | np.int64(data[at + 1]) & 63
            at += 2
        elif byte < 0xF0:
            code = (np.int64(byte) & 15) << 12 | (np.int64(data[at + 1]) & 63) << 6 | np.int64(data[at + 2]) & 63
            at += 3
        else:
            code = (np.int64(byte) & 7) << 18 | (np.int64(data[at + 1]) & 63) << 12
            code |= (np.int64(data[at + 2]) & 63) << 6 | np.int64(data[at + 3]) & 63
            at += 4
        run = run + 1 if code < is_mark.shape[0] and is_mark[code] else 0
        longest = max(longest, run)
    return longest
