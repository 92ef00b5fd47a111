"""`--memory`: how many workers of a build or append fit, what is refused, and what is published."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from finpile_cli.main import finpile
from finpile_pipelines.build import build
from finpile_pipelines.executors.request_reply import partitions_of
from finpile_pipelines.plan import memory
from finpile_pipelines.plan.inputs import SourceInput, built_inputs, measure_inputs, scaled
from finpile_pipelines.plan.memory import MARGIN, compiling_bytes, fit_build, fitting_workers
from finpile_pipelines.plan.model import plan_build
from finpile_pipelines.plan.rates import load_rates
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef, shard_refs
from finpile_pipelines.snapshots.base import largest_shard
from finpile_pipelines.stage import PAIRS_IN_MEMORY, Sizes

from finpile.config import CorpusConfig, load_config
from finpile.errors import ConfigError
from finpile.output.layout import Layout
from finpile.output.manifest import counts_by_stage, load_manifest
from finpile.output.work_folder import WorkFolder
from finpile.sources.readers.finding import list_inputs
from finpile.storage.sizes import MOST_SHARD_BYTES, SHARD_BYTES, num_partitions, shard_bytes_of
from tests.support.made_days import CORPUS, documents_of, make_days, write_batch

RATES = load_rates()
_WORKERS = 16


@pytest.fixture
def sample(sample_config: Path) -> CorpusConfig:
    return load_config(sample_config)


def _inputs(config: CorpusConfig, size: float) -> tuple[SourceInput, ...]:
    files = [list_inputs(source, config.root) for source in config.sources]
    return scaled(measure_inputs(config, files, RATES), size)


def _invoke(*arguments: object) -> Result:
    return CliRunner().invoke(finpile, list(map(str, arguments)))


@pytest.mark.parametrize("size", [1e6, 1e9, 1e12])
def test_more_memory_allows_more_workers_up_to_those_asked_for(sample: CorpusConfig, size: float) -> None:
    inputs = _inputs(sample, size)
    needed = [plan_build(sample, inputs, number, RATES).largest.machine_bytes for number in range(1, _WORKERS + 1)]
    assert all(more >= fewer for fewer, more in pairwise(needed))
    for number, bytes_of_number in enumerate(needed, start=1):
        most = int(bytes_of_number * MARGIN) + 1
        found = fitting_workers(sample, inputs, _WORKERS, RATES, most)
        assert found >= number
        assert needed[found - 1] * MARGIN <= most, "what is chosen fits"
        assert fitting_workers(sample, inputs, number, RATES, most) == number
    assert fitting_workers(sample, inputs, _WORKERS, RATES, 1 << 50) == _WORKERS


def test_a_refusal_names_the_memory_that_would_do(sample: CorpusConfig) -> None:
    inputs = _inputs(sample, 1e9)
    with pytest.raises(ConfigError) as error:
        fitting_workers(sample, inputs, _WORKERS, RATES, 1 << 20)
    named = re.search(r"give --memory (\d+)MiB", str(error.value))
    assert named
    assert fitting_workers(sample, inputs, _WORKERS, RATES, int(named[1]) << 20) >= 1
    with pytest.raises(ConfigError):
        fitting_workers(sample, inputs, _WORKERS, RATES, (int(named[1]) - 1) << 20)


def test_the_first_run_has_memory_for_the_processes_that_compile(
    sample: CorpusConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = _inputs(sample, 1e9)
    asked = list[str]()
    for missing in (False, True):
        monkeypatch.setattr(memory, "missing_groups", lambda groups, missing=missing: asked.extend(groups) or missing)
        compiling = compiling_bytes(sample, RATES)
        assert compiling == missing * RATES.compile_mb * 1e6
        least = plan_build(sample, inputs, 1, RATES).largest.machine_bytes * MARGIN + compiling
        assert fitting_workers(sample, inputs, _WORKERS, RATES, int(least) + 1, None, compiling) >= 1
        with pytest.raises(ConfigError) as error:
            fitting_workers(sample, inputs, _WORKERS, RATES, int(least) - 1, None, compiling)
        assert ("in the first run" in str(error.value)) == missing
    assert any("near" in group for group in asked)


def test_a_build_without_tokens_needs_no_memory_for_them(sample: CorpusConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "missing_groups", lambda groups: [])
    planned = {stage.stage: stage for stage in plan_build(sample, _inputs(sample, 1e5), 1, RATES).stages}
    most = int(max(planned[name].machine_bytes for name in ("tokenizer", "tokens")) * MARGIN) - 1
    with pytest.raises(ConfigError, match="the stage token"):
        fit_build(sample, 1, most, Sizes())
    assert fit_build(sample, 1, most, Sizes(), "split").workers == 1


def test_pairs_that_one_task_connects_fit_into_a_part_of_the_memory(sample: CorpusConfig) -> None:
    assert fit_build(sample, 1, 8 << 30, Sizes()).sizes.pairs_in_memory == PAIRS_IN_MEMORY
    assert fit_build(sample, 1, 1 << 30, Sizes()).sizes.pairs_in_memory == (1 << 30) // 400


def test_smaller_shards_are_more_tasks_in_less_memory(sample: CorpusConfig) -> None:
    inputs = _inputs(sample, 1e9)
    chosen, small = (plan_build(sample, inputs, 4, RATES, shard_bytes=size) for size in (None, SHARD_BYTES // 16))
    assert chosen == plan_build(sample, inputs, 4, RATES, shard_bytes=SHARD_BYTES)
    assert small.shards > 8 * chosen.shards
    memory = [{stage.stage: stage.machine_bytes for stage in plan.stages} for plan in (chosen, small)]
    assert memory[1]["near"] < memory[0]["near"]
    assert all(memory[1][name] <= size for name, size in memory[0].items())


def test_a_build_with_small_shards_has_more_of_them_and_publishes_the_same(
    copy_small: Callable[[Path], Path], snapshot: Callable[[Path], dict[str, bytes]], tmp_path: Path
) -> None:
    config = copy_small(tmp_path / "small")
    expected = config.parent / "out"
    built = _invoke("build", config, "-o", tmp_path / "out", "--shard-size", "5kB")
    assert built.exit_code == 0, built.output
    shards, fewer = (len(list(out.glob(".work/clean/*/documents/*"))) for out in (tmp_path / "out", expected))
    assert fewer > 0
    assert shards > fewer
    assert snapshot(tmp_path / "out") == snapshot(expected)
    refused = _invoke("build", config, "-o", tmp_path / "out", "--shard-size", "none")
    assert refused.exit_code == 2
    assert "is not a size" in refused.output


def test_a_refused_build_writes_nothing_and_one_that_fits_publishes_the_same(
    copy_small: Callable[[Path], Path], snapshot: Callable[[Path], dict[str, bytes]], tmp_path: Path
) -> None:
    config = copy_small(tmp_path / "small")
    refused = _invoke("build", config, "-o", tmp_path / "out", "--memory", "1MiB")
    assert isinstance(refused.exception, ConfigError)
    assert not (tmp_path / "out").exists()
    named = re.search(r"give --memory (\d+)MiB", str(refused.exception))
    assert named
    planned = json.loads(_invoke("plan", config, "--workers", 8, "--memory", f"{named[1]}MiB", "--json").output)
    built = _invoke("build", config, "-o", tmp_path / "out", "--workers", 8, "--memory", f"{named[1]}MiB")
    assert built.exit_code == 0, built.output
    assert planned["workers"] < 8
    assert f"{planned['workers']} worker" in built.output
    assert snapshot(tmp_path / "out") == snapshot(config.parent / "out")


def test_a_snapshot_stays_in_the_memory_that_a_refusal_names(tmp_path: Path) -> None:
    days, config, out = make_days(1, 3), tmp_path / "corpus.yaml", tmp_path / "out"
    config.write_text(yaml.safe_dump(CORPUS))
    write_batch(tmp_path, "start", days[0] + days[1])
    build(load_config(config), str(out), Engine(), until="split")
    append = ("append", out, config, "--workers", 2)
    assert "no new files" in _invoke(*append, "--memory", "1MiB").output, "what has nothing to do needs no memory"
    write_batch(tmp_path, "more", days[2])
    _stays_in_named_memory(append, out)
    build(load_config(config), str(tmp_path / "all"), Engine(), until="split")
    appended = documents_of(out)
    assert appended.equals(documents_of(tmp_path / "all"))
    gone = appended["id"][0].as_py()
    _stays_in_named_memory(("remove", out, "--document", gone, "--why", "they asked", "--workers", 2), out)
    assert {*appended["id"].to_pylist()} - {*documents_of(out)["id"].to_pylist()} == {gone}


def _stays_in_named_memory(command: tuple[object, ...], out: Path) -> None:
    before, waiting = documents_of(out), _snapshot_work(out)
    refused = _invoke(*command, "--memory", "1MiB")
    assert isinstance(refused.exception, ConfigError)
    assert documents_of(out).equals(before)
    assert _snapshot_work(out) == waiting
    named = re.search(r"give --memory (\d+)MiB", str(refused.exception))
    assert named
    arguments = [sys.executable, "-m", "finpile_cli", *map(str, command), "--memory", f"{named[1]}MiB"]
    subprocess.run(arguments, check=True, capture_output=True)
    manifest = load_manifest(Layout(str(out)))
    assert max(stage["peak_memory_bytes"] for stage in manifest["stages"]) <= int(named[1]) << 20


def _snapshot_work(out: Path) -> list[Path]:
    return sorted((out / ".work" / "snapshots").glob("*"))


def test_larger_shards_and_more_documents_of_a_build_need_more_memory(sample_config: Path, sample_build: Path) -> None:
    config, manifest = load_config(sample_config), load_manifest(Layout(str(sample_build)))
    large = largest_shard(Layout(str(sample_build)), manifest)
    assert 0 < large < SHARD_BYTES
    inputs = built_inputs(config, manifest, RATES)
    counted = {
        (row["dataset"], row["source"]): row["text_bytes"] for row in counts_by_stage(manifest)["clean"]["sources"]
    }
    assert {(one.dataset, one.source): one.clean_bytes for one in inputs} == counted
    needed = [
        plan_build(config, scaled(inputs, size), 1, RATES, shard_bytes=shard).largest_of(("near", "split"))
        for size, shard in ((1e6, large), (1e9, SHARD_BYTES // 4), (1e9, SHARD_BYTES), (1e12, SHARD_BYTES))
    ]
    assert all(more.machine_bytes > fewer.machine_bytes for fewer, more in pairwise(needed))
    assert {stage.stage for stage in needed} <= {"near", "split"}


def test_engines_and_texts_that_are_no_size_are_refused(sample_config: Path, tmp_path: Path) -> None:
    command = ("build", sample_config, "-o", tmp_path / "out")
    others = (("append", tmp_path / "out", sample_config), ("as-of", tmp_path / "out", "2022-01-01", "-o", tmp_path))
    for one in (command, *others):
        done = _invoke(*one, "--memory", "8GiB", "--runner", "spark")
        assert isinstance(done.exception, ConfigError)
        assert "--memory is for the local runner" in str(done.exception)
    assert "is not a size" in _invoke(*command, "--memory", "much").output


def test_shards_follow_the_inputs_and_partitions_the_text() -> None:
    sizes = [shard_bytes_of(size) for size in (256 << 20, 64 << 30, (64 << 30) + 1, 128 << 30, 512 << 30, 1 << 50)]
    assert sizes == [SHARD_BYTES, SHARD_BYTES, 2 * SHARD_BYTES, 2 * SHARD_BYTES, MOST_SHARD_BYTES, MOST_SHARD_BYTES]
    small = [shard_bytes_of(size) for size in (0, 64 << 20, (128 << 20) - 1, 128 << 20, (256 << 20) - 1)]
    assert small == [4 << 20, 4 << 20, 4 << 20, 8 << 20, 8 << 20]
    folder = WorkFolder("clean")
    for size, factor in ((0, 1), (1000, 1), (SHARD_BYTES, 1), (MOST_SHARD_BYTES, 8)):
        refs = [ShardRef(index, 0, f"{index:06d}-0000", folder, text_bytes=size) for index in range(1000)]
        assert partitions_of(refs, 1) == num_partitions(1000 * factor)
        assert partitions_of(refs, 4) == num_partitions(1000 * factor, 4)


def test_a_shard_has_the_mean_text_of_its_task_and_row() -> None:
    outcomes = [
        {"entry": 0, "row": None, "shards": ["000000-0000", "000000-0001"], "text_bytes": 30},
        {"entry": 0, "row": "A", "shards": [], "text_bytes": 0},
        {"entry": 1, "row": None, "shards": ["000001-0000"], "text_bytes": 7},
    ]
    assert [ref.text_bytes for ref in shard_refs(outcomes, WorkFolder("clean"))] == [15, 15, 7]
