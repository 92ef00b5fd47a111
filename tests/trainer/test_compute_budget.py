"""§3.2 of BloombergGPT: its printed optima and its shape follow from 1.3 million GPU hours."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from finpile_cli.plan_model import plan_model_command
from finpile_trainer.training.compute_budget import (
    Cluster,
    budget_flops,
    chinchilla,
    levine_hidden_size,
    model_shape,
    training_cost,
)

from finpile.errors import ConfigError

#: Parameters and tokens in billions, as printed.
PRINTED = ((52.993, 1_111.112), (49.753, 1_175.766))


def test_the_budget_of_the_paper_gives_its_optima() -> None:
    assert budget_flops(1.3e6) == pytest.approx(3.51e23)
    for optimum, printed in zip(chinchilla(3.51e23), PRINTED, strict=True):
        assert (optimum.parameters / 1e9, optimum.tokens / 1e9) == pytest.approx(printed, rel=2e-5)
    for optimum, printed in zip(chinchilla(3.509963e23), PRINTED, strict=True):
        assert (round(optimum.parameters / 1e9, 3), round(optimum.tokens / 1e9, 3)) == printed


def test_the_regression_lines_are_those_that_the_paper_prints() -> None:
    """exp10(0.498 x - 1.004), exp10(0.502 x + 0.229); exp10(0.490 x - 0.839), exp10(0.510 x + 0.062)."""
    lines = ((0.498, -1.004, 0.502, 0.229), (0.490, -0.839, 0.510, 0.062))
    for index, (slope, offset, token_slope, token_offset) in enumerate(lines):
        low, high = chinchilla(1.0)[index], chinchilla(10.0)[index]
        assert round(math.log10(low.parameters), 3) == offset
        assert round(math.log10(high.parameters / low.parameters), 3) == slope
        assert round(math.log10(low.tokens), 3) == token_offset
        assert round(math.log10(high.tokens / low.tokens), 3) == token_slope


def test_the_shape_of_the_paper_follows_from_50_billion_parameters() -> None:
    assert round(levine_hidden_size(70)) == 7510
    shape = model_shape(50e9, vocab_size=131_072)
    assert (shape.num_layers, shape.hidden_size, shape.num_heads, shape.size_per_head) == (70, 7_680, 40, 192)


@pytest.mark.parametrize("parameters", [1e6, 125e6, 1.3e9, 10e9, 540e9])
def test_heads_divide_every_planned_shape(parameters: float) -> None:
    shape = model_shape(parameters, vocab_size=50_432)
    assert shape.num_heads % 8 == shape.size_per_head % 64 == 0
    assert shape.hidden_size == shape.num_heads * shape.size_per_head


def test_the_cost_of_bloomberggpt_is_near_that_of_its_run() -> None:
    """Table 4: 569 B tokens at 102 TFLOP/s on 512 GPUs took 53 days, restarts included."""
    cost = training_cost(model_shape(50e9, 131_072), 131_072, 569e9, 2_048, Cluster(gpu_flops=102e12))
    assert cost.days == pytest.approx(53, rel=0.05)
    assert cost.state_bytes == 16 * 50_558_868_480
    assert cost.activation_bytes == 2 * 70 * 2_048 * 7_680
    assert cost.energy_mwh == pytest.approx(cost.gpu_hours * 0.44 / 1_000)
    assert cost.co2_tonnes == pytest.approx(cost.energy_mwh * 0.385)


def test_the_command_prints_the_plan_and_draws_the_figure(tmp_path: Path) -> None:
    arguments = ["--gpu-hours", "1.3e6", "--output", str(tmp_path / "figure.svg")]
    plain = CliRunner().invoke(plan_model_command, arguments, catch_exceptions=False).output
    assert "52.993 B" in plain
    assert "70 layers, hidden size 7,680, 40 heads of 192: 50,558,868,480 parameters" in plain
    assert b"BloombergGPT" in (tmp_path / "figure.svg").read_bytes()
    report = json.loads(CliRunner().invoke(plan_model_command, ["--flops", "3.51e23", "--json"]).output)
    assert report["shape"] == {
        "num_layers": 70,
        "hidden_size": 7680,
        "num_heads": 40,
        "head_size": 192,
        "parameters": 50_558_868_480,
    }
    with pytest.raises(ConfigError, match="give one budget"):
        CliRunner().invoke(plan_model_command, ["--flops", "1", "--gpu-hours", "1"], catch_exceptions=False)


def test_planning_imports_no_torch() -> None:
    code = "import sys, finpile_cli.plan_model; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
