"""The kernels of encoding; the conventions are those of `arrays._hash_kernels`.

Text is processed in blocks of whole pretokens, in three passes: the automaton finds for each byte which pieces can end
there, the best of them is chosen, and the best path is read back. Each load of the automaton depends on the one before;
so it walks eight stretches of the block at once, without a branch that the processor would have to predict.
"""

from __future__ import annotations

import numpy as np

from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, UInt8s, UInt32s, UInt64s
from finpile_tokenizer.arrays.jit import inlined, inner, kernel
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
from finpile_tokenizer.pretokens._pretoken_kernels import DIGIT
from finpile_tokenizer.trie._double_array_kernels import ROOT_SLOT

#: A block has at least this many bytes and ends with a pretoken.
BLOCK_BYTES = 1 << 15
NUM_LANES = 8
#: Choices are looked up for this many bytes, then compared: few enough to stay in the cache.
_CHUNK_BYTES = 1 << 12
#: A piece of one byte has that byte as its id.
_ONE_BYTE = np.uint32(1) << LENGTH_SHIFT
#: Where in `lanes` the slots and the ends begin.
_SLOT, _END = NUM_LANES, 2 * NUM_LANES
LANE_NUMBERS = 3 * NUM_LANES
_DIGIT_CLASS = np.uint64(DIGIT) << CLASS_SHIFT
_NO_CLASS = CLASS_MASK

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_THREE = np.uint64(3)


@inner
def find_block(offsets: Int64s, data: UInt8s, document: int, last: int, position: int, kinds: UInt64s) -> int:
    """The end of the block that starts at `position`, in `document`: the end of a pretoken or of a document."""
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


@inlined
def _step(
    text: UInt8s, units: UInt64s, kinds: UInt64s, words: UInt32s, at: np.uint64, slot: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """One step of the automaton, which is in `slot` before byte `at`: along the byte, or else to a shorter suffix.

    The slot tried is stored in both cases; the last one stored is right.
    """
    byte = np.uint64(text[at])
    unit = units[slot]
    # A new pretoken starts at the root, whose base is 0.
    base = _ZERO if (unit ^ kinds[byte]) & CLASS_MASK else unit >> BASE_SHIFT
    child = base ^ byte
    found = (units[child] & LABEL_AND_USE) == (byte | IN_USE)
    words[at] = np.uint32(child)
    return at + np.uint64(found), (child if found else (unit >> FAIL_SHIFT) & SLOT_MASK)


@inner
def _step_lanes(text: UInt8s, units: UInt64s, kinds: UInt64s, words: UInt32s, lanes: UInt64s, num_steps: int) -> None:
    """Makes `num_steps` in each of eight lanes; unrolled by hand, which keeps the lanes in registers."""
    a, b, c, d, e, f, g, h = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[6], lanes[7]
    p, q, r, s, t, u, v, w = lanes[8], lanes[9], lanes[10], lanes[11], lanes[12], lanes[13], lanes[14], lanes[15]
    for _ in range(num_steps):
        a, p = _step(text, units, kinds, words, a, p)
        b, q = _step(text, units, kinds, words, b, q)
        c, r = _step(text, units, kinds, words, c, r)
        d, s = _step(text, units, kinds, words, d, s)
        e, t = _step(text, units, kinds, words, e, t)
        f, u = _step(text, units, kinds, words, f, u)
        g, v = _step(text, units, kinds, words, g, v)
        h, w = _step(text, units, kinds, words, h, w)
    lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[6], lanes[7] = a, b, c, d, e, f, g, h
    lanes[8], lanes[9], lanes[10], lanes[11], lanes[12], lanes[13], lanes[14], lanes[15] = p, q, r, s, t, u, v, w


@inner
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
    """Cuts the block, `text`, into stretches within one document, of even length if documents are long.

    Writes the starts of the stretches and the block's end to `edges`, and the automaton's state before each to `slots`:
    the root at a document's start; else the state after the `longest` bytes before, because no state depends on more.
    Returns the number of stretches.
    """
    most = (text.size + NUM_LANES - 1) // NUM_LANES
    num_stretches = 0
    start = 0
    while start < text.size:
        while offsets[document + 1] - position <= start:
            document += 1
        begin = offsets[document] - position
        begin = begin if begin > 0 else 0
        begin = begin if begin > start - longest else start - longest
        at, slot = np.uint64(begin), np.uint64(ROOT_SLOT)
        while at < np.uint64(start):
            at, slot = _step(text, units, kinds, words, at, slot)
        edges[num_stretches], slots[num_stretches] = start, slot
        num_stretches += 1
        stop = offsets[document + 1] - position
        stop = stop if stop < text.size else text.size
        start = start + most if start + most < stop else stop
    edges[num_stretches] = text.size
    return num_stretches


@inner
def walk_block(
    text: UInt8s,
    units: UInt64s,
    kinds: UInt64s,
    edges: Int64s,
    slots: UInt64s,
    num_stretches: int,
    words: UInt32s,
    lanes: UInt64s,
) -> None:
    """Writes the automaton's slot after each byte of the block to `words`; the stretches are those of `cut_block`.

    `lanes` is room for three numbers a lane: the position, the slot, and the end of the stretch.
    """
    used = num_stretches if num_stretches < NUM_LANES else NUM_LANES
    for lane in range(used):
        lanes[lane], lanes[_SLOT + lane], lanes[_END + lane] = edges[lane], slots[lane], edges[lane + 1]
    taken = used
    running = num_stretches >= NUM_LANES
    while running:
        num_steps = lanes[_END] - lanes[0]
        for lane in range(1, NUM_LANES):
            left = lanes[_END + lane] - lanes[lane]
            num_steps = left if left < num_steps else num_steps
        _step_lanes(text, units, kinds, words, lanes, num_steps)
        for lane in range(NUM_LANES):
            if lanes[lane] == lanes[_END + lane]:
                if taken == num_stretches:
                    running = False
                    break
                lanes[lane], lanes[_SLOT + lane], lanes[_END + lane] = edges[taken], slots[taken], edges[taken + 1]
                taken += 1
    for lane in range(used):
        position, slot = lanes[lane], lanes[_SLOT + lane]
        while position < lanes[_END + lane]:
            position, slot = _step(text, units, kinds, words, position, slot)


@inner
def look_up_choices(
    start: int, stop: int, firsts: UInt32s, choice_words: UInt32s, words: UInt32s, sink: UInt32s
) -> None:
    """Replaces, for each byte of a stretch, the automaton's slot in `words` by the first choice of its list.

    A loop of its own, because its loads are independent. It also reads each choice, so that the choices are in the
    cache when they are compared; the sink keeps the compiler from dropping these loads.
    """
    read = np.uint32(0)
    for index in range(np.uint64(start), np.uint64(stop)):
        choice = firsts[words[index]]
        words[index] = choice
        read |= choice_words[_TWO * np.uint64(choice) + _TWO]
    sink[0] = read


@inlined
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


@inner
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
    the last score and `kind` the class of the byte before, or none at a document's start; returns both at the end.
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
        # Three at a time: more are rare, so the branch is predicted well. A list's end is never chosen.
        while True:
            choice, best, word = _better(choice, at + _ONE, mask, ring, choices, choice_words, best, word)
            choice, best, word = _better(choice, at + _ONE, mask, ring, choices, choice_words, best, word)
            choice, best, word = _better(choice, at + _ONE, mask, ring, choices, choice_words, best, word)
            if choice == _ZERO:
                break
        # The byte itself is always a piece, and compared last: only this comparison depends on the score just found.
        score = so_far + byte_scores[byte]
        wins = score > best
        best = score if wins else best
        words[at] = (np.uint32(byte) | _ONE_BYTE) if wins else word
        at += _ONE
    return best, kind


@kernel
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
    edges: Int64s,
    slots: UInt64s,
    lanes: UInt64s,
    sink: UInt32s,
    counts: Int64s,
    ids: Int32s,
) -> int:
    """Writes the ids of the best segmentations of documents `first` to `last`; returns how many there are.

    `ids` has room for one id a byte; the number of ids of each document is added to `counts`. Besides the room that the
    caller provides, a block takes 4 bytes for each of its bytes.
    """
    words = np.empty(BLOCK_BYTES, np.uint32)
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
        walk_block(text, units, kinds, edges, slots, num_stretches, words, lanes)
        best, kind = 0.0, _NO_CLASS
        for stretch in range(num_stretches):
            if slots[stretch] == ROOT_SLOT:
                kind = _NO_CLASS
            for begin in range(edges[stretch], edges[stretch + 1], _CHUNK_BYTES):
                end = begin + _CHUNK_BYTES if begin + _CHUNK_BYTES < edges[stretch + 1] else edges[stretch + 1]
                look_up_choices(begin, end, firsts, choice_words, words, sink)
                best, kind = choose_pieces(
                    text, begin, end, kinds, choices, choice_words, byte_scores, ring, words, best, kind
                )
        # Back from the block's end. The ids are found last first, and written from the highest place they can have.
        inside = document
        while offsets[inside + 1] < stop:
            inside += 1
        low = total + stop - position
        high = low
        here = stop
        while here > position:
            floor = offsets[inside] if offsets[inside] > position else position
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
    return total
