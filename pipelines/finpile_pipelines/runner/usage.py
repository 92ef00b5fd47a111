"""CPU time and memory of the workers of jobs, from the metrics that they report (`exchange.jobs`)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from finpile_pipelines.exchange.jobs import CPU_MILLISECONDS, METRICS, PEAK_BYTES


@dataclass(slots=True)
class Usage:
    """Of all jobs of this process so far."""

    cpu_seconds: float = 0.0
    """Of all workers."""
    peak_bytes: int = 0
    """The largest memory of one worker since it was last set to 0."""


USED = Usage()


def add_usage(result: Any) -> None:
    """Adds what the workers of an ended job reported; nothing if the engine does not know it."""
    from apache_beam.metrics import MetricsFilter

    with contextlib.suppress(Exception):  # of the clients of engines: a job without measurements is no failed job
        found = result.metrics().query(MetricsFilter().with_namespace(METRICS))
        for counter in found["counters"]:
            if counter.key.metric.name == CPU_MILLISECONDS:
                USED.cpu_seconds += counter.result / 1000
        for distribution in found["distributions"]:
            if distribution.key.metric.name == PEAK_BYTES:
                USED.peak_bytes = max(USED.peak_bytes, distribution.result.max)
