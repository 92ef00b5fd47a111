"""Overlap: held-out documents that share text with training documents, or are near duplicates of them."""

from finpile.plugins.stages import Algorithm, Reason

REASON = "heldout_overlap"

ALGORITHM = Algorithm(
    name="overlap",
    plan="finpile.dedup.overlap.plan:plan",
    key="heldout.overlap",
    reasons=(
        Reason(
            REASON,
            "a held-out text that shares text with the training document in `duplicate_of`",
            names_kept=True,
        ),
    ),
)
