"""`finpile model plan`: the size of a model from a compute budget."""

from __future__ import annotations

import dataclasses
from typing import Any

import click
from finpile_trainer.model.config import ModelConfig
from finpile_trainer.pages.scaling import scaling_figure
from finpile_trainer.training.compute_budget import (
    Cluster,
    Cost,
    Optimum,
    budget_flops,
    chinchilla,
    model_shape,
    training_cost,
)

from finpile import storage
from finpile.errors import ConfigError
from finpile_cli.console import Console, json_option
from finpile_cli.paths import Output

_POSITIVE = click.FloatRange(min=0, min_open=True)
_DEFAULT = Cluster()


@click.command()
@click.option("--flops", type=_POSITIVE, metavar="F", help="Operations, without a second forward pass.")
@click.option("--gpu-hours", type=_POSITIVE, metavar="H", help="GPU hours, with activation checkpointing.")
@click.option(
    "--tflops", type=_POSITIVE, default=_DEFAULT.gpu_flops / 1e12, show_default=True, help="TFLOP/s of a GPU."
)
@click.option("--gpus", type=click.IntRange(min=1), default=_DEFAULT.num_gpus, show_default=True, help="GPUs.")
@click.option("--tokens", type=_POSITIVE, metavar="N", help="Training tokens.  [default: the smaller optimum's]")
@click.option(
    "--vocab-size", type=click.IntRange(min=1), default=131_072, show_default=True, help="Entries of the vocabulary."
)
@click.option("--sequence-length", type=click.IntRange(min=1), default=2_048, show_default=True, help="Tokens.")
@click.option("--watts", type=_POSITIVE, default=_DEFAULT.watts, show_default=True, help="Power of a GPU.")
@click.option("--pue", type=_POSITIVE, default=_DEFAULT.pue, show_default=True, help="Power usage effectiveness.")
@click.option("--co2", type=_POSITIVE, default=_DEFAULT.kg_co2_per_kwh, show_default=True, help="kg of CO2 for a kWh.")
@click.option(
    "-o",
    "--output",
    type=Output(is_folder=False),
    metavar="FILE",
    help="Output file: an SVG of the models and the optima.",
)
@json_option
def plan_model_command(
    flops: float | None,
    gpu_hours: float | None,
    tflops: float,
    gpus: int,
    tokens: float | None,
    vocab_size: int,
    sequence_length: int,
    watts: float,
    pue: float,
    co2: float,
    output: str | None,
    as_json: bool,
) -> None:
    """Plan a model for a compute budget: parameters, tokens, shape, memory, time, energy and CO2.

    As in section 3.2 of the BloombergGPT paper: Chinchilla's approaches 1 and 2, then depth and width by Levine et al.
    The shape is that of the smaller optimum. Its width is a multiple of 512, for a multiple of 8 heads of a multiple of
    64: of small models, the number of parameters is not near the optimum's.
    """
    if (flops is None) == (gpu_hours is None):
        raise ConfigError("give one budget: --flops F or --gpu-hours H")
    cluster = Cluster(num_gpus=gpus, gpu_flops=tflops * 1e12, watts=watts, pue=pue, kg_co2_per_kwh=co2)
    budget = flops if flops is not None else budget_flops(gpu_hours or 0, cluster.gpu_flops)
    optima = chinchilla(budget)
    smaller = min(optima, key=lambda optimum: optimum.parameters)
    model = model_shape(smaller.parameters, vocab_size)
    cost = training_cost(model, vocab_size, tokens or smaller.tokens, sequence_length, cluster)
    parameters = model.num_parameters(vocab_size)
    if output:
        storage.write_bytes(output, scaling_figure(Optimum(0, parameters, cost.tokens)))
    console = Console(as_json)
    shape = (
        f"{model.num_layers} layers, hidden size {model.hidden_size:,}, {model.num_heads} heads of "
        f"{model.size_per_head}: {parameters:,} parameters"
    )
    _print(console, budget, optima, shape, cost)
    console.result(_report(budget, optima, cost) | {"shape": _shape(model, parameters)})


def _print(console: Console, budget: float, optima: tuple[Optimum, Optimum], shape: str, cost: Cost) -> None:
    console.line(f"{budget:.4g} FLOPs")
    console.table(
        "Compute-optimal (Chinchilla)",
        ["approach", "parameters", "tokens"],
        [[entry.approach, f"{entry.parameters / 1e9:,.3f} B", f"{entry.tokens / 1e9:,.3f} B"] for entry in optima],
    )
    console.line(shape)
    rows = [
        ["tokens", f"{cost.tokens / 1e9:,.1f} B"],
        ["GPU hours", f"{cost.gpu_hours:,.0f}"],
        ["days", f"{cost.days:,.1f}"],
        ["weights, gradients, optimiser", f"{cost.state_bytes / 1e9:,.1f} GB"],
        ["activations of a sequence", f"{cost.activation_bytes / 1e9:,.2f} GB"],
        ["energy", f"{cost.energy_mwh:,.1f} MWh"],
        ["CO2", f"{cost.co2_tonnes:,.1f} t"],
    ]
    console.table("Training", ["", "amount"], rows)


def _report(budget: float, optima: tuple[Optimum, Optimum], cost: Cost) -> dict[str, Any]:
    return {
        "flops": budget,
        "optima": [dataclasses.asdict(optimum) for optimum in optima],
        "training": dataclasses.asdict(cost),
    }


def _shape(model: ModelConfig, parameters: int) -> dict[str, int]:
    return {
        "num_layers": model.num_layers,
        "hidden_size": model.hidden_size,
        "num_heads": model.num_heads,
        "head_size": model.size_per_head,
        "parameters": parameters,
    }
