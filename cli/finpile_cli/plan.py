"""`finpile plan`: what a build takes, from the sizes of its inputs and measured rates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from finpile.errors import count_of
from finpile_cli.build import load
from finpile_cli.console import Console, duration, json_option, quantity
from finpile_cli.engine import heavy_imports
from finpile_cli.option_groups import Bytes, memory_option, shard_size_option
from finpile_cli.paths import PathOrUrl, root_option

if TYPE_CHECKING:
    from finpile_pipelines.plan.inputs import SourceInput
    from finpile_pipelines.plan.limits import Limit
    from finpile_pipelines.plan.model import Plan, StagePlan

_INPUT_COLUMNS = ("dataset", "source", "format", "documents", "stored", "clean text")
_COLUMNS = ("stage", "jobs", "tasks", "CPU", "time", "memory/worker", "shuffled", "disk")


@click.command()
@click.argument("config", type=PathOrUrl())
@root_option
@click.option("--workers", type=click.IntRange(min=1), help="Workers that the plan is for.  [default: CPU cores]")
@memory_option
@shard_size_option
@click.option("--scale", type=Bytes(), metavar="SIZE", help="As if the same mix of sources had this much text: 1TB.")
@click.option(
    "--job-seconds",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    metavar="S",
    help="Time that the engine needs to start a job: minutes on Dataflow.",
)
@click.option(
    "--core-price",
    type=click.FloatRange(min=0),
    metavar="PRICE",
    help="Price of an hour of one core, in any currency: the cost of all workers for the whole time.",
)
@click.option("--measure", is_flag=True, help="Measure the CPU time of the stages on this machine: about 20 s.")
@json_option
def plan_command(
    config: str,
    root: str | None,
    workers: int | None,
    memory: int | None,
    shard_size: int | None,
    scale: int | None,
    job_seconds: float,
    core_price: float | None,
    measure: bool,
    as_json: bool,
) -> None:
    """Predict time, memory, shuffled bytes, disk and jobs of a build.

    Lists the inputs of the corpus file CONFIG, reads some MB of each source for the size of its documents and of their
    text, and builds nothing. Rates are those of a table that a benchmark measured on one machine; a worker is one core
    of it, or with --measure one of this machine. Duplicates, which only a build finds, are counted as text. The last
    table lists what breaks first as the corpus grows.
    """
    console = Console(as_json)
    parsed = load(config, root)
    with heavy_imports(is_lean=not parsed.dedup.added):
        from finpile_pipelines.plan.inputs import find_sampled, scaled
        from finpile_pipelines.plan.limits import limits
        from finpile_pipelines.plan.memory import compiling_bytes, fitting_workers
        from finpile_pipelines.plan.model import plan_build
        from finpile_pipelines.plan.rates import load_rates
        from finpile_pipelines.plan.token_counts import count_samples

    rates, factors = load_rates(), None
    if measure:
        from finpile_pipelines.plan.measurement import factors_of, measure_machine

        console.line("measuring the stages on this machine: about 20 s, longer the first time")
        factors = factors_of(measure_machine(), rates.made_cpu_seconds)
        rates = rates.times(factors)
    inputs, samples = find_sampled(parsed, rates)
    counts = None if parsed.tokenizer is None else count_samples(parsed.tokenizer, inputs, samples)
    if scale is not None:
        inputs = scaled(inputs, scale)
    count = workers or os.cpu_count() or 1
    if memory is not None:
        compiling = compiling_bytes(parsed, rates)
        count = fitting_workers(parsed, inputs, count, rates, memory, shard_size, compiling)
    plan = plan_build(parsed, inputs, count, rates, job_seconds, shard_size, counts)
    bounds = limits(parsed, inputs, plan.workers, rates, shard_size)
    _show(console, parsed.name, plan, bounds)
    cost = None if core_price is None else core_price * plan.core_hours
    if cost is not None:
        console.line(f"cost {cost:,.2f}: {plan.core_hours:,.2f} core hours at {core_price:g}")
    measured = rates.measured
    console.line(f"rates of {measured['date']}: {measured['processor']}, {measured['cores']} cores")
    if factors is not None:
        found = ", ".join(f"{stage} {factor:.2f}" for stage, factor in factors.items())
        console.line(f"CPU time here by that of the table: {found}")
    console.result(_as_json(plan, bounds, cost, factors))


def _show(console: Console, name: str, plan: Plan, bounds: list[Limit]) -> None:
    stored = sum(source.stored_bytes for source in plan.inputs)
    text = f"{quantity(stored, 'B')} of inputs, about {quantity(plan.text_bytes, 'B')} of text"
    shards = count_of(plan.shards, "shard")
    console.line(f"{text} in {plan.documents:,.0f} documents and {shards}; {count_of(plan.workers, 'worker')}")
    console.table("Inputs", list(_INPUT_COLUMNS), [_input_cells(source) for source in plan.inputs])
    if not all(source.is_sampled for source in plan.inputs):
        console.line("* no document was read: sizes are those of other inputs of the format")
    console.table(name, list(_COLUMNS), [_cells(stage) for stage in plan.stages])
    largest = plan.largest
    memory = f"{quantity(largest.machine_bytes, 'B')} on one machine ({largest.stage})"
    console.line(f"time {duration(plan.seconds)}, memory {memory}, disk {quantity(plan.disk_bytes, 'B')}")
    shards = count_of(plan.token_shards, "training shard")
    console.line(f"{plan.tokens:,.0f} tokens in {shards}, before duplicates are removed and documents held out")
    columns = ["quantity", "here", "bound", "reached at text of"]
    console.table("What breaks first", columns, [_bound_cells(bound) for bound in bounds])


def _input_cells(source: SourceInput) -> list[str]:
    sizes = [quantity(size, "B") for size in (source.stored_bytes, source.clean_bytes)]
    mark = "" if source.is_sampled else "*"
    return [source.dataset, source.source, source.format, f"{source.documents:,.0f}{mark}", sizes[0], sizes[1] + mark]


def _cells(stage: StagePlan) -> list[str]:
    if not stage.jobs:
        return [stage.stage, "0", *[""] * (len(_COLUMNS) - 2)]
    sizes = [quantity(size, "B") for size in (stage.memory_bytes, stage.shuffled_bytes, stage.disk_bytes)]
    times = [duration(stage.cpu_seconds), duration(stage.seconds)]
    return [stage.stage, f"{stage.jobs:,}", f"{stage.tasks:,}", *times, *sizes]


def _value(value: float, unit: str) -> str:
    return quantity(value, unit) if unit == "B" else f"{value:,.2f}{unit}"


def _bound_cells(bound: Limit) -> list[str]:
    size = bound.reached_at_text_bytes
    sizes = [_value(value, bound.unit) for value in (bound.value, bound.bound)]
    return [bound.name, *sizes, "-" if size is None else quantity(size, "B")]


def _as_json(
    plan: Plan, bounds: list[Limit], cost: float | None, factors: Mapping[str, float] | None
) -> dict[str, Any]:
    stages = [asdict(stage) for stage in plan.stages]
    return {
        "workers": plan.workers,
        "inputs": [asdict(source) for source in plan.inputs],
        "text_bytes": plan.text_bytes,
        "documents": plan.documents,
        "shards": plan.shards,
        "tokens": plan.tokens,
        "token_shards": plan.token_shards,
        "stages": stages,
        "total": {
            "seconds": plan.seconds,
            "cpu_seconds": sum(stage.cpu_seconds for stage in plan.stages),
            "jobs": sum(stage.jobs for stage in plan.stages),
            "memory_bytes": max(stage.memory_bytes for stage in plan.stages),
            "machine_bytes": plan.largest.machine_bytes,
            "shuffled_bytes": sum(stage.shuffled_bytes for stage in plan.stages),
            "disk_bytes": plan.disk_bytes,
            "core_hours": plan.core_hours,
            "cost": cost,
        },
        "measured": factors,
        "limits": [asdict(bound) for bound in bounds],
    }
