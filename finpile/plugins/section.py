"""A section of a text that a format finds, such as an item of a filing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A named range of a text."""

    name: str
    """Such as `7A`: unique in its text."""
    start: int
    """Characters from the start of the text."""
    end: int
