"""The settings of a training run, and the file that has them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch

from finpile.config import bounds
from finpile.config.strict_yaml import absolute, load_yaml
from finpile.errors import ConfigError
from finpile_trainer.model.config import ModelChanges, ModelConfig
from finpile_trainer.training.guard import SpikeGuard
from finpile_trainer.training.optimizer import OptimizerConfig
from finpile_trainer.training.presets import BatchConfig, preset

#: The final learning rate as a share of the highest (§3.3).
FINAL_RATE_SHARE = 0.1


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
        bounds.at_least("interventions.step", self.step, 0)
        if self.rate_factor <= 0:
            raise ConfigError(f"interventions.rate_factor is {self.rate_factor}: expected above 0")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ConfigError(f"interventions.dropout is {self.dropout}: expected 0 <= value < 1, or null")


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
    model: ModelChanges = field(default_factory=ModelChanges)
    """Values of the model's shape that differ from the preset's, such as `{num_layers: 8, dropout: 0.1}`."""
    sequence_length: int | None = None
    """Tokens of a training sequence: a divisor of the shards' length, into which stored sequences are cut; the shards'
    own length if null."""
    document_masks: bool = False
    """Attention within documents: a token reads its document from the `<|endoftext|>` before it on, and not the earlier
    documents of its sequence. The papers train without."""
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
    heldout: str | None = None
    """Folder of held-out token shards: OUT/tokens/split=heldout of a build. Relative to the training file, or a URL.
    The loss on it is measured every `heldout_every` steps; the model with the lowest one is retained."""
    heldout_every: int = 300
    """Number of steps between two measurements of the held-out loss; the paper's 300 (§4)."""
    heldout_tokens: int | None = None
    """Measures a sample of about this many held-out tokens: sequences at equal distances, a share of those of each
    source and at least one. Null measures all."""
    loss_spikes: SpikeGuard | None = None
    """Rolls back at loss spikes, with `{}` by the defaults below. With null, a loss that is not finite ends the run."""
    tensorboard: bool = False
    """Writes both losses, rate, gradient norm and speed for TensorBoard, below OUT/tensorboard."""
    peak_tflops: float | None = None
    """Peak TFLOP/s of one device, for the utilisation; null: known for A100 and H100, otherwise not reported."""
    watts: float | None = None
    """Power of one device, for the energy estimate; null: known for A100 and H100, otherwise not reported."""

    def __post_init__(self) -> None:
        preset(self.preset)
        for name in ("steps", "threads", "checkpoint_every", "heldout_every"):
            bounds.at_least(name, getattr(self, name), 1)
        for name in ("sequence_length", "micro_batch_size", "keep_every", "heldout_tokens"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: expected at least 1, or null")
        if self.heldout_tokens is not None and self.heldout is None:
            raise ConfigError(
                f"heldout_tokens is {self.heldout_tokens}, and `heldout` is not set: set it, or leave both"
            )
        for name in ("keep_every", "heldout", "loss_spikes", "tensorboard"):
            if getattr(self, name) and "://" in self.out:
                raise ConfigError(
                    f"{name} is {getattr(self, name)}: its files are written to a local disk, out is {self.out!r}"
                )
        for name in ("peak_tflops", "watts"):
            if getattr(self, name) is not None and getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name)}: expected above 0, or null")
        self.model_config()
        self.optimizer_config()
        self.batch_config()

    def model_config(self) -> ModelConfig:
        """The shape of the preset with the values of this file. Raises: ConfigError if they are not a shape."""
        return self.model.applied(preset(self.preset).model)

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
    """Reads a training file; `tokens`, `out` and `heldout` of the result are absolute.

    Raises: ConfigError with file, line, the value found and the value expected.
    """
    config = load_yaml(path, TrainConfig, "a training file")
    return dataclasses.replace(
        config,
        tokens=absolute(path, config.tokens),
        out=absolute(path, config.out),
        heldout=None if config.heldout is None else absolute(path, config.heldout),
    )
