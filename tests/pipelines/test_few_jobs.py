"""A stage is one pipeline: the number of pipelines of a build, and of a build whose tables exceed one task's memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.corpus import split
from finpile_pipelines.dedup import cluster_members
from finpile_pipelines.dedup.near import NearStage
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config

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


def test_tables_of_many_shards_are_exchanged_in_the_same_pipelines(
    labels: list[str],
    write_corpus: Callable[..., Path],
    snapshot: Snapshot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Members of groups and redirected removals; the bytes are the same."""
    config = load_config(write_corpus(tmp_path, dedup=_DEDUP))
    build(config, str(tmp_path / "few"), Engine(), until="split")
    monkeypatch.setattr(cluster_members, "FEW_SHARDS", 0)
    monkeypatch.setattr(split, "are_few", lambda refs, removals: False)
    labels.clear()
    build(config, str(tmp_path / "many"), Engine(num_workers=2, threads=True, transport="shuffle"), until="split")
    assert labels == _STAGES
    assert (tmp_path / "many" / ".work" / "near" / "members.json").exists()
    assert (tmp_path / "many" / ".work" / "split" / "decisions.json").exists()
    assert snapshot(tmp_path / "many") == snapshot(tmp_path / "few")


def test_rounds_of_connected_components_are_further_pipelines(
    labels: list[str],
    write_corpus: Callable[..., Path],
    snapshot: Snapshot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = load_config(write_corpus(tmp_path, dedup={"near": "fast"}))
    build(config, str(tmp_path / "few"), Engine(), until="split")
    run = NearStage.run
    monkeypatch.setattr(NearStage, "run", lambda stage: run(stage, edges_in_memory=0))
    labels.clear()
    build(config, str(tmp_path / "many"), Engine(), until="split")
    near = [label for label in labels if label.startswith("near")]
    assert near == ["near", *["near: components"] * (len(near) - 3), "near: groups", "near: verify"]
    assert snapshot(tmp_path / "many") == snapshot(tmp_path / "few")
