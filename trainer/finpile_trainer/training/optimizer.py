"""The optimisers and learning rates of the three papers: AdamW with a cosine, and PaLM's Adafactor."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from finpile.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerConfig:
    """The optimiser and its learning rate."""

    kind: Literal["adamw", "palm-adafactor"] = "adamw"
    """`palm-adafactor` is that of PaLM §5: its rate is relative to the size of a matrix, its second-moment rate and its
    weight decay follow from the step and the rate, and `beta2`, `weight_decay` are not used."""
    schedule: Literal["cosine", "inverse_sqrt"] = "cosine"
    """`inverse_sqrt`: the highest rate for `warmup_steps` steps, then it falls as 1 / sqrt(step)."""
    learning_rate: float
    """The highest rate, at the end of the warm-up."""
    final_learning_rate: float
    """The lowest rate, from the end of the decay on."""
    warmup_steps: int
    decay_steps: int
    """The step at which the cosine reaches the final rate, including the warm-up; not used by `inverse_sqrt`."""
    beta1: float = 0.9
    beta2: float = 0.95
    weight_decay: float = 0.1
    gradient_clipping: float = 0.3
    """Largest global norm of the gradient; a larger gradient is scaled down."""
    z_loss: float = 0.0
    """Factor of log² Z in the training loss; PaLM: 1e-4."""

    def __post_init__(self) -> None:
        if not self.learning_rate >= 0:
            raise ConfigError(f"learning_rate is {self.learning_rate}: expected at least 0")
        if not 0 <= self.final_learning_rate <= self.learning_rate:
            raise ConfigError(
                f"final_learning_rate is {self.final_learning_rate}: expected 0 to learning_rate ({self.learning_rate})"
            )
        if self.warmup_steps < 0 or (self.schedule == "cosine" and self.warmup_steps > self.decay_steps):
            raise ConfigError(f"warmup_steps is {self.warmup_steps}: expected 0 to {self.decay_steps}, the decay's end")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: expected 0 <= value < 1")
        for name in ("weight_decay", "z_loss"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}: expected at least 0")
        if self.gradient_clipping <= 0:
            raise ConfigError(f"gradient_clipping is {self.gradient_clipping}: expected above 0")

    def rate(self, step: int) -> float:
        """The learning rate of step 0, 1, ...: linear warm-up to the highest rate, then a cosine to the final rate.

        `inverse_sqrt` has no warm-up: PaLM's rate is min(0.01, 1 / sqrt(k)) of step k.
        """
        if self.schedule == "inverse_sqrt":
            return self.learning_rate * min(1.0, math.sqrt(max(1, self.warmup_steps) / (step + 1)))
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        span = max(1, self.decay_steps - self.warmup_steps)
        done = min(1.0, (step - self.warmup_steps) / span)
        height = self.learning_rate - self.final_learning_rate
        return self.final_learning_rate + height * (1 + math.cos(math.pi * done)) / 2


def make_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """The optimiser over all parameters, with weight decay for matrices (including embeddings), not for other ones.

    The papers do not say which parameters decay; this is the convention of Megatron-LM, whose initialisation
    BloombergGPT uses.
    """
    parameters = list(model.parameters())
    matrices = [parameter for parameter in parameters if parameter.dim() >= 2]
    others = [parameter for parameter in parameters if parameter.dim() < 2]
    if config.kind == "palm-adafactor":
        groups = [{"params": matrices, "decays": True}, {"params": others, "decays": False}]
        return PalmAdafactor(groups, config.learning_rate, config.beta1)
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=(config.beta1, config.beta2))


class PalmAdafactor(torch.optim.Optimizer):
    """Adafactor without factorization, as PaLM uses it (§5): Adam with rates relative to the size of a parameter.

    In step k, for a gradient g of a parameter p at the rate r:

        v = b v + (1 - b) g²           b = 1 - k^-0.8
        m = beta1 m + (1 - beta1) r max(RMS(p), 0.001) g / sqrt(v)
        p = (1 - r²) p - m             without the decay, r², for biases and gains

    The moving average is one of updates, and the least size is 0.001, as in Adafactor (Shazeer and Stern 2018,
    algorithm 4), whose clipping of updates the paper does not mention and which is left out.
    """

    #: Exponent of the second moment's rate; the least root mean square of a parameter; added to g².
    DECAY, LEAST_SIZE, EPSILON = 0.8, 1e-3, 1e-30

    def __init__(self, groups: list[dict[str, Any]], lr: float, beta1: float) -> None:
        super().__init__(groups, {"lr": lr, "beta1": beta1, "decays": True})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Updates all parameters that have a gradient."""
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state.update(step=0, mean=torch.zeros_like(parameter), square=torch.zeros_like(parameter))
        state["step"] += 1
        rate = group["lr"]
        size = parameter.square().mean().sqrt().clamp(min=self.LEAST_SIZE)
        state["square"].lerp_(gradient.square() + self.EPSILON, state["step"] ** -self.DECAY)
        update = gradient * state["square"].rsqrt() * (rate * size)
        state["mean"].lerp_(update, 1 - group["beta1"])
        parameter.mul_(1 - rate**2 if group["decays"] else 1.0).sub_(state["mean"])


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Sets the learning rate of every parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = rate
