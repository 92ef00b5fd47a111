"""The training run, on one device.

    OUT/config.json        all settings, including defaults
    OUT/checkpoint.pt      the latest state
    OUT/models/            retained models, if `keep_every` is set
    OUT/losses.jsonl       one line per step
    OUT/loss.svg           the loss curve

The same settings give the same weights and losses on the same machine, to the last bit, also if the run was killed and
resumed.
"""

# ruff: noqa: N806 (names end in the axes of their tensors)

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from finpile import storage
from finpile.config import to_dict
from finpile.errors import ConfigError, RunError
from finpile.lm.checkpoint import (
    Checkpoint,
    ModelMeta,
    load_checkpoint,
    random_state,
    save_checkpoint,
    set_random_state,
)
from finpile.lm.data import TrainingData
from finpile.lm.losses import LossLog, LossRecord, plot
from finpile.lm.model import Decoder, next_token_loss, z_loss
from finpile.lm.model_config import ModelConfig
from finpile.lm.optimizer import OptimizerConfig, make_optimizer, set_rate
from finpile.lm.presets import BatchConfig, preset
from finpile.lm.retained import SavedModel, retain_model
from finpile.strict_yaml import absolute, load_yaml
from finpile.tokens.store import TokenStore

#: The final learning rate as a share of the highest (§3.3).
FINAL_RATE_SHARE = 0.1
#: Makes cuBLAS deterministic; read when CUDA starts. https://docs.nvidia.com/cuda/cublas/#results-reproducibility
_CUBLAS_SETTING = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@dataclass(frozen=True, kw_only=True, slots=True)
class Intervention:
    """A change of a running training, from a step on. Source: BloombergGPT §4, which has three."""

    step: int
    """Steps that are complete when it takes effect."""
    rate_factor: float = 1.0
    """The learning rate of all later steps is multiplied by it, on top of earlier interventions."""
    dropout: float | None = None
    """Dropout of all later steps; null leaves it as it is."""

    def __post_init__(self) -> None:
        if self.step < 0:
            raise ConfigError(f"interventions: step is {self.step}: expected at least 0")
        if self.rate_factor <= 0:
            raise ConfigError(f"interventions: rate_factor is {self.rate_factor}: expected above 0")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ConfigError(f"interventions: dropout is {self.dropout}: expected 0 <= value < 1, or null")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """A training file.

    The model, batches, learning rate and other optimizer settings that are left out, or null, are the preset's. Other
    settings have the defaults given here; the sequence length is that of the token shards, not the preset's.
    """

    tokens: str
    """Folder of token shards: OUT/tokens/split=train of a build. Relative to the training file, or a URL."""
    out: str
    """Folder of the run; relative to the training file, or a URL, where losses are written with each checkpoint."""
    steps: int
    """Total number of optimiser steps."""
    preset: str = "bloomberggpt-tiny"
    """Where all that is left out comes from: `bloomberggpt-50b`, `gpt-neox-20b`, `palm-8b`, `palm-62b`, `palm-540b`, or
    one of the small ones: `bloomberggpt-tiny`, `gpt-neox-tiny`, `palm-tiny`."""
    model: ModelConfig | None = None
    """The shape of the model; null is the shape of the preset."""
    sequence_length: int | None = None
    """Tokens of a training sequence: a divisor of the shards' length, into which stored sequences are cut; the shards'
    own length if null."""
    batch_size: int | None = None
    """Sequences per step."""
    warmup_batch_size: int | None = None
    warmup_batch_steps: int | None = None
    micro_batch_size: int | None = None
    """Sequences per forward pass; the gradients of a step are accumulated. Null is the whole batch."""
    learning_rate: float | None = None
    final_learning_rate: float | None = None
    """Null is a tenth of `learning_rate`."""
    warmup_steps: int | None = None
    decay_steps: int | None = None
    """The step at which the cosine ends; null is `steps`."""
    weight_decay: float | None = None
    gradient_clipping: float | None = None
    beta1: float | None = None
    beta2: float | None = None
    interventions: tuple[Intervention, ...] = ()
    """Changes of learning rate and dropout, by step. A run that has stopped resumes with further interventions, if
    their steps are still to come."""
    seed: int = 0
    threads: int = 2
    """CPU threads. Another number can change the last bits of sums, and so of the weights."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto`: cuda if available, else cpu."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Type of the matrices in forward and backward passes; parameters, softmax and loss are float32 (§3.4)."""
    activation_checkpointing: bool = False
    """Computes each block again in the backward pass instead of storing its activations: equal weights,
    less memory, a third more work."""
    checkpoint_every: int = 100
    """Number of steps between two checkpoints."""
    keep_every: int | None = None
    """Number of steps between two retained models (OUT/models/step-N.safetensors), besides the last; null retains
    none. Needs `out` on a local disk."""

    def __post_init__(self) -> None:
        preset(self.preset)
        for name in ("steps", "threads", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: expected at least 1")
        for name in ("micro_batch_size", "keep_every"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: expected at least 1, or null")
        if self.keep_every and "://" in self.out:
            raise ConfigError(
                f"keep_every is {self.keep_every}: models are retained on a local disk, out is {self.out!r}"
            )
        self.model_config()
        self.optimizer_config()
        self.batch_config()

    def model_config(self) -> ModelConfig:
        """The shape of this file, or of the preset. Raises: ConfigError if they are of two architectures."""
        expected = preset(self.preset).model
        if self.model is not None and self.model.architecture != expected.architecture:
            raise ConfigError(
                f"model.architecture is {self.model.architecture}, that of the preset {self.preset} is "
                f"{expected.architecture}: write `architecture: {expected.architecture}`, or name another preset"
            )
        return self.model or expected

    def optimizer_config(self) -> OptimizerConfig:
        """The optimiser of the preset with the settings of this file."""
        base = preset(self.preset).optimizer
        cosine = base.schedule == "cosine"
        decay_steps = (self.steps if cosine else base.decay_steps) if self.decay_steps is None else self.decay_steps
        rate = base.learning_rate if self.learning_rate is None else self.learning_rate
        share = FINAL_RATE_SHARE if cosine else 0.0
        final = share * rate if self.final_learning_rate is None else self.final_learning_rate
        warmup = self.warmup_steps
        if warmup is None:
            warmup = min(base.warmup_steps, decay_steps) if cosine else base.warmup_steps
        names = ("weight_decay", "gradient_clipping", "beta1", "beta2")
        return dataclasses.replace(
            base,
            learning_rate=rate,
            final_learning_rate=final,
            warmup_steps=warmup,
            decay_steps=decay_steps,
            **{name: getattr(self, name) for name in names if getattr(self, name) is not None},
        )

    def batch_config(self) -> BatchConfig:
        """The batches of the preset; if this file sets a batch key, without the warm-up of the preset."""
        if self.batch_size is None and self.warmup_batch_size is None and self.warmup_batch_steps is None:
            return preset(self.preset).batch
        size, end = self.warmup_batch_size, self.warmup_batch_steps or 0
        if (size is None) != (end == 0):
            raise ConfigError(
                f"warmup_batch_size is {size}, warmup_batch_steps {end}: give both (the second above 0), or neither"
            )
        return BatchConfig(
            size=preset(self.preset).batch.size if self.batch_size is None else self.batch_size,
            ramp=() if size is None else ((end, size),),
        )

    def torch_device(self) -> torch.device:
        """The device. Raises: ConfigError if `cuda` is required and not available."""
        available = torch.cuda.is_available()
        if self.device == "cuda" and not available:
            raise ConfigError(
                "device is cuda, and PyTorch finds no CUDA device: use `device: auto`, or repair its installation"
            )
        return torch.device("cuda" if available and self.device != "cpu" else "cpu")


def load_train_config(path: str | Path) -> TrainConfig:
    """Reads a training file; `tokens` and `out` of the result are absolute.

    Raises: ConfigError with file, line, the value found and the value expected.
    """
    config = load_yaml(path, TrainConfig, "a training file")
    return dataclasses.replace(config, tokens=absolute(path, config.tokens), out=absolute(path, config.out))


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainResult:
    """The result of `train`."""

    out: str
    resumed_from: int
    """Steps completed before this call."""
    records: list[LossRecord]
    """All steps of the run, including those of earlier calls."""
    num_parameters: int
    num_sequences: int
    """Training sequences of one epoch."""


def train(
    config: TrainConfig,
    *,
    stop_at: int | None = None,
    on_step: Callable[[LossRecord], None] | None = None,
) -> TrainResult:
    """Trains up to step `config.steps`, from the checkpoint in `config.out` if there is one.

    `stop_at` ends the call early and has no other effect: another call resumes there, on the same schedule.

    Raises: ConfigError, InputError; RunError if the loss is not finite.
    """
    last = min(config.steps, stop_at or config.steps)
    with repeatable(config.threads):
        run = Trainer(config)
        began = run.step
        with LossLog(config.out, run.step) as log:
            while run.step < last:
                log.append(run.take_step())
                if run.step % config.checkpoint_every == 0 or run.step == last:
                    log.sync()
                    run.save()
                if config.keep_every and (run.step % config.keep_every == 0 or run.step == config.steps):
                    retain_model(config.out, SavedModel(run.step, run.meta(), run.model.state_dict()))
                if on_step:
                    on_step(log.records[-1])
        plot(config.out, log.records, run.data.store.vocab_size)
    return TrainResult(
        out=config.out,
        resumed_from=began,
        records=log.records,
        num_parameters=sum(parameter.numel() for parameter in run.model.parameters()),
        num_sequences=run.data.num_sequences,
    )


class Trainer:
    """Model, optimiser and data of a run at a step."""

    def __init__(self, config: TrainConfig) -> None:
        """Starts at step 0, or at the step of the checkpoint in `config.out`."""
        store = TokenStore.open(config.tokens)
        length = config.sequence_length or store.sequence_length
        self.config = config
        self.data = TrainingData(store, config.batch_config(), length, config.seed)
        self.schedule = config.optimizer_config()
        self.device = config.torch_device()
        torch.manual_seed(config.seed)
        self.model = Decoder(
            config.model_config(), store.vocab_size, activation_checkpointing=config.activation_checkpointing
        ).to(self.device)
        self.optimizer = make_optimizer(self.model, self.schedule)
        self.step = 0
        self._resume()
        storage.write_json(
            storage.join(config.out, "config.json"), {"train": to_dict(config), "resolved": self.settings(config.steps)}
        )

    def take_step(self) -> LossRecord:
        """One update of the parameters; returns the loss before it."""
        rate = self._intervene()
        set_rate(self.optimizer, rate)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._accumulate_gradients()
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.schedule.gradient_clipping))
        if not math.isfinite(loss + norm):
            raise RunError(
                f"step {self.step + 1}: the loss is {loss}, its gradient's norm {norm}; "
                f"lower `learning_rate` ({self.schedule.learning_rate}) or lengthen `warmup_steps`, in a new `out`"
            )
        self.optimizer.step()
        self.step += 1
        tokens = self.data.schedule.before(self.step) * self.data.sequence_length
        return LossRecord(self.step, tokens, loss, rate, norm)

    def save(self) -> None:
        """Writes a checkpoint."""
        save_checkpoint(
            self.config.out,
            Checkpoint(
                step=self.step,
                meta=self.meta(),
                settings=self.settings(self.step),
                model=self.model.state_dict(),
                optimizer=self.optimizer.state_dict(),
                random=random_state(),
            ),
        )

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
        plain = {name: getattr(self.config, name) for name in ("micro_batch_size", "precision", "seed")}
        return {
            **nested,
            **plain,
            "sequence_length": self.data.sequence_length,
            "tokens.num_sequences": len(self.data.store),
            "interventions": [to_dict(entry) for entry in self.config.interventions if entry.step < step],
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
        ids_BT = self.data.batch(self.step).to(self.device)
        total = 0.0
        self.model.train()
        for part in torch.split(ids_BT, self.config.micro_batch_size or len(ids_BT)):
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
                logits_BTV = self.model(part)
                loss = next_token_loss(logits_BTV, part) * (len(part) / len(ids_BT))
                penalty = self.schedule.z_loss * z_loss(logits_BTV) * (len(part) / len(ids_BT))
            (loss + penalty if self.schedule.z_loss else loss).backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        return total

    def _resume(self) -> None:
        checkpoint = load_checkpoint(self.config.out)
        if checkpoint is None:
            return
        checkpoint.check_settings(self.settings(checkpoint.step), self.config.out)
        self.model.load_state_dict(checkpoint.model)
        self.optimizer.load_state_dict(dict(checkpoint.optimizer))
        set_random_state(checkpoint.random)
        self.step = checkpoint.step


@contextlib.contextmanager
def repeatable(threads: int) -> Iterator[None]:
    """A context in which torch uses `threads` threads and deterministic algorithms; restores the settings after it."""
    os.environ.setdefault(*_CUBLAS_SETTING)
    before = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.set_num_threads(before[1])
