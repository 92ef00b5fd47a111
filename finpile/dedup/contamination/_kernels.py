"""Numba kernels of decontamination. tests/finpile/dedup/test_contamination.py has a slow reference for each kernel.

A *place* is the number of a word of the evaluation items, counted over all items. A gram is a run of words. A gram
that occurs at several places is one gram, represented by its first place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from finpile_tokenizer.arrays._array_kernels import copy_rows, copy_to, doubled_rows
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile.config import MAX_GRAM_WORDS
from finpile.dedup._hash_kernels import FOLD, I64, RANDOM_BYTES, U8, U64, grow, mix
from finpile.splitmix import GOLDEN

I32 = npt.NDArray[np.int32]

#: The most words of a gram, and the number of words carried from block to block.
MAX_WORDS = MAX_GRAM_WORDS
#: Words of a text that are processed together; their hashes and bounds fit in the L1 and L2 caches.
_BLOCK = 1024
_ZERO, _ONE, _SIX, _LOW_SIX = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)
#: UTF-8 lead bytes, as in `hash_words`.
_LATIN_SIGNS, _PUNCTUATION, _IDEOGRAPHIC = 0xC2, 0xE2, 0xE3


@kernel
def take_words(data: U8, i: int, end: int, hashes: U64, bounds: I64, num: int) -> tuple[int, int]:
    """Appends the words of `data[i:end]` to `hashes` and `bounds` at index `num`, until these or the words end.

    `bounds[w]` is the first byte of a word and the byte after its last byte. Returns the new number of words, and the
    byte at which to continue. `hash_words` defines words and their hashes.
    """
    capacity = hashes.shape[0]
    while i < end and num < capacity:
        start = i
        state = _ZERO
        while i < end:  # the longest run of letters
            byte = data[i]
            if byte >= _LATIN_SIGNS and (
                byte >= _IDEOGRAPHIC
                or byte == _LATIN_SIGNS
                or (byte == _PUNCTUATION and i + 1 < end and data[i + 1] < 0x82)
            ):
                break
            folded = FOLD[byte]
            if folded == 0:
                break
            state = grow(state, RANDOM_BYTES[folded])
            i += 1
        if i == start:  # no letter: a word of one character, or a separator
            byte = data[i]
            width = 1 if byte < _LATIN_SIGNS else 2 if byte == _LATIN_SIGNS else 4 if byte >= 0xF0 else 3
            i = min(end, i + width)
            if byte < _IDEOGRAPHIC or (byte == _IDEOGRAPHIC and start + 1 < end and data[start + 1] == 0x80):
                continue
            for j in range(start, i):
                state = grow(state, RANDOM_BYTES[data[j]])
        hashes[num], bounds[num, 0], bounds[num, 1] = mix(state), start, i
        num += 1
    return num, i


@kernel
def split_words(data: U8, offsets: I64, hashes: U64, bounds: I64, first: I64) -> None:
    """Writes the words of all texts `data[offsets[t]:offsets[t + 1]]` to `hashes` and `bounds`, as `take_words` does.

    Sets `first[t]` to the first place of text t; `first` has one entry more than there are texts.
    """
    place = 0
    for text in range(offsets.shape[0] - 1):
        first[text] = place
        place, _ = take_words(data, offsets[text], offsets[text + 1], hashes, bounds, place)
    first[offsets.shape[0] - 1] = place


@inner
def same_word(left: U8, a: int, a_end: int, right: U8, b: int, b_end: int) -> bool:
    """Whether two words are equal byte for byte, except for ASCII case."""
    same = a_end - a == b_end - b
    k = 0
    while same and k < a_end - a:
        same = FOLD[left[a + k]] == FOLD[right[b + k]]
        k += 1
    return same


@inner
def _same_words(left: U8, a: I64, right: U8, b: I64) -> bool:
    """Whether the words with bounds `a` equal those with bounds `b`, pairwise. There are as many of both."""
    same = True
    k = 0
    while same and k < a.shape[0]:
        same = same_word(left, a[k, 0], a[k, 1], right, b[k, 0], b[k, 1])
        k += 1
    return same


@inner
def _hash_run(hashes: U64, first: int, num: int) -> Any:
    """Returns the hash of `num` words from place `first` on, as `hash_shingles` defines it."""
    state = _ZERO
    for place in range(first, first + num):
        state = state * GOLDEN + hashes[place]
    return mix(state)


@kernel
def number_grams(
    data: U8, bounds: I64, hashes: U64, places: I64, lengths: I32, ngram: int, min_words: int, slots: I32, keys: U64
) -> tuple[I32, I32]:
    """Numbers the grams of `lengths[i]` words at `places[i]` in the order of their first occurrences.

    Returns the number of each gram, and for each number the `i` of its first occurrence. The key of a gram is its hash;
    the key of a gram of fewer than `ngram` words is the hash of its last `min_words` words. Fills `keys`, indexed by
    number, and `slots`, an open-addressed table of numbers + 1 whose size is a power of two.
    """
    mask = np.uint64(slots.shape[0] - 1)
    numbers = np.empty(places.shape[0], np.int32)
    firsts = np.empty(places.shape[0], np.int32)
    num_grams = 0
    for i in range(places.shape[0]):
        place, length = places[i], lengths[i]
        hashed = ngram if length == ngram else min_words
        key = _hash_run(hashes, place + length - hashed, hashed)
        slot = key & mask
        while slots[slot] != 0:
            gram = slots[slot] - 1
            same = keys[gram] == key and lengths[firsts[gram]] == length
            if same:
                other = places[firsts[gram]]
                same = _same_words(data, bounds[place : place + length], data, bounds[other : other + length])
            if same:
                break
            slot = (slot + _ONE) & mask
        if slots[slot] == 0:
            slots[slot] = num_grams + 1
            keys[num_grams] = key
            firsts[num_grams] = i
            num_grams += 1
        numbers[i] = slots[slot] - 1
    return numbers, firsts[:num_grams].copy()


@inner
def _shift(bits: U64) -> Any:
    """Returns the shift that maps a key to the index of a bit."""
    shift = 58
    num_words = bits.shape[0]
    while num_words > 1:
        num_words >>= 1
        shift -= 1
    return np.uint64(shift)


@kernel
def mark_keys(keys: U64, bits: U64) -> None:
    """Sets the bit of each key; its index is the upper bits of the key. `bits` has 64 bits times a power of two."""
    shift = _shift(bits)
    for key in keys:
        bit = key >> shift
        bits[bit >> _SIX] |= _ONE << (bit & _LOW_SIX)


@inner
def roll_keys(hashes: U64, first: int, num: int, ngram: int, state: Any, keys: U64) -> Any:
    """Sets `keys[w]` to the hash of the `ngram` words that end with word `w`, for `first <= w < num`.

    Returns the state. `state` is 0 for the first words of a text, then the result of the previous call. The keys of the
    first `ngram - 1` words of a text are not meaningful.
    """
    leaving = _ONE
    for _ in range(ngram):
        leaving *= GOLDEN
    for w in range(first, num):
        state = state * GOLDEN + hashes[w]
        if w >= ngram:
            state -= hashes[w - ngram] * leaving
        keys[w] = mix(state)
    return state


@inner
def pick_marked(keys: U64, first: int, num: int, bits: U64, picked: I64) -> int:
    """Writes each `w` with `first <= w < num` whose key has its bit set to `picked`; returns their number."""
    shift = _shift(bits)
    count = 0
    for w in range(first, num):  # no branch, so that loads of several bits overlap
        bit = keys[w] >> shift
        picked[count] = w
        count += int((bits[bit >> _SIX] >> (bit & _LOW_SIX)) & _ONE)
    return count


@inner
def _with_room(rows: I64, num: int) -> I64:
    """Returns the rows, or a copy of twice the size if all rows are used."""
    if num < rows.shape[0]:
        return rows
    larger: I64 = doubled_rows(rows)
    return larger


@kernel
def find_grams(
    data: U8,
    offsets: I64,
    ngram: int,
    anchor: int,
    item_data: U8,
    item_bounds: I64,
    gram_places: I64,
    gram_lengths: I32,
    gram_keys: U64,
    slots: I32,
    bits: U64,
    anchor_bits: U64,
) -> I64:
    """Returns one row `(text, gram, first byte, byte after the last byte)` for each distinct gram of each text.

    The bytes are those of the gram's first occurrence, relative to the start of the text. Every row is verified word by
    word. `anchor` is the number of words of a short gram that are hashed, or 0 if there are no short grams;
    `anchor_bits` is the bit table of the short grams, `bits` that of the others. A text is read in blocks of words;
    each block is preceded by the last words of the previous block.
    """
    found = np.empty((1024, 4), np.int64)
    num_found = 0
    seen_in = np.full(gram_places.shape[0], -1, np.int64)
    mask = np.uint64(slots.shape[0] - 1)
    hashed_words, marked = (ngram, anchor), (bits, anchor_bits)
    hashes, keys = np.empty(MAX_WORDS + _BLOCK, np.uint64), np.empty(MAX_WORDS + _BLOCK, np.uint64)
    bounds, picked = np.empty((MAX_WORDS + _BLOCK, 2), np.int64), np.empty(_BLOCK + MAX_WORDS, np.int64)
    for text in range(offsets.shape[0] - 1):
        i, end = offsets[text], offsets[text + 1]
        states = np.zeros(2, np.uint64)
        old = 0  # words from the previous block
        num, i = take_words(data, i, end, hashes, bounds, old)
        while num > old:
            for kind in range(2):
                hashed = hashed_words[kind]
                if hashed == 0:
                    continue
                states[kind] = roll_keys(hashes, old, num, hashed, states[kind], keys)
                for p in range(pick_marked(keys, max(old, hashed - 1), num, marked[kind], picked)):
                    last = picked[p]
                    slot = keys[last] & mask
                    while slots[slot] != 0:
                        gram = slots[slot] - 1
                        slot = (slot + _ONE) & mask
                        first = last + 1 - gram_lengths[gram]
                        if gram_keys[gram] != keys[last] or first < 0 or seen_in[gram] == text:
                            continue
                        place = gram_places[gram]
                        theirs = item_bounds[place : place + gram_lengths[gram]]
                        if not _same_words(data, bounds[first : last + 1], item_data, theirs):
                            continue
                        seen_in[gram] = text
                        found = _with_room(found, num_found)
                        found[num_found, 0], found[num_found, 1] = text, gram
                        found[num_found, 2] = bounds[first, 0] - offsets[text]
                        found[num_found, 3] = bounds[last, 1] - offsets[text]
                        num_found += 1
            old = min(num, MAX_WORDS)
            copy_to(hashes[num - old : num], hashes)  # to lower indices: the overwritten entries have been read
            copy_rows(bounds[num - old : num], bounds)
            num, i = take_words(data, i, end, hashes, bounds, old)
    return found[:num_found].copy()
