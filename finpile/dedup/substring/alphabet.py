"""The symbols by which texts are compared: their bytes, or their token ids."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from finpile_tokenizer import TokenizerError, UnigramTokenizer

from finpile import storage
from finpile.config import SubstringConfig
from finpile.dedup.substring.texts import Texts
from finpile.errors import ConfigError
from finpile.tokens.tokenizer_files import load_tokenizer


class Alphabet:
    """Symbols that are bytes, or the tokens of the tokenizer in a folder."""

    def __init__(self, tokenizer: str | None) -> None:
        self._tokenizer = tokenizer

    @property
    def widths(self) -> npt.NDArray[np.int64]:
        """The length of each symbol in bytes."""
        return np.ones(256, np.int64) if self._tokenizer is None else _open(self._tokenizer)[1]

    def symbols(self, texts: pa.ChunkedArray) -> Texts:
        """Texts as documents of these symbols."""
        if self._tokenizer is None:
            return Texts.of_bytes(texts)
        tokenizer, widths = _open(self._tokenizer)
        return Texts.of_tokens(texts, tokenizer.encode_array(texts), widths)

    def digest(self) -> str:
        """Identifies the alphabet by its content; empty for bytes."""
        if self._tokenizer is None:
            return ""
        return storage.digest_of(storage.join(self._tokenizer, "tokenizer.json"))


def open_alphabet(config: SubstringConfig, root: str) -> Alphabet:
    """The symbols that a setting names; a tokenizer's folder is relative to `root`.

    Raises: ConfigError if no tokenizer can be read there.
    """
    if config.tokenizer is None:
        return Alphabet(None)
    folder = storage.below(root, config.tokenizer)
    try:
        _open(folder)
    except (TokenizerError, OSError) as error:
        raise ConfigError(
            f"substring.tokenizer: {error}; name a folder that `finpile tokenizer train` or a build wrote"
        ) from error
    return Alphabet(folder)


@lru_cache(maxsize=1)
def _open(folder: str) -> tuple[UnigramTokenizer, npt.NDArray[np.int64]]:
    tokenizer = load_tokenizer(folder)
    return tokenizer, tokenizer.piece_lengths(np.arange(tokenizer.vocab_size))
