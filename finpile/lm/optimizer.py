"""AdamW and its learning rate, BloombergGPT §3.3."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

from finpile.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerConfig:
    """The optimiser; learning rates are for AdamW."""

    learning_rate: float
    """The highest rate, at the end of the warm-up."""
    final_learning_rate: float
    """The lowest rate, from the end of the decay on."""
    warmup_steps: int
    decay_steps: int
    """The step at which the cosine reaches the final rate, including the warm-up."""
    beta1: float = 0.9
    beta2: float = 0.95
    weight_decay: float = 0.1
    gradient_clipping: float = 0.3
    """Largest global norm of the gradient; a larger gradient is scaled down."""

    def __post_init__(self) -> None:
        if not 0 <= self.final_learning_rate <= self.learning_rate:
            raise ConfigError(
                f"final_learning_rate is {self.final_learning_rate}: expected 0 to learning_rate ({self.learning_rate})"
            )
        if not 0 <= self.warmup_steps <= self.decay_steps:
            raise ConfigError(f"warmup_steps is {self.warmup_steps}: expected 0 to {self.decay_steps}, the decay's end")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: expected 0 <= value < 1")
        if self.weight_decay < 0:
            raise ConfigError(f"weight_decay is {self.weight_decay}: expected at least 0")
        if self.gradient_clipping <= 0:
            raise ConfigError(f"gradient_clipping is {self.gradient_clipping}: expected above 0")

    def rate(self, step: int) -> float:
        """The learning rate of step 0, 1, ...: linear warm-up to the highest rate, then a cosine to the final rate."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        span = max(1, self.decay_steps - self.warmup_steps)
        done = min(1.0, (step - self.warmup_steps) / span)
        height = self.learning_rate - self.final_learning_rate
        return self.final_learning_rate + height * (1 + math.cos(math.pi * done)) / 2


def make_adamw(model: nn.Module, config: OptimizerConfig) -> torch.optim.AdamW:
    """AdamW over all parameters, with weight decay for matrices (including the embedding), not for biases and gains.

    The paper gives the decay of 0.1, but not the parameters that it applies to; this is the convention of Megatron-LM,
    whose initialisation the paper uses.
    """
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(config.beta1, config.beta2))


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Sets the learning rate of every parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = rate
