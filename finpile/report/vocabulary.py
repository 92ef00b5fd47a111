"""The warning about a vocabulary that is smaller than requested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def shortfall(training: Mapping[str, Any], *, size: str, chunk_settings: str) -> str | None:
    """A warning if `training.json` has fewer entries than requested, else None.

    `size` and `chunk_settings` are the names of the settings in the remedy.
    """
    found, requested = training["vocab_size"], training["vocab_size_asked_for"]
    if found >= requested:
        return None
    remedy = f"add text or lower {size} to {found}"
    if training["mode"] != "global":
        remedy += f", or raise {chunk_settings}"
    return f"the vocabulary has {found:,} of the {requested:,} entries requested, the text gives no more: {remedy}"
