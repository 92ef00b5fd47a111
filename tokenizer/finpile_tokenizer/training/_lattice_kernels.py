"""The kernels over the lattices of pretokens; the conventions are those of `arrays._hash_kernels`.

`longest_piece_at`, `prefix_links` and `chains` are those of `lattice.Lattices`. At position i of a pretoken the edges
are the pieces `piece = longest_piece_at[i]`, then `chains[piece] >> 8`, until it is the last number of `chains`; each
reaches to `i + (chains[piece] & 255)`. Chains differ in length, which the processor guesses wrong, so the kernels take
four edges at a time; those behind a chain's end have weight 0.
"""

from __future__ import annotations

import math

import numpy as np

from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, UInt8s, UInt32s, UInt64s
from finpile_tokenizer.arrays.jit import inlined, inner, kernel
from finpile_tokenizer.trie._hashed_kernels import NO_SLOT, ROOT, TERMINAL, next_slot

#: Sums of path weights beyond these bounds are computed again in logarithms: within them no significant term
#: underflows.
_TINY = 1e-200
_HUGE = 1e200
_LENGTH = np.uint32(255)
_PARENT = np.uint32(8)


@kernel
def longest_pieces(
    offsets: Int64s,
    data: UInt8s,
    first: int,
    last: int,
    units: UInt32s,
    slot_pieces: Int32s,
    longest_piece_at: Int32s,
) -> None:
    """Writes the longest piece that begins at each position of the pretokens and ends within, -1 if there is none.

    `units` and `slot_pieces` are those of `trie.hashed.hashed_trie`.
    """
    for item in range(first, last):
        for start in range(offsets[item], offsets[item + 1]):
            longest = np.int32(-1)
            slot = ROOT
            for position in range(start, offsets[item + 1]):
                slot = next_slot(units, slot, data[position])
                if slot == NO_SLOT:
                    break
                if units[slot] & TERMINAL:
                    longest = slot_pieces[slot]
            longest_piece_at[start] = longest


@kernel
def longest_prefixes(offsets: Int64s, data: UInt8s, units: UInt32s, slot_pieces: Int32s, parents: Int32s) -> None:
    """Writes for each piece the longest of its proper prefixes that is a piece, -1 beforehand."""
    for piece in range(offsets.size - 1):
        slot = ROOT
        for position in range(offsets[piece], offsets[piece + 1] - 1):
            slot = next_slot(units, slot, data[position])
            if units[slot] & TERMINAL:
                parents[piece] = slot_pieces[slot]


@kernel
def nearest_taken(prefix_links: Int32s, taken: Int64s, numbers: Int32s) -> None:
    """Writes for each piece the place in `taken` of the longest of itself and its prefixes that is there; -2
    beforehand.

    A prefix may have a higher number than the pieces that begin with it; so each chain is followed up to a known
    number.
    """
    for place in range(taken.size):
        numbers[taken[place]] = place
    for piece in range(prefix_links.size):
        at = np.int64(piece)
        while at >= 0 and numbers[at] == -2:
            at = np.int64(prefix_links[at] >> 8)
        found = numbers[at] if at >= 0 else np.int32(-1)
        at = np.int64(piece)
        while at >= 0 and numbers[at] == -2:
            numbers[at] = found
            at = np.int64(prefix_links[at] >> 8)


@kernel
def renumber(longest_piece_at: Int32s, numbers: Int32s) -> None:
    """Replaces each piece by its new number."""
    for position in range(longest_piece_at.size):
        longest_piece_at[position] = numbers[longest_piece_at[position]]


@inlined
def _log_add(first: float, second: float) -> float:
    high, low = (first, second) if first > second else (second, first)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@inner
def _expected_counts_by_logs(
    begin: int,
    length: int,
    longest_piece_at: UInt32s,
    chains: UInt32s,
    log_probs: Float64s,
    amount: float,
    alpha: Float64s,
    beta: Float64s,
    counts: Int64s,
) -> float:
    """One pretoken's part of `expected_counts`, `amount` being frequency times scale; returns its log probability."""
    end_of_chain = np.uint64(chains.size - 1)
    beta[length] = 0.0
    for index in range(length - 1, -1, -1):
        total = -np.inf
        piece = np.uint64(longest_piece_at[begin + index])
        while piece != end_of_chain:
            link = chains[piece]
            total = _log_add(total, log_probs[piece] + beta[index + np.int64(link & _LENGTH)])
            piece = np.uint64(link >> _PARENT)
        beta[index] = total
        alpha[index + 1] = -np.inf
    alpha[0] = 0.0
    for index in range(length):
        piece = np.uint64(longest_piece_at[begin + index])
        while piece != end_of_chain:
            link = chains[piece]
            end = index + np.int64(link & _LENGTH)
            path = alpha[index] + log_probs[piece]
            alpha[end] = _log_add(alpha[end], path)
            counts[piece] += np.int64(math.exp(path + beta[end] - beta[0]) * amount + 0.5)
            piece = np.uint64(link >> _PARENT)
    for index in range(length + 1):
        alpha[index] = 0.0
    log_likelihood: float = beta[0]
    return log_likelihood


@inlined
def _add_paths(
    chains: UInt32s, weights: Float64s, beta: Float64s, at: np.uint64, piece: np.uint64, total: float
) -> tuple[np.uint64, float]:
    """Adds the weight of the paths over one edge; returns the next edge and the sum."""
    link = chains[piece]
    return np.uint64(link >> _PARENT), total + weights[piece] * beta[at + np.uint64(link & _LENGTH)]


@inlined
def _add_uses(
    chains: UInt32s,
    weights: Float64s,
    alpha: Float64s,
    beta: Float64s,
    counts: Int64s,
    at: np.uint64,
    piece: np.uint64,
    so_far: float,
) -> np.uint64:
    """Counts the uses of one edge and adds the weight of the paths to its end; returns the next edge."""
    link = chains[piece]
    end = at + np.uint64(link & _LENGTH)
    path = so_far * weights[piece]
    alpha[end] += path
    counts[piece] += np.int64(path * beta[end] + 0.5)
    return np.uint64(link >> _PARENT)


@kernel
def expected_counts(
    offsets: Int64s,
    frequencies: Int64s,
    first: int,
    last: int,
    longest_piece_at: UInt32s,
    chains: UInt32s,
    log_probs: Float64s,
    weights: Float64s,
    log_tilt: float,
    scale: float,
    alpha: Float64s,
    beta: Float64s,
    counts: Int64s,
) -> float:
    """Adds the expected number of uses of each piece in the pretokens `first` to `last`, times `scale` and rounded, to
    `counts`; returns the log probability of their text.

    `weights` are probabilities times exp(`log_tilt` x length), and 0 for the end of chains. This changes no ratio
    between the paths of a pretoken, which all have its length, and keeps their sums near 1; if a sum is not, the
    pretoken is computed again in logarithms. `counts` are integers, so their sums do not depend on the order of
    additions.

    `alpha`, which is 0, and `beta` have room for one number more than the longest pretoken has bytes.
    """
    end_of_chain = np.uint64(chains.size - 1)
    log_likelihood = 0.0
    for item in range(first, last):
        begin = offsets[item]
        length = offsets[item + 1] - begin
        amount = frequencies[item] * scale
        beta[length] = 1.0
        low = high = 1.0
        for index in range(length - 1, -1, -1):
            at = np.uint64(index)
            beta[at] = 0.0  # read behind the end of a chain
            total = 0.0
            piece = np.uint64(longest_piece_at[begin + index])
            while piece != end_of_chain:
                piece, total = _add_paths(chains, weights, beta, at, piece, total)
                piece, total = _add_paths(chains, weights, beta, at, piece, total)
                piece, total = _add_paths(chains, weights, beta, at, piece, total)
                piece, total = _add_paths(chains, weights, beta, at, piece, total)
            beta[at] = total
            low = total if total < low else low
            high = total if total > high else high
        if low < _TINY or high > _HUGE:
            log_likelihood += frequencies[item] * _expected_counts_by_logs(
                begin, length, longest_piece_at, chains, log_probs, amount, alpha, beta, counts
            )
            continue
        log_likelihood += frequencies[item] * (math.log(beta[0]) - length * log_tilt)
        alpha[0] = amount / beta[0]
        for index in range(length):
            at = np.uint64(index)
            so_far = alpha[at]
            alpha[at] = 0.0
            piece = np.uint64(longest_piece_at[begin + index])
            while piece != end_of_chain:
                piece = _add_uses(chains, weights, alpha, beta, counts, at, piece, so_far)
                piece = _add_uses(chains, weights, alpha, beta, counts, at, piece, so_far)
                piece = _add_uses(chains, weights, alpha, beta, counts, at, piece, so_far)
                piece = _add_uses(chains, weights, alpha, beta, counts, at, piece, so_far)
        alpha[length] = 0.0
    return log_likelihood


@inlined
def _better_path(
    chains: UInt32s,
    log_probs: Float64s,
    best: Float64s,
    at: np.uint64,
    piece: np.uint64,
    score: float,
    chosen: np.uint64,
) -> tuple[np.uint64, float, np.uint64]:
    """Compares the best path over one edge; returns the next edge, the best score and its piece."""
    link = chains[piece]
    path = log_probs[piece] + best[at + np.uint64(link & _LENGTH)]
    wins = path > score
    return np.uint64(link >> _PARENT), (path if wins else score), (piece if wins else chosen)


@kernel
def best_path_counts(
    offsets: Int64s,
    frequencies: Int64s,
    first: int,
    last: int,
    longest_piece_at: UInt32s,
    chains: UInt32s,
    log_probs: Float64s,
    best: Float64s,
    choice: UInt64s,
    counts: Int64s,
) -> None:
    """Adds to `counts` how often each piece is used in the most probable segmentations of the pretokens.

    Among equally probable ones the longest piece is chosen first. `best` and `choice` have room for one number more
    than the longest pretoken has bytes. `log_probs` has -inf for the end of chains.
    """
    end_of_chain = np.uint64(chains.size - 1)
    for item in range(first, last):
        begin = offsets[item]
        length = offsets[item + 1] - begin
        best[length] = 0.0
        for index in range(length - 1, -1, -1):
            at = np.uint64(index)
            score = -np.inf
            chosen = end_of_chain
            piece = np.uint64(longest_piece_at[begin + index])
            while piece != end_of_chain:
                piece, score, chosen = _better_path(chains, log_probs, best, at, piece, score, chosen)
                piece, score, chosen = _better_path(chains, log_probs, best, at, piece, score, chosen)
                piece, score, chosen = _better_path(chains, log_probs, best, at, piece, score, chosen)
                piece, score, chosen = _better_path(chains, log_probs, best, at, piece, score, chosen)
            best[at] = score
            choice[at] = chosen
        index = 0
        while index < length:
            counts[choice[index]] += frequencies[item]
            index += int(chains[choice[index]] & _LENGTH)


@kernel
def removal_losses(
    first: int,
    last: int,
    longest_piece_at: UInt32s,
    chains: UInt32s,
    places: Int64s,
    log_probs: Float64s,
    counts: Int64s,
    total: float,
    best: Float64s,
    choice: UInt64s,
    losses: Float64s,
) -> None:
    """Writes the loss of log likelihood of the text without each of the pieces `first` to `last`.

    `counts` are those of the best paths and `total` is their sum. Without the piece, its uses are replaced by the best
    segmentation of its own bytes (at `places`) into other pieces. The loss is -inf if that segmentation is more
    probable than the piece, or if the piece is in no best path: nothing is lost; it is +inf if there is no such
    segmentation. `best` and `choice` have room for 256 numbers.
    """
    end_of_chain = np.uint64(chains.size - 1)
    for number in range(first, last):
        whole = np.uint64(number)
        length = np.int64(chains[whole] & _LENGTH)
        count = counts[whole]
        best[length] = 0.0
        for index in range(length - 1, -1, -1):
            score = -np.inf
            chosen = end_of_chain
            piece = np.uint64(longest_piece_at[places[whole] + index])
            while piece != end_of_chain:
                link = chains[piece]
                end = index + np.int64(link & _LENGTH)
                if end <= length and piece != whole:
                    path = log_probs[piece] + best[end]
                    if path > score:
                        score = path
                        chosen = piece
                piece = np.uint64(link >> _PARENT)
            best[index] = score
            choice[index] = chosen
        if choice[0] == end_of_chain:
            losses[whole] = np.inf
            continue
        if count == 0 or best[0] > log_probs[whole]:
            losses[whole] = -np.inf
            continue
        parts = 0
        index = 0
        while index < length:
            parts += 1
            index += int(chains[choice[index]] & _LENGTH)
        log_total = math.log(total + count * (parts - 1))
        after = 0.0
        index = 0
        while index < length:
            after += math.log(np.float64(counts[choice[index]] + count)) - log_total
            index += int(chains[choice[index]] & _LENGTH)
        losses[whole] = count / total * (math.log(np.float64(count)) - math.log(total) - after)
