"""The guard against loss spikes: it rolls a run back and skips the batches around the spike.

Source: PaLM §5.1 restarts from a checkpoint about 100 steps before a spike and skips 200 to 500 batches, which cover
those seen before and during it. The paper found spikes by eye; the rule here is that of `is_spike`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from finpile.config import bounds
from finpile.errors import ConfigError
from finpile_trainer.training.presets import BatchConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class SpikeGuard:
    """What a loss spike is, and what follows it."""

    threshold: float = 1.0
    """Nats per token above the mean of the last `window` steps that make a loss a spike. A loss or gradient that is not
    finite is one, too."""
    window: int = 50
    """Steps of the mean; earlier in a run, only a loss that is not finite is a spike."""
    rollback_steps: int = 100
    """The state is stored at every multiple of it. A spike restores the latest one that is at least half as many steps
    old: between 50 and 149 steps back by default."""
    skip_batches: int = 300
    """Batches that are skipped, from that of the restored step on; PaLM: 200 to 500."""
    max_rollbacks: int = 10
    """The run ends with an error at the next spike."""

    def __post_init__(self) -> None:
        if self.threshold <= 0:
            raise ConfigError(f"loss_spikes.threshold is {self.threshold}: expected above 0")
        for name in ("window", "max_rollbacks"):
            bounds.at_least(f"loss_spikes.{name}", getattr(self, name), 1)
        bounds.at_least("loss_spikes.rollback_steps", self.rollback_steps, 2)
        if self.skip_batches < self.rollback_steps * 3 // 2:
            raise ConfigError(
                f"loss_spikes.skip_batches is {self.skip_batches}: expected at least {self.rollback_steps * 3 // 2}, "
                "1.5 times `rollback_steps`, so that the batch of the spike is skipped"
            )

    def is_spike(self, loss: float, gradient_norm: float, recent: Sequence[float]) -> bool:
        """Whether a step is a spike. `recent` are the losses of the last `window` steps, or fewer."""
        if not math.isfinite(loss + gradient_norm):
            return True
        return len(recent) >= self.window and loss > math.fsum(recent) / len(recent) + self.threshold

    def is_stored(self, step: int) -> bool:
        """Whether the state after `step` steps is stored for a rollback."""
        return step % self.rollback_steps == 0

    def target(self, step: int) -> int:
        """The stored state that a spike after `step` complete steps restores."""
        return max(0, step - self.rollback_steps // 2) // self.rollback_steps * self.rollback_steps

    def oldest(self, step: int, num_left: int) -> int:
        """The oldest stored state that `num_left` more spikes can restore, the first after `step` or more steps.

        A spike soon after a rollback restores the state before that of the rollback, and so on.
        """
        return max(0, self.target(step) - (num_left - 1) * self.rollback_steps)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollback:
    """A spike and what followed."""

    spike_step: int
    """The step of the spike; its update was not made."""
    loss: float | None
    """Its loss; null if it was not finite."""
    mean_loss: float | None
    """Mean of the losses before it; null if there were none."""
    to_step: int
    """Complete steps of the state that was restored."""
    skipped_batches: int
    skipped_sequences: int
    """Sequences that are not trained on before the next one: of these batches, and of earlier rollbacks that were
    undone by this one."""


def roll_back(
    guard: SpikeGuard,
    schedule: BatchConfig,
    before: Sequence[Rollback],
    step: int,
    loss: float,
    recent: Sequence[float],
) -> Rollback:
    """The rollback at a spike after `step` complete steps; `before` are the earlier ones of the run."""
    target = guard.target(step)
    undone = [entry for entry in active(before) if entry.to_step > target]
    skipped = schedule.before(target + guard.skip_batches) - schedule.before(target)
    return Rollback(
        spike_step=step + 1,
        loss=loss if math.isfinite(loss) else None,
        mean_loss=math.fsum(recent) / len(recent) if recent else None,
        to_step=target,
        skipped_batches=guard.skip_batches,
        skipped_sequences=skipped + sum(entry.skipped_sequences for entry in undone),
    )


def active(rollbacks: Sequence[Rollback]) -> list[Rollback]:
    """The rollbacks whose skipped sequences are still ahead of or behind the run: not undone by a later one."""
    kept: list[Rollback] = []
    for entry in rollbacks:
        kept = [*(earlier for earlier in kept if earlier.to_step <= entry.to_step), entry]
    return kept


def skips(rollbacks: Sequence[Rollback]) -> tuple[tuple[int, int], ...]:
    """Pairs of a step and the sequences that are skipped before its batch."""
    return tuple((entry.to_step, entry.skipped_sequences) for entry in active(rollbacks))
