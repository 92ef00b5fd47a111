"""Segmentations drawn at random: subword regularisation, with and without replacement.

A segmentation is drawn with a probability proportional to `P(segmentation) ** alpha`, P being the product of its
pieces' probabilities: alpha 1 is the model itself, 0 makes all segmentations equally likely, and the larger alpha is,
the nearer `encode`. Pretokens are independent. Nothing is truncated to n-best lists, and no draw depends on another.

Source: Kudo, ACL 2018 (arXiv:1804.10959), section 3.2, whose alpha this is, with l = infinity (forward filtering and
backward sampling); Kool, van Hoof and Welling, ICML 2019 (arXiv:1903.06059).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, byte_buffers, list_array
from finpile_tokenizer.arrays.document_ranges import DocumentRange, map_ranges
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.pretokens.pretokenizer import PRETOKEN_CLASSES
from finpile_tokenizer.segmentations import _distinct_kernels, _segmentation_kernels
from finpile_tokenizer.trie.hashed import PieceIndex

#: With a larger alpha, rounding errors would decide: `encode` gives the best segmentation.
MAX_ALPHA = 1e6
_NUM_SEEDS = 1 << 64


@dataclass(frozen=True, kw_only=True, slots=True)
class DistinctSample:
    """One of k segmentations that were drawn without replacement."""

    ids: list[int]
    log_prob: float
    """The natural log of its probability under the distribution it was drawn from, `P ** alpha` normalised."""
    perturbed: float
    """`log_prob` plus a Gumbel number: the k largest of all are the sample. With `threshold` the smallest of the k, a
    segmentation is among the k - 1 above it with probability `1 - exp(-exp(log_prob - threshold))`."""


def sample(
    index: PieceIndex, text: bytes, alpha: float, seed: int | np.random.Generator, num_samples: int
) -> list[list[int]]:
    """See `UnigramTokenizer.sample`."""
    if num_samples < 0:
        raise TokenizerError(f"num_samples is {num_samples}: expected 0 or more")
    documents = DocumentRange(*byte_buffers(pa.array([text], pa.large_binary())), 0, 1, 0)
    ids, counts = _sample_range(index, documents, scaled(index, alpha), seed_number(seed), 0, num_samples)
    found: list[list[int]] = list_array([(ids, counts)]).to_pylist()
    return found


def sample_array(
    index: PieceIndex,
    texts: pa.Array | pa.ChunkedArray,
    alpha: float,
    seed: int | np.random.Generator,
    first_document: int,
    num_threads: int,
) -> pa.LargeListArray:
    """See `UnigramTokenizer.sample_array`."""
    if not 0 <= first_document < 1 << 62:
        raise TokenizerError(f"first_document is {first_document}: expected the number of the first text, from 0 on")
    scores, number = scaled(index, alpha), seed_number(seed)
    parts = map_ranges(lambda part: _sample_range(index, part, scores, number, first_document, 1), texts, num_threads)
    return list_array(parts)


def sample_without_replacement(
    index: PieceIndex, text: bytes, k: int, alpha: float, seed: int | np.random.Generator
) -> list[DistinctSample]:
    """See `UnigramTokenizer.sample_without_replacement`."""
    if k < 1:
        raise TokenizerError(f"k is {k}: expected 1 or more")
    _, data = byte_buffers(pa.array([text], pa.large_binary()))
    ids, counts, log_probs, perturbed = _distinct_kernels.sample_distinct(
        data[: len(text)],
        k,
        np.uint64(seed_number(seed)),
        PRETOKEN_CLASSES,
        index.units,
        index.pieces,
        index.piece_bytes,
        scaled(index, alpha),
        index.longest,
    )
    samples = zip(list_array([(ids, counts)]).to_pylist(), log_probs.tolist(), perturbed.tolist(), strict=True)
    return [DistinctSample(ids=one, log_prob=log_prob, perturbed=value) for one, log_prob, value in samples]


def scaled(index: PieceIndex, alpha: float) -> Float64s:
    """The log probabilities times `alpha`.

    Raises:
        TokenizerError: alpha is negative, not a number, or too large.
    """
    if not 0.0 <= alpha <= MAX_ALPHA:
        raise TokenizerError(
            f"alpha is {alpha}: expected 0 (all segmentations equally likely) to {MAX_ALPHA:g}; "
            "for the best one, use encode"
        )
    scores: Float64s = index.log_probs * alpha
    return scores


def seed_number(seed: int | np.random.Generator) -> int:
    """The seed itself, or the next 64 bits of a generator.

    Raises:
        TokenizerError: the seed is negative or has more than 64 bits.
    """
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(_NUM_SEEDS, dtype=np.uint64))
    if not 0 <= seed < _NUM_SEEDS:
        raise TokenizerError(f"seed is {seed}: expected 0 to 2^64 - 1, or a numpy.random.Generator")
    return int(seed)


def _sample_range(
    index: PieceIndex, part: DocumentRange, scores: Float64s, seed: int, first_document: int, num_samples: int
) -> tuple[Int32s, Int64s]:
    ids, counts = _segmentation_kernels.sample_documents(
        part.offsets,
        part.data,
        part.first,
        part.last,
        first_document + part.number,
        num_samples,
        np.uint64(seed),
        PRETOKEN_CLASSES,
        index.units,
        index.pieces,
        index.piece_bytes,
        scores,
        index.longest,
    )
    return ids, counts
