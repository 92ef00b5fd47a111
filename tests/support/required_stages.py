"""The stages of every build."""

from __future__ import annotations

from finpile.plugins import stages


def required() -> tuple[str, ...]:
    return tuple(info.name for info in stages.table() if not info.is_optional)
