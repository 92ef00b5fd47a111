"""Named presets: the shape of a model and the settings of its training."""

from __future__ import annotations

from dataclasses import dataclass

from finpile.errors import ConfigError
from finpile.lm.model import ModelConfig
from finpile.lm.optimizer import OptimizerConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchConfig:
    """The number of sequences per step, with an optional warm-up of smaller batches."""

    size: int
    warmup_size: int | None = None
    """Sequences of each of the first `warmup_steps` steps; no warm-up if null."""
    warmup_steps: int = 0

    def __post_init__(self) -> None:
        for name, value in (("batch_size", self.size), ("warmup_batch_size", self.warmup_size)):
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}: expected at least 1")
        if self.warmup_steps < 0 or (self.warmup_steps > 0) != (self.warmup_size is not None):
            raise ConfigError(
                f"warmup_batch_size is {self.warmup_size}, warmup_batch_steps {self.warmup_steps}: "
                "give both (the second above 0), or neither"
            )

    def at(self, step: int) -> int:
        """Sequences of step 0, 1, ..."""
        return self.warmup_size if self.warmup_size is not None and step < self.warmup_steps else self.size

    def before(self, step: int) -> int:
        """Sequences of all steps before `step`."""
        small = min(step, self.warmup_steps)
        return small * (self.warmup_size or 0) + (step - small) * self.size


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """All settings of a training run except its data."""

    model: ModelConfig
    optimizer: OptimizerConfig
    batch: BatchConfig
    sequence_length: int
    """Tokens of a training sequence."""
    vocab_size: int | None = None
    """The published vocabulary size, for reference; a run uses the size of its token shards."""


#: Table 4, §3.3, §4 and appendix A.5. The paper gives the form and the ends of the schedule, and 139,200 steps for the
#: final model, but not the last step of the cosine; here it is one epoch, 709 B tokens: 7,200 steps of 1,024 x 2,048
#: tokens, then 165,440 of 2,048 x 2,048. The interventions of §4 (rate reduced by a third at step 115,500, halved at
#: 129,900 and 137,100; dropout 0.1 from 129,900) are not included.
BLOOMBERGGPT_50B = Preset(
    model=ModelConfig(num_layers=70, num_heads=40, hidden_size=7_680),
    optimizer=OptimizerConfig(
        learning_rate=6e-5,
        final_learning_rate=6e-6,
        warmup_steps=1_800,
        decay_steps=172_640,
        beta1=0.9,
        beta2=0.95,
        weight_decay=0.1,
        gradient_clipping=0.3,
    ),
    batch=BatchConfig(size=2_048, warmup_size=1_024, warmup_steps=7_200),
    sequence_length=2_048,
    vocab_size=131_072,
)

#: The same architecture for two CPU cores and a few minutes. As in the paper, the number of heads is no power of two,
#: the final rate is a tenth of the highest, and gradients are clipped at 0.3 (§3.3).
TINY = Preset(
    model=ModelConfig(num_layers=4, num_heads=6, hidden_size=192),
    optimizer=OptimizerConfig(learning_rate=3e-3, final_learning_rate=3e-4, warmup_steps=30, decay_steps=300),
    batch=BatchConfig(size=4),
    sequence_length=256,
)

PRESETS = {"bloomberggpt-50b": BLOOMBERGGPT_50B, "tiny": TINY}


def preset(name: str) -> Preset:
    """The preset with this name.

    Raises: ConfigError with the known names.
    """
    if name not in PRESETS:
        raise ConfigError(f"preset: {name!r} is not known; known: {', '.join(sorted(PRESETS))}")
    return PRESETS[name]
