"""The warnings about a vocabulary, or models of chunks, that are smaller than requested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finpile.config.tokenizer import LEAST_ENTRIES


def shortfall(training: Mapping[str, Any], *, size: str, chunk_settings: str) -> str | None:
    """A warning if `training.json` has fewer entries than requested, else None.

    `size` and `chunk_settings` are the names of the settings in the remedy.
    """
    found, requested = training["vocab_size"], training["vocab_size_asked_for"]
    if found >= requested:
        return None
    text, remedy = "text", "add text"
    if "share_of_text" in training:
        text, remedy = "sample", "raise the sample"
    if found >= LEAST_ENTRIES:
        remedy += f" or lower {size} to {found}"
    if training["mode"] != "global":
        remedy += f", or raise {chunk_settings}"
    return f"the vocabulary has {found:,} of the {requested:,} entries requested, the {text} gives no more: {remedy}"


def short_chunks(training: Mapping[str, Any], *, size: str, chunks: str) -> str | None:
    """A warning if models of chunks have far fewer pieces than requested, else None; `training` is `training.json`.

    `size` and `chunks` are the names of the settings in the remedy.
    """
    if not training.get("short_chunks"):
        return None
    num_models, requested = training["chunk_models"], training["chunk_vocab_size"]
    remedy = "Raise the sample" if "share_of_text" in training else "Add text"
    return (
        f"{training['short_chunks']:,} of {num_models:,} models of chunks have less than a quarter of the "
        f"{requested:,} pieces requested, and all have {training['mean_chunk_pieces']:,} on average: their text gives "
        f"no more. {remedy}, or lower {chunks} or {size}"
    )
