"""What every group of laws returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

#: Receives the number of bytes read since the last call.
Advance = Callable[[float], None]

_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One law, and whether it holds."""

    name: str
    holds: bool
    detail: str
    """What was counted; where the law is broken, the first places."""


def law(name: str, wrong: list[str], counted: str) -> Check:
    """The law `name`, broken at the places `wrong`; where there are none it holds for what was `counted`."""
    if not wrong:
        return Check(name, True, counted)
    more = f" (and {len(wrong) - _MAX_NAMED} more)" if len(wrong) > _MAX_NAMED else ""
    return Check(name, False, "; ".join(wrong[:_MAX_NAMED]) + more)
