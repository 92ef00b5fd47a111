"""Numba kernels that count repeated parts of a text: lines, paragraphs, n-grams of words.

Parts are found by a hash table and compared character by character, so that the counts are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile import splitmix
from finpile.clean.words._word_kernels import I64, U32, U64
from finpile.splitmix import GOLDEN, MIX_2

_NEWLINE = np.uint32(10)
_ONE = np.uint64(1)

_mix = inner(splitmix.mix)


@inner
def _mixed(state: Any, value: Any) -> Any:
    return _mix((state + GOLDEN) ^ np.uint64(value))


@inner
def _table(num_entries: Any) -> I64:
    """An empty table of twice as many slots, or more: a power of two."""
    size = 16
    while size < 2 * num_entries:
        size *= 2
    return np.full(size, -1, np.int64)


@kernel
def parts(points: U32, min_newlines: Any) -> Any:
    """The parts of a text between runs of at least `min_newlines` line ends: where each starts and ends.

    A run at the start or end of the text has an empty part on its other side.
    """
    size = points.shape[0]
    num_parts = 1
    for do_write in range(2):
        starts, ends = np.zeros(num_parts, np.int64), np.full(num_parts, size, np.int64)
        num_parts = 1
        at = 0
        while at < size:
            if points[at] != _NEWLINE:
                at += 1
                continue
            run = at
            while at < size and points[at] == _NEWLINE:
                at += 1
            if at - run >= min_newlines:
                if do_write:
                    ends[num_parts - 1] = run
                    starts[num_parts] = at
                num_parts += 1
    return starts, ends


@kernel
def intern(points: U32, starts: I64, ends: I64) -> I64:
    """For each part of a text the index of the first equal one."""
    num_parts = starts.shape[0]
    table = _table(num_parts)
    mask = table.shape[0] - 1
    firsts = np.empty(num_parts, np.int64)
    for index in range(num_parts):
        length = ends[index] - starts[index]
        key = np.uint64(length)
        for at in range(starts[index], ends[index]):
            key = (key ^ np.uint64(points[at])) * MIX_2
            key ^= key >> np.uint64(29)
        slot = np.int64(_mixed(key, 0)) & mask
        while True:
            other = table[slot]
            if other < 0:
                table[slot] = index
                firsts[index] = index
                break
            if ends[other] - starts[other] == length:
                same = True
                for i in range(length):
                    if points[starts[other] + i] != points[starts[index] + i]:
                        same = False
                        break
                if same:
                    firsts[index] = other
                    break
            slot = (slot + 1) & mask
    return firsts


@kernel
def repeated(starts: I64, ends: I64, firsts: I64) -> Any:
    """The number of parts that equal an earlier one, and of their characters."""
    num_repeated = num_chars = 0
    for index in range(firsts.shape[0]):
        if firsts[index] != index:
            num_repeated += 1
            num_chars += ends[index] - starts[index]
    return num_repeated, num_chars


@kernel
def repeated_parts(points: U32, min_newlines: Any) -> Any:
    """The number of `parts`, of those that equal an earlier one, and of the characters of these: three in one call."""
    starts, ends = parts(points, min_newlines)
    num_repeated, num_chars = repeated(starts, ends, intern(points, starts, ends))
    return starts.shape[0], num_repeated, num_chars


@kernel
def extend_keys(keys: U64, firsts: I64, n: Any) -> None:
    """Turns the hash values of the runs of n - 1 words into those of n; zeros are those of no word."""
    for at in range(firsts.shape[0] - n + 1):
        keys[at] = _mixed(keys[at], firsts[at + n - 1])


@inner
def _find(firsts: I64, keys: U64, at: Any, n: Any, table: I64) -> Any:
    """The start of the first n-gram equal to that at `at`, which is added if there is none."""
    mask = table.shape[0] - 1
    slot = np.int64(keys[at] >> _ONE) & mask
    while True:
        other = table[slot]
        if other < 0:
            table[slot] = at
            return at
        same = True
        for i in range(n):
            if firsts[other + i] != firsts[at + i]:
                same = False
                break
        if same:
            return other
        slot = (slot + 1) & mask


@kernel
def top_chars(starts: I64, ends: I64, firsts: I64, keys: U64, n: Any) -> Any:
    """The characters of all occurrences of the most frequent n-gram, with one blank between its words; its occurrences.

    Of several most frequent ones, the one that comes first.
    """
    num_grams = firsts.shape[0] - n + 1
    if num_grams < 1:
        return np.int64(0), np.int64(0)
    table = _table(num_grams)
    counts = np.zeros(num_grams, np.int64)
    for at in range(num_grams):
        counts[_find(firsts, keys, at, n, table)] += 1
    top = 0
    for at in range(num_grams):
        if counts[at] > counts[top]:
            top = at
    num_chars = n - 1
    for i in range(top, top + n):
        num_chars += ends[i] - starts[i]
    return num_chars * counts[top], counts[top]


@kernel
def longest_chars(starts: I64, ends: I64, n: Any) -> Any:
    """The characters of the longest n-gram, with one blank between its words."""
    longest = num_chars = np.int64(0)
    for at in range(starts.shape[0]):
        num_chars += ends[at] - starts[at]
        if at >= n:
            num_chars -= ends[at - n] - starts[at - n]
        longest = max(longest, num_chars)
    return longest + n - 1


@kernel
def covered_chars(starts: I64, ends: I64, firsts: I64, keys: U64, n: Any) -> Any:
    """The characters of all words that are in an n-gram which occurred before."""
    num_grams = firsts.shape[0] - n + 1
    if num_grams < 1:
        return 0
    table = _table(num_grams)
    num_chars = covered = 0  # words before `covered` are counted, or in no such n-gram
    for at in range(num_grams):
        if _find(firsts, keys, at, n, table) != at:
            for i in range(max(at, covered), at + n):
                num_chars += ends[i] - starts[i]
            covered = at + n
    return num_chars


@kernel
def repeated_chars(starts: I64, ends: I64, firsts: I64, keys: U64, n: Any) -> Any:
    """The characters of the words in n-grams that occurred before; a word counts once.

    The text is read from left to right; the reading continues behind an n-gram that is counted.
    """
    num_grams = firsts.shape[0] - n + 1
    if num_grams < 1:
        return 0
    table = _table(num_grams)
    num_chars = at = 0
    while at < num_grams:
        if _find(firsts, keys, at, n, table) == at:
            at += 1
            continue
        for i in range(at, at + n):
            num_chars += ends[i] - starts[i]
        at += n
    return num_chars
