"""A corpus as of a day whose run is killed at any moment is ended by the same command, with the same bytes."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append

from finpile.config import load_config
from tests.support.forks import Forks
from tests.support.made_days import CORPUS, TOKENS, failed, make_days, write_batch


@pytest.mark.parametrize("undated", [False, True], ids=["dated", "undated"])
@pytest.mark.parametrize("num_kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_an_as_of_that_is_killed_and_run_again_gives_the_same(
    tmp_path: Path,
    forks: Forks,
    snapshot: Callable[[Path], dict[str, bytes]],
    num_kills: int,
    undated: bool,
) -> None:
    """Undated documents are decided again."""
    days, whole, config = make_days(8, 10), tmp_path / "whole", tmp_path / "corpus.yaml"
    days[3].append(("News", {**days[2][0][1], "timestamp": None}))
    heldout = {**CORPUS["heldout"], "undated": "heldout"}
    dedup = {**CORPUS["dedup"], "order": "time"}
    config.write_text(yaml.safe_dump({**CORPUS, **TOKENS, "heldout": heldout, "dedup": dedup}))
    for number, some in enumerate((days[3:], days[:3])):
        write_batch(tmp_path, f"{number}", *some)
        if number:
            append(load_config(config), str(whole), Engine())
        else:
            build(load_config(config), str(whole), Engine())
    before = snapshot(whole)
    run = forks.runs(f"as_of(words[0], Cut(date(2021, 1, 6), {undated}), out, Engine())")
    num_operations = run(tmp_path / "undisturbed", 0, whole)
    assert num_operations > 50
    outcomes = []
    for number in range(1, num_kills + 1):
        out = tmp_path / f"out-{number}"
        outcomes.append(run(out, number * num_operations // num_kills - 3, whole))
        assert run(out, 0, whole) > 0
        assert snapshot(out) == snapshot(tmp_path / "undisturbed")
        assert failed(out) == []
    assert set(outcomes) == {-signal.SIGKILL}
    assert snapshot(whole) == before
