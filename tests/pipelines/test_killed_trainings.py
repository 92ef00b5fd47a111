"""A killed training resumes from its last step and writes the same bytes as an uninterrupted one.

The tests kill the process of a one-worker training while it writes a chosen file, and the launcher of two workers.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.unigram.run import StepEvent
from finpile_pipelines.unigram.tokenizer import OUTPUTS
from finpile_pipelines.unigram.train_folder import train_folder

from finpile.config import TokenizerConfig
from finpile.report.documents import iter_texts
from tests.support.forks import Forks
from tests.support.json_lines import json_lines

ROOT = Path(__file__).resolve().parents[2]
SETTINGS: dict[str, Any] = {"vocab_size": 600, "chunks": 2, "chunk_vocab_size": 500}
PATIENCE_SECONDS = 300
StartPython = Callable[..., subprocess.Popen[str]]
Fork = Callable[[str, Path, str, int], int]


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 40 kB of real language in one domain."""
    folder = tmp_path_factory.mktemp("docs") / "forum"
    folder.mkdir()
    texts = [text for *_, some in iter_texts([ROOT / "data_samples" / "stackexchange"]) for text in some.to_pylist()]
    (folder / "all.jsonl").write_bytes(json_lines({"text": text} for text in texts))
    return folder


def train(docs: Path, out: Path, mode: str) -> list[StepEvent]:
    """Trains, and returns the progress events except the starts of steps."""
    events: list[StepEvent] = []
    config = TokenizerConfig(mode=mode, **SETTINGS)  # type: ignore[arg-type]
    train_folder([str(docs)], str(out), config, Engine(), listen=events.append)
    return [event for event in events if event.state != "running"]


def outputs_of(out: Path) -> dict[str, bytes]:
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def undisturbed(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("undisturbed")

    def outputs(mode: str) -> dict[str, bytes]:
        if not (folder / mode).exists():
            train(docs, folder / mode, mode)
        found = outputs_of(folder / mode)
        assert sorted(found) == sorted(OUTPUTS)
        return found

    return outputs


@pytest.fixture(scope="module")
def fork(docs: Path, forks: Forks) -> Fork:
    """How a training in a mode ended that was killed at that file: see `Forks.runs`."""

    def run(mode: str, out: Path, renamed: str, last: int) -> int:
        settings = f"TokenizerConfig(mode={mode!r}, **{SETTINGS})"
        return forks.runs(f"train_folder(words, out, {settings}, Engine())", renamed)(out, last, docs)

    return run


def test_killed_in_a_chunk_and_between_passes_equals_an_undisturbed_training(
    docs: Path,
    fork: Fork,
    undisturbed: Callable[[str], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    assert fork("refit", out, "models/", 2) == -signal.SIGKILL
    (first,) = (out / ".work" / "training").glob("*/models/*.parquet")
    written = first.stat().st_mtime_ns
    assert fork("refit", out, "training_state.parquet", 3) == -signal.SIGKILL
    assert first.stat().st_mtime_ns == written  # the other chunk was trained, not this one
    events = train(docs, out, "refit")
    reported = {event.step: event.state for event in events}
    assert [reported[name] for name in ("count", "train", "merge", "partition", "lattices")] == ["found"] * 5
    assert {name: state for name, state in reported.items() if name.startswith("update")} == {
        "update 2": "found",
        "update 3": "done",
        "update 4": "done",
    }
    assert outputs_of(out) == undisturbed("refit")


@pytest.mark.slow
def test_killed_between_passes_over_all_text_equals_an_undisturbed_training(
    docs: Path,
    fork: Fork,
    undisturbed: Callable[[str], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    for step in (2, 2, 1):  # in the second update; in the pruning, after it has begun anew; at once after that
        assert fork("global", out, "training_state.parquet", step) == -signal.SIGKILL
    assert not any((out / name).exists() for name in OUTPUTS)
    events = train(docs, out, "global")
    assert [event.step for event in events if event.state == "found"][-1] == "update 2"
    assert outputs_of(out) == undisturbed("global")


@pytest.mark.parametrize(
    "name",
    [
        "merged.parquet",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("out/merged.parquet", "training.json", "stage.json")),
    ],
)
def test_killed_as_it_publishes_equals_an_undisturbed_training(
    name: str,
    docs: Path,
    fork: Fork,
    undisturbed: Callable[[str], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    out = tmp_path / "split"
    last = {"merged.parquet": 3}.get(name, 1)  # that of the merge, that beside the others, that which is published
    assert fork("split-merge", out, name, last) == -signal.SIGKILL
    assert [event.state for event in train(docs, out, "split-merge")] == ["found"] * 4
    assert outputs_of(out) == undisturbed("split-merge")
    assert train(docs, out, "split-merge") == []


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "name"), [("refit", "models/*.parquet"), ("global", "training_state.parquet")])
def test_killed_launcher_of_two_workers_leaves_a_training_that_resumes(
    mode: str,
    name: str,
    docs: Path,
    start_python: StartPython,
    eventually: Callable[[Callable[[], Any]], Any],
    undisturbed: Callable[[str], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    settings = [word for key, value in SETTINGS.items() for word in (f"--{key.replace('_', '-')}", value)]
    command = ["-m", "finpile_cli", "tokenizer", "train", docs, "-o", out, "--mode", mode, "--workers", 2, *settings]
    process = start_python(*command)
    assert eventually(lambda: list((out / ".work" / "training").glob(f"*/{name}")) or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_SECONDS)
    process = start_python(*command)
    reported, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, err
    assert "done before" in reported
    assert outputs_of(out) == undisturbed(mode)
