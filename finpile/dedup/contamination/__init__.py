"""Contamination: documents that contain items of evaluation sets."""

from finpile.plugins.stages import Algorithm, Reason

REASON = "contamination"

ALGORITHM = Algorithm(
    name="contamination",
    plan="finpile.dedup.contamination.plan:plan",
    key="contamination",
    reasons=(
        Reason(
            REASON,
            "a text that contains an item of an evaluation set; `detail` has the item and its coverage",
        ),
    ),
)
