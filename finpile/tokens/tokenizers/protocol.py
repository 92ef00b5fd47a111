"""The interface of all tokenizers: that of FinPile, and those of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Losses:
    """What the ids of texts do not have of them."""

    num_unknown: int = 0
    """Unknown tokens: text that the vocabulary cannot represent."""
    num_altered: int = 0
    """Texts that differ after decoding, compared byte for byte."""

    def __add__(self, other: Losses) -> Losses:
        return Losses(
            num_unknown=self.num_unknown + other.num_unknown, num_altered=self.num_altered + other.num_altered
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured(Losses):
    """The result of encoding some texts."""

    tokens: I64
    """Tokens of each text, without start and end tokens."""
    num_whitespace: int = 0
    """Tokens that consist of white space."""


class CountingTokenizer(Protocol):
    """The interface of a tokenizer for `finpile.report.table3`."""

    @property
    def name(self) -> str: ...

    @property
    def vocab_size(self) -> int:
        """The largest id plus 1."""
        ...

    @property
    def lossless(self) -> bool | None:
        """Whether decoding inverts encoding for every text; None if that must be measured."""
        ...

    def measure(self, texts: pa.Array) -> Measured:
        """Tokens of each text of a large_string array, and the losses."""
        ...

    def count(self, texts: pa.Array) -> I64:
        """Tokens of each text of a large_string array."""
        ...


class OpenTokenizer(CountingTokenizer, Protocol):
    """A tokenizer that also shows its tokens, for `finpile.report.neox_tables`."""

    @property
    def pieces(self) -> Sequence[bytes]:
        """The UTF-8 bytes of each id's text, in order of ids; of a control token, its name."""
        ...

    @property
    def control_ids(self) -> frozenset[int]:
        """Ids that are no text: ends of documents, padding, unknown text."""
        ...

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without start and end tokens."""
        ...


class Tokenizer(OpenTokenizer, Protocol):
    """A tokenizer of token shards. `eot_id` ends every document, and is in the ids of no text."""

    @property
    def eot_id(self) -> int: ...

    def ends_with(self, token: str) -> None:
        """Makes a token, by its name, the one that ends documents. Raises: ConfigError if a text can have it."""
        ...

    def control_names(self) -> list[str]:
        """The names of `control_ids`."""
        ...

    @property
    def token_sizes(self) -> I64 | None:
        """The bytes of each id, 0 of `eot_id`, if every text is the bytes of its ids; else None."""
        ...

    def encode_array(self, texts: pa.Array | pa.ChunkedArray, num_threads: int = 1) -> pa.LargeListArray:
        """The ids of each text, as large_list<int32>; the same for any number of threads."""
        ...

    def losses(self, texts: pa.Array | pa.ChunkedArray, ids: pa.LargeListArray) -> Losses:
        """Those of texts and their ids."""
        ...

    def spans(self, text: str) -> I64:
        """The first and the last byte (exclusive) of each id in the text, [N, 2], in the order of its ids.

        A token of a part of a character has these bytes alone. Text that a normaliser removes is in no token; text
        that it makes of a character, and unknown text, has the bytes of the characters that it was made of.
        """
        ...

    def decode(self, ids: Iterable[int]) -> bytes: ...
