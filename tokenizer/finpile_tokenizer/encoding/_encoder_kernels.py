"""The loops of encoding, compiled by Numba; the conventions are those of `_kernels`.

Text goes through them in blocks of whole pretokens, three times: the automaton says for each byte which pieces can end
there, the best of them is chosen, and the way is read back. The automaton is a chain of loads that each wait for the
last one; so it walks eight stretches of the block at once, without a branch that the processor would have to guess.
"""

from __future__ import annotations

import numba
import numpy as np

from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, UInt8s, UInt32s, UInt64s
from finpile_tokenizer.encoding._automaton_kernels import (
    BASE_SHIFT,
    CLASS_MASK,
    CLASS_SHIFT,
    FAIL_SHIFT,
    ID_MASK,
    IN_USE,
    LABEL_AND_USE,
    LENGTH_SHIFT,
    SLOT_MASK,
)
from finpile_tokenizer.pretokens._kernels import DIGIT
from finpile_tokenizer.trie._double_array_kernels import ROOT_SLOT

#: A block has at least so many bytes, then goes on to the end of its pretoken.
BLOCK_BYTES = 1 << 15
NUM_LANES = 8
#: Choices are looked up for so many bytes, then compared: few enough to stay in the cache.
_CHUNK_BYTES = 1 << 12
#: A piece of one byte has that byte as its id.
_ONE_BYTE = np.uint32(1) << LENGTH_SHIFT
_DIGIT_CLASS = np.uint64(DIGIT) << CLASS_SHIFT
_NO_CLASS = CLASS_MASK

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_THREE = np.uint64(3)


@numba.njit(cache=True, nogil=True)
def find_block(offsets: Int64s, data: UInt8s, document: int, last: int, position: int, kinds: UInt64s) -> int:
    """Where the block ends that begins at `position`, in `document`: where a pretoken or a document does."""
    stop: int = position + BLOCK_BYTES
    while document < last and offsets[document + 1] <= stop:
        document += 1
    if document == last:
        end: int = offsets[last]
        return end
    while (
        offsets[document] < stop < offsets[document + 1]
        and kinds[data[stop]] == kinds[data[stop - 1]]
        and kinds[data[stop]] != _DIGIT_CLASS
    ):
        stop += 1
    return stop


@numba.njit(cache=True, nogil=True, inline="always")
def _step(
    text: UInt8s, units: UInt64s, kinds: UInt64s, words: UInt32s, at: np.uint64, slot: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """The automaton, in `slot` before byte `at`, makes one step: on by the byte, or else to a shorter suffix.

    The slot tried is written down either way: what is written last is right.
    """
    byte = np.uint64(text[at])
    unit = units[slot]
    # A new pretoken starts at the root, whose base is 0.
    base = _ZERO if (unit ^ kinds[byte]) & CLASS_MASK else unit >> BASE_SHIFT
    child = base ^ byte
    found = (units[child] & LABEL_AND_USE) == (byte | IN_USE)
    words[at] = np.uint32(child)
    return at + np.uint64(found), (child if found else (unit >> FAIL_SHIFT) & SLOT_MASK)


@numba.njit(cache=True, nogil=True)
def _step_lanes(
    text: UInt8s, units: UInt64s, kinds: UInt64s, words: UInt32s, at: UInt64s, slots: UInt64s, num_steps: int
) -> None:
    """Makes `num_steps` in each of eight lanes; written out, since only so the lanes stay in registers."""
    a, b, c, d, e, f, g, h = at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]
    p, q, r, s, t, u, v, w = slots[0], slots[1], slots[2], slots[3], slots[4], slots[5], slots[6], slots[7]
    for _ in range(num_steps):
        a, p = _step(text, units, kinds, words, a, p)
        b, q = _step(text, units, kinds, words, b, q)
        c, r = _step(text, units, kinds, words, c, r)
        d, s = _step(text, units, kinds, words, d, s)
        e, t = _step(text, units, kinds, words, e, t)
        f, u = _step(text, units, kinds, words, f, u)
        g, v = _step(text, units, kinds, words, g, v)
        h, w = _step(text, units, kinds, words, h, w)
    at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7] = a, b, c, d, e, f, g, h
    slots[0], slots[1], slots[2], slots[3], slots[4], slots[5], slots[6], slots[7] = p, q, r, s, t, u, v, w


@numba.njit(cache=True, nogil=True)
def cut_block(
    offsets: Int64s,
    document: int,
    position: int,
    text: UInt8s,
    units: UInt64s,
    kinds: UInt64s,
    longest: int,
    edges: Int64s,
    slots: UInt64s,
    words: UInt32s,
) -> int:
    """Cuts the block, `text`, into stretches within one document, of even length where documents are long.

    Fills `edges` with the starts of the stretches and with the block's end, and `slots` with where the automaton is
    before each: at the root where a document starts or goes on; else where the `longest` bytes before lead it, for no
    state remembers more. Returns the number of stretches.
    """
    most = (text.size + NUM_LANES - 1) // NUM_LANES
    num_stretches = 0
    start = 0
    while start < text.size:
        while offsets[document + 1] - position <= start:
            document += 1
        begin = max(0, offsets[document] - position)
        at, slot = np.uint64(max(begin, start - longest)), np.uint64(ROOT_SLOT)
        while at < np.uint64(start):
            at, slot = _step(text, units, kinds, words, at, slot)
        edges[num_stretches], slots[num_stretches] = start, slot
        num_stretches += 1
        start = min(start + most, offsets[document + 1] - position, text.size)
    edges[num_stretches] = text.size
    return num_stretches


@numba.njit(cache=True, nogil=True)
def walk_block(
    text: UInt8s,
    units: UInt64s,
    kinds: UInt64s,
    edges: Int64s,
    slots: UInt64s,
    num_stretches: int,
    words: UInt32s,
) -> None:
    """Writes the automaton's slot after each byte of the block into `words`; the stretches as of `cut_block`."""
    at = edges[:NUM_LANES].astype(np.uint64)
    ends = edges[1 : NUM_LANES + 1].astype(np.uint64)
    lanes = slots[:NUM_LANES].copy()
    taken = min(num_stretches, NUM_LANES)
    running = num_stretches >= NUM_LANES
    while running:
        num_steps = ends[0] - at[0]
        for lane in range(1, NUM_LANES):
            num_steps = min(num_steps, ends[lane] - at[lane])
        _step_lanes(text, units, kinds, words, at, lanes, num_steps)
        for lane in range(NUM_LANES):
            if at[lane] == ends[lane]:
                if taken == num_stretches:
                    running = False
                    break
                at[lane], ends[lane], lanes[lane] = edges[taken], edges[taken + 1], slots[taken]
                taken += 1
    for lane in range(min(num_stretches, NUM_LANES)):
        position, slot = at[lane], lanes[lane]
        while position < ends[lane]:
            position, slot = _step(text, units, kinds, words, position, slot)


@numba.njit(cache=True, nogil=True)
def look_up_choices(
    start: int, stop: int, firsts: UInt32s, choice_words: UInt32s, words: UInt32s, sink: UInt32s
) -> None:
    """Replaces, for each byte of a stretch, the automaton's slot in `words` by the first choice of its list.

    A loop of its own: its loads do not wait for each other. It reads each choice too, so that the choices lie in the
    cache when they are compared; the sink is there lest the compiler see that nothing comes of it.
    """
    read = np.uint32(0)
    for index in range(np.uint64(start), np.uint64(stop)):
        choice = firsts[words[index]]
        words[index] = choice
        read |= choice_words[_TWO * np.uint64(choice) + _TWO]
    sink[0] = read


@numba.njit(cache=True, nogil=True, inline="always")
def _better(
    choice: np.uint64,
    stop: np.uint64,
    mask: np.uint64,
    ring: Float64s,
    choices: Float64s,
    choice_words: UInt32s,
    best: float,
    word: np.uint32,
) -> tuple[np.uint64, float, np.uint32]:
    """One choice of those at `stop`: `(the next choice, the best score so far, length and id of the piece)`."""
    piece = choice_words[_TWO * choice + _TWO]
    score = ring[(stop - np.uint64(piece >> LENGTH_SHIFT)) & mask] + choices[choice]
    wins = score > best
    following = np.uint64(choice_words[_TWO * choice + _THREE])
    return following, (score if wins else best), (piece if wins else word)


@numba.njit(cache=True, nogil=True)
def choose_pieces(
    text: UInt8s,
    start: int,
    stop: int,
    kinds: UInt64s,
    choices: Float64s,
    choice_words: UInt32s,
    byte_scores: Float64s,
    ring: Float64s,
    words: UInt32s,
    best: float,
    kind: np.uint64,
) -> tuple[float, np.uint64]:
    """Replaces, for each byte of a stretch, the first choice in `words` by length and id of the best piece that ends
    there.

    Within a pretoken, scores start at 0.0 and `best[end] = best[start] + score` is replaced only by a strictly greater
    sum, starts from left to right: the order of additions, and hence the rounding and the choice among ties, of the
    Unigram model in HF tokenizers (encode_optimized, models/unigram/model.rs).

    `ring` holds the best scores of the last positions; its length is a power of two above the longest piece. `best` is
    the last one and `kind` the class of the byte before, or none at a document's start; returns those at the end.
    """
    mask = np.uint64(ring.size - 1)
    end = np.uint64(stop)
    at = np.uint64(start)
    while at < end:
        byte = text[at]
        last_kind = kind
        kind = kinds[byte]
        # (The scores of a run of digits go on: each has one piece alone.)
        so_far = best if kind == last_kind else 0.0
        ring[at & mask] = so_far
        choice = np.uint64(words[at])
        word = np.uint32(byte) | _ONE_BYTE
        best = -np.inf
        # Three at a time: seldom are there more, and what is seldom is guessed rightly. A list's end is not taken.
        while True:
            choice, best, word = _better(choice, at + _ONE, mask, ring, choices, choice_words, best, word)
            choice, best, word = _better(choice, at + _ONE, mask, ring, choices, choice_words, best, word)
            choice, best, word = _better(choice, at + _ONE, mask, ring, choices, choice_words, best, word)
            if choice == _ZERO:
                break
        # The byte itself is a piece always, and the last to be looked at. It alone waits for the score just found.
        score = so_far + byte_scores[byte]
        wins = score > best
        best = score if wins else best
        words[at] = (np.uint32(byte) | _ONE_BYTE) if wins else word
        at += _ONE
    return best, kind


@numba.njit(cache=True, nogil=True)
def encode_documents(
    offsets: Int64s,
    data: UInt8s,
    first: int,
    last: int,
    kinds: UInt64s,
    units: UInt64s,
    firsts: UInt32s,
    choices: Float64s,
    choice_words: UInt32s,
    byte_scores: Float64s,
    ring: Float64s,
    longest: int,
) -> tuple[Int32s, Int64s]:
    """Best segmentation of documents `first` to `last`: `(ids of all, number of ids of each)`.

    Besides the ids it takes 4 bytes for each byte of a block, and a block ends with the pretoken that it ends in.
    """
    counts = np.zeros(last - first, np.int64)
    ids = np.empty(offsets[last] - offsets[first], np.int32)
    edges = np.empty(BLOCK_BYTES + NUM_LANES + 1, np.int64)
    slots = np.empty(edges.size, np.uint64)
    words = np.empty(BLOCK_BYTES, np.uint32)
    sink = np.zeros(1, np.uint32)
    total = 0
    document = first
    position = offsets[first]
    while position < offsets[last]:
        while offsets[document + 1] <= position:
            document += 1
        stop = find_block(offsets, data, document, last, position, kinds)
        if stop - position > words.size:
            words = np.empty(stop - position, np.uint32)
        text = data[position:stop]
        num_stretches = cut_block(offsets, document, position, text, units, kinds, longest, edges, slots, words)
        walk_block(text, units, kinds, edges, slots, num_stretches, words)
        best, kind = 0.0, _NO_CLASS
        for stretch in range(num_stretches):
            if slots[stretch] == ROOT_SLOT:
                kind = _NO_CLASS
            for begin in range(edges[stretch], edges[stretch + 1], _CHUNK_BYTES):
                end = min(begin + _CHUNK_BYTES, edges[stretch + 1])
                look_up_choices(begin, end, firsts, choice_words, words, sink)
                best, kind = choose_pieces(
                    text, begin, end, kinds, choices, choice_words, byte_scores, ring, words, best, kind
                )
        # Back from the block's end. The ids come last first, and are written from where they end at most.
        inside = document
        while offsets[inside + 1] < stop:
            inside += 1
        low = total + stop - position
        high = low
        here = stop
        while here > position:
            floor = max(offsets[inside], position)
            before = low
            while here > floor:
                word = words[here - position - 1]
                low -= 1
                ids[low] = np.int32(word & ID_MASK)
                here -= np.int64(word >> LENGTH_SHIFT)
            counts[inside - first] += before - low
            inside -= 1
        for index in range(low, high):
            ids[total] = ids[index]
            total += 1
        position = stop
    return ids[:total], counts
