"""Numba kernels that hash words, shingles and documents. tests/finpile/dedup has a slow reference for each kernel.

Hashes are 64-bit integers modulo 2^64. The constants are odd and fixed, so equal texts have equal keys on all machines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from finpile_tokenizer.arrays._array_kernels import fill
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile import splitmix
from finpile.splitmix import GOLDEN

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

#: Marks the keys of a document without words, which is never a duplicate.
NO_KEY = np.uint64(0)

#: Shingles hashed at once: the multiplier and minimum of each permutation are loaded once per eight shingles.
UNROLL = 8
#: Permutations of one tile: the multipliers and minima, 4 bytes each, are 4 KiB in total and fit in the L1 cache.
TILE = 512
#: Entries of the table of recent shingles (a power of two; 32 KiB).
RECENT = 4096

_U32, _U63 = np.uint64(32), np.uint64(63)
_ZERO, _ONE, _TWO, _THREE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_LARGEST = np.uint32(0xFFFFFFFF)


def _fold_table() -> U8:
    """Returns for each byte 0 if it separates words, else the byte with ASCII upper case folded."""
    table = np.zeros(256, dtype=np.uint8)
    for byte in range(256):
        if byte >= 0x80 or chr(byte).isalnum():
            table[byte] = byte + 32 if 0x41 <= byte <= 0x5A else byte
    return table


FOLD = _fold_table()
#: An odd, therefore nonzero, SplitMix64 number for each byte value. `WORD_BYTES` has the number of the folded byte, 0
#: if it separates words.
RANDOM_BYTES = splitmix.outputs(256, seed=0) | _ONE
WORD_BYTES = np.where(FOLD == 0, np.uint64(0), RANDOM_BYTES[FOLD])
#: UTF-8 lead bytes from which other rules for words hold: see `hash_words`.
_LATIN_SIGNS, _PUNCTUATION, _IDEOGRAPHIC, _FOUR_BYTES = 0xC2, 0xE2, 0xE3, 0xF0
#: Second bytes from which other rules hold: U+2080 is not punctuation, U+3000-303F is.
_FIRST_SYMBOL, _FIRST_CONTINUATION = 0x82, 0x80
#: Bytes that are classified together.
_BLOCK = np.uint64(64)

#: The mixing function, for kernels.
mix = inner(splitmix.mix)


@inner
def grow(state: Any, random: Any) -> Any:
    """Returns a word's state after one more byte; `random` is the number of that byte. See `hash_words`."""
    return (state << _ONE | state >> _U63) ^ random


@inner
def _plain_end(data: U8, start: Any, end: Any) -> Any:
    """Returns the index, from `start` on, of the first byte whose rule depends on other bytes: see `hash_words`."""
    i = start
    while i + _BLOCK <= end:
        differs = _ZERO
        for j in range(_BLOCK):  # without a branch, so that the loop is vectorized
            byte = data[i + np.uint64(j)]
            differs |= np.uint64(byte >= _PUNCTUATION) | np.uint64(byte == _LATIN_SIGNS)
        if differs != _ZERO:
            break
        i += _BLOCK
    while i < end and data[i] < _PUNCTUATION and data[i] != _LATIN_SIGNS:
        i += _ONE
    return i


@kernel
def hash_words(data: U8, start: int, end: int, out: U64) -> Any:
    """Hashes the words of `data[start:end]` (UTF-8) into `out`; returns their number, at most `(end-start+1)//2`.

    A word is a maximal run of ASCII letters, ASCII digits and characters from U+00C0 on. Only ASCII case is folded.
    U+0080-00BF (signs), U+2000-207F (general punctuation) and U+3000-303F (CJK punctuation) separate words. Each
    character from U+3040 on, where scripts without spaces begin, is a word of its own.

    The hash is a cyclic polynomial of pseudorandom numbers, one for each folded byte, mixed at the end. Indices are
    unsigned, which avoids a test for negative indices at each byte.

    Source: Cohen 1997, Recursive hashing functions for n-grams.
    """
    count = state = inside = _ZERO
    i, stop = np.uint64(start), np.uint64(end)
    while i < stop:
        # Words are short, so a branch at each word end would be mispredicted: the state is stored after every byte, and
        # the count is incremented only if a word ends.
        plain = _plain_end(data, i, stop)
        for j in range(i, plain):
            random = WORD_BYTES[data[j]]
            out[count] = state
            kept = np.uint64(random != _ZERO)
            count += inside & (kept ^ _ONE)
            inside = kept
            state = grow(state, random) * kept
        if plain == stop:
            break
        i, byte = plain + _ONE, data[plain]
        if byte == _PUNCTUATION and (i == stop or data[i] >= _FIRST_SYMBOL):  # a sign that is part of a word
            state = grow(state, RANDOM_BYTES[byte])
            inside = _ONE
            continue
        if inside:
            out[count] = state
            count += _ONE
        state = inside = _ZERO
        if byte == _LATIN_SIGNS:
            i = min(stop, i + _ONE)
        elif byte == _PUNCTUATION or (byte == _IDEOGRAPHIC and i < stop and data[i] == _FIRST_CONTINUATION):
            i = min(stop, i + _TWO)
        else:
            last = min(stop, i + (_THREE if byte >= _FOUR_BYTES else _TWO))
            for j in range(plain, last):
                state = grow(state, RANDOM_BYTES[data[j]])
            out[count] = state
            count += _ONE
            state = _ZERO
            i = last
    if inside:
        out[count] = state
        count += _ONE
    for word in range(count):
        out[word] = mix(out[word])
    return np.int64(count)


@kernel
def hash_shingles(words: U64, ngram: int, out: U64) -> int:
    """Hashes every run of `ngram` words into `out`; returns the number of runs.

    Fewer than `ngram` words form one run; no words form none. The hash is a polynomial in the words' hashes, mixed. The
    outer loop is over the position in the run, so that the inner loop is vectorized.
    """
    num_words = words.shape[0]
    if num_words == 0:
        return 0
    length = min(ngram, num_words)
    count: int = num_words - length + 1
    for i in range(count):
        out[i] = words[i]
    for place in range(1, length):
        for i in range(count):
            out[i] = out[i] * GOLDEN + words[i + place]
    for i in range(count):
        out[i] = mix(out[i])
    return count


@kernel
def _drop_recent(shingles: U64, recent: U64, out: U32) -> int:
    """Writes the upper halves of the shingles, made odd, without most repeats, to `out`; returns their number.

    The last value is repeated up to a multiple of `UNROLL` values. The table has only recent shingles, so some repeats
    remain. Repeats do not change a minimum. A branch for repeats would be mispredicted.
    """
    size = RECENT  # smaller for few shingles: clearing the whole table would cost more than hashing them
    while size > UNROLL and size >= 2 * shingles.shape[0]:
        size //= 2
    fill(recent[:size], _ZERO)
    recent[0] = _ONE  # a value that never belongs in slot 0: the slot is empty
    mask = np.uint64(size - 1)
    count = 0
    for shingle in shingles:
        slot = shingle & mask
        out[count] = np.uint32(shingle >> _U32 | _ONE)
        count += recent[slot] != shingle
        recent[slot] = shingle
    while count % UNROLL != 0:
        out[count] = out[count - 1]
        count += 1
    return count


@kernel
def minima(values: U32, multipliers: U32, out: U32) -> None:
    """Sets `out[p]` to the minimum of `multipliers[p] * value` modulo 2^32 over `values`.

    The number of `values` is a multiple of `UNROLL`. The multipliers are odd, so each map permutes the 32-bit numbers.
    """
    for first in range(0, out.shape[0], TILE):
        last = min(out.shape[0], first + TILE)
        a, low = multipliers[first:last], out[first:last]
        fill(low, _LARGEST)
        for i in range(0, values.shape[0], UNROLL):
            x0, x1, x2, x3 = values[i], values[i + 1], values[i + 2], values[i + 3]
            x4, x5, x6, x7 = values[i + 4], values[i + 5], values[i + 6], values[i + 7]
            for p in range(low.shape[0]):
                m = a[p]
                v01 = min(np.uint32(m * x0), np.uint32(m * x1))
                v23 = min(np.uint32(m * x2), np.uint32(m * x3))
                v45 = min(np.uint32(m * x4), np.uint32(m * x5))
                v67 = min(np.uint32(m * x6), np.uint32(m * x7))
                low[p] = min(low[p], min(min(v01, v23), min(v45, v67)))


@inner
def _hash_bands(signature: U32, factors: U64, out: U64) -> None:
    """Writes the key of each band: a linear form in its rows with odd factors, plus the band's number, mixed.

    Row r of band b is at `signature[r * num_bands + b]`, so that the loop over bands reads contiguous values.
    """
    num_bands = out.shape[0]
    for band in range(num_bands):
        out[band] = np.uint64(band + 1) * GOLDEN
    for row in range(factors.shape[0]):
        values, factor = signature[row * num_bands : (row + 1) * num_bands], factors[row]
        for band in range(num_bands):
            out[band] += np.uint64(values[band]) * factor
    for band in range(num_bands):
        key = mix(out[band])
        out[band] = key if key != NO_KEY else _ONE


class _Scratch(NamedTuple):
    """Buffers for signing one document, allocated once for many documents."""

    words: U64
    shingles: U64
    values: U32
    recent: U64


@inner
def _scratch(offsets: I64) -> _Scratch:
    """Returns buffers that are large enough for the longest document."""
    longest = 0
    for doc in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[doc + 1] - offsets[doc])
    capacity = longest // 2 + UNROLL
    return _Scratch(
        np.empty(capacity, np.uint64),
        np.empty(capacity, np.uint64),
        np.empty(capacity, np.uint32),
        np.empty(RECENT, np.uint64),
    )


@inner
def _sign(data: U8, start: int, end: int, ngram: int, multipliers: U32, scratch: _Scratch, out: U32) -> bool:
    """Fills `out` with the minima of one document's shingles; returns False, `out` unchanged, if it has no words."""
    num_words = hash_words(data, start, end, scratch.words)
    if num_words == 0:
        return False
    num_shingles = hash_shingles(scratch.words[:num_words], ngram, scratch.shingles)
    num_values = _drop_recent(scratch.shingles[:num_shingles], scratch.recent, scratch.values)
    minima(scratch.values[:num_values], multipliers, out)
    return True


@kernel
def sign_documents(data: U8, offsets: I64, ngram: int, multipliers: U32, out: U32) -> None:
    """Fills `out[doc, p]` with the minima of the texts `data[offsets[doc]:offsets[doc + 1]]`.

    A text without words has zeros. No minimum is 0: minima are odd.
    """
    scratch = _scratch(offsets)
    for doc in range(out.shape[0]):
        if not _sign(data, offsets[doc], offsets[doc + 1], ngram, multipliers, scratch, out[doc]):
            fill(out[doc], 0)


@kernel
def hash_documents(data: U8, offsets: I64, ngram: int, multipliers: U32, factors: U64, keys: U64) -> None:
    """Fills `keys[doc, band]` for the texts `data[offsets[doc]:offsets[doc + 1]]`; `NO_KEY` if a text has no words."""
    scratch = _scratch(offsets)
    signature = np.empty(multipliers.shape[0], np.uint32)
    for doc in range(keys.shape[0]):
        if _sign(data, offsets[doc], offsets[doc + 1], ngram, multipliers, scratch, signature):
            _hash_bands(signature, factors, keys[doc])
        else:
            fill(keys[doc], NO_KEY)
