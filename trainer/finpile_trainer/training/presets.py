"""Named presets: the tables of the three papers, and small siblings for two CPU cores."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

from finpile.errors import ConfigError
from finpile_trainer.model.config import ModelConfig
from finpile_trainer.training.optimizer import OptimizerConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchConfig:
    """The number of sequences per step, which may grow during the run."""

    size: int
    """Sequences of each step, after the ramp."""
    ramp: tuple[tuple[int, int], ...] = ()
    """Pairs of a step and the sequences of each step before it, by step."""

    def __post_init__(self) -> None:
        sizes = [size for _, size in self.ramp]
        if min(self.size, *sizes, self.size) < 1:
            raise ConfigError(f"batch_size is {self.size}, warmup_batch_size {sizes}: expected at least 1")
        ends = [0, *(end for end, _ in self.ramp)]
        if any(end <= begin for begin, end in itertools.pairwise(ends)):
            raise ConfigError(f"warmup_batch_steps is {ends[1:]}: expected rising steps above 0")

    def at(self, step: int) -> int:
        """Sequences of step 0, 1, ..."""
        return next((size for end, size in self.ramp if step < end), self.size)

    def before(self, step: int) -> int:
        """Sequences of all steps before `step`."""
        total = begin = 0
        for end, size in self.ramp:
            total += (min(step, end) - min(step, begin)) * size
            begin = end
        return total + (step - min(step, begin)) * self.size


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
    batch=BatchConfig(size=2_048, ramp=((7_200, 1_024),)),
    sequence_length=2_048,
    vocab_size=131_072,
)

#: Black et al. 2022, §2 and appendix, and 20B.yml: 150,000 steps, of which 1% are warm-up; batches of 1,536 x 2,048 =
#: 3.15 M tokens (4 sequences, 32 accumulations, 12 replicas). The vocabulary is 50,257 entries, padded to 50,432.
#: https://github.com/EleutherAI/gpt-neox/blob/main/configs/20B.yml
GPT_NEOX_20B = Preset(
    model=ModelConfig(architecture="gpt-neox", num_layers=44, num_heads=64, hidden_size=6_144),
    optimizer=OptimizerConfig(
        learning_rate=0.97e-4,
        final_learning_rate=0.97e-5,
        warmup_steps=1_500,
        decay_steps=150_000,
        beta1=0.9,
        beta2=0.95,
        weight_decay=0.01,
        gradient_clipping=1.0,
    ),
    batch=BatchConfig(size=1_536),
    sequence_length=2_048,
    vocab_size=50_432,
)

#: Chowdhery et al. 2022, §5: 0.01 for 10,000 steps, then 1 / sqrt(k); momentum 0.9; clipping at 1; z-loss 1e-4.
_PALM_OPTIMIZER = OptimizerConfig(
    kind="palm-adafactor",
    schedule="inverse_sqrt",
    learning_rate=1e-2,
    final_learning_rate=0.0,
    warmup_steps=10_000,
    decay_steps=255_000,
    beta1=0.9,
    gradient_clipping=1.0,
    z_loss=1e-4,
)


def _palm(num_layers: int, num_heads: int, hidden_size: int, batch: BatchConfig) -> Preset:
    """A row of Table 1 of PaLM: heads of 256, sequences of 2,048 tokens, a vocabulary of 256 k entries (§2, §5)."""
    return Preset(
        model=ModelConfig(
            architecture="palm", num_layers=num_layers, num_heads=num_heads, hidden_size=hidden_size, head_size=256
        ),
        optimizer=_PALM_OPTIMIZER,
        batch=batch,
        sequence_length=2_048,
        vocab_size=256_000,
    )


#: Table 1 has the batch sizes of the three models (in sequences), §5 the steps at which that of the largest grows, of
#: 255,000. The paper gives no steps for the smaller ones; their one step is chosen here, the first of the largest.
PALM_8B = _palm(32, 16, 4_096, BatchConfig(size=512, ramp=((50_000, 256),)))
PALM_62B = _palm(64, 32, 8_192, BatchConfig(size=1_024, ramp=((50_000, 512),)))
PALM_540B = _palm(118, 48, 18_432, BatchConfig(size=2_048, ramp=((50_000, 512), (115_000, 1_024))))

#: The same architecture for two CPU cores and a few minutes. As in the paper, the final rate is a tenth of the highest,
#: and gradients are clipped at 0.3 (§3.3). The number of heads is a power of two, unlike the paper's 40, so that
#: transformers' BLOOM has the model.
BLOOMBERGGPT_TINY = Preset(
    model=ModelConfig(num_layers=4, num_heads=8, hidden_size=192),
    optimizer=OptimizerConfig(learning_rate=3e-3, final_learning_rate=3e-4, warmup_steps=30, decay_steps=300),
    batch=BatchConfig(size=4),
    sequence_length=256,
)

#: As large as BLOOMBERGGPT_TINY; weight decay and clipping are those of GPT-NeoX-20B.
GPT_NEOX_TINY = dataclasses.replace(
    BLOOMBERGGPT_TINY,
    model=ModelConfig(architecture="gpt-neox", num_layers=4, num_heads=8, hidden_size=192),
    optimizer=dataclasses.replace(BLOOMBERGGPT_TINY.optimizer, weight_decay=0.01, gradient_clipping=1.0),
)

#: As large as BLOOMBERGGPT_TINY; the optimiser is PaLM's, with 0.01 for 100 steps.
PALM_TINY = dataclasses.replace(
    BLOOMBERGGPT_TINY,
    model=ModelConfig(architecture="palm", num_layers=4, num_heads=8, hidden_size=192),
    optimizer=dataclasses.replace(_PALM_OPTIMIZER, warmup_steps=100),
)

PRESETS = {
    "bloomberggpt-50b": BLOOMBERGGPT_50B,
    "bloomberggpt-tiny": BLOOMBERGGPT_TINY,
    "gpt-neox-20b": GPT_NEOX_20B,
    "gpt-neox-tiny": GPT_NEOX_TINY,
    "palm-8b": PALM_8B,
    "palm-62b": PALM_62B,
    "palm-540b": PALM_540B,
    "palm-tiny": PALM_TINY,
}


def preset(name: str) -> Preset:
    """The preset with this name.

    Raises: ConfigError with the known names.
    """
    if name not in PRESETS:
        raise ConfigError(f"preset: {name!r} is not known; known: {', '.join(sorted(PRESETS))}")
    return PRESETS[name]
