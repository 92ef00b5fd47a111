"""Templates: lines and paragraphs that earlier documents of a group have, counted and cut."""

from finpile.dedup.cuts import NOTHING_LEFT, TOO_LITTLE_LEFT
from finpile.plugins.stages import Algorithm, Reason

REASON = "template"

ALGORITHM = Algorithm(
    name="templates",
    plan="finpile.dedup.templates.plan:plan",
    is_optional=True,
    reasons=(
        Reason(REASON, "lines that earlier documents of the group have; `detail` has their number and the group"),
        Reason(NOTHING_LEFT, "a text of which all lines are templates"),
        *TOO_LITTLE_LEFT,
    ),
)
