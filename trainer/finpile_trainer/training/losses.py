"""The logs of a run, one JSON line per step or measurement, and the loss curves.

RUN/losses.jsonl       each step
RUN/heldout.jsonl      each measurement of the held-out loss
RUN/loss.svg           both curves
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Generic, Self, TypeVar

from finpile import storage
from finpile.errors import InputError
from finpile.report.drawing.lines import Line, LineChart, Rule
from finpile_trainer.training.heldout import HeldoutRecord

LOG_NAME = "losses.jsonl"
HELDOUT_NAME = "heldout.jsonl"
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


Record = TypeVar("Record", LossRecord, HeldoutRecord)
Entry = TypeVar("Entry")


class RecordLog(Generic[Record]):
    """Appends to a log of a run; when opened, drops the records after the step from which the run resumes.

    On a local disk a record is in the file at once; at a URL, whose files cannot grow, after the next `sync`. A log
    with folder None is kept in memory only: that of a process other than the first of a run.
    """

    def __init__(self, folder: str | None, name: str, kind: type[Record], step: int, *, source: str = "") -> None:
        """`source` is the folder that a log without `folder` is read from."""
        self.records: list[Record] = [
            record for record in read_lines(folder or source, name, kind) if record.step <= step
        ]
        self._url = storage.join(folder, name) if folder else ""
        self._stream: IO[bytes] | None = None
        self._open()

    def _open(self) -> None:
        if self._url:
            self._write()
            if "://" not in self._url:
                self._stream = Path(self._url).open("ab", buffering=0)  # noqa: SIM115  (until `__exit__`)

    def rewind(self, step: int) -> None:
        """Drops the records after a step."""
        self.records = [record for record in self.records if record.step <= step]
        self._close()
        self._open()

    def append(self, record: Record) -> None:
        self.records.append(record)
        if self._stream is not None:
            self._stream.write(_line(record))

    def sync(self) -> None:
        """Makes the log durable; called before a checkpoint is written, so that the log is never older."""
        if self._stream is not None:
            os.fsync(self._stream.fileno())
        elif self._url:
            self._write()

    def _write(self) -> None:
        storage.write_bytes(self._url, b"".join(map(_line, self.records)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def read_log(folder: str) -> list[LossRecord]:
    """The losses of a run; an incomplete last line of a killed process is ignored."""
    return read_lines(folder, LOG_NAME, LossRecord)


def read_heldout(folder: str) -> list[HeldoutRecord]:
    """The held-out losses of a run; none if it does not measure them."""
    return read_lines(folder, HELDOUT_NAME, HeldoutRecord)


def read_lines(folder: str, name: str, kind: Callable[..., Entry]) -> list[Entry]:
    """`kind` of each complete line of a log; none if the run has no such log.

    Raises: InputError for a line of which `kind` cannot be made.
    """
    url = storage.join(folder, name)
    try:
        lines = storage.read_bytes(url).split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entries.append(kind(**json.loads(line)))
        except (ValueError, TypeError, LookupError, RecursionError):
            raise InputError(f"{url}:{number} is damaged: restore the file, or delete this line") from None
    return entries


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


def loss_chart(records: Sequence[LossRecord], vocab_size: int, heldout: Sequence[HeldoutRecord] = ()) -> LineChart:
    """The loss curves: training, raw and smoothed, and held-out."""
    steps, losses = [float(record.step) for record in records], [record.loss for record in records]
    alpha = max(PAPER_SMOOTHING, min(1.0, 1 / max(1.0, _SMOOTHED_SHARE * len(records))))
    points = [(float(record.step), record.loss) for record in heldout]
    return LineChart(
        title="Training and held-out loss" if heldout else "Training loss",
        x_title="step",
        y_title="loss (nats per token)",
        lines=[
            Line(points=list(zip(steps, losses, strict=True)), label="each step", colour="faint", thin=True),
            Line(points=list(zip(steps, smooth(losses, alpha), strict=True)), label="smoothed"),
            *([Line(points=points, label="held-out", colour="mark", dots=True)] if heldout else []),
        ],
        rules=[
            Rule(
                axis="y",
                value=math.log(vocab_size),
                label=f"ln {vocab_size:,}" if heldout else f"ln {vocab_size:,}: uniform prediction",
            )
        ],
    )


def plot(folder: str, records: Sequence[LossRecord], vocab_size: int, heldout: Sequence[HeldoutRecord] = ()) -> None:
    """Draws the loss curves beside the log."""
    storage.write_bytes(storage.join(folder, PLOT_NAME), loss_chart(records, vocab_size, heldout).to_svg())


def _line(record: LossRecord | HeldoutRecord) -> bytes:
    return (json.dumps(asdict(record)) + "\n").encode()
