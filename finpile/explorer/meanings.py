"""What the reasons of ledger rows mean, for the pages."""

from __future__ import annotations

from finpile.clean.stage.clean import REASONS as CLEAN
from finpile.plugins.filter import FILTERS
from finpile.plugins.format import FORMATS
from finpile.sources import REASONS as INGEST

_CUTS = {
    "nothing_left": "a text of which nothing was left",
    "too_short_after_cuts": "a text with fewer than `min_chars` characters after cuts",
    "duplicate_after_cuts": "a text, cut or not, that equals the remaining text of another document, which is kept",
}
#: By stage and reason.
_DEDUP = {
    "takedown": {"taken_down": "a document that was taken down; there is no text"},
    "exact": {"exact_duplicate": "a text equal to a kept one"},
    "templates": {"template": "lines that earlier documents of the group have", **_CUTS},
    "near": {"near_duplicate": "a text with nearly the same words as a kept text"},
    "substring": {"repeated_text": "a passage that occurs elsewhere too", **_CUTS},
    "overlap": {"heldout_overlap": "a held-out text that shares text with a training document"},
    "contamination": {"contamination": "a text that contains an item of an evaluation set"},
}


def meaning(stage: str, reason: str) -> str:
    """What a row of this stage with this reason is about; empty for a reason of another package."""
    if stage == "ingest":
        own = (FORMATS.get(name).reasons for name in FORMATS.built_in)
        return next((found[reason] for found in (INGEST, *own) if reason in found), "")
    if stage == "clean":
        rules = (FILTERS.get(name).reasons for name in FILTERS.built_in)
        return next((found[reason] for found in (CLEAN, *rules) if reason in found), "")
    return _DEDUP.get(stage, {}).get(reason, "")
