"""The curves of a run for TensorBoard, below OUT/tensorboard."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from finpile.errors import ConfigError
from finpile_trainer.training.heldout import HeldoutRecord
from finpile_trainer.training.losses import LossRecord

FOLDER = "tensorboard"


class Board:
    """Writes event files; with `folder` None, nothing."""

    def __init__(self, folder: str | None, step: int) -> None:
        """Hides the events of earlier processes after `step`. Raises: ConfigError if TensorBoard is not installed."""
        self._folder = folder
        self._writer: Any = None
        self.rewind(step)

    def rewind(self, step: int) -> None:
        """Hides the events after a step."""
        if self._folder is None:
            return
        self.close()
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ConfigError('tensorboard: is not installed: pip install "finpile[train]"') from error
        self._writer = SummaryWriter(str(Path(self._folder, FOLDER)), purge_step=step + 1)

    def add(self, record: LossRecord, speed: float | None) -> None:
        """A step, and its tokens a second."""
        values = {"loss/train": record.loss, "learning_rate": record.learning_rate}
        values |= {"gradient_norm": record.gradient_norm, **({} if speed is None else {"tokens_per_second": speed})}
        self._scalars(values, record.step)

    def add_heldout(self, record: HeldoutRecord) -> None:
        """A measurement of the held-out loss."""
        sources = {f"heldout/{name}": loss for name, loss in record.sources.items()}
        self._scalars({"loss/heldout": record.loss, **sources}, record.step)

    def _scalars(self, values: dict[str, float], step: int) -> None:
        if self._writer is not None:
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
