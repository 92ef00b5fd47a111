"""HF tokenizers' encoder over one of our vocabularies, on one thread."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # read by each batch call

from finpile_tokenizer import Vocabulary
from finpile_tokenizer.export import tokenizer_json
from tokenizers import Encoding, Tokenizer


def hf_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """The tokenizer of our `tokenizer.json`, to which a literal `<|endoftext|>` in a text is text."""
    tokenizer = Tokenizer.from_str(tokenizer_json(vocabulary).decode())
    tokenizer.encode_special_tokens = True
    return tokenizer


def prepared(tokenizer: Tokenizer, strings: list[str]) -> Callable[[], list[Any]]:
    """What encodes the strings when called, in its fastest documented mode."""
    return lambda: tokenizer.encode_batch_fast(strings, add_special_tokens=False)


def ids_of(encodings: list[Encoding]) -> list[list[int]]:
    """The ids of each text."""
    return [encoding.ids for encoding in encodings]
