"""The keys `tokenizer` and `tokens` of the corpus file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from finpile.config import bounds
from finpile.config.limits import size_bytes
from finpile.errors import ConfigError

#: The bytes and `<|endoftext|>`, and one piece more.
LEAST_ENTRIES = 258
#: Less text trains no useful vocabulary.
_LEAST_SAMPLE = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerConfig:
    """The tokenizer: one that is there (`use`), or a Unigram model that is trained, BloombergGPT §2.3."""

    use: str | None = None
    """A tokenizer that is used instead of training one: a file or folder of Hugging Face (`tokenizer.json`),
    SentencePiece (`.model`), tiktoken (`.tiktoken`), GPT-2 (`vocab.json` and `merges.txt`) or FinPile, relative to
    `root`. The keys of training are not given beside it."""
    end_of_document: str | None = None
    """With `use`: the special token that ends each document; without it the first of `<|endoftext|>`, `</s>`,
    `<|end_of_text|>`, `<eos>`, `[SEP]` that the tokenizer has."""
    pattern: str | None = None
    """With `use` of a `.tiktoken` file: `r50k_base`, `p50k_base`, `cl100k_base`, `o200k_base` or a regular expression,
    by which text is cut into words; without it the name of the file decides."""
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
        self._check_use()
        why = "each entry takes memory in the tokenizer and a row of a model's embedding"
        bounds.within("tokenizer.vocab_size", self.vocab_size, LEAST_ENTRIES, bounds.MAX_ENTRIES, why)
        bounds.within("tokenizer.chunk_vocab_size", self.chunk_vocab_size, LEAST_ENTRIES, bounds.MAX_ENTRIES, why)
        if self.chunks != "auto":
            why = "each chunk of a domain is a training and a file of its own"
            bounds.within("tokenizer.chunks", self.chunks, 1, bounds.MAX_CHUNKS, why)
        if not 2 <= self.max_piece_bytes <= 254:
            raise ConfigError(f"tokenizer.max_piece_bytes is {self.max_piece_bytes}: expected 2 to 254")
        size = self.sample_bytes
        if size is not None and size < _LEAST_SAMPLE:
            raise ConfigError(f"tokenizer.sample is {self.sample}: expected at least 1 KB, such as 10 GB, or all")

    def _check_use(self) -> None:
        of_use = ("end_of_document", "pattern")
        for entry in fields(self):
            if entry.name == "use" or getattr(self, entry.name) == entry.default:
                continue
            if self.use is None and entry.name in of_use:
                raise ConfigError(f"tokenizer.{entry.name} is of a tokenizer that is used: give `use`, or remove it")
            if self.use is not None and entry.name not in of_use:
                raise ConfigError(f"tokenizer.{entry.name} is of a training, and `use` trains none: remove one of them")

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
