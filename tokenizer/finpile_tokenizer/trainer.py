"""Trains the Unigram model of one chunk of text.

The engine is a function; `train_chunk` fixes what goes in and what comes out, so that engines can be exchanged.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from finpile_tokenizer._buffers import Float64s, order_by_bytes
from finpile_tokenizer.counts import PretokenCounts
from finpile_tokenizer.errors import EmptyCorpusError, TokenizerError
from finpile_tokenizer.sentencepiece_engine import MAX_PIECE_CHARACTERS, train_with_sentencepiece
from finpile_tokenizer.unigram import UnigramModel, log_normalized

#: Pieces of a chunk model. Source: BloombergGPT (arXiv:2303.17564), section 2.3.
CHUNK_VOCAB_SIZE = 65_536
DEFAULT_MAX_PIECE_BYTES = 16


class Engine(Protocol):
    """Learns about `vocab_size` pieces, each within one pretoken and of at most `max_piece_bytes`, and log weights for
    them, which need not be normalised. A byte that occurs and is not among them is added by `train_chunk`."""

    def __call__(
        self, counts: PretokenCounts, *, vocab_size: int, max_piece_bytes: int
    ) -> tuple[list[bytes], Float64s]: ...


def train_chunk(
    counts: PretokenCounts,
    *,
    vocab_size: int = CHUNK_VOCAB_SIZE,
    max_piece_bytes: int = DEFAULT_MAX_PIECE_BYTES,
    engine: Engine = train_with_sentencepiece,
) -> UnigramModel:
    """The Unigram model of the counted text: same counts, same bytes of the result.

    Every byte that occurs is a piece. A chunk with too little text for `vocab_size` pieces gets a smaller model.

    Raises:
        EmptyCorpusError: nothing was counted.
        TokenizerError: `vocab_size` has no room for the bytes that occur, or `max_piece_bytes` is out of range.
    """
    _check(counts, vocab_size, max_piece_bytes)
    learned = engine(counts, vocab_size=vocab_size, max_piece_bytes=max_piece_bytes)
    pieces, log_weights = _with_all_bytes(*learned, counts.distinct_bytes())
    array = pa.array(pieces, pa.large_binary())
    order = order_by_bytes(array)
    return UnigramModel(
        pieces=array.take(pa.array(order)),
        log_probs=log_normalized(log_weights[order]),
        num_models=np.ones(len(pieces), np.int64),
        num_bytes=counts.num_bytes,
    )


def _with_all_bytes(pieces: list[bytes], log_weights: Float64s, occurring: bytes) -> tuple[list[bytes], Float64s]:
    """The pieces and, with the smallest weight among them, the bytes that occur but that the engine left out."""
    missing = sorted({bytes([value]) for value in occurring} - set(pieces))
    return [*pieces, *missing], np.append(log_weights, np.full(len(missing), log_weights.min()))


def _check(counts: PretokenCounts, vocab_size: int, max_piece_bytes: int) -> None:
    if len(counts.pretokens) == 0:
        raise EmptyCorpusError("cannot train a tokenizer on no text: every text of this chunk is empty")
    num_distinct = len(counts.distinct_bytes())
    if vocab_size < num_distinct:
        raise TokenizerError(
            f"vocab_size is {vocab_size}, but {num_distinct} different bytes occur and each must be a piece: "
            f"ask for {num_distinct} or more"
        )
    if not 1 <= max_piece_bytes <= MAX_PIECE_CHARACTERS:
        raise TokenizerError(f"max_piece_bytes is {max_piece_bytes}: expected 1 to {MAX_PIECE_CHARACTERS}")
