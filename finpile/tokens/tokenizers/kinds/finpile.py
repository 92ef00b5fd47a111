"""The tokenizer of FinPile: `vocabulary.parquet` beside its `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from finpile_tokenizer import TokenizerError, UnigramTokenizer, Vocabulary
from finpile_tokenizer.export import TOKENIZER_FILE, VOCABULARY_FILE
from finpile_tokenizer.model import END_OF_TEXT

from finpile.errors import ConfigError, InputError
from finpile.plugins.tokenizer import TokenizerKind
from finpile.tokens.tokenizers.protocol import I64, Losses, Measured


class OwnTokenizer:
    """A trained FinPile tokenizer, which is lossless for every byte string."""

    lossless: bool | None = True

    def __init__(self, name: str, tokenizer: UnigramTokenizer) -> None:
        self.name = name
        self._tokenizer = tokenizer

    @property
    def vocabulary(self) -> Vocabulary:
        return self._tokenizer.vocabulary

    @property
    def vocab_size(self) -> int:
        return self._tokenizer.vocab_size

    @property
    def eot_id(self) -> int:
        return self._tokenizer.eot_id

    @cached_property
    def pieces(self) -> tuple[bytes, ...]:
        return (*self._tokenizer.vocabulary.pieces.to_pylist(), END_OF_TEXT.encode())

    @property
    def log_probs(self) -> npt.NDArray[np.float64]:
        """Natural logarithms, of each piece but the end of text."""
        found: npt.NDArray[np.float64] = self._tokenizer.vocabulary.log_probs
        return found

    @property
    def control_ids(self) -> frozenset[int]:
        return frozenset([self._tokenizer.eot_id])

    @cached_property
    def token_sizes(self) -> I64:
        sizes = self._tokenizer.piece_lengths(np.arange(self.vocab_size))
        sizes[self.eot_id] = 0
        return sizes

    def ends_with(self, token: str) -> None:
        """Raises: ConfigError for another token than that of all tokenizers of FinPile."""
        if token not in self.control_names():
            raise ConfigError(
                f"tokenizer.end_of_document is {token!r}: a tokenizer of FinPile has {self.control_names()[0]}"
            )

    def control_names(self) -> list[str]:
        return [self.pieces[self.eot_id].decode()]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = self._tokenizer.encode_array(pa.array(texts, pa.large_string())).to_pylist()
        return ids

    def encode_array(self, texts: pa.Array | pa.ChunkedArray, num_threads: int = 1) -> pa.LargeListArray:
        return self._tokenizer.encode_array(texts, num_threads)

    def losses(self, texts: pa.Array | pa.ChunkedArray, ids: pa.LargeListArray) -> Losses:
        return Losses()

    def spans(self, text: str) -> I64:
        _, pairs = self._tokenizer.encode_with_offsets(text)
        return np.array(pairs, np.int64).reshape(-1, 2)

    def decode(self, ids: Iterable[int]) -> bytes:
        return self._tokenizer.decode(ids)

    def measure(self, texts: pa.Array) -> Measured:
        encoded = self._tokenizer.encode_array(texts)
        return Measured(
            tokens=np.diff(encoded.offsets.to_numpy()).astype(np.int64),
            num_whitespace=int(self._whitespace[encoded.values.to_numpy()].sum()),
        )

    def count(self, texts: pa.Array) -> I64:
        return np.asarray(self._tokenizer.count_tokens(texts), dtype=np.int64)

    @cached_property
    def _whitespace(self) -> npt.NDArray[np.bool_]:
        return np.array([piece.decode(errors="replace").isspace() for piece in self.pieces])


def _find(path: Path) -> Sequence[Path]:
    if path.name == VOCABULARY_FILE and path.is_file():
        return _find(path.parent)
    if not (path / VOCABULARY_FILE).is_file():
        return ()
    return [path / name for name in (TOKENIZER_FILE, VOCABULARY_FILE) if (path / name).is_file()]


def _open(files: Sequence[Path], name: str, pattern: str | None) -> OwnTokenizer:
    folder = files[0].parent
    try:
        return OwnTokenizer(name, UnigramTokenizer.load(folder))
    except TokenizerError as error:
        raise InputError(f"{folder}: is not a tokenizer of FinPile: {error}") from error


KIND = TokenizerKind(
    name="finpile", looked_for="a folder with vocabulary.parquet (FinPile)", find=_find, open=_open, order=10
)
