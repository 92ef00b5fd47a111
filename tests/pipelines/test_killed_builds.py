"""A build that is killed at any moment and run again gives the bytes of an undisturbed one.

There are two ways to kill: the launcher of a build with two workers at a random moment of a stage, and the process of a
one-worker build at a chosen file operation, which a timer could not hit.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from finpile.errors import InputError
from finpile.output.build_state import BuildState, read_state
from finpile.output.layout import Layout
from finpile.verify import verify
from tests.support.forks import Forks
from tests.support.required_stages import required
from tests.support.trees import assert_same

BuildUntil = Callable[[Path, int], int]
Snapshot = Callable[[Path], dict[str, bytes]]
StartPython = Callable[..., subprocess.Popen[str]]
Eventually = Callable[[Callable[[], Any]], Any]
ClusterMembers = Callable[[int], list[psutil.Process]]
PATIENCE_SECONDS = 300
#: Longest wait before the kill; most stages of these small builds last longer with two workers.
MAX_DELAY_SECONDS = 0.4

UNFINISHED = BuildState(name="", paths=(), is_whole=False)

#: No stage of the small corpus has as many as 200 file operations, so most runs end one.
MAX_KILLS = 40


@pytest.fixture(scope="module")
def undisturbed(corpus: Path) -> Path:
    return corpus.parent / "out"


def assert_unfinished(out: Path) -> None:
    """A tree whose build was killed does not pass for a finished one."""
    with pytest.raises(InputError, match="no finished build"):
        verify(str(out))


class Killer:
    """Runs the same command repeatedly on one tree, and kills it in the given stages."""

    def __init__(self, start: StartPython, eventually: Eventually, config: Path, out: Path) -> None:
        self._start = start
        self._eventually = eventually
        self._command = ["-m", "finpile_cli", "build", config, "-o", out, "--workers", "2"]
        self._out = out

    def kill_in(self, stage: str, delay_seconds: float) -> bool:
        """Kills the launcher that long after the stage began; False where the stage was done by then."""
        process = self._start(*self._command)
        folder = self._out / ".work" / stage
        ended = self._eventually(lambda: (folder / "started.json").exists() or process.poll() is not None)
        assert ended and process.poll() is None, process.communicate()
        time.sleep(delay_seconds)
        os.kill(process.pid, signal.SIGKILL)
        was_done = (folder / "stage.json").exists()
        process.communicate(timeout=PATIENCE_SECONDS)
        return not was_done

    def finish(self) -> str:
        process = self._start(*self._command)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, err
        return out


def kill_along(stages: tuple[str, ...], seed: int, killer: Killer, out: Path) -> None:
    """Kills the build once in each stage, then lets it end. Every second kill is at once, as stages can be short."""
    draw = random.Random(seed)
    num_hit = 0
    for number, stage in enumerate(stages):
        delay = draw.uniform(0, MAX_DELAY_SECONDS) if number % 2 == 0 and stage != "reports" else 0
        num_hit += killer.kill_in(stage, delay)
        if not (out / ".work" / "reports" / "stage.json").exists():  # else the build may have ended before the kill
            assert_unfinished(out)
    assert num_hit >= len(stages) // 2
    killer.finish()


def test_build_killed_in_two_stages_equals_an_undisturbed_one(
    corpus: Path,
    undisturbed: Path,
    start_python: StartPython,
    eventually: Eventually,
    snapshot: Snapshot,
    tmp_path: Path,
) -> None:
    killer = Killer(start_python, eventually, corpus, tmp_path / "out")
    kill_along(("clean", "split"), 1, killer, tmp_path / "out")
    assert_same(snapshot(tmp_path / "out"), snapshot(undisturbed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sample_build_killed_in_every_stage_equals_an_undisturbed_one(
    seed: int,
    sample_config: Path,
    sample_build: Path,
    start_python: StartPython,
    eventually: Eventually,
    snapshot: Snapshot,
    tmp_path: Path,
) -> None:
    killer = Killer(start_python, eventually, sample_config, tmp_path / "out")
    kill_along(required(), seed, killer, tmp_path / "out")
    assert_same(snapshot(tmp_path / "out"), snapshot(sample_build))


@pytest.fixture(scope="module")
def build_until(corpus: Path, forks: Forks) -> BuildUntil:
    """How a build of the corpus into a folder ends that is killed before a file operation: see `Forks.runs`."""
    run = forks.runs("build(load_config(words[0]), out, Engine())")
    return lambda out, last_operation: run(out, last_operation, corpus)


def kill_at_operations(seed: int, most: int, build_until: BuildUntil, out: Path) -> int:
    """Kills runs of one build at file operations drawn up to `most`, until one run ends; returns the kills."""
    draw = random.Random(seed)
    num_kills = 0
    while (code := build_until(out, draw.randint(1, most))) < 0:
        assert code == -signal.SIGKILL
        num_kills += 1
        assert num_kills < MAX_KILLS
    return num_kills


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_build_killed_at_file_operations_equals_an_undisturbed_one(
    seed: int, undisturbed: Path, build_until: BuildUntil, snapshot: Snapshot, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert kill_at_operations(seed, 250, build_until, out) > 1
    assert_same(snapshot(out), snapshot(undisturbed))
    assert [check for check in verify(str(out)) if not check.ok] == []
    assert build_until(out, 0) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 11))
def test_build_killed_at_many_file_operations_equals_an_undisturbed_one(
    seed: int, undisturbed: Path, build_until: BuildUntil, snapshot: Snapshot, tmp_path: Path
) -> None:
    kill_at_operations(seed, 200 + 20 * seed, build_until, tmp_path / "out")
    assert_same(snapshot(tmp_path / "out"), snapshot(undisturbed))


def test_changed_build_killed_is_no_finished_build_and_ends_as_a_new_one(
    corpus: Path, undisturbed: Path, build_until: BuildUntil, snapshot: Snapshot, tmp_path: Path
) -> None:
    """The tree held another build, whose stages from `split` on are of no use."""
    out = tmp_path / "out"
    text = corpus.read_text()
    try:
        corpus.write_text(text.replace("2022-07-31", "2020-06-30"))
        assert build_until(out, 0) > 0
    finally:
        corpus.write_text(text)
    manifest, was_whole = (out / "manifest.json").read_bytes(), []
    for operation in (4, 12, 20, 24, 28, 60, 100):
        assert build_until(out, operation) == -signal.SIGKILL
        assert (out / "manifest.json").read_bytes() == manifest  # of the build before, until the new one is whole
        was_whole.append((read_state(Layout(str(out))) or UNFINISHED).is_whole)
        if was_whole[-1]:  # then it was killed before it touched what is published
            assert [check for check in verify(str(out)) if not check.ok] == []
        else:
            assert_unfinished(out)
    assert True in was_whole and False in was_whole
    assert build_until(out, 0) > 0
    assert (out / "manifest.json").read_bytes() != manifest
    assert_same(snapshot(out), snapshot(undisturbed))
    assert [check for check in verify(str(out)) if not check.ok] == []
