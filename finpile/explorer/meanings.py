"""What the reasons of ledger rows mean, for the pages."""

from __future__ import annotations

from finpile.clean.stage.clean import REASONS as CLEAN
from finpile.plugins import stages
from finpile.plugins.filter import FILTERS
from finpile.plugins.format import FORMATS
from finpile.sources import REASONS as INGEST


def meaning(stage: str, reason: str) -> str:
    """What a row of this stage with this reason is about; empty for a reason of a format or filter of another
    package."""
    if stage == "ingest":
        own = (FORMATS.get(name).reasons for name in FORMATS.built_in)
        return next((found[reason] for found in (INGEST, *own) if reason in found), "")
    if stage == "clean":
        rules = (FILTERS.get(name).reasons for name in FILTERS.built_in)
        return next((found[reason] for found in (CLEAN, *rules) if reason in found), "")
    return next((one.meaning for one in stages.find(stage).reasons if one.name == reason), "")
