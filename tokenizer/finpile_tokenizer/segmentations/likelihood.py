"""The probability of a text under the Unigram model: the sum over all its segmentations."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Float64s
from finpile_tokenizer.arrays.document_ranges import DocumentRange, map_ranges
from finpile_tokenizer.pretokens.pretokenizer import PRETOKEN_CLASSES
from finpile_tokenizer.segmentations import _segmentation_kernels
from finpile_tokenizer.trie.hashed import PieceIndex


def log_likelihood(index: PieceIndex, texts: pa.Array | pa.ChunkedArray, num_threads: int) -> Float64s:
    """See `UnigramTokenizer.log_likelihood`."""
    weights = np.exp(index.log_probs)
    weights[weights < np.finfo(np.float64).tiny] = np.nan  # inexact in float64: its pretokens are summed in logarithms

    def work(part: DocumentRange) -> Float64s:
        values: Float64s = _segmentation_kernels.log_likelihood(
            part.offsets,
            part.data,
            part.first,
            part.last,
            PRETOKEN_CLASSES,
            index.units,
            index.pieces,
            index.log_probs,
            weights,
            index.longest,
        )
        return values

    parts = map_ranges(work, texts, num_threads)
    return np.concatenate(parts) if parts else np.zeros(0, np.float64)
