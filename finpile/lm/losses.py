"""The loss log, one JSON line per step, and the loss curve."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from finpile import storage
from finpile.report.line_chart import Line, LineChart, Rule

LOG_NAME = "losses.jsonl"
PLOT_NAME = "loss.svg"
#: Weight of the newest loss in the smoothed curve over 139,200 steps (BloombergGPT §4).
PAPER_SMOOTHING = 0.001
#: Shorter runs are smoothed over about this share of their steps.
_SMOOTHED_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class LossRecord:
    """One step. Has no time, so that equal runs write equal logs."""

    step: int
    """1 after the first step."""
    tokens: int
    """Training tokens so far, including this step's."""
    loss: float
    """Nats per token on the batch of this step, before its update."""
    learning_rate: float
    gradient_norm: float
    """Global norm, before clipping."""


class LossLog:
    """Appends to the log of a run; when opened, drops the records after the step from which the run resumes.

    On a local disk a record is in the file at once; at a URL, whose files cannot grow, after the next `sync`.
    """

    def __init__(self, folder: str, step: int) -> None:
        self.records = [record for record in read_log(folder) if record.step <= step]
        self._url = storage.join(folder, LOG_NAME)
        self._write()
        self._stream: IO[bytes] | None = None
        if "://" not in folder:
            self._stream = Path(self._url).open("ab", buffering=0)  # noqa: SIM115  (until `__exit__`)

    def append(self, record: LossRecord) -> None:
        self.records.append(record)
        if self._stream is not None:
            self._stream.write(_line(record))

    def sync(self) -> None:
        """Makes the log durable; called before a checkpoint is written, so that the log is never older."""
        if self._stream is None:
            self._write()
        else:
            os.fsync(self._stream.fileno())

    def _write(self) -> None:
        storage.write_bytes(self._url, b"".join(map(_line, self.records)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()


def read_log(folder: str) -> list[LossRecord]:
    """The complete lines of a run's log; an incomplete last line of a killed process is ignored."""
    try:
        lines = storage.read_bytes(storage.join(folder, LOG_NAME)).split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    return [LossRecord(**json.loads(line)) for line in lines]


def smooth(losses: Sequence[float], alpha: float) -> list[float]:
    """Running means in which a loss k steps ago has the weight (1 - alpha)^k: y_t of BloombergGPT §4.

    >>> smooth([4.0, 2.0], 0.5)
    [4.0, 2.6666666666666665]
    """
    means = []
    total = weight = 0.0
    for loss in losses:
        total = total * (1 - alpha) + loss
        weight = weight * (1 - alpha) + 1
        means.append(total / weight)
    return means


def plot(folder: str, records: Sequence[LossRecord], vocab_size: int) -> str:
    """Draws the loss curve, raw and smoothed, beside the log; returns its path."""
    steps, losses = [float(record.step) for record in records], [record.loss for record in records]
    alpha = max(PAPER_SMOOTHING, min(1.0, 1 / max(1.0, _SMOOTHED_SHARE * len(records))))
    chart = LineChart(
        title="Training loss",
        x_title="step",
        y_title="loss (nats per token)",
        lines=[
            Line(points=list(zip(steps, losses, strict=True)), label="each step", colour="faint", thin=True),
            Line(points=list(zip(steps, smooth(losses, alpha), strict=True)), label="smoothed"),
        ],
        rules=[Rule(axis="y", value=math.log(vocab_size), label=f"ln {vocab_size:,}: uniform prediction")],
    )
    path = storage.join(folder, PLOT_NAME)
    storage.write_bytes(path, chart.to_svg())
    return path


def _line(record: LossRecord) -> bytes:
    return (json.dumps(asdict(record)) + "\n").encode()
