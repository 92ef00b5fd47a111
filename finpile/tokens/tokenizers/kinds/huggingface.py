"""Tokenizers of Hugging Face: `tokenizer.json` with BPE, Unigram, WordPiece or whole words."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from finpile.errors import InputError
from finpile.plugins.tokenizer import TokenizerKind
from finpile.tokens.tokenizers.library import LibraryTokenizer, bytes_of_characters
from finpile.tokens.tokenizers.protocol import I64

SPACE_MARK = "▁"
#: How a vocabulary of text writes a piece of one byte.
_BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")
#: Decoders that put nothing between pieces; without a decoder, and by that of WordPiece, there are spaces.
_JOINING = ("ByteLevel", "Metaspace", "Fuse")
_PARALLELISM = "TOKENIZERS_PARALLELISM"


class HuggingFaceTokenizer(LibraryTokenizer):
    """A `tokenizers.Tokenizer`."""

    def __init__(self, name: str, tokenizer: Any) -> None:
        super().__init__(name)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        if getattr(tokenizer.model, "dropout", None):
            tokenizer.model.dropout = None  # it draws merges at random
        self._tokenizer = tokenizer
        self.settings: dict[str, Any] = json.loads(tokenizer.to_str())
        """The tokenizer as `tokenizer.json` has it."""
        self._added = tokenizer.get_added_tokens_decoder()
        self.unknown_id = self._unknown()
        self.lossless = True if self._is_of_bytes() else None
        decoder = json.dumps(self.settings["decoder"])
        self.joins_pieces = any(f'"{kind}"' in decoder for kind in _JOINING)

    @cached_property
    def vocab_size(self) -> int:
        return max(self._tokenizer.get_vocab().values(), default=0) + 1

    def encode_texts(self, texts: Sequence[str], num_threads: int) -> Sequence[Sequence[int]]:
        # The library reads the variable at each call; unless it is set, a fork after a call is a warning.
        os.environ[_PARALLELISM] = "true" if num_threads > 1 else "false"
        return [one.ids for one in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode_texts(self, ids: Sequence[Sequence[int]]) -> list[str]:
        decoded: list[str] = self._tokenizer.decode_batch(ids, skip_special_tokens=False)
        return decoded

    @cached_property
    def control_ids(self) -> frozenset[int]:
        unknown = () if self.unknown_id is None else (self.unknown_id,)
        return frozenset([*unknown, *(index for index, token in self._added.items() if token.special)])

    def pieces_of(self, token: str) -> Sequence[int]:
        found = self._tokenizer.token_to_id(token)
        return () if found is None else (found,)

    def piece(self, token_id: int) -> bytes:
        shown: str = self._tokenizer.id_to_token(token_id) or ""
        if token_id in self._added:
            return shown.encode()
        if self._byte_of and self._byte_of.keys() >= set(shown):
            return bytes(map(self._byte_of.__getitem__, shown))
        if self.settings["model"].get("byte_fallback") and _BYTE_PIECE.fullmatch(shown):
            return bytes.fromhex(shown[3:5])
        return (shown.replace(SPACE_MARK, " ") if SPACE_MARK in shown else self.decode_texts([[token_id]])[0]).encode()

    def to_json(self) -> bytes:
        """The content of a `tokenizer.json` that gives a text the ids of `encode`, without start and end tokens."""
        return str(self._untrimmed.to_str(pretty=True)).encode()

    def library_spans(self, text: str) -> I64:
        encoded = self._untrimmed.encode(text, add_special_tokens=False)
        spans = bytes_of_characters(text, np.array(encoded.offsets, np.int64))
        # The library gives a space that it puts before a text, or after an added token, the character that follows.
        begins = spans[1:, 0] == spans[:-1, 0]
        begins[1:] &= spans[:-2, 1] <= spans[1:-1, 0]  # other spaces are made of a character, as of a ligature
        for at in np.flatnonzero(begins).tolist():
            if self.pieces[encoded.ids[at]].isspace():
                spans[at, 1] = spans[at, 0]
        return spans

    @cached_property
    def _untrimmed(self) -> Any:
        """The tokenizer without its post-processor, which adds start and end tokens and trims offsets."""
        from tokenizers import Tokenizer

        found = Tokenizer.from_str(json.dumps({**self.settings, "post_processor": None}))
        found.encode_special_tokens = True
        return found

    @cached_property
    def _byte_of(self) -> dict[str, int]:
        """The byte of each character of a byte-level vocabulary; empty if the vocabulary is of text."""
        from finpile_tokenizer.export import byte_alphabet

        if '"ByteLevel"' not in json.dumps([self.settings["pre_tokenizer"], self.settings["decoder"]]):
            return {}
        return {character: byte for byte, character in byte_alphabet().items()}

    def _is_of_bytes(self) -> bool:
        """Whether each text is the bytes of its ids: nothing is normalised, added, or unknown."""
        model, steps = self.settings["model"], self.settings["pre_tokenizer"] or {}
        parts = steps.get("pretokenizers", [steps])
        return (
            model["type"] == "BPE"
            and not self.settings["normalizer"]
            and parts[-1].get("type") == "ByteLevel"
            and not any(part.get("add_prefix_space") for part in parts)
            and all(part.get("type") in ("ByteLevel", "Digits") or part.get("behavior") == "Isolated" for part in parts)
            and not any(token.lstrip or token.rstrip for token in self._added.values())
            and not model.get("continuing_subword_prefix")
            and not model.get("end_of_word_suffix")
            and '"ByteLevel"' in json.dumps(self.settings["decoder"])
            and self._byte_of.keys() <= model["vocab"].keys()
        )

    def _unknown(self) -> int | None:
        model = self.settings["model"]
        if model.get("unk_id") is not None:
            return int(model["unk_id"])
        token = model.get("unk_token")
        found = None if token is None else self._tokenizer.token_to_id(token)
        return None if found is None else int(found)


def _find(path: Path) -> Sequence[Path]:
    if path.is_file() and path.suffix == ".json":
        return [path]
    return [path / "tokenizer.json"] if (path / "tokenizer.json").is_file() else ()


def _open(files: Sequence[Path], name: str, pattern: str | None) -> HuggingFaceTokenizer:
    from tokenizers import Tokenizer

    try:
        return HuggingFaceTokenizer(name, Tokenizer.from_file(str(files[0])))
    except Exception as error:  # the library raises nothing narrower
        raise InputError(f"{files[0]}: is not a tokenizer of Hugging Face: {error}") from error


KIND = TokenizerKind(
    name="huggingface",
    looked_for="tokenizer.json (Hugging Face)",
    find=_find,
    open=_open,
    order=30,
    published=("tokenizer.json",),
    library="tokenizers",
)
