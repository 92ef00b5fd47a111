"""How often the mixture of a corpus file puts text into the stream of tokens, before any token is counted.

The tokens of a row are taken to be in proportion to its text. Each document is taken to be the only one of its kind, so
that factors by `num_copies` are those of 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from finpile.config import CorpusConfig
from finpile.config.mixture import Row, weights
from finpile.tokens.copies import classes_of, need_counts, with_shares


@dataclass(frozen=True, kw_only=True, slots=True)
class Copies:
    """The copies of the text of a corpus."""

    per_text: float = 1.0
    """Bytes of all copies by bytes of text."""
    are_counted: bool = False
    """Whether `tokens` has a pass that counts tokens first."""


def planned_copies(config: CorpusConfig, text_bytes: Mapping[Row, float]) -> Copies:
    """The copies of rows with these sizes. Raises: RunError for a share of the mixture that no text can have."""
    text = sum(text_bytes.values())
    if config.mixture is None or not text:
        return Copies()
    of_rows = weights(config.mixture, config.rows)
    classes = classes_of(of_rows)
    sizes = [round(text_bytes.get(entry.row, 0.0)) if entry.least == 1 else 0 for entry in classes]
    weighted = with_shares(classes, of_rows, sizes)
    copied = sum(float(entry.weight or 0) * size for entry, size in zip(weighted, sizes, strict=True))
    return Copies(per_text=copied / text, are_counted=need_counts(classes))
