"""Numba kernels of decontamination. Each has a slow, obvious twin in tests/finpile/dedup/test_contamination.py.

A *place* is a word of the evaluation items by its number, counted through all of them. A gram is a run of words; one
that stands at several places is one gram, known by its first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from finpile.config import MAX_GRAM_WORDS
from finpile.dedup._array_kernels import copy_to, twice
from finpile.dedup._hash_kernels import (
    FOLD,
    I64,
    RANDOM_BYTES,
    U8,
    U64,
    grow,
    mix,
)
from finpile.splitmix import GOLDEN

I32 = npt.NDArray[np.int32]

#: No gram has more words: so many are carried from block to block.
MAX_WORDS = MAX_GRAM_WORDS
#: Words of a text looked at together; what is kept of each fits in the first caches.
_BLOCK = 1024
_ZERO, _ONE, _SIX, _LOW_SIX = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)
#: UTF-8 lead bytes, as in `hash_words`.
_LATIN_SIGNS, _PUNCTUATION, _IDEOGRAPHIC = 0xC2, 0xE2, 0xE3


@njit(cache=True, nogil=True)
def take_words(data: U8, i: int, end: int, hashes: U64, bounds: I64, num: int) -> tuple[int, int]:
    """Words of `data[i:end]`, into `hashes` and `bounds` from `num` on, until these are full or the words at an end.

    `bounds[w]` is a word's first byte and the byte after its last. Returns how many words there are now, and where to
    go on. What a word is, and its hash: `hash_words`.
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


@njit(cache=True, nogil=True)
def split_words(data: U8, offsets: I64, hashes: U64, bounds: I64, first: I64) -> None:
    """The words of the texts `data[offsets[t]:offsets[t + 1]]`, text after text, as `take_words` gives them.

    Fills `first[t]` with the first place of each text; it has one entry more than there are texts.
    """
    place = 0
    for text in range(offsets.shape[0] - 1):
        first[text] = place
        place, _ = take_words(data, offsets[text], offsets[text + 1], hashes, bounds, place)
    first[offsets.shape[0] - 1] = place


@njit(cache=True, nogil=True)
def same_word(left: U8, a: int, a_end: int, right: U8, b: int, b_end: int) -> bool:
    """Whether two words are equal, byte for byte but for ASCII case."""
    same = a_end - a == b_end - b
    k = 0
    while same and k < a_end - a:
        same = FOLD[left[a + k]] == FOLD[right[b + k]]
        k += 1
    return same


@njit(cache=True, nogil=True)
def _same_words(left: U8, a: I64, right: U8, b: I64) -> bool:
    """Whether the words of the bounds `a` and `b`, equally many, are equal one by one."""
    same = True
    k = 0
    while same and k < a.shape[0]:
        same = same_word(left, a[k, 0], a[k, 1], right, b[k, 0], b[k, 1])
        k += 1
    return same


@njit(cache=True, nogil=True)
def _hash_run(hashes: U64, first: int, num: int) -> Any:
    """The hash of `num` words from place `first` on: that of `hash_shingles`."""
    state = _ZERO
    for place in range(first, first + num):
        state = state * GOLDEN + hashes[place]
    return mix(state)


@njit(cache=True, nogil=True)
def number_grams(
    data: U8, bounds: I64, hashes: U64, places: I64, lengths: I32, ngram: int, min_words: int, slots: I32, keys: U64
) -> tuple[I32, I32]:
    """Numbers the grams of `lengths[i]` words at `places[i]` in the order in which they are first met.

    Returns the number of each, and for each number the `i` of its first. A gram's key is its hash, that of a gram of
    fewer than `ngram` words the hash of its last `min_words`; `keys` is filled by number, and `slots`, an
    open-addressed table of a power of two, with numbers + 1.
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


@njit(cache=True, nogil=True)
def _shift(bits: U64) -> Any:
    """How far a key is shifted to number one of the bits."""
    shift = 58
    num_words = bits.shape[0]
    while num_words > 1:
        num_words >>= 1
        shift -= 1
    return np.uint64(shift)


@njit(cache=True, nogil=True)
def mark_keys(keys: U64, bits: U64) -> None:
    """Sets the bit of each key: the one that its upper bits number. There are 64 bits, times a power of two."""
    shift = _shift(bits)
    for key in keys:
        bit = key >> shift
        bits[bit >> _SIX] |= _ONE << (bit & _LOW_SIX)


@njit(cache=True, nogil=True)
def roll_keys(hashes: U64, first: int, num: int, ngram: int, state: Any, keys: U64) -> Any:
    """`keys[w]` = hash of the `ngram` words up to and with word `w`, for `first <= w < num`; returns the state.

    `state` is 0 for a text's first words, then what was returned. Keys of fewer words than `ngram` mean nothing.
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


@njit(cache=True, nogil=True)
def pick_marked(keys: U64, first: int, num: int, bits: U64, picked: I64) -> int:
    """The `w` with `first <= w < num` whose key has its bit set, into `picked`; returns how many."""
    shift = _shift(bits)
    count = 0
    for w in range(first, num):  # no branch: the next bits are fetched while these are on their way
        bit = keys[w] >> shift
        picked[count] = w
        count += int((bits[bit >> _SIX] >> (bit & _LOW_SIX)) & _ONE)
    return count


@njit(cache=True, nogil=True)
def _with_room(rows: I64, num: int) -> I64:
    """The rows, or a copy of twice the size where all are taken."""
    if num < rows.shape[0]:
        return rows
    larger: I64 = twice(rows)
    return larger


@njit(cache=True, nogil=True)
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
    """Rows `(text, gram, first byte, byte after the last)`, bytes from the text's start, one for each gram of a text.

    The bytes are those of the gram's first occurrence. `anchor` is how many words of a short gram are hashed, 0 where
    there are no short ones; `anchor_bits` are those of the short grams, `bits` those of the others. Every row has been
    compared word by word. A text is read in blocks of words, each after the last words of the one before.
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
        old = 0  # words from the block before
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
            copy_to(hashes[num - old : num], hashes)  # to lower indices: what is overwritten has been read
            copy_to(bounds[num - old : num].reshape(-1), bounds.reshape(-1))
            num, i = take_words(data, i, end, hashes, bounds, old)
    return found[:num_found].copy()
