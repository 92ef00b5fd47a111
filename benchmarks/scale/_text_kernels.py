"""Kernels that compose documents of halves of sentences, and change and copy parts of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile.splitmix import GOLDEN, MIX_1, MIX_2

_SPACE, _NEWLINE = 32, 10
#: One of this number of sentences begins a paragraph.
_PARAGRAPH = 6
#: Words of a shingle of near duplicates.
_NGRAM = 5


@inner
def mixed(value: Any) -> Any:
    """SplitMix64's output for a state."""
    value = (value ^ (value >> np.uint64(30))) * MIX_1
    value = (value ^ (value >> np.uint64(27))) * MIX_2
    return value ^ (value >> np.uint64(31))


@inner
def compose(seed: Any, length: Any, data_1: Any, offsets_1: Any, data_2: Any, offsets_2: Any, out: Any, at: Any) -> Any:
    """Writes sentences to `out[at:]` until they have `length` bytes; returns the end."""
    state, begin = seed, at
    while at - begin < length:
        state += GOLDEN
        drawn = mixed(state)
        if at > begin:
            out[at] = _NEWLINE if (drawn >> np.uint64(60)) % np.uint64(_PARAGRAPH) == 0 else _SPACE
            at += 1
        first = np.int64((drawn & np.uint64(0x3FFFFFFF)) % np.uint64(len(offsets_1) - 1))
        second = np.int64(((drawn >> np.uint64(30)) & np.uint64(0x3FFFFFFF)) % np.uint64(len(offsets_2) - 1))
        for place in range(offsets_1[first], offsets_1[first + 1]):
            out[at] = data_1[place]
            at += 1
        out[at] = _SPACE
        at += 1
        for place in range(offsets_2[second], offsets_2[second + 1]):
            out[at] = data_2[place]
            at += 1
    return at


@inner
def _is_letter(byte: Any) -> Any:
    return 97 <= (byte | 32) <= 122


@inner
def change_words(seed: Any, share: Any, text: Any, begin: Any, end: Any) -> Any:
    """Replaces the letters of about `share` of the words, of one word at least; returns the similarity to the original.

    Words with a digit stay as they are. The similarity is the Jaccard index of the sets of shingles, where all shingles
    are distinct.
    """
    num_words, num_changed, num_kept_shingles, since_change = 0, 0, 0, 0
    state, at = seed, begin
    while at < end:
        stop, has_digit, has_letter = at, False, False
        while stop < end and text[stop] != _SPACE and text[stop] != _NEWLINE:
            has_digit |= 48 <= text[stop] <= 57
            has_letter |= _is_letter(text[stop])
            stop += 1
        num_words += 1
        state += GOLDEN
        is_drawn = np.float64(mixed(state) >> np.uint64(11)) * 2.0**-53 < share
        is_last_chance = num_changed == 0 and end - stop < (end - begin) // 2
        if (is_drawn or is_last_chance) and has_letter and not has_digit:
            for place in range(at, stop):
                if _is_letter(text[place]):
                    state += GOLDEN
                    case = text[place] & 32
                    letter = np.int64(text[place] | 32) - 97
                    shift = np.int64(mixed(state) % np.uint64(25)) + 1
                    text[place] = np.uint8((65 | case) + (letter + shift) % 26)
            num_changed += 1
            since_change = 0
        else:
            since_change += 1
        num_kept_shingles += since_change >= _NGRAM
        at = stop + 1
    num_shingles = max(1, num_words - _NGRAM + 1)
    return num_kept_shingles / (2 * num_shingles - num_kept_shingles)


@inner
def insert_span(out: Any, begin: Any, end: Any, span: Any) -> Any:
    """Inserts a span as a paragraph behind the first sentence that ends in the second half; returns its start.

    The text then ends `len(span) + 1` bytes later.
    """
    at = begin + (end - begin) // 2
    while at < end and not (out[at] == _SPACE and out[at - 1] == 46 and 65 <= out[at + 1] <= 90):
        at += 1
    size = len(span) + 1
    for place in range(end - 1, at - 1, -1):
        out[place + size] = out[place]
    out[at] = _NEWLINE
    for index in range(len(span)):
        out[at + 1 + index] = span[index]
    if at < end:
        out[at + size] = _NEWLINE
    return at + 1


@inner
def word_start(text: Any, begin: Any, end: Any) -> Any:
    """The first place from `begin` on that follows a space."""
    at = begin
    while at < end and (at == 0 or text[at - 1] != _SPACE):
        at += 1
    return at


@kernel
def write_documents(
    seed: Any,
    documents: Any,
    sources: Any,
    changed: Any,
    spans: Any,
    lengths: Any,
    data_1: Any,
    offsets_1: Any,
    data_2: Any,
    offsets_2: Any,
    out: Any,
    scratch: Any,
    ends: Any,
    similarities: Any,
    places: Any,
) -> None:
    """Writes documents one after the other to `out`, their ends to `ends`.

    Document i is composed from its number; if `sources[i]` is not its own number and `spans[i]` is 0, it is that
    document with a share `changed[i]` of its words changed. `spans[i]` bytes of the source are inserted otherwise;
    `places[i]` is where, and where they were in the source. `lengths` are those of all documents of the corpus.
    """
    at = np.int64(0)
    for index in range(len(documents)):
        document, source = documents[index], sources[index]
        is_copy = spans[index] == 0
        own = source if is_copy else document
        own_seed = mixed(np.uint64(seed) + np.uint64(own) * GOLDEN)
        end = compose(own_seed, lengths[own], data_1, offsets_1, data_2, offsets_2, out, at)
        copy_seed = mixed(own_seed ^ mixed(np.uint64(document)))
        if is_copy and source != document and changed[index] > 0:
            similarities[index] = change_words(copy_seed, changed[index], out, at, end)
        elif not is_copy:
            from_seed = mixed(np.uint64(seed) + np.uint64(source) * GOLDEN)
            size = compose(from_seed, lengths[source], data_1, offsets_1, data_2, offsets_2, scratch, 0)
            free = size - spans[index] - 100
            start = word_start(scratch, np.int64(copy_seed % np.uint64(max(1, free))), size)
            start = min(start, size - spans[index])
            span = scratch[start : start + spans[index]]
            places[index, 0] = insert_span(out, at, end, span) - at
            places[index, 1] = start
            end += spans[index] + 1
        at = end
        ends[index] = at
