"""Learning rate, weight decay and batch sizes as §3.3 has them."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from finpile_trainer.model.model import Decoder, ModelConfig
from finpile_trainer.training.optimizer import OptimizerConfig, make_optimizer, set_rate
from finpile_trainer.training.presets import BLOOMBERGGPT_50B, PALM_540B, BatchConfig
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from finpile.errors import ConfigError


def schedule(**changes: float) -> OptimizerConfig:
    values = {"learning_rate": 1.0, "final_learning_rate": 0.1, "warmup_steps": 4, "decay_steps": 14, **changes}
    return OptimizerConfig(**values)  # type: ignore[arg-type]


def test_rate_climbs_in_a_line_then_falls_along_half_a_cosine() -> None:
    rates = [schedule().rate(step) for step in range(20)]
    assert rates[:5] == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0])
    assert rates[9] == pytest.approx(0.55)  # half way down
    assert rates[14:] == pytest.approx([0.1] * 6)
    assert rates[4:] == sorted(rates[4:], reverse=True)


def test_rate_without_warm_up_starts_at_the_top() -> None:
    assert schedule(warmup_steps=0).rate(0) == 1.0


def test_the_papers_rates_are_reached_at_the_papers_steps() -> None:
    paper = BLOOMBERGGPT_50B.optimizer
    assert paper.rate(1_799) == pytest.approx(6e-5)
    assert paper.rate(10**6) == pytest.approx(6e-6)
    assert max(map(paper.rate, range(0, 180_000, 100))) == pytest.approx(6e-5)


def test_the_papers_batches_make_the_papers_569_billion_tokens() -> None:
    batch, length = BLOOMBERGGPT_50B.batch, BLOOMBERGGPT_50B.sequence_length
    assert batch.at(7_199) * length == pytest.approx(2.1e6, rel=0.01)
    assert batch.at(7_200) * length == pytest.approx(4.2e6, rel=0.01)
    assert batch.before(139_200) * length == pytest.approx(569e9, rel=0.001)


@given(size=st.integers(1, 9), small=st.integers(1, 9), warmup=st.integers(1, 9), step=st.integers(0, 30))
def test_sequences_before_a_step_are_the_sum_of_all_batches(size: int, small: int, warmup: int, step: int) -> None:
    batch = BatchConfig(size=size, ramp=((warmup, small), (warmup + 3, size + 1)))
    assert batch.before(step) == sum(map(batch.at, range(step)))


def test_matrices_decay_and_vectors_do_not() -> None:
    model = Decoder(ModelConfig(num_layers=1, num_heads=1, hidden_size=8), vocab_size=20)
    optimizer = make_optimizer(model, schedule(weight_decay=0.5))
    set_rate(optimizer, 0.1)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        decays = name.endswith("weight") and "norm" not in name
        torch.testing.assert_close(parameter.detach(), before[name] * (1 - 0.1 * 0.5 if decays else 1), msg=name)


def test_the_rate_of_palm_is_its_formula() -> None:
    palm = PALM_540B.optimizer
    for k in (1, 9_999, 10_000, 40_000, 255_000):
        assert palm.rate(k - 1) == pytest.approx(min(0.01, 1 / math.sqrt(k)))


def test_the_ramp_of_palm_makes_780_billion_tokens() -> None:
    assert PALM_540B.batch.before(255_000) * PALM_540B.sequence_length == pytest.approx(780e9, rel=0.03)


def test_adafactor_of_palm_equals_its_recursions() -> None:
    """Three steps of one matrix, written out; a gain of the same values does not decay."""
    torch.manual_seed(0)
    start, gradients = torch.randn(3, 4), torch.randn(3, 3, 4)
    matrix, gain = nn.Parameter(start.clone()), nn.Parameter(start.flatten().clone())
    optimizer = make_optimizer(nn.ParameterList([matrix, gain]), dataclasses.replace(PALM_540B.optimizer))
    expected, undecayed = start.clone(), start.clone()
    for decay, value in ((1, expected), (0, undecayed)):
        mean, square = torch.zeros(3, 4), torch.zeros(3, 4)
        for k, g in enumerate(gradients, start=1):
            rate = 0.1 / k
            square = (1 - k**-0.8) * square + k**-0.8 * g**2
            mean = 0.9 * mean + 0.1 * rate * max(0.001, float((value**2).mean().sqrt())) * g / square.sqrt()
            value.copy_((1 - decay * rate**2) * value - mean)
    for k, g in enumerate(gradients, start=1):
        set_rate(optimizer, 0.1 / k)
        matrix.grad, gain.grad = g.clone(), g.flatten().clone()
        optimizer.step()
    torch.testing.assert_close(matrix.detach(), expected)
    torch.testing.assert_close(gain.detach(), undecayed.flatten())


def test_contradictions_are_named() -> None:
    with pytest.raises(ConfigError, match=r"^learning_rate is -1"):
        schedule(learning_rate=-1.0)
    with pytest.raises(ConfigError, match="final_learning_rate is 2"):
        schedule(final_learning_rate=2.0)
    with pytest.raises(ConfigError, match="warmup_steps is 15: expected 0 to 14"):
        schedule(warmup_steps=15)
    with pytest.raises(ConfigError, match="beta2 is 1"):
        schedule(beta2=1.0)
    with pytest.raises(ConfigError, match=r"warmup_batch_steps is \[5, 5\]"):
        BatchConfig(size=8, ramp=((5, 4), (5, 6)))
    with pytest.raises(ConfigError, match=r"warmup_batch_size \[0\]"):
        BatchConfig(size=8, ramp=((5, 0),))
