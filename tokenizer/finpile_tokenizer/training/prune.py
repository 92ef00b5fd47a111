"""Pruning: drops the pieces whose absence costs the least likelihood of the text.

Source: Kudo, "Subword Regularization" (arXiv:1804.10959), section 3.2; the loss is the approximation of
SentencePiece's unigram trainer, in which a dropped piece's uses all go to the best segmentation of its own bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from finpile_tokenizer.arrays.buffers import Float64s, Int64s
from finpile_tokenizer.arrays.threads import map_threads, share_among_threads
from finpile_tokenizer.training import _lattice_kernels
from finpile_tokenizer.training.lattice import Lattices

#: Pieces are handed to threads in ranges of this many.
_RANGE_PIECES = 1 << 14


def best_path_counts(lattices: Lattices, log_probs: Float64s, num_threads: int = 1) -> Int64s:
    """How often each piece is used in the most probable segmentation of the text. Counts of parts of a text add up."""
    room = lattices.longest_pretoken + 1
    longest_piece_at, chains = lattices.longest_piece_at.view(np.uint32), lattices.chains
    scores = np.append(log_probs, -np.inf)

    def work(supply: Iterable[tuple[int, int]]) -> Int64s:
        counts = np.zeros(len(log_probs), np.int64)
        best, choice = np.zeros(room), np.empty(room, np.uint64)
        for block in supply:
            _lattice_kernels.best_path_counts(
                lattices.offsets, lattices.frequencies, *block, longest_piece_at, chains, scores, best, choice, counts
            )
        return counts

    shares = share_among_threads(work, lattices.blocks(), num_threads)
    return sum(shares[1:], start=shares[0])


def removal_losses(
    lattices: Lattices, places: Int64s, log_probs: Float64s, path_counts: Int64s, num_threads: int = 1
) -> Float64s:
    """For each piece, the loss without it of the text's mean log likelihood per piece used.

    `places` are positions in the lattices at which the pieces occur. With f a piece's count and S the sum of all, its
    best segmentation without itself being `alt`:

        f/S x (log f/S - sum over j in alt of log((f_j + f) / (S + f (|alt| - 1))))

    +inf: no other pieces can replace it; -inf: it is in no best path, or the others are more probable than it.
    """
    losses = np.empty(len(log_probs), np.float64)
    total = float(path_counts.sum())
    longest_piece_at, chains = lattices.longest_piece_at.view(np.uint32), lattices.chains

    def work(pieces: range) -> None:
        _lattice_kernels.removal_losses(
            pieces.start,
            pieces.stop,
            longest_piece_at,
            chains,
            places,
            log_probs,
            path_counts,
            total,
            np.empty(256),
            np.empty(256, np.uint64),
            losses,
        )

    firsts = range(0, len(losses), _RANGE_PIECES)
    map_threads(work, [range(first, min(first + _RANGE_PIECES, len(losses))) for first in firsts], num_threads)
    return losses


def kept_by_loss(losses: Float64s, num_kept: int, num_least: int = 0) -> npt.NDArray[np.bool_]:
    """The pieces of the greatest losses, at most `num_kept`, and those that no others can replace; of equal losses, the
    lower number is kept. Pieces of loss -inf are kept only if there would be fewer than `num_least` otherwise."""
    kept: npt.NDArray[np.bool_] = losses == np.inf
    num_useful = int((losses > -np.inf).sum())
    limit = max(min(num_kept, num_useful), min(num_kept, num_least), int(kept.sum()))
    kept[np.argsort(-losses, kind="stable")[:limit]] = True
    return kept
