"""Near duplicates: MinHash keys, candidate pairs, verified clusters."""

from finpile.plugins.stages import Algorithm, Reason

REASON = "near_duplicate"

ALGORITHM = Algorithm(
    name="near",
    plan="finpile.dedup.near.plan:plan",
    reasons=(
        Reason(
            REASON,
            "a text with nearly the same words as a kept text; `detail` has the similarities",
            is_copy=True,
        ),
    ),
)
