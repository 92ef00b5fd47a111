"""Other tokenizers for the pages, which encode beside that of the build: FinPile's, and byte-level BPE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from finpile.errors import InputError
from finpile.tokens.tokenizers.kinds.finpile import OwnTokenizer
from finpile.tokens.tokenizers.kinds.huggingface import HuggingFaceTokenizer
from finpile.tokens.tokenizers.opening import open_tokenizer
from finpile.tokens.tokenizers.protocol import Tokenizer

#: Normalisers that the pages have.
_NORMALIZERS = (None, {"type": "NFC"})
#: Keys of a model of pairs that change its ids, and that the pages do not have.
_UNKNOWN_KEYS = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback")


def beside(paths: Sequence[str]) -> list[dict[str, Any]]:
    """What the pages need to encode as these tokenizers do; pieces have a character for each byte.

    Raises: InputError if there is no tokenizer, or one of a kind that the pages do not have.
    """
    return [_data(path) for path in paths]


def byte_pairs_of(tokenizer: Tokenizer) -> dict[str, Any] | None:
    """What the pages need to encode as the tokenizer of a build; None if they do not have its kind."""
    if not isinstance(tokenizer, HuggingFaceTokenizer) or _missing(tokenizer.settings):
        return None
    return _byte_pairs(tokenizer, tokenizer.settings)


def _data(path: str) -> dict[str, Any]:
    tokenizer = open_tokenizer(path)
    if isinstance(tokenizer, OwnTokenizer):
        return {"kind": "unigram", "name": tokenizer.name, **_unigram(tokenizer)}
    if isinstance(tokenizer, HuggingFaceTokenizer):
        settings = tokenizer.settings
        if not (missing := _missing(settings)):
            return {"kind": "byte_pairs", "name": tokenizer.name, **_byte_pairs(tokenizer, settings)}
        raise InputError(f"{path}: the pages do not encode with {missing}; name one of {_KNOWN}")
    raise InputError(f"{path}: the pages do not encode as SentencePiece and tiktoken do; name one of {_KNOWN}")


_KNOWN = "FinPile's tokenizers, or byte-level BPE with the pretokens of GPT-2, such as those of GPT-2 and GPT-NeoX"


def _unigram(tokenizer: OwnTokenizer) -> dict[str, Any]:
    return {
        "pieces": [piece.decode("latin-1") for piece in tokenizer.pieces],
        "log_probs": tokenizer.log_probs.tolist(),
    }


def _missing(settings: Mapping[str, Any]) -> str | None:
    """The first part of a `tokenizer.json` that the pages do not have; None if they have all."""
    model, pretokens = settings["model"], settings["pre_tokenizer"] or {}
    if model["type"] != "BPE" or pretokens.get("type") != "ByteLevel":
        return f"the model {model['type']} and pretokens of {pretokens.get('type', 'no kind')}"
    if pretokens.get("add_prefix_space") or not pretokens.get("use_regex", True):
        return "pretokens with a space before the text, or without the rule of GPT-2"
    if settings["normalizer"] not in _NORMALIZERS:
        return f"the normaliser {settings['normalizer']['type']}"
    if key := next((key for key in _UNKNOWN_KEYS if model.get(key)), None):
        return f"the setting {key}"
    bound = ("single_word", "lstrip", "rstrip")
    if any(token[key] for token in settings["added_tokens"] if not token["special"] for key in bound):
        return "added tokens that are words, or that take the white space beside them"
    return None


def _byte_pairs(tokenizer: HuggingFaceTokenizer, settings: Mapping[str, Any]) -> dict[str, Any]:
    model, added = settings["model"], settings["added_tokens"]
    ids: dict[str, int] = model["vocab"]
    pieces: list[str | None] = [None] * tokenizer.vocab_size
    names = {token["id"] for token in added if token["special"]}
    for number in ids.values():
        pieces[number] = None if number in names else tokenizer.piece(number).decode("latin-1")
    pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
    return {
        "pieces": pieces,
        "merges": [ids[name] for pair in pairs for name in pair],
        "added": [{"text": token["content"], "id": token["id"]} for token in added if not token["special"]],
        "classes": _character_classes(),
        "nfc": settings["normalizer"] is not None,
        "ignore_merges": bool(model.get("ignore_merges")),
    }


@lru_cache(maxsize=1)
def _character_classes() -> dict[str, list[int]]:
    """Letters, numbers and white space as the library has them, in ranges: first and last code point of each.

    A browser has those of another version of Unicode.
    """
    from tokenizers import Regex, normalizers

    points = np.r_[0:0xD800, 0xE000:0x110000].astype(np.uint32)  # without surrogates
    text = points.tobytes().decode("utf-32-le")
    found = {}
    for name, pattern in (("letters", r"\p{L}+"), ("numbers", r"\p{N}+"), ("blanks", r"\s+")):
        others = normalizers.Replace(Regex(pattern), "").normalize_str(text)
        members = np.setdiff1d(points, np.frombuffer(others.encode("utf-32-le"), np.uint32), assume_unique=True)
        firsts = np.flatnonzero(np.diff(members, prepend=members[0] - 2) != 1)
        lasts = np.append(firsts[1:], len(members)) - 1
        found[name] = np.stack([members[firsts], members[lasts]], axis=1).ravel().tolist()
    return found
