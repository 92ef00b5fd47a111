"""The tokenizer of a build for the pages: its pieces with their probabilities, and how often each is in the shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from finpile import storage
from finpile.explorer.beside import byte_pairs_of
from finpile.explorer.scan import Advance
from finpile.output.layout import Layout
from finpile.tokens.store import SHARD_SUFFIX, TokenStore
from finpile.tokens.tokenizer_files import USED_FILE
from finpile.tokens.tokenizers.kinds.finpile import TOKENIZER_FILE, OwnTokenizer
from finpile.tokens.tokenizers.opening import open_build_tokenizer
from finpile.tokens.tokenizers.protocol import Tokenizer

#: Tokens that are counted at a time.
_AT_ONCE = 1 << 22


def vocabulary(layout: Layout, advance: Advance = lambda amount: None) -> dict[str, Any] | None:
    """Pieces by id, with a character for each byte, so that any bytes are JSON; their natural log probabilities, which
    a parser reads back as the same numbers; and their occurrences in the shards of training tokens.

    Of a tokenizer that was not trained, instead of probabilities what the pages need to encode with it (`encoder`),
    null if they cannot; its special tokens have no piece. None if the build has no tokenizer.
    """
    if not any(storage.is_file(storage.join(layout.tokenizer, name)) for name in (TOKENIZER_FILE, USED_FILE)):
        return None
    tokenizer = open_build_tokenizer(layout, is_checked=True)
    found = _own(tokenizer) if isinstance(tokenizer, OwnTokenizer) else _other(tokenizer)
    counts = _counts(layout, tokenizer.vocab_size, advance)
    return {**found, "counts": None if counts is None else counts.tolist()}


def _own(tokenizer: OwnTokenizer) -> dict[str, Any]:
    own = tokenizer.vocabulary
    return {
        "pieces": [piece.decode("latin-1") for piece in own.pieces.to_pylist()],
        "log_probs": own.log_probs.tolist(),
        "eot_id": own.eot_id,
        "num_models": None if own.num_models is None else own.num_models.tolist(),
    }


def _other(tokenizer: Tokenizer) -> dict[str, Any]:
    names = tokenizer.control_ids
    return {
        "pieces": ["" if at in names else piece.decode("latin-1") for at, piece in enumerate(tokenizer.pieces)],
        "log_probs": None,
        "eot_id": tokenizer.eot_id,
        "num_models": None,
        "encoder": byte_pairs_of(tokenizer),
    }


def _counts(layout: Layout, size: int, advance: Advance) -> npt.NDArray[np.int64] | None:
    """How often each id is in the training shards; None if there are none."""
    folder = storage.join(layout.tokens, "split=train")
    try:
        if not any(name.endswith(SHARD_SUFFIX) for name in storage.list_files(folder)):
            return None
    except FileNotFoundError:
        return None
    counts = np.zeros(size, np.int64)
    for ids in TokenStore.open(folder).tokens():
        flat = np.asarray(ids)
        for start in range(0, len(flat), _AT_ONCE):
            part = flat[start : start + _AT_ONCE]
            counts += np.bincount(part, minlength=size)
            advance(part.nbytes)
    return counts
