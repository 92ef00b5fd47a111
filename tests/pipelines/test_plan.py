"""`finpile plan`: laws of the model, and its jobs and bytes beside those of builds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.plan.inputs import SourceInput, measure_inputs, scaled
from finpile_pipelines.plan.jobs import num_jobs
from finpile_pipelines.plan.limits import limits
from finpile_pipelines.plan.model import Plan, plan_build
from finpile_pipelines.plan.rates import load_rates
from finpile_pipelines.runner.engine import Engine

from finpile.config import CorpusConfig, load_config
from finpile.sizes import num_partitions
from finpile.sources.finding import list_inputs

RATES = load_rates()
_EVERYTHING = {
    "dedup": {"near": "fast", "substring": {"min_length": 60}},
    "heldout": {"after": date(2020, 1, 1), "undated": "train", "overlap": {}},
}


def _inputs(config: CorpusConfig) -> tuple[SourceInput, ...]:
    return measure_inputs(config, [list_inputs(source, config.root) for source in config.sources], RATES)


@pytest.fixture
def sample(sample_config: Path) -> CorpusConfig:
    return load_config(sample_config)


def _plan(config: CorpusConfig, size: float, workers: int) -> Plan:
    return plan_build(config, scaled(_inputs(config), size), workers, RATES)


def test_more_workers_take_no_more_time_and_the_same_work(sample: CorpusConfig) -> None:
    plans = [_plan(sample, 1e12, workers) for workers in (1, 2, 16, 64, 1000)]
    for fewer, more in pairwise(plans):
        assert more.seconds < fewer.seconds
        for one, other in zip(fewer.stages, more.stages, strict=True):
            assert other.seconds <= one.seconds
            assert other.cpu_seconds == one.cpu_seconds


def test_the_time_is_that_of_the_start_and_all_stages(sample: CorpusConfig) -> None:
    plan = _plan(sample, 1e9, 2)
    assert plan.seconds == pytest.approx(plan.start_seconds + sum(stage.seconds for stage in plan.stages))
    assert plan.disk_bytes >= sum(stage.disk_bytes for stage in plan.stages)
    delayed = plan_build(sample, scaled(_inputs(sample), 1e9), 2, RATES, job_seconds=60)
    assert delayed.seconds - plan.seconds == pytest.approx(60 * sum(stage.jobs for stage in plan.stages))


def test_more_text_takes_more_of_everything(sample: CorpusConfig) -> None:
    names = ("cpu_seconds", "seconds", "memory_bytes", "shuffled_bytes", "disk_bytes")
    for smaller, larger in pairwise(_plan(sample, size, 8) for size in (1e7, 1e8, 1e9, 1e11, 1e13)):
        assert larger.text_bytes > smaller.text_bytes
        assert larger.shards >= smaller.shards
        for one, other in zip(smaller.stages, larger.stages, strict=True):
            assert all(getattr(other, name) >= getattr(one, name) for name in names)


def test_a_stage_ends_no_earlier_than_its_longest_task(sample: CorpusConfig) -> None:
    source = replace(_inputs(sample)[0], largest_share=1.0)
    alone, many = (plan_build(sample, [source], workers, RATES) for workers in (1, 1000))
    ingest = [next(stage for stage in plan.stages if stage.stage == "ingest") for plan in (alone, many)]
    assert ingest[0].seconds == pytest.approx(ingest[1].seconds), "one file is read by one task"


def test_the_stages_are_those_of_a_build_and_disabled_ones_take_nothing(
    sample: CorpusConfig, sample_build: Path
) -> None:
    built = json.loads((sample_build / "manifest.json").read_text())["stages"]
    plan = _plan(sample, 1e9, 1)
    assert [stage.stage for stage in plan.stages] == [stage["stage"] for stage in built]
    for stage, record in zip(plan.stages, built, strict=True):
        if stage.stage == "reports" or not record["counts"].get("asked", True):
            assert {value for name, value in asdict(stage).items() if name != "stage"} == {0}
        else:
            assert (stage.jobs == 0) == (stage.stage == "clean"), "the job of `ingest` also cleans"
            assert stage.cpu_seconds > 0


def test_bytes_of_the_sample_are_predicted_within_a_factor_of_three(sample: CorpusConfig, sample_build: Path) -> None:
    built = {row["stage"]: row for row in json.loads((sample_build / "manifest.json").read_text())["stages"]}
    plan = plan_build(sample, _inputs(sample), 1, RATES)
    text = sum(row["text_bytes"] for row in built["clean"]["counts"]["sources"])
    assert text / 3 < plan.text_bytes < 3 * text
    tokens = built["tokens"]["counts"]["stream_tokens"]
    assert tokens / 3 < plan.tokens < 3 * tokens
    assert plan.shards == len(sample.sources), "each is smaller than a shard"


@pytest.mark.parametrize(
    ("changes", "until"),
    [
        ({**_EVERYTHING, "tokenizer": {"vocab_size": 400}}, "reports"),
        pytest.param({"tokenizer": {"vocab_size": 400, "mode": "refit"}}, "tokenizer", marks=pytest.mark.slow),
        pytest.param({"tokenizer": {"vocab_size": 400, "mode": "global"}}, "tokenizer", marks=pytest.mark.slow),
    ],
)
def test_jobs_are_those_of_a_build(
    changes: dict[str, Any],
    until: str,
    write_corpus: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, ran = load_config(write_corpus(tmp_path, **changes)), Counter[str]()
    run = Engine.run

    def counted(engine: Engine, label: str, construct: Any) -> None:
        ran[label.partition(":")[0]] += 1
        run(engine, label, construct)

    monkeypatch.setattr(Engine, "run", counted)
    monkeypatch.setattr(Engine, "runs_jobs", True)
    build(config, str(tmp_path / "out"), Engine(), until=until)
    assert {stage: num_jobs(stage, config) for stage in ran} == ran
    planned = {stage.stage: stage.jobs for stage in plan_build(config, _inputs(config), 1, RATES).stages if stage.jobs}
    assert {name: jobs for name, jobs in planned.items() if name in ran or until == "reports"} == ran


def test_limits_are_exceeded_from_the_size_at_which_they_are_reached(sample: CorpusConfig) -> None:
    found = limits(sample, _inputs(sample), 64, RATES)
    sizes = [limit.reached_at_text_bytes or float("inf") for limit in found]
    assert sizes == sorted(sizes)
    for limit in found:
        if limit.reached_at_text_bytes is not None:
            for factor, is_exceeded in ((0.9, False), (1.1, True)):
                text = scaled(_inputs(sample), factor * limit.reached_at_text_bytes)
                [same] = [one for one in limits(sample, text, 64, RATES) if one.name == limit.name]
                assert (same.value > same.bound) is is_exceeded, limit.name


def test_a_partition_has_the_rows_of_two_shards_at_most() -> None:
    for shards in (1, 2, 3, 4095, 4096, 4097, 32_768, 32_769, 10**6):
        partitions = num_partitions(shards)
        assert partitions >= 2
        assert partitions <= max(2, shards)
        assert shards <= 2 * partitions
        for unit in (4, 8):
            assert 2 <= num_partitions(shards, unit) <= partitions
            assert shards <= 2 * unit * num_partitions(shards, unit)
