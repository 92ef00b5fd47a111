"""The keys `tokenizer` and `tokens` of the corpus file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from finpile.config import bounds
from finpile.config.limits import size_bytes
from finpile.errors import ConfigError

#: Less text trains no useful vocabulary.
_LEAST_SAMPLE = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerConfig:
    """The Unigram tokenizer, BloombergGPT §2.3."""

    mode: Literal["split-merge", "refit", "global"] = "split-merge"
    """`split-merge`: the average of one model per chunk, as in the paper; `refit`: followed by EM on all text;
    `global`: one model of all text, without chunks."""
    vocab_size: int = 131_072
    """Number of entries: pieces, the 256 bytes and `<|endoftext|>`."""
    chunks: int | Literal["auto"] = "auto"
    """Chunks per domain, with one model each: 256 in the paper; `auto` gives every chunk enough text."""
    chunk_vocab_size: int = 65_536
    """Pieces of the model of a chunk (fewer if its text is too short)."""
    max_piece_bytes: int = 32
    """Length of the longest piece, in bytes."""
    train_on: tuple[str, ...] = ()
    """Datasets to train on (The Pile in the paper); empty: all."""
    sample: int | str = "10 GB"
    """Text to train on, in bytes or as `10 GB`: of a larger corpus, as large a part of each source, chosen by digest
    of the text; `all`: no limit."""

    def __post_init__(self) -> None:
        why = "each entry takes memory in the tokenizer and a row of a model's embedding"
        bounds.within("tokenizer.vocab_size", self.vocab_size, 258, bounds.MAX_ENTRIES, why)
        bounds.within("tokenizer.chunk_vocab_size", self.chunk_vocab_size, 258, bounds.MAX_ENTRIES, why)
        if self.chunks != "auto":
            why = "each chunk of a domain is a training and a file of its own"
            bounds.within("tokenizer.chunks", self.chunks, 1, bounds.MAX_CHUNKS, why)
        if not 2 <= self.max_piece_bytes <= 254:
            raise ConfigError(f"tokenizer.max_piece_bytes is {self.max_piece_bytes}: expected 2 to 254")
        size = self.sample_bytes
        if size is not None and size < _LEAST_SAMPLE:
            raise ConfigError(f"tokenizer.sample is {self.sample}: expected at least 1 KB, such as 10 GB, or all")

    @property
    def sample_bytes(self) -> int | None:
        """The text to train on at most; None: all."""
        return sample_bytes(self.sample)


def sample_bytes(sample: int | str) -> int | None:
    """A value of `tokenizer.sample` in bytes; None: all text.

    Raises: ConfigError if it is no size.
    """
    return None if sample == "all" else size_bytes("tokenizer.sample", sample)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokensConfig:
    """Token shards."""

    sequence_length: int = 2048
    """Tokens of one training sequence."""

    def __post_init__(self) -> None:
        why = "a sequence is one row, which a reader holds in memory"
        bounds.within("tokens.sequence_length", self.sequence_length, 2, bounds.MAX_SEQUENCE, why)
