"""The result that every group of checks returns."""

from __future__ import annotations

from dataclasses import dataclass

_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a build, and whether it passed."""

    name: str
    ok: bool
    detail: str
    """What was counted; for a failed check, the first places at which it failed."""

    @classmethod
    def of(cls, name: str, wrong: list[str], counted: str) -> Check:
        """The check `name`, which failed at the places `wrong`; with none of these it passed for what was `counted`."""
        if not wrong:
            return cls(name, True, counted)
        more = f" (and {len(wrong) - _MAX_NAMED} more)" if len(wrong) > _MAX_NAMED else ""
        return cls(name, False, "; ".join(wrong[:_MAX_NAMED]) + more)
