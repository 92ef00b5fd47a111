"""The kernels of likelihood and sampling; the conventions are those of `arrays._hash_kernels`.

A pretoken's lattice has an edge for each piece that begins somewhere in it and ends within it. All sums run from the
right: `beta[i]` is the weight of all ways to go on from byte i to the pretoken's end, a piece's weight being
`exp(score)`, its score `alpha` times its log probability. Then a way is drawn from the left, a piece with probability
`exp(score) * beta[its end] / beta[its start]`: backward filtering and forward sampling, the mirror image of the usual
forward filtering and backward sampling, by which only a trie of beginnings is needed.
"""

from __future__ import annotations

import math

import numpy as np

from finpile_tokenizer.arrays._array_kernels import doubled
from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, UInt8s, UInt32s
from finpile_tokenizer.arrays.jit import inlined, inner, kernel
from finpile_tokenizer.pretokens._pretoken_kernels import pretoken_stop
from finpile_tokenizer.trie._hashed_kernels import NO_SLOT, ROOT, TERMINAL, next_slot

# SplitMix64, whose step is 2^64 / golden ratio. Source: Steele, Lea and Flood, OOPSLA 2014, figure 17.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_TO_53_BITS = np.uint64(11)
_ULP = 2.0**-53

#: Sums of weights are kept within these bounds by powers of two, which round nothing.
_LOW, _HIGH, _STEP = 2.0**-500, 2.0**500, 2.0**500
_LOG_STEP = 500 * math.log(2.0)
#: Below this a sum may consist of terms that have lost bits.
_LOST = 2.0**-1000

_FIRST_ROOM = 1 << 10


@kernel
def log_likelihood(
    offsets: Int64s,
    data: UInt8s,
    first: int,
    last: int,
    classes: UInt8s,
    units: UInt32s,
    pieces: Int32s,
    log_probs: Float64s,
    weights: Float64s,
    longest: int,
) -> Float64s:
    """The log of the summed probability of all segmentations, for each of the documents `first` to `last`.

    `weights` are the probabilities. The pretokens' logs are added with Neumaier's compensation.
    """
    totals = np.zeros(last - first, np.float64)
    terms = np.empty(longest, np.float64)
    ring = np.zeros(_power_of_two_above(longest), np.float64)
    for document in range(first, last):
        position, end = offsets[document], offsets[document + 1]
        total, error = 0.0, 0.0
        while position < end:
            stop = pretoken_stop(data, position, end, classes)
            if stop == position + 1:
                value = log_probs[pieces[next_slot(units, ROOT, data[position])]]
            else:
                value = _log_beta_by_weights(data, position, stop, units, pieces, weights, ring)
                if math.isnan(value):
                    log_beta = np.empty(stop - position, np.float64)
                    _fill_log_beta(data, position, stop, position, units, pieces, log_probs, terms, log_beta)
                    value = log_beta[0]
            after = total + value
            error += (total - after) + value if abs(total) >= abs(value) else (value - after) + total
            total = after
            position = stop
        totals[document - first] = total + error
    return totals


@inner
def _power_of_two_above(number: int) -> int:
    power = 1
    while power <= number:
        power *= 2
    return power


@inner
def _log_beta_by_weights(
    data: UInt8s, start: int, stop: int, units: UInt32s, pieces: Int32s, weights: Float64s, ring: Float64s
) -> float:
    """`log(beta[start])` by sums of weights, or nan if these leave the range of float64 within a piece's length."""
    mask = np.uint64(ring.size - 1)
    ring[np.uint64(stop) & mask] = 1.0
    num_steps = 0
    total = 1.0
    for position in range(stop - 1, start - 1, -1):
        total = 0.0
        slot = ROOT
        for at in range(position, stop):
            slot = next_slot(units, slot, data[at])
            if slot == NO_SLOT:
                break
            if units[slot] & TERMINAL:
                total += weights[np.uint32(pieces[slot])] * ring[np.uint64(at + 1) & mask]
        if not _LOW < total < _HIGH:
            if not _LOST < total < np.inf:
                return math.nan
            step = 1 if total <= _LOW else -1
            num_steps += step
            ring *= _STEP**step
            total *= _STEP**step
        ring[np.uint64(position) & mask] = total
    return math.log(total) - num_steps * _LOG_STEP


@inner
def _fill_log_beta(
    data: UInt8s,
    start: int,
    stop: int,
    origin: int,
    units: UInt32s,
    pieces: Int32s,
    scores: Float64s,
    terms: Float64s,
    log_beta: Float64s,
) -> None:
    """Sets `log_beta[i - origin]` for the bytes i of one pretoken, in logarithms all the way: any scores will do."""
    for position in range(stop - 1, start - 1, -1):
        num_terms = 0
        peak = -np.inf
        slot = ROOT
        for at in range(position, stop):
            slot = next_slot(units, slot, data[at])
            if slot == NO_SLOT:
                break
            if units[slot] & TERMINAL:
                ahead = log_beta[at + 1 - origin] if at + 1 < stop else 0.0
                terms[num_terms] = scores[pieces[slot]] + ahead
                peak = max(peak, terms[num_terms])
                num_terms += 1
        total = 0.0
        for index in range(num_terms):
            total += math.exp(terms[index] - peak)
        log_beta[position - origin] = peak + math.log(total) if num_terms > 1 else peak


@inner
def fill_document(
    data: UInt8s,
    begin: int,
    end: int,
    classes: UInt8s,
    units: UInt32s,
    pieces: Int32s,
    scores: Float64s,
    terms: Float64s,
    log_beta: Float64s,
) -> float:
    """`_fill_log_beta` for every pretoken of a document; returns the sum of the pretokens' logs."""
    total = 0.0
    position = begin
    while position < end:
        stop = pretoken_stop(data, position, end, classes)
        _fill_log_beta(data, position, stop, begin, units, pieces, scores, terms, log_beta)
        total += log_beta[position - begin]
        position = stop
    return total


@inner
def fill_choices(
    data: UInt8s,
    position: int,
    begin: int,
    end: int,
    classes: UInt8s,
    units: UInt32s,
    pieces: Int32s,
    scores: Float64s,
    log_beta: Float64s,
    terms: Float64s,
    choices: Int32s,
) -> int:
    """The pieces that begin at a byte, short to long, as `choices`; the logs of their probabilities as `terms`.

    Returns how many there are. `log_beta` is that of a document that begins at `begin`.
    """
    # One byte more than the longest piece has: so a piece that ends at this limit ends its pretoken.
    limit = pretoken_stop(data, position, min(end, position + terms.size + 1), classes)
    here = log_beta[position - begin]
    num_choices = 0
    slot = ROOT
    for at in range(position, limit):
        slot = next_slot(units, slot, data[at])
        if slot == NO_SLOT:
            break
        if units[slot] & TERMINAL:
            ahead = log_beta[at + 1 - begin] if at + 1 < limit else 0.0
            choices[num_choices] = pieces[slot]
            terms[num_choices] = scores[pieces[slot]] + ahead - here
            num_choices += 1
    return num_choices


@inlined
def _mixed(value: np.uint64) -> np.uint64:
    """SplitMix64's output function, a bijection."""
    value = (value ^ (value >> _SHIFT_1)) * _MIX_1
    value = (value ^ (value >> _SHIFT_2)) * _MIX_2
    return value ^ (value >> _SHIFT_3)


@inlined
def drawn(key: np.uint64, counter: int) -> np.uint64:
    """The number at place `counter` of the SplitMix64 sequence that starts from `key`."""
    number: np.uint64 = _mixed(key + np.uint64(counter + 1) * _GOLDEN)
    return number


@inlined
def uniform(bits: np.uint64) -> float:
    """A number strictly between 0 and 1."""
    return (np.float64(bits >> _TO_53_BITS) + 0.5) * _ULP


@inner
def stream_key(seed: np.uint64, document: int, sample: int) -> np.uint64:
    """The key of the random numbers of one sample of one document."""
    key: np.uint64 = _mixed(_mixed(_mixed(seed) + np.uint64(document)) + np.uint64(sample))
    return key


@kernel
def sample_documents(
    offsets: Int64s,
    data: UInt8s,
    first: int,
    last: int,
    first_number: int,
    num_samples: int,
    seed: np.uint64,
    classes: UInt8s,
    units: UInt32s,
    pieces: Int32s,
    piece_bytes: Int64s,
    scores: Float64s,
    longest: int,
) -> tuple[Int32s, Int64s]:
    """`num_samples` segmentations of each of the documents `first` to `last`: `(all ids, number of ids of each)`.

    The choice at a byte depends only on `seed`, the document's number (that of `first` is `first_number`), the sample's
    number and the byte's place in the document. Takes 8 bytes for each byte of a document.
    """
    ids = np.empty(_FIRST_ROOM, np.int32)
    counts = np.zeros((last - first) * num_samples, np.int64)
    log_beta = np.empty(_FIRST_ROOM, np.float64)
    terms, choices = np.empty(longest, np.float64), np.empty(longest, np.int32)
    total = 0
    for document in range(first, last):
        begin, end = offsets[document], offsets[document + 1]
        if log_beta.size < end - begin:
            log_beta = np.empty(2 * (end - begin), np.float64)
        fill_document(data, begin, end, classes, units, pieces, scores, terms, log_beta)
        for sample in range(num_samples):
            key = stream_key(seed, first_number + document - first, sample)
            before = total
            while ids.size < total + end - begin:
                ids = doubled(ids)
            position = begin
            while position < end:
                num_choices = fill_choices(
                    data, position, begin, end, classes, units, pieces, scores, log_beta, terms, choices
                )
                chosen = 0
                if num_choices > 1:
                    chosen = _choose(terms, num_choices, uniform(drawn(key, position - begin)))
                ids[total] = choices[chosen]
                total += 1
                position += piece_bytes[choices[chosen]]
            counts[(document - first) * num_samples + sample] = total - before
    return ids[:total].copy(), counts


@inner
def _choose(terms: Float64s, num_terms: int, share: float) -> int:
    """The term at which the running sum of `exp(term)`, in all 1, passes this share; never one that adds nothing."""
    passed = 0.0
    chosen = 0
    for index in range(num_terms):
        probability = math.exp(terms[index])
        if probability > 0.0:
            chosen = index
            passed += probability
            if passed > share:
                break
    return chosen
