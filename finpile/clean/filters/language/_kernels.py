"""Numba kernels that read a text with a compressed fastText classifier, as its library does.

A text is its UTF-8 bytes. Its words are between white space and null bytes; each gives the rows of the word and of its
character n-grams, or those of the n-grams alone if the model does not know the word.
`finpile.clean.filters.language.model` has the tables.

Source: Bojanowski et al. 2017, "Enriching Word Vectors with Subword Information", https://arxiv.org/abs/1607.04606;
the order of sums and the tree of labels are those of https://github.com/facebookresearch/fastText, `src/dictionary.cc`
and `src/loss.cc`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from finpile_tokenizer.arrays.jit import inner, kernel

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]

#: No row, in the table of n-grams.
NO_ROW = 0xFFFF
_BASIS, _PRIME = np.uint32(2_166_136_261), np.uint32(16_777_619)
_BEGIN, _END = np.uint8(ord("<")), np.uint8(ord(">"))
_LABEL = np.frombuffer(b"__label__", np.uint8)
#: Added to a probability before its logarithm.
_LEAST = 1e-5


@inner
def _step(state: Any, byte: Any) -> Any:
    """FNV-1a, whose bytes have a sign."""
    extended = np.uint32(byte) | np.uint32(0xFFFFFF00) if byte >= 0x80 else np.uint32(byte)
    return np.uint32((state ^ extended) * _PRIME)


@inner
def hash_of(data: U8, begin: Any, end: Any) -> Any:
    """The hash of the bytes from `begin` to `end`."""
    state = _BASIS
    for at in range(begin, end):
        state = _step(state, data[at])
    return state


@inner
def find_word(data: U8, begin: Any, end: Any, slots: I32, words: U8, edges: I64) -> Any:
    """The row of a word, or -1. `slots` is a table of rows with linear probing, of a size that is a power of two."""
    mask = slots.shape[0] - 1
    slot = np.int64(hash_of(data, begin, end)) & mask
    while slots[slot] >= 0:
        row = slots[slot]
        if edges[row + 1] - edges[row] == end - begin:
            at = 0
            while at < end - begin and words[edges[row] + at] == data[begin + at]:
                at += 1
            if at == end - begin:
                return np.int64(row)
        slot = (slot + 1) & mask
    return np.int64(-1)


@kernel
def fill_slots(slots: I32, words: U8, edges: I64) -> None:
    """Enters all words in an empty table."""
    mask = slots.shape[0] - 1
    for row in range(edges.shape[0] - 1):
        slot = np.int64(hash_of(words, edges[row], edges[row + 1])) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = row


@inner
def _list_ngrams(word: U8, size: Any, shortest: Any, longest: Any, ngrams: U16, out: U16, count: Any) -> Any:
    """Appends the rows of the n-grams of a word that have one to the first `count` of `out`; returns the new number.

    Every row is written, and the next one takes the place of that of an n-gram without one: a branch that no processor
    can predict would take longer.
    """
    num_buckets = np.uint32(ngrams.shape[0])
    for begin in range(size):
        if word[begin] & 0xC0 == 0x80:
            continue
        state, at = _BASIS, begin
        for length in range(1, longest + 1):
            if at == size:
                break
            state = _step(state, word[at])
            at += 1
            while at < size and word[at] & 0xC0 == 0x80:
                state = _step(state, word[at])
                at += 1
            if length >= shortest and not (length == 1 and (begin == 0 or at == size)):
                row = ngrams[state % num_buckets]
                out[count] = row
                count += row != NO_ROW
    return count


@inner
def _list_ascii_ngrams(word: U8, size: Any, longest: Any, ngrams: U16, out: U16, count: Any) -> Any:
    """The same of a word of one-byte characters, for n-grams of two characters or more."""
    num_buckets = np.uint32(ngrams.shape[0])
    for begin in range(size - 1):
        state = np.uint32((_BASIS ^ np.uint32(word[begin])) * _PRIME)
        for at in range(begin + 1, min(size, begin + longest)):
            state = np.uint32((state ^ np.uint32(word[at])) * _PRIME)
            row = ngrams[state % num_buckets]
            out[count] = row
            count += row != NO_ROW
    return count


@inner
def _is_label(data: U8, begin: Any, end: Any) -> Any:
    size, at = _LABEL.shape[0], 0
    while at < min(size, end - begin) and data[begin + at] == _LABEL[at]:
        at += 1
    return at == size


@inner
def _is_space(byte: Any) -> Any:
    return byte == 0x20 or 0x09 <= byte <= 0x0D or byte == 0


@inner
def rows_of(data: U8, slots: I32, words: U8, edges: I64, ngrams: U16, shortest: Any, longest: Any) -> U16:
    """The rows of a line: of its words, their n-grams, and the end of the line, which is row 0."""
    word = np.empty(data.shape[0] + 2, np.uint8)
    word[0] = _BEGIN
    out = np.empty((2 * longest + 1) * (data.shape[0] + 1) + 2, np.uint16)
    count, begin = 0, 0
    while begin < data.shape[0]:
        if _is_space(data[begin]):
            begin += 1
            continue
        end, bits = begin, np.uint8(0)
        while end < data.shape[0] and not _is_space(data[end]):
            word[1 + end - begin] = data[end]
            bits |= data[end]
            end += 1
        row = find_word(data, begin, end, slots, words, edges)
        if row == 0:
            break
        if row > 0:
            out[count] = row
            count += 1
        if row > 0 or not _is_label(data, begin, end):
            word[1 + end - begin] = _END
            if bits < 0x80 and shortest == 2:
                count = _list_ascii_ngrams(word, end - begin + 2, longest, ngrams, out, count)
            else:
                count = _list_ngrams(word, end - begin + 2, shortest, longest, ngrams, out, count)
        begin = end
    out[count] = 0
    return out[: count + 1]


@inner
def mean_row(numbers: U16, rows: F32) -> F32:
    """The mean of rows, which are added in this order."""
    hidden = np.zeros(rows.shape[1], np.float32)
    for number in numbers:
        for at in range(hidden.shape[0]):
            hidden[at] += rows[number, at]
    scale = np.float32(1.0 / numbers.shape[0])
    for at in range(hidden.shape[0]):
        hidden[at] *= scale
    return hidden


@inner
def best_leaf(hidden: F32, nodes: F32, left: I32, right: I32) -> Any:
    """The most probable leaf of a binary tree, and its probability.

    Leaves are numbered first; the inner node of `nodes[i]` has the number `len(left) + 1 + i`, the root the last one.
    """
    num_leaves = left.shape[0] + 1
    stack, scores = np.empty(2 * num_leaves, np.int64), np.empty(2 * num_leaves, np.float32)
    stack[0], scores[0], size = 2 * num_leaves - 2, np.float32(0.0), 1
    best, highest = -1, np.float32(-np.inf)
    while size:
        size -= 1
        node, score = stack[size], scores[size]
        if score < highest:
            continue
        if node < num_leaves:
            best, highest = node, score
            continue
        inner = node - num_leaves
        product = np.float32(0.0)
        for at in range(hidden.shape[0]):
            product += nodes[inner, at] * hidden[at]
        share = np.float32(1.0 / np.float64(np.float32(1.0) + np.exp(-product)))
        stack[size], scores[size] = right[inner], np.float32(score + np.float32(np.log(share + _LEAST)))
        rest = np.float32(1.0 - np.float64(share))
        stack[size + 1], scores[size + 1] = left[inner], np.float32(score + np.float32(np.log(rest + _LEAST)))
        size += 2
    return best, np.float64(np.exp(highest))


@kernel
def classify(
    data: U8,
    slots: I32,
    words: U8,
    edges: I64,
    ngrams: U16,
    shortest: Any,
    longest: Any,
    rows: F32,
    nodes: F32,
    left: I32,
    right: I32,
) -> Any:
    """The number of the most probable label of a line, and its probability."""
    numbers = rows_of(data, slots, words, edges, ngrams, shortest, longest)
    return best_leaf(mean_row(numbers, rows), nodes, left, right)
