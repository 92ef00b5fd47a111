"""The end of a pass of a pipeline, as an element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Passed:
    """The end of a pass, for later passes. A skipped pass has one too: Spark and Flink refuse a null side input."""

    ran: bool
    """False if the pass was skipped."""
    summary: Any = None
    """Of the outcomes, if the pass ran."""
