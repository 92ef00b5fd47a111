"""A stage is one pipeline: the number of pipelines of a build, and of a build whose tables exceed one task's memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.corpus import clean
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage import Sizes

from finpile.config import load_config
from finpile.errors import InputError, RunError
from tests.support.work_folders import files_of_stage

Snapshot = Callable[[Path], dict[str, bytes]]
_DEDUP = {"near": "fast", "substring": {"min_length": 60}}
_STAGES = ["ingest", "clean", "exact", "near", "substring", "split"]
_TOKENIZER = ["tokenizer: count", "tokenizer: train", "tokenizer: merge"]


@pytest.fixture
def labels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of the pipelines that run from now on."""
    found: list[str] = []
    run = Engine.run

    def note(engine: Engine, label: str, construct: Any) -> None:
        found.append(label)
        run(engine, label, construct)

    monkeypatch.setattr(Engine, "run", note)
    return found


def test_each_stage_of_a_build_is_one_pipeline(
    labels: list[str], write_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    """The training of the tokenizer is three."""
    build(load_config(write_corpus(tmp_path, dedup=_DEDUP)), str(tmp_path / "out"), Engine())
    assert labels == [*_STAGES, *_TOKENIZER, "tokens"]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local runner is taken for an engine on which a pipeline is a job."""
    monkeypatch.setattr(Engine, "runs_jobs", True)


@pytest.mark.usefixtures("cluster")
def test_a_build_on_a_cluster_has_six_jobs_without_training(
    labels: list[str], write_corpus: Callable[..., Path], snapshot: Snapshot, tmp_path: Path
) -> None:
    """The job of `ingest` also cleans; the bytes are those of a local build."""
    config = load_config(write_corpus(tmp_path, dedup=_DEDUP))
    build(config, str(tmp_path / "cluster"), Engine())
    assert [label for label in labels if label not in _TOKENIZER] == [_STAGES[0], *_STAGES[2:], "tokens"]
    with pytest.MonkeyPatch.context() as local:
        local.setattr(Engine, "runs_jobs", False)
        build(config, str(tmp_path / "local"), Engine())
    assert snapshot(tmp_path / "cluster") == snapshot(tmp_path / "local")


@pytest.mark.usefixtures("cluster")
def test_a_job_that_fails_while_it_cleans_is_repeated(
    labels: list[str], small_build: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    config, clean_task = load_config(small_build / "corpus.yaml"), clean.clean_task

    def fail(ref: Any, *arguments: Any) -> dict[str, Any]:
        if ref.index:
            raise RunError("the disk is full")
        return clean_task(ref, *arguments)

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(clean, "clean_task", fail)
        with pytest.raises(RunError, match="the disk is full"):
            build(config, str(tmp_path / "out"), Engine())
    assert not list((tmp_path / "out" / ".work" / "clean").glob("*/tasks.json"))
    labels.clear()
    build(config, str(tmp_path / "out"), Engine())
    assert labels[:2] == ["ingest", "exact"]
    assert snapshot(tmp_path / "out") == snapshot(small_build / "out")


@pytest.mark.usefixtures("cluster")
def test_changed_settings_of_clean_do_not_read_the_inputs_again(
    labels: list[str], write_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    out, heldout = str(tmp_path / "out"), {"after": date(2022, 7, 31), "undated": "drop"}
    build(load_config(write_corpus(tmp_path)), out, Engine(), until="split")
    labels.clear()
    build(load_config(write_corpus(tmp_path, {}, heldout=heldout)), out, Engine(), until="split")
    assert labels == ["clean", *_STAGES[2:4], "split"]


@pytest.mark.usefixtures("cluster")
def test_dates_without_a_proven_order_are_not_cleaned(
    labels: list[str], write_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    """With the order declared, the inputs are not read again."""
    rows = b'{"text": "Oil rose.", "date": "2/10/2008"}\n{"text": "Gold fell.", "date": "3/10/2008"}\n'
    source = {
        "name": "News",
        "dataset": "FinPile",
        "format": "jsonl",
        "paths": "a.jsonl",
        "fields": {"timestamp": "date"},
    }
    path = write_corpus(tmp_path, {"a.jsonl": rows}, sources=[source])
    out = str(tmp_path / "out")
    with pytest.raises(InputError, match="not proven"):
        build(load_config(path), out, Engine(), until="split")
    assert labels == ["ingest"]
    path = write_corpus(tmp_path, {}, sources=[{**source, "date_format": "day-first"}])
    build(load_config(path), out, Engine(), until="split")
    assert labels == ["ingest", *_STAGES[1:4], "split"]


def test_tables_of_many_shards_are_exchanged_in_the_same_pipelines(
    labels: list[str],
    write_corpus: Callable[..., Path],
    snapshot: Snapshot,
    tmp_path: Path,
) -> None:
    """Members of groups and redirected removals; the bytes are the same."""
    config = load_config(write_corpus(tmp_path, dedup=_DEDUP))
    build(config, str(tmp_path / "few"), Engine(), until="split")
    labels.clear()
    engine = Engine(num_workers=2, threads=True, transport="shuffle")
    build(config, str(tmp_path / "many"), engine, sizes=Sizes(shards_in_memory=0), until="split")
    assert labels == _STAGES
    assert (files_of_stage(tmp_path / "many", "near") / "groups" / "members.json").exists()
    assert (files_of_stage(tmp_path / "many", "split") / "decisions.json").exists()
    assert snapshot(tmp_path / "many") == snapshot(tmp_path / "few")


def test_rounds_of_connected_components_are_further_pipelines(
    labels: list[str],
    write_corpus: Callable[..., Path],
    snapshot: Snapshot,
    tmp_path: Path,
) -> None:
    config = load_config(write_corpus(tmp_path, dedup={"near": "fast"}))
    build(config, str(tmp_path / "few"), Engine(), until="split")
    labels.clear()
    build(config, str(tmp_path / "many"), Engine(), sizes=Sizes(pairs_in_memory=0), until="split")
    near = [label for label in labels if label.startswith("near")]
    assert near == ["near", *["near: components"] * (len(near) - 3), "near: groups", "near"]
    assert snapshot(tmp_path / "many") == snapshot(tmp_path / "few")
