"""Numba kernels that copy arrays.

They are loops, because the assignment of an array to a slice takes longer to compile than most kernels: Numba compiles
the text of an error message into each one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def copy_to(source: Any, target: Any) -> None:
    """Copies a one-dimensional array into the first entries of another."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@njit(cache=True, nogil=True)
def twice(array: Any) -> Any:
    """Returns a copy with room for twice the number of rows. The array must be contiguous."""
    larger = np.empty((2 * array.shape[0], *array.shape[1:]), array.dtype)
    copy_to(array.reshape(-1), larger.reshape(-1))
    return larger
