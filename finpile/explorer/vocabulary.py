"""The tokenizer of a build for the pages: its pieces with their probabilities, and how often each is in the shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from finpile import storage
from finpile.explorer.scan import Advance
from finpile.output.layout import Layout
from finpile.tokens.store import SHARD_SUFFIX, TokenStore
from finpile.tokens.tokenizer_files import check_tokenizer, load_tokenizer

#: Tokens that are counted at a time.
_AT_ONCE = 1 << 22


def vocabulary(layout: Layout, advance: Advance = lambda amount: None) -> dict[str, Any] | None:
    """Pieces by id, with a character for each byte, so that any bytes are JSON; their natural log probabilities, which
    a parser reads back as the same numbers; and their occurrences in the shards of training tokens.

    None if the build has no tokenizer.
    """
    if not storage.is_file(storage.join(layout.tokenizer, "vocabulary.parquet")):
        return None
    check_tokenizer(layout)
    tokenizer = load_tokenizer(layout.tokenizer).vocabulary
    found = {
        "pieces": [piece.decode("latin-1") for piece in tokenizer.pieces.to_pylist()],
        "log_probs": tokenizer.log_probs.tolist(),
        "eot_id": tokenizer.eot_id,
        "num_models": None if tokenizer.num_models is None else tokenizer.num_models.tolist(),
    }
    counts = _counts(layout, tokenizer.vocab_size, advance)
    return {**found, "counts": None if counts is None else counts.tolist()}


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
