"""The end of a pass of a pipeline, as an element."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.coders import Coder


@dataclass(frozen=True, slots=True)
class Passed:
    """The end of a pass, for later passes. A skipped pass has one too: Spark and Flink refuse a null side input."""

    ran: bool
    """False if the pass was skipped."""
    summary: Any = None
    """Of the outcomes, if the pass ran."""


class PassedCoder(Coder):
    """Bytes that no engine looks into, whatever the type of the summary."""

    def encode(self, value: Passed) -> bytes:
        return pickle.dumps((value.ran, value.summary))

    def decode(self, encoded: bytes) -> Passed:
        return Passed(*pickle.loads(encoded))

    def is_deterministic(self) -> bool:
        return False


beam.coders.registry.register_coder(Passed, PassedCoder)
