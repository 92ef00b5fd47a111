"""Repeated substrings, found exactly by minimizers: no process needs more than its share of the text."""

from finpile.dedup.cuts import NOTHING_LEFT, TOO_LITTLE_LEFT
from finpile.plugins.stages import Algorithm, Reason

REASON = "repeated_text"

ALGORITHM = Algorithm(
    name="substring",
    plan="finpile.dedup.substring.plan:plan",
    reasons=(
        Reason(REASON, "a passage that occurs elsewhere too; `duplicate_of` is the document with the kept copy"),
        Reason(NOTHING_LEFT, "a text of which all parts occur elsewhere"),
        *TOO_LITTLE_LEFT,
    ),
)
