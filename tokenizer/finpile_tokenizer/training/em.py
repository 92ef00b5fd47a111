"""Expectation and maximisation: the expected uses of the pieces, and the probabilities that follow from them.

Source: Kudo, "Subword Regularization" (arXiv:1804.10959), section 3.2; the digamma of the M-step is that of variational
Bayes with a sparse prior, as in Liang and Klein's tutorial "Structured Bayesian Nonparametric Models" (ACL 2007).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s
from finpile_tokenizer.arrays.threads import share_among_threads
from finpile_tokenizer.training import _lattice_kernels
from finpile_tokenizer.training.lattice import Lattices

#: A piece that is expected to be used less often is dropped. Source: SentencePiece, kExpectedFrequencyThreshold.
LEAST_EXPECTED = 0.5
#: Bits of the integers that expected counts are summed in; the sign and rounding take the rest.
_SUM_BITS = 62
#: No weight is larger than this power of e, which float64 still holds: sums of such weights are made in logarithms.
_LARGEST_LOG = 700.0


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Expectation:
    """How often each piece is expected to be used in a text. Expectations of parts of a text add up, exactly."""

    counts: Int64s
    """For each piece, in units of `1 / scale`."""
    scale: float
    log_likelihood: float
    """Natural logarithm of the text's probability, all segmentations together."""
    num_bytes: int

    @property
    def bits_per_byte(self) -> float:
        """The objective: the text's code length under the model."""
        return -self.log_likelihood / self.num_bytes / float(np.log(2))


def scale_for(num_bytes: int) -> float:
    """The unit of expected counts of a text: a power of two, with which the sums fit 64 bits whatever the text."""
    return float(2.0 ** (_SUM_BITS - num_bytes.bit_length()))


def expectation(
    lattices: Lattices, log_probs: Float64s, *, scale: float, tilt: float | None = None, num_threads: int = 1
) -> Expectation:
    """The E-step: forward and backward through each lattice; the same for any number of threads.

    `tilt` is `nats_per_byte` of the pieces, whose last bits depend on the order of the pieces.
    """
    tilt = nats_per_byte(log_probs, lattices.lengths) if tilt is None else tilt
    weights = np.append(np.exp(np.minimum(log_probs + tilt * lattices.lengths, _LARGEST_LOG)), 0.0)
    blocks, room = lattices.blocks(), lattices.longest_pretoken + 1
    longest_piece_at, chains = lattices.longest_piece_at.view(np.uint32), lattices.chains

    def work(supply: Iterable[int]) -> tuple[Int64s, dict[int, float]]:
        counts = np.zeros(len(chains), np.int64)
        alpha, beta = np.zeros(room), np.empty(room)
        return counts[:-1], {
            block: _lattice_kernels.expected_counts(
                lattices.offsets, lattices.frequencies, *blocks[block], longest_piece_at, chains, log_probs, weights,
                tilt, scale, alpha, beta, counts,
            )
            for block in supply
        }  # fmt: skip

    shares = share_among_threads(work, range(len(blocks)), num_threads)
    likelihoods = {block: value for _, by_block in shares for block, value in by_block.items()}
    return Expectation(
        counts=sum((counts for counts, _ in shares[1:]), start=shares[0][0]),
        scale=scale,
        log_likelihood=sum(likelihoods[block] for block in range(len(blocks))),
        num_bytes=lattices.num_bytes,
    )


def maximization(expected: Expectation, is_byte: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], Float64s]:
    """The M-step: `(which pieces are kept, log probabilities of those)`.

    Single bytes are kept, however rare, so that every text has a segmentation.
    """
    counts = expected.counts / expected.scale
    kept = is_byte | (counts >= LEAST_EXPECTED)
    counts = np.maximum(counts[kept], LEAST_EXPECTED)
    return kept, digamma(counts) - digamma(np.array([counts.sum()]))


def digamma(values: Float64s) -> Float64s:
    """The logarithmic derivative of the gamma function, for positive numbers, to about 1e-13 of its size or of 1.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 6.3.5 and 6.3.18.
    """
    shift = np.zeros_like(values)
    values = values.copy()
    for _ in range(_RECURRENCES):
        small = values < _RECURRENCES
        shift += small / values
        values += small
    square = 1 / (values * values)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    result: Float64s = np.log(values) - 0.5 / values - series - shift
    return result


#: From here on the asymptotic series is exact enough.
_RECURRENCES = 10


def nats_per_byte(log_probs: Float64s, lengths: Int32s | Int64s) -> float:
    """The entropy of a model with pieces of these lengths, near which the text's code length lies."""
    probs = np.exp(log_probs)
    return float(-(probs * log_probs).sum() / (probs * lengths).sum())
