"""Model, optimiser and data of a training run, and one step of it."""

# ruff: noqa: N806 (names end in the axes of their tensors)

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from finpile.config import to_dict
from finpile.errors import ConfigError, RunError
from finpile.tokens.build_shards import shards_digest
from finpile.tokens.store import TokenStore
from finpile_trainer.model.model import Decoder, next_token_loss, z_loss
from finpile_trainer.training.checkpoint import (
    FILE_NAME,
    Checkpoint,
    ModelMeta,
    load_checkpoint,
    random_state,
    save_checkpoint,
    set_random_state,
)
from finpile_trainer.training.config import TrainConfig
from finpile_trainer.training.data import TrainingData
from finpile_trainer.training.guard import Rollback, roll_back, skips
from finpile_trainer.training.heldout import HeldoutSet
from finpile_trainer.training.losses import LossRecord
from finpile_trainer.training.optimizer import make_optimizer, set_rate
from finpile_trainer.training.processes import Processes

#: Settings of the training file that affect the weights as they are.
_PLAIN_SETTINGS = ("document_masks", "micro_batch_size", "precision", "seed")


class Trainer:
    """Model, optimiser and data of a run at a step."""

    def __init__(self, config: TrainConfig, processes: Processes | None = None) -> None:
        """Starts at step 0, or at the step of the checkpoint in `config.out`."""
        self.processes = processes or Processes()
        store = TokenStore.open(config.tokens)
        length = config.sequence_length or store.sequence_length
        self.config = config
        self.data = TrainingData(store, config.batch_config(), length, config.seed)
        self._shards = shards_digest(store)
        self.schedule = config.optimizer_config()
        self._check_batches()
        self.device = self.processes.device(config.torch_device())
        torch.manual_seed(config.seed)
        self.model = Decoder(
            config.model_config(),
            store.vocab_size,
            activation_checkpointing=config.activation_checkpointing,
            masked_at=store.eot_id if config.document_masks else None,
        ).to(self.device)
        self.optimizer = make_optimizer(self.model, self.schedule)
        self.step = 0
        self.rollbacks: tuple[Rollback, ...] = ()
        checkpoint = load_checkpoint(config.out)
        if checkpoint is not None:
            checkpoint.check_settings(self.settings(checkpoint.step), config.out)
            self.restore(checkpoint, checkpoint.rollbacks)
        self._parallel = self.processes.parallel(self.model)

    def take_step(self, recent: Sequence[LossRecord] = ()) -> LossRecord | Rollback:
        """One update of the parameters; returns the loss before it.

        `recent` are the last steps. A loss spike makes no update; its rollback is returned, for the caller to follow.

        Raises: RunError if the memory does not suffice, the loss is not finite, or there are too many spikes.
        """
        try:
            return self._take_step(recent)
        except RuntimeError as error:
            if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
                raise
            size = min(self.config.micro_batch_size or math.inf, self.data.schedule.at(self.step))
            raise RunError(
                f"step {self.step + 1}: out of memory, with {size} sequences of {self.data.sequence_length} tokens at "
                "once: set a lower `micro_batch_size`, `activation_checkpointing: true`, or a smaller model"
            ) from error

    def _take_step(self, recent: Sequence[LossRecord]) -> LossRecord | Rollback:
        rate = self._intervene()
        set_rate(self.optimizer, rate)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._accumulate_gradients()
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.schedule.gradient_clipping))
        rollback = self._rollback(loss, norm, recent)
        if rollback is not None:
            return rollback
        self.optimizer.step()
        self.step += 1
        tokens = self.data.schedule.before(self.step) * self.data.sequence_length
        return LossRecord(self.step, tokens, loss, rate, norm)

    def save(self, name: str = FILE_NAME) -> None:
        """Writes a checkpoint."""
        state = Checkpoint(
            step=self.step,
            meta=self.meta(),
            settings=self.settings(self.step),
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict(),
            random=random_state(),
            rollbacks=self.rollbacks,
        )
        save_checkpoint(self.config.out, state, name)

    def restore(self, checkpoint: Checkpoint, rollbacks: Sequence[Rollback]) -> None:
        """Continues from a checkpoint, with these rollbacks in the past of the run."""
        self.model.load_state_dict(checkpoint.model)
        self.optimizer.load_state_dict(dict(checkpoint.optimizer))
        set_random_state(checkpoint.random)
        self.step = checkpoint.step
        self.rollbacks = tuple(rollbacks)
        self.data = dataclasses.replace(self.data, skips=skips(self.rollbacks))

    def heldout_sums(
        self, heldout: HeldoutSet, on_sequences: Callable[[int], None] | None = None
    ) -> dict[str, tuple[float, int]]:
        """The sums over the held-out set, over all processes; `on_sequences` counts those of this process."""
        found = heldout.sums(
            self.model,
            batch_size=self.config.micro_batch_size or self.data.schedule.at(self.step),
            bfloat16=self.config.precision == "bfloat16",
            rank=self.processes.rank,
            world_size=self.processes.world_size,
            on_sequences=on_sequences,
        )
        nats = self.processes.sum({name: nats for name, (nats, _) in found.items()}, self.device)
        counts = self.processes.sum({name: count for name, (_, count) in found.items()}, self.device)
        return {name: (nats[name], round(counts[name])) for name in found}

    def meta(self) -> ModelMeta:
        """What is needed to rebuild the model and to encode its input."""
        store = self.data.store.meta
        return ModelMeta(
            model=self.model.config,
            vocab_size=store.vocab_size,
            sequence_length=self.data.sequence_length,
            eot_id=store.eot_id,
            tokenizer=store.tokenizer,
        )

    def settings(self, step: int) -> dict[str, Any]:
        """All settings that affect the weights up to a step, without paths and the number of steps."""
        parts = {
            "model": self.model.config,
            "optimizer": self.schedule,
            "batch": self.data.schedule,
            "tokens": self.data.store.meta,
        }
        nested = {f"{part}.{name}": value for part, entry in parts.items() for name, value in to_dict(entry).items()}
        plain = {name: getattr(self.config, name) for name in _PLAIN_SETTINGS}
        return {
            **nested,
            **plain,
            "sequence_length": self.data.sequence_length,
            "tokens.num_sequences": len(self.data.store),
            "tokens.shards": self._shards,
            "interventions": [to_dict(entry) for entry in self.config.interventions if entry.step < step],
            "loss_spikes": None if self.config.loss_spikes is None else to_dict(self.config.loss_spikes),
        }

    def _intervene(self) -> float:
        """Sets the dropout of the next step; returns its learning rate."""
        rate = self.schedule.rate(self.step)
        dropout = self.model.config.dropout
        for entry in sorted(self.config.interventions, key=lambda entry: entry.step):
            if entry.step <= self.step:
                rate *= entry.rate_factor
                dropout = dropout if entry.dropout is None else entry.dropout
        self.model.set_dropout(dropout)
        return rate

    def _accumulate_gradients(self) -> float:
        """Adds the mean gradient of the batch to the parameters; returns its mean loss in nats per token."""
        rank, world_size = self.processes.rank, self.processes.world_size
        ids_BT = self.data.batch(self.step, rank, world_size)
        labels_BT = ids_BT.masked_fill(self.data.padding(self.step, rank, world_size), -100)
        num_predicted = self.processes.sum({"tokens": _num_predicted(labels_BT)}, self.device)["tokens"]
        if world_size > 1:  # a state of each process would tie checkpoints to their number
            torch.manual_seed(((self.config.seed * 1_000_003 + self.step) * 1_000_003 + rank) % (1 << 64))
        total = 0.0
        self.model.train()
        size = self.config.micro_batch_size or len(ids_BT)
        parts = list(zip(torch.split(ids_BT, size), torch.split(labels_BT, size), strict=True))
        for number, (ids, labels) in enumerate(parts, 1):
            share = _num_predicted(labels) / max(1, num_predicted)
            targets = labels.to(self.device)
            with self._synchronised(number == len(parts)):
                with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
                    logits_BTV = self._parallel(ids.to(self.device))
                    loss = next_token_loss(logits_BTV, targets) * share if share else logits_BTV.sum() * 0.0
                    penalty = self.schedule.z_loss * z_loss(logits_BTV, targets) * share if share else 0.0
                whole = loss + penalty if self.schedule.z_loss else loss
                # DistributedDataParallel averages the gradients of processes; their sum is wanted
                (whole * world_size if world_size > 1 else whole).backward()
            total += loss.item()
        return self.processes.sum({"loss": total}, self.device)["loss"]

    @contextlib.contextmanager
    def _synchronised(self, is_last: bool) -> Iterator[None]:
        """Gradients travel between processes with the last part of a batch only."""
        no_sync = getattr(self._parallel, "no_sync", None)
        with contextlib.nullcontext() if is_last or no_sync is None else no_sync():
            yield

    def _rollback(self, loss: float, norm: float, recent: Sequence[LossRecord]) -> Rollback | None:
        """The rollback after a spike; None if the step is none."""
        guard = self.config.loss_spikes
        losses = [record.loss for record in recent[-guard.window :]] if guard else []
        if guard is None or not guard.is_spike(loss, norm, losses):
            if math.isfinite(loss + norm):
                return None
            raise RunError(
                f"step {self.step + 1}: the loss is {loss}, its gradient's norm {norm}; "
                f"lower `learning_rate` ({self.schedule.learning_rate}) or lengthen `warmup_steps`, in a new `out`, "
                "or roll back at such steps with `loss_spikes: {}`"
            )
        if len(self.rollbacks) >= guard.max_rollbacks:
            raise RunError(
                f"step {self.step + 1}: a loss of {loss}, after {guard.max_rollbacks} rollbacks; "
                f"lower `learning_rate` ({self.schedule.learning_rate}), in a new `out`"
            )
        return roll_back(guard, self.data.schedule, self.rollbacks, self.step, loss, losses)

    def _check_batches(self) -> None:
        sizes = [self.data.schedule.size, *(size for _, size in self.data.schedule.ramp)]
        if min(sizes) < self.processes.world_size:
            raise ConfigError(
                f"batch_size is {min(sizes)}, and there are {self.processes.world_size} processes: "
                "expected at least a sequence for each"
            )


def _num_predicted(labels: torch.Tensor) -> int:
    """The tokens that are predicted: none is the first of its sequence, or padding."""
    return int((labels[:, 1:] >= 0).sum())
