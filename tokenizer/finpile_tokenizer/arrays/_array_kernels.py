"""Kernels that fill, copy and lengthen arrays.

They are loops, because an assignment to a slice takes longer to compile than most kernels: Numba compiles the text of
an error message into it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from finpile_tokenizer.arrays.jit import inner


@inner
def fill(array: Any, value: Any) -> None:
    """Sets all entries of a one-dimensional array."""
    for i in range(array.shape[0]):
        array[i] = value


@inner
def copy_to(source: Any, target: Any) -> None:
    """Copies a one-dimensional array into the first entries of another."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@inner
def copy_rows(source: Any, target: Any) -> None:
    """Copies a two-dimensional array into the first rows of another."""
    for i in range(source.shape[0]):
        copy_to(source[i], target[i])


@inner
def doubled(array: Any) -> Any:
    """An array of twice the size that starts with the entries of a one-dimensional one; the others are zero."""
    size = array.shape[0]
    larger = np.empty(2 * size, array.dtype)
    copy_to(array, larger)
    fill(larger[size:], 0)
    return larger


@inner
def doubled_rows(array: Any) -> Any:
    """An array of twice the number of rows that starts with the rows of a two-dimensional one; the others are unset."""
    larger = np.empty((2 * array.shape[0], array.shape[1]), array.dtype)
    copy_rows(array, larger)
    return larger


@inner
def _common(num: int) -> int:
    """Calls the functions of NumPy and Python that most kernels call, for the types that they use most."""
    integers, words = np.empty(num, np.int64), np.empty(num, np.uint64)
    no_integers, no_words = np.zeros(num, np.int64), np.zeros(num, np.uint64)
    rows, no_rows = np.empty((num, 2), np.int64), np.zeros((num, 2), np.int64)
    size = max(integers.shape[0], words.shape[0], no_integers.shape[0], no_words.shape[0])
    return max(size, min(rows.shape[0], no_rows.shape[0]))


def compile_common() -> None:
    """Compiles what most kernels call, for kernels that this process and its forks compile later. A second and a half.

    Without it each process that compiles kernels needs about a second more.
    """
    _common.dispatcher.compile("(int64,)")
