"""The command `finpile plan`: its options, its JSON object, its errors, and what it does not import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.plan import measurement


def _run(*arguments: object) -> str:
    done = CliRunner().invoke(finpile, ["plan", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_json_object_has_stages_sums_and_limits(sample_config: Path) -> None:
    plan = json.loads(_run(sample_config, "--workers", 64, "--scale", "1TB", "--json"))
    assert plan["workers"] == 64
    assert plan["text_bytes"] == pytest.approx(1e12)
    total, stages = plan["total"], plan["stages"]
    for name in ("cpu_seconds", "jobs", "shuffled_bytes"):
        assert total[name] == pytest.approx(sum(stage[name] for stage in stages))
    assert total["memory_bytes"] == max(stage["memory_bytes"] for stage in stages)
    assert {"name", "value", "bound", "unit", "remedy", "reached_at_text_bytes"} == set(plan["limits"][0])


def test_the_tables_name_each_stage_and_the_rates(sample_config: Path) -> None:
    shown = _run(sample_config)
    for word in ("ingest", "tokens", "memory/worker", "What breaks first", "rates of"):
        assert word in shown


@pytest.fixture
def small_config(tmp_path: Path) -> Path:
    """The corpus file of one document."""
    (tmp_path / "a.txt").write_text("Oil rose.")
    path = tmp_path / "corpus.yaml"
    path.write_text("name: x\nsources: [{name: A, dataset: B, format: text, paths: a.txt}]\n")
    return path


def test_the_cost_is_that_of_all_workers_for_the_whole_time(small_config: Path) -> None:
    options = (small_config, "--workers", 64, "--scale", "1TB")
    total = json.loads(_run(*options, "--core-price", 0.05, "--json"))["total"]
    assert total["core_hours"] == pytest.approx(64 * total["seconds"] / 3600)
    assert total["cost"] == pytest.approx(0.05 * total["core_hours"])
    assert f"cost {total['cost']:,.2f}: {total['core_hours']:,.2f} core hours at 0.05" in _run(
        *options, "--core-price", 0.05
    )
    assert json.loads(_run(*options, "--json"))["total"]["cost"] is None
    assert "cost" not in _run(*options)


def test_a_measured_machine_changes_times_and_nothing_else(
    sample_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_DOCUMENTS", 40), ("_FIRST", 10), ("WORKERS", 1)):
        monkeypatch.setattr(measurement, name, value)
    table, here = (json.loads(_run(sample_config, *more, "--json")) for more in ((), ("--measure",)))
    factors = here["measured"]
    assert table["measured"] is None
    assert {"ingest", "clean", "exact", "near", "substring", "split", "tokenizer", "tokens", "all"} <= set(factors)
    for before, after in zip(table["stages"], here["stages"], strict=True):
        factor = factors.get(before["stage"], factors["all"])
        for name in ("cpu_seconds", "start_cpu_seconds"):
            assert after[name] == pytest.approx(before[name] * factor)
        timed = ("cpu_seconds", "seconds", "start_cpu_seconds")
        assert {key: after[key] for key in after if key not in timed} == {
            key: before[key] for key in before if key not in timed
        }
    assert here["inputs"] == table["inputs"]


@pytest.mark.parametrize("size", ["1 parsec", "0", "-1GB", "TB", "9" * 400])
def test_a_size_without_a_number_or_a_known_unit_is_refused(sample_config: Path, size: str) -> None:
    done = CliRunner().invoke(finpile, ["plan", str(sample_config), f"--scale={size}"])
    assert done.exit_code == 2
    assert "is not a size" in done.output


def test_missing_inputs_are_the_error_of_a_build(tmp_path: Path) -> None:
    config = tmp_path / "corpus.yaml"
    config.write_text("name: x\nsources: [{name: A, dataset: B, format: text, paths: [no/*.txt]}]\n")
    for command in (["plan", config], ["build", config, "-o", tmp_path / "out"]):
        arguments = [sys.executable, "-m", "finpile_cli", *map(str, command)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "source 'A': 'no/*.txt'" in done.stderr
        assert "matches no file" in done.stderr


def test_it_starts_without_beam(small_config: Path) -> None:
    program = (
        "import sys; from click.testing import CliRunner; from finpile_cli.main import finpile; "
        f"done = CliRunner().invoke(finpile, ['plan', {str(small_config)!r}]); "
        "assert done.exit_code == 0, done.output; "
        "assert 'apache_beam' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_sources_that_cannot_be_read_are_marked(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Oil rose.")
    (tmp_path / "b.jsonl").write_text("no object\n")
    sources = (
        "[{name: A, dataset: B, format: text, paths: a.txt}, {name: C, dataset: B, format: jsonl, paths: b.jsonl}]"
    )
    (tmp_path / "corpus.yaml").write_text(f"name: x\nsources: {sources}\n")
    shown = _run(tmp_path / "corpus.yaml")
    lines = {line.split()[1]: line.split() for line in shown.splitlines() if line.startswith("B ")}
    assert lines["A"] == ["B", "A", "text", "1", "9", "B", "9", "B"]
    assert [word.endswith("*") for word in lines["C"][3:]] == [True, False, False, False, True]
    assert "* no document was read" in shown
    assert [source["is_sampled"] for source in json.loads(_run(tmp_path / "corpus.yaml", "--json"))["inputs"]] == [
        True,
        False,
    ]
