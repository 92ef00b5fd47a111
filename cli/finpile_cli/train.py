"""`finpile model train`: the reference language model."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from finpile.errors import ConfigError
from finpile_cli.console import Console, json_option
from finpile_cli.language_models import require_torch
from finpile_cli.paths import PathOrUrl, check_not_in_build

if TYPE_CHECKING:
    from finpile_trainer.training.heldout import HeldoutProgress, HeldoutRecord
    from finpile_trainer.training.losses import LossRecord

_LINE_EVERY_SECONDS = 5.0


@click.command()
@click.argument("config", type=PathOrUrl(dir_okay=False))
@click.option(
    "--until-step",
    type=click.IntRange(min=1),
    metavar="N",
    help="The last step; the same command resumes there.  [default: that of CONFIG]",
)
@json_option
def train_command(config: str, until_step: int | None, as_json: bool) -> None:
    """Train a language model on token shards with the settings of the training file CONFIG.

    A killed run resumes from its last checkpoint and ends in the same bytes as an uninterrupted run. Several processes:
    torchrun --nproc-per-node N -m finpile_cli model train CONFIG
    """
    require_torch()
    from finpile_trainer.train import load_train_config, train
    from finpile_trainer.training.chronicle import speed_words
    from finpile_trainer.training.hugging_face import check_exportable

    console = Console(as_json)
    settings = load_train_config(config)
    check_not_in_build(settings.out, "out")
    last = min(settings.steps, until_step or settings.steps)
    obstacle = None
    try:
        check_exportable(settings.model_config())
    except ConfigError as error:
        obstacle = str(error)
        if os.environ.get("RANK", "0") == "0":
            console.line(f"note: `finpile export hf` cannot write this model for transformers: {obstacle}")
    checking = console.progress("checking token shards", unit="B")
    on_step = _StepLines(console, last)
    with _HeldoutLines(console, on_step) as on_heldout:
        result = train(settings, stop_at=until_step, on_step=on_step, on_heldout=on_heldout, on_check=checking)
    if not result.is_first:
        return
    records = result.records
    if result.resumed_from:
        console.line(f"Resumed from step {result.resumed_from:,}")
    rows = [[record.step, record.tokens, record.loss, record.learning_rate] for record in (records[0], records[-1])]
    console.table(
        "Training", ["step", "tokens", "loss", "learning rate"], [[*row[:3], f"{row[3]:.2e}"] for row in rows]
    )
    if result.heldout:
        best = min(result.heldout, key=lambda record: record.loss)
        console.line(
            f"Held-out loss {result.heldout[-1].loss:.4f}; lowest {best.loss:.4f} at step {best.step:,}: "
            f"{result.out}/models/best.safetensors"
        )
    if result.num_rollbacks:
        console.line(f"Loss spikes: {result.num_rollbacks}, each rolled back; see chronicle.md")
    if speed := speed_words(result.speed):
        console.line(", ".join(speed))
    console.line(f"{result.num_parameters:,} parameters; model, losses, page and chronicle in {result.out}")
    console.result(
        {
            "out": result.out,
            "resumed_from": result.resumed_from,
            "step": records[-1].step,
            "tokens": records[-1].tokens,
            "first_loss": records[0].loss,
            "loss": records[-1].loss,
            "num_parameters": result.num_parameters,
            "num_sequences": result.num_sequences,
            "heldout_loss": result.heldout[-1].loss if result.heldout else None,
            "num_rollbacks": result.num_rollbacks,
            "not_exportable": obstacle,
            "speed": result.speed,
        }
    )


class _StepLines:
    """Prints step, loss, learning rate and speed every few seconds."""

    def __init__(self, console: Console, last: int) -> None:
        self._console, self._last = console, last
        self._began = time.monotonic()
        self._printed = self._began
        self._before: int | None = None
        """Tokens up to the step before."""
        self._num_tokens = 0

    def leave_out(self, seconds: float) -> None:
        """Does not count these seconds as time of steps."""
        self._began += seconds

    def __call__(self, record: LossRecord) -> None:
        now = time.monotonic()
        if self._before is None:  # the first step includes the warm-up, so speed is measured from its end
            self._began = now
        else:
            self._num_tokens += max(0, record.tokens - self._before)  # fewer after a rollback
        self._before = record.tokens
        if record.step < self._last and now - self._printed < _LINE_EVERY_SECONDS:
            return
        self._printed = now
        speed = f", {self._num_tokens / max(now - self._began, 1e-9):,.0f} tokens/s" if self._num_tokens else ""
        self._console.line(
            f"  step {record.step:,} of {self._last:,}: loss {record.loss:.3f}, rate {record.learning_rate:.2e}{speed}"
        )


class _HeldoutLines:
    """Shows the progress of a measurement of the held-out loss, and prints its result."""

    def __init__(self, console: Console, steps: _StepLines) -> None:
        self._console, self._steps = console, steps
        self._shown = contextlib.ExitStack()
        self._advance: Callable[[float], None] | None = None
        self._done = 0
        self._began = 0.0

    def __call__(self, found: HeldoutProgress | HeldoutRecord) -> None:
        from finpile_trainer.training.heldout import HeldoutRecord

        if isinstance(found, HeldoutRecord):
            self._shown.close()
            self._advance = None
            self._steps.leave_out(time.monotonic() - self._began)
            self._console.line(
                f"  step {found.step:,}: held-out loss {found.loss:.4f} over {found.num_tokens:,} tokens"
            )
            return
        if self._advance is None:
            name = f"held-out loss of step {found.step:,}"
            self._advance = self._shown.enter_context(self._console.progress(name, found.num_tokens, "tokens"))
            self._done, self._began = 0, time.monotonic()
        self._advance(found.num_done - self._done)
        self._done = found.num_done

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.close()
