"""The size of a model from a compute budget, as BloombergGPT §3.2 finds it; imports no PyTorch.

    compute budget ── Chinchilla, approaches 1 and 2 ──> parameters and tokens
    parameters ────── Levine et al.: depth to width ───> layers, hidden size, heads
    shape, tokens ── memory, time, energy, CO2

Example: the paper's 1.3 million hours of A100 give the shape of BloombergGPT.

>>> flops = budget_flops(gpu_hours=1.3e6)
>>> [round(optimum.parameters / 1e9, 1) for optimum in chinchilla(flops)]
[53.0, 49.8]
>>> shape = model_shape(49.8e9, vocab_size=131_072)
>>> shape.num_layers, shape.hidden_size, shape.num_heads
(70, 7680, 40)
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from finpile_trainer.model.config import ModelConfig

#: Floating-point operations a second of one A100, as the paper reports its training (Table 4 has 102 TFLOP/s). With
#: 100, 1.3 million hours, 3.51e23 FLOPs, give the four numbers of §3.2 to five digits; 3.509963e23 give all.
GPU_FLOPS = 100e12
#: Share of the work that remains if the forward pass runs twice: 3 of 4 passes, with a backward pass as two (§3.2).
USEFUL_SHARE = 0.75
#: Operations per parameter and token, forward and backward (Kaplan et al. 2020, §2.1).
FLOPS_PER_PARAMETER = 6

#: Hoffmann et al. 2022, Table 3: estimated optimal FLOPs and tokens by parameters (approach 1).
_APPROACH_1 = (
    (400e6, 1.92e19, 8.0e9),
    (1e9, 1.21e20, 20.2e9),
    (10e9, 1.23e22, 205.1e9),
    (67e9, 5.76e23, 1.5e12),
    (175e9, 3.85e24, 3.7e12),
    (280e9, 9.90e24, 5.9e12),
    (520e9, 3.43e25, 11.0e12),
    (1e12, 1.27e26, 21.2e12),
    (10e12, 1.30e28, 216.2e12),
)
#: Table A3 of the same paper (approach 2).
_APPROACH_2 = (
    (400e6, 1.84e19, 7.7e9),
    (1e9, 1.20e20, 20.0e9),
    (10e9, 1.32e22, 219.5e9),
    (67e9, 6.88e23, 1.7e12),
    (175e9, 4.54e24, 4.3e12),
    (280e9, 1.18e25, 7.1e12),
    (520e9, 4.19e25, 13.4e12),
    (1e12, 1.59e26, 26.5e12),
    (10e12, 1.75e28, 292.0e12),
)

#: Levine et al. 2020: the hidden size that suits L layers is exp(5.039 + 0.0555 L).
_LEVINE_OFFSET, _LEVINE_SLOPE = 5.039, 0.0555
_MAX_LAYERS = 200
#: Heads and their sizes are multiples of these, for even shares of 8 devices and for tensor cores; §3.2 says that heads
#: typically have 64 or 128 dimensions. With them the rule below finds the paper's 40 heads of 192.
_HEADS_STEP, _HEAD_SIZE_STEP, _USUAL_HEAD_SIZE = 8, 64, 128

#: Bytes per parameter of weights, gradients and Adam's state in mixed precision (Rajbhandari et al. 2020, ZeRO, §3.1).
_STATE_BYTES = 16
#: Bytes of an activation in bfloat16; with activation checkpointing one per layer, position and dimension is stored.
_ACTIVATION_BYTES = 2


@dataclass(frozen=True, slots=True)
class Optimum:
    """The compute-optimal model of one approach."""

    approach: int
    parameters: float
    tokens: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """The machine of a training run. Defaults: 512 A100 of BloombergGPT; energy and CO2 of Touvron et al. 2023, §6."""

    num_gpus: int = 512
    gpu_flops: float = GPU_FLOPS
    """Operations a second of one GPU, as achieved."""
    watts: float = 400.0
    """Of one GPU."""
    pue: float = 1.1
    """Power usage effectiveness: power of the data centre over that of the machines."""
    kg_co2_per_kwh: float = 0.385


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a training run takes."""

    tokens: float
    flops: float
    """Operations, including the second forward pass of activation checkpointing."""
    gpu_hours: float
    days: float
    state_bytes: int
    """Weights, gradients and Adam's state, over all GPUs."""
    activation_bytes: int
    """Stored activations of one sequence, with activation checkpointing."""
    energy_mwh: float
    co2_tonnes: float


def budget_flops(gpu_hours: float, gpu_flops: float = GPU_FLOPS) -> float:
    """The operations that Chinchilla's equations take, of GPU hours with activation checkpointing (§3.2)."""
    return USEFUL_SHARE * gpu_hours * 3600 * gpu_flops


def chinchilla(flops: float) -> tuple[Optimum, Optimum]:
    """The optima of approaches 1 and 2, by regression lines through the logarithms of Chinchilla's tables (§3.2)."""
    return _optimum(1, _APPROACH_1, flops), _optimum(2, _APPROACH_2, flops)


def _optimum(approach: int, rows: Sequence[tuple[float, float, float]], flops: float) -> Optimum:
    parameters, budgets, tokens = (list(map(math.log10, column)) for column in zip(*rows, strict=True))
    lines = [statistics.linear_regression(budgets, values) for values in (parameters, tokens)]
    return Optimum(approach, *(10 ** (line.slope * math.log10(flops) + line.intercept) for line in lines))


def levine_hidden_size(num_layers: int) -> float:
    """The hidden size that suits a depth.

    >>> round(levine_hidden_size(70))
    7510
    """
    return math.exp(_LEVINE_OFFSET + _LEVINE_SLOPE * num_layers)


def model_shape(parameters: float, vocab_size: int) -> ModelConfig:
    """The BloombergGPT of about this many parameters.

    The depth is that whose width after Levine et al. gives the number nearest to `parameters`. The width is then
    rounded so that it divides into heads; of the possible sizes of a head, that nearest to 128 (by ratio) is taken.
    """

    def distance(num_layers: int) -> float:
        model = ModelConfig(num_layers=num_layers, num_heads=1, hidden_size=round(levine_hidden_size(num_layers)))
        return abs(model.num_parameters(vocab_size) - parameters)

    num_layers = min(range(1, _MAX_LAYERS + 1), key=distance)
    step = _HEADS_STEP * _HEAD_SIZE_STEP
    num_steps = max(1, round(levine_hidden_size(num_layers) / step))
    factors = [factor for factor in range(1, num_steps + 1) if num_steps % factor == 0]
    factor = min(factors, key=lambda value: abs(math.log(value * _HEAD_SIZE_STEP / _USUAL_HEAD_SIZE)))
    return ModelConfig(num_layers=num_layers, num_heads=_HEADS_STEP * num_steps // factor, hidden_size=step * num_steps)


def training_cost(model: ModelConfig, vocab_size: int, tokens: float, sequence_length: int, cluster: Cluster) -> Cost:
    """Memory, time, energy and CO2 of one run, without failures and restarts."""
    parameters = model.num_parameters(vocab_size)
    flops = FLOPS_PER_PARAMETER * parameters * tokens / USEFUL_SHARE
    gpu_hours = flops / cluster.gpu_flops / 3600
    energy_mwh = gpu_hours * cluster.watts * cluster.pue / 1e6
    return Cost(
        tokens=tokens,
        flops=flops,
        gpu_hours=gpu_hours,
        days=gpu_hours / cluster.num_gpus / 24,
        state_bytes=_STATE_BYTES * parameters,
        activation_bytes=_ACTIVATION_BYTES * model.num_layers * sequence_length * model.hidden_size,
        energy_mwh=energy_mwh,
        co2_tonnes=energy_mwh * cluster.kg_co2_per_kwh,
    )
