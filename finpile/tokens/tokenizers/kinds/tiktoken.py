"""Rank files of tiktoken: lines of a piece in Base64 and its rank, which is its id.

The pattern that cuts text into words is not in the file. It is that of the vocabulary of the file's name, or of
`tokenizer.pattern`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from finpile.errors import InputError
from finpile.plugins.tokenizer import TokenizerKind
from finpile.tokens.tokenizers.library import Ids, LibraryTokenizer, find_file
from finpile.tokens.tokenizers.protocol import I64

_END = "<|endoftext|>"
#: Patterns and special tokens of OpenAI's vocabularies.
#: Source: https://github.com/openai/tiktoken, tiktoken_ext/openai_public.py.
_GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_CASED = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_PATTERNS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "r50k_base": (_GPT2_PATTERN, {_END: 50_256}),
    "p50k_base": (_GPT2_PATTERN, {_END: 50_256}),
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
        r"\s+(?!\S)|\s",
        {
            _END: 100_257,
            "<|fim_prefix|>": 100_258,
            "<|fim_middle|>": 100_259,
            "<|fim_suffix|>": 100_260,
            "<|endofprompt|>": 100_276,
        },
    ),
    "o200k_base": (
        _CASED + r"*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        + _CASED + r"+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        {_END: 199_999, "<|endofprompt|>": 200_018},
    ),
}  # fmt: skip


class TiktokenTokenizer(LibraryTokenizer):
    """A `tiktoken.Encoding`, which is lossless for every text."""

    lossless = True

    def __init__(self, name: str, encoding: Any) -> None:
        super().__init__(name)
        self._encoding = encoding
        self._special: dict[str, int] = {
            token: encoding.encode_single_token(token) for token in encoding.special_tokens_set
        }

    @property
    def vocab_size(self) -> int:
        return int(self._encoding.n_vocab)

    @property
    def control_ids(self) -> frozenset[int]:
        return frozenset(self._special.values())

    def encode_texts(self, texts: Sequence[str], num_threads: int) -> Sequence[Ids]:
        if num_threads > 1:
            found: list[Ids] = self._encoding.encode_ordinary_batch(list(texts), num_threads=num_threads)
            return found
        return [self._encoding.encode_to_numpy(text, disallowed_special=()) for text in texts]

    def decode_texts(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return [str(self._encoding.decode(list(one))) for one in ids]

    def pieces_of(self, token: str) -> Sequence[int]:
        return [self._special[token]] if token in self._special else ()

    def piece(self, token_id: int) -> bytes:
        return self._all_pieces.get(token_id, b"")

    @cached_property
    def _all_pieces(self) -> dict[int, bytes]:
        special = {token_id: token.encode() for token, token_id in self._special.items()}
        pieces = self._encoding.token_byte_values()
        return {self._encoding.encode_single_token(piece): piece for piece in pieces} | special

    def library_spans(self, text: str) -> I64:
        sizes = [len(self.piece(token_id)) for token_id in self._encoding.encode_ordinary(text)]
        stops = np.cumsum(sizes, dtype=np.int64)
        return np.stack([stops - sizes, stops], axis=1)


def _open(files: Sequence[Path], name: str, pattern: str | None) -> TiktokenTokenizer:
    """Raises: InputError for a file of another form, or whose pattern is not known."""
    try:
        import tiktoken
    except ImportError as error:
        raise InputError(
            f'{files[0]}: needs tiktoken, which is not installed: pip install "finpile[tiktoken]"'
        ) from error
    known = pattern or files[0].stem
    ranks = _read(files[0])
    regex, special = _PATTERNS.get(known, (pattern, {_END: max(ranks.values()) + 1}))
    if regex is None:
        raise InputError(
            f"{files[0]}: the pattern that cuts text into words is not in the file, and its name is not one of "
            f"{', '.join(_PATTERNS)}: give `tokenizer.pattern`, one of these or a regular expression"
        )
    try:
        return TiktokenTokenizer(
            name, tiktoken.Encoding(name=name, pat_str=regex, mergeable_ranks=ranks, special_tokens=dict(special))
        )
    except (ValueError, KeyError) as error:
        raise InputError(f"{files[0]}: tiktoken does not read it with pattern {known!r}: {error}") from error


def _read(file: Path) -> dict[bytes, int]:
    try:
        rows = (line.split() for line in file.read_bytes().splitlines() if line)
        ranks = {base64.b64decode(piece, validate=True): int(rank) for piece, rank in rows}
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: is not a rank file of tiktoken: {error}") from error
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise InputError(f"{file}: is not a rank file of tiktoken: has no piece for the byte {missing[0]}")
    return ranks


KIND = TokenizerKind(
    name="tiktoken",
    looked_for="a .tiktoken file (tiktoken)",
    find=partial(find_file, suffix=".tiktoken"),
    open=_open,
    order=50,
    takes_pattern=True,
    library="tiktoken",
)
