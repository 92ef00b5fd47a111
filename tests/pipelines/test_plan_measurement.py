"""`finpile plan --measure`: the made text, the factors, and what they change in a plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from finpile_pipelines.plan import measurement
from finpile_pipelines.plan.inputs import measure_inputs
from finpile_pipelines.plan.measurement import factors_of
from finpile_pipelines.plan.model import Plan, plan_build
from finpile_pipelines.plan.rates import Rates, load_rates

from finpile.config import TemplatesConfig, load_config
from finpile.sources.readers.finding import list_inputs

RATES = load_rates()


def _plan(path: Path, rates: Rates) -> Plan:
    """Of the sample, with the stages that `--measure` does not run."""
    config = load_config(path)
    sources = tuple(replace(source, template_group="source") for source in config.sources)
    config = replace(config, sources=sources, dedup=replace(config.dedup, templates=TemplatesConfig()))
    inputs = measure_inputs(config, [list_inputs(source, config.root) for source in config.sources], RATES)
    return plan_build(config, inputs, 2, rates)


def test_factors_are_times_here_by_times_there() -> None:
    there = {"ingest": 1.0, "near": 4.0, "overlap": 0.0, "gone": 2.0}
    assert factors_of({"ingest": 2.0, "near": 4.0, "overlap": 0.0, "new": 9.0}, there) == {
        "ingest": 2.0,
        "near": 1.0,
        "all": 6 / 5,
    }


def test_a_machine_of_half_the_speed_takes_twice_the_time(sample_config: Path) -> None:
    once, twice = _plan(sample_config, RATES), _plan(sample_config, RATES.times({"all": 2.0}))
    assert twice.seconds == pytest.approx(2 * once.seconds)
    assert twice.core_hours == pytest.approx(2 * once.core_hours)
    for before, after in zip(once.stages, twice.stages, strict=True):
        assert after.cpu_seconds == pytest.approx(2 * before.cpu_seconds)
        assert (after.memory_bytes, after.disk_bytes) == (before.memory_bytes, before.disk_bytes)


@pytest.mark.parametrize("slow", ["ingest", "clean", "exact", "near", "tokens"])
def test_a_factor_of_a_stage_changes_this_stage(sample_config: Path, slow: str) -> None:
    once, other = _plan(sample_config, RATES), _plan(sample_config, RATES.times({"all": 1.0, slow: 3.0}))
    changed = {
        before.stage: after.cpu_seconds / before.cpu_seconds
        for before, after in zip(once.stages, other.stages, strict=True)
        if after.cpu_seconds != pytest.approx(before.cpu_seconds)
    }
    assert changed == {slow: pytest.approx(3.0)}


def test_the_made_text_is_the_same_each_time_and_has_near_duplicates() -> None:
    texts = list(measurement._texts(40))
    assert texts == list(measurement._texts(40))
    assert len(set(texts)) == 40
    before, repeated = (texts[number].split() for number in (7, 8))
    assert before[2:] == repeated[2:]
    assert before[:2] != repeated[:2]


def test_the_table_has_the_stages_of_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "_DOCUMENTS", 100)
    assert set(measurement.measure_machine()) == set(RATES.made_cpu_seconds)
