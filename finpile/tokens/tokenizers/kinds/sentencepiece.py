"""SentencePiece models: one `.model` file, with its own normaliser."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from finpile.errors import InputError
from finpile.plugins.tokenizer import TokenizerKind
from finpile.tokens.tokenizers.library import Ids, LibraryTokenizer, find_file
from finpile.tokens.tokenizers.protocol import I64

_SPACE_MARK = "▁"


class SentencePieceTokenizer(LibraryTokenizer):
    """A `sentencepiece.SentencePieceProcessor`."""

    def __init__(self, name: str, processor: Any) -> None:
        super().__init__(name)
        self._processor = processor
        self.unknown_id = int(processor.unk_id())

    @property
    def vocab_size(self) -> int:
        return int(self._processor.get_piece_size())

    def encode_texts(self, texts: Sequence[str], num_threads: int) -> Sequence[Ids]:
        encoded: list[Ids] = self._processor.encode(list(texts), return_type="numpy", num_threads=num_threads)
        return encoded

    def decode_texts(self, ids: Sequence[Sequence[int]]) -> list[str]:
        decoded: list[str] = self._processor.decode(list(ids)) if ids else []
        return decoded

    @cached_property
    def control_ids(self) -> frozenset[int]:
        of = self._processor
        return frozenset(i for i in range(self.vocab_size) if of.is_control(i) or of.is_unknown(i) or of.is_unused(i))

    def pieces_of(self, token: str) -> Sequence[int]:
        found = int(self._processor.piece_to_id(token))
        return () if found == self.unknown_id else (found,)

    def piece(self, token_id: int) -> bytes:
        shown: str = self._processor.id_to_piece(token_id)
        if self._processor.is_byte(token_id):
            return bytes.fromhex(shown[3:5])
        return shown.replace(_SPACE_MARK, " ").encode()

    def library_spans(self, text: str) -> I64:
        # Of the tokens that are made of one character, the library gives it to the last one.
        data = text.encode()
        [found] = self._processor.encode([text], return_type="offset_mapping", return_bytes=True)
        spans: I64 = np.array(found["offsets"], np.int64).reshape(-1, 2)
        for at in range(len(spans) - 2, -1, -1):
            begin, end = spans[at]
            if end == spans[at + 1, 0] and not data[begin:end].strip() and self.pieces[found["ids"][at]].strip():
                spans[at, 1] = spans[at + 1, 1]
        return spans


def _open(files: Sequence[Path], name: str, pattern: str | None) -> SentencePieceTokenizer:
    from sentencepiece import SentencePieceProcessor

    try:
        return SentencePieceTokenizer(name, SentencePieceProcessor(model_file=str(files[0])))
    except (RuntimeError, OSError) as error:
        raise InputError(f"{files[0]}: is not a model of SentencePiece: {error}") from error


KIND = TokenizerKind(
    name="sentencepiece",
    looked_for="a .model file (SentencePiece)",
    find=partial(find_file, suffix=".model"),
    open=_open,
    order=40,
    library="sentencepiece",
)
