"""A build resumes: finished stages are found, and only the stages that a change affects run again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage_runner import StageEvent

from finpile.config import load_config
from finpile.errors import ConfigError, InputError
from finpile.verify import verify
from tests.support.required_stages import required
from tests.support.trees import assert_same

Snapshot = Callable[[Path], dict[str, bytes]]
WriteCorpus = Callable[..., Path]
StartPython = Callable[..., subprocess.Popen[str]]
PATIENCE_SECONDS = 120


def run(config: Path, out: Path, engine: Engine | None = None, *, fresh: bool = False) -> list[str]:
    """Builds; returns the stages that ran."""
    events: list[StageEvent] = []
    build(load_config(config), str(out), engine or Engine(), fresh=fresh, listen=events.append)
    ran = [event.stage for event in events if event.state == "running"]
    assert [event.stage for event in events if event.state == "done"] == ran
    assert [event.stage for event in events if event.state == "found"] == [
        name for name in required() if name not in ran
    ]
    return ran


@pytest.fixture
def copied(corpus: Path, built: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Corpus and tree, both to be changed."""
    shutil.copytree(corpus.parent, tmp_path / "copy")  # keeps the files' dates
    root = json.dumps(str(tmp_path / "copy"))
    (tmp_path / "copy" / "corpus.yaml").write_text(f"{corpus.read_text()}\nroot: {root}\n")
    return tmp_path / "copy" / "corpus.yaml", tmp_path / "copy" / "out"


def test_second_run_finds_all_and_leaves_every_byte(corpus: Path, built: Path, snapshot: Snapshot) -> None:
    before, manifest = snapshot(built), (built / "manifest.json").read_bytes()
    assert run(corpus, built) == []
    assert run(corpus, built, Engine(num_workers=2, transport="shuffle")) == []
    assert snapshot(built) == before
    assert (built / "manifest.json").read_bytes() == manifest


def test_command_reports_that_all_stages_were_done(corpus: Path, built: Path, start_python: StartPython) -> None:
    process = start_python("-m", "finpile_cli", "build", corpus, "-o", built)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, err
    assert "all stages were done before; nothing to do" in out
    assert out.count("done before") + out.count("not enabled") == len(required()) + 1


def with_setting(**changes: Any) -> Callable[[Path, WriteCorpus], None]:
    def change(folder: Path, write_corpus: WriteCorpus) -> None:
        write_corpus(folder, {}, **changes)

    return change


def with_filter(folder: Path, write_corpus: WriteCorpus) -> None:
    text = (folder / "corpus.yaml").read_text()
    (folder / "corpus.yaml").write_text(text.replace("filters: []", "filters: [c4]", 1))


def with_other_content(folder: Path, write_corpus: WriteCorpus) -> None:
    path = folder / "Web.jsonl"
    first, second, *rest = path.read_text().splitlines(keepends=True)
    path.write_text("".join([second, first, *rest]))


def with_another_file(folder: Path, write_corpus: WriteCorpus) -> None:
    (folder / "Web-2.jsonl").write_text('{"text": "A late document on barley.", "date": "2023-01-01"}\n')


CHANGES = [
    pytest.param("split", with_setting(heldout={"after": date(2020, 6, 30), "undated": "train"}), id="heldout"),
    pytest.param("tokens", with_setting(tokens={"sequence_length": 100}), id="sequence length"),
    pytest.param("clean", with_filter, id="filter of one source"),
    pytest.param("ingest", with_other_content, id="content of one file, as long as before"),
    pytest.param("ingest", with_another_file, id="another file", marks=pytest.mark.slow),
    pytest.param("exact", with_setting(dedup={"exact_fold": "whitespace"}), id="fold", marks=pytest.mark.slow),
    pytest.param("exact", with_setting(dedup={"scope": "corpus"}), id="scope", marks=pytest.mark.slow),
    pytest.param("near", with_setting(dedup={"near": None}), id="near off", marks=pytest.mark.slow),
    pytest.param("exact", with_setting(dedup={"exact": False, "near": None}), id="dedup off", marks=pytest.mark.slow),
    pytest.param(
        "tokenizer",
        with_setting(tokenizer={"vocab_size": 350, "chunks": 1, "chunk_vocab_size": 350}),
        id="vocabulary",
        marks=pytest.mark.slow,
    ),
    pytest.param("reports", with_setting(reports={"private": []}), id="reports", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("first", "change"), CHANGES)
def test_change_runs_the_affected_stages_and_equals_a_new_build(
    first: str,
    change: Callable[[Path, WriteCorpus], None],
    copied: tuple[Path, Path],
    write_corpus: WriteCorpus,
    snapshot: Snapshot,
) -> None:
    config, out = copied
    change(config.parent, write_corpus)
    assert run(config, out) == list(required()[required().index(first) :])
    assert run(config, out) == []
    run(config, config.parent / "new")
    assert_same(snapshot(out), snapshot(config.parent / "new"))
    assert [check for check in verify(str(out)) if not check.ok] == []


def test_change_taken_back_gives_the_first_build_again(
    copied: tuple[Path, Path], built: Path, write_corpus: WriteCorpus, snapshot: Snapshot
) -> None:
    config, out = copied
    original = config.read_text()
    with_setting(heldout={"after": date(2020, 6, 30), "undated": "train"})(config.parent, write_corpus)
    run(config, out)
    assert snapshot(out) != snapshot(built)
    config.write_text(original)
    assert run(config, out) == ["split", "tokenizer", "tokens", "reports"]
    assert snapshot(out) == snapshot(built)


def test_output_does_not_depend_on_dates_and_place_of_files(
    copied: tuple[Path, Path], built: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    config, _ = copied
    for path in config.parent.glob("*.jsonl"):
        os.utime(path, (1, 1))
    run(config, tmp_path / "other")
    assert_same(snapshot(tmp_path / "other"), snapshot(built))


def test_fresh_runs_every_stage_again(copied: tuple[Path, Path], built: Path, snapshot: Snapshot) -> None:
    config, out = copied
    (out / "documents" / "stray.parquet").write_bytes(b"of another time")
    assert run(config, out, fresh=True) == list(required())
    assert snapshot(out) == snapshot(built)


def test_folder_of_another_kind_is_refused_and_untouched(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "sea.jpg").write_bytes(b"blue")
    for out in (tmp_path / "photos", tmp_path / "photos" / "sea.jpg"):
        with pytest.raises(ConfigError, match="name a"):
            run(corpus, out, fresh=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["photos", "sea.jpg"]


def test_nothing_is_written_if_an_input_is_missing(copied: tuple[Path, Path], tmp_path: Path) -> None:
    config, _ = copied
    (config.parent / "Web.jsonl").unlink()
    with pytest.raises(InputError, match="Web"):
        run(config, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_two_builds_at_once_are_refused(
    corpus: Path, built: Path, start_python: StartPython, eventually: Callable[..., Any], tmp_path: Path
) -> None:
    lock = tmp_path / "out" / ".work" / "lock"
    process = start_python("-m", "finpile_cli", "build", corpus, "-o", tmp_path / "out", "--workers", "1")
    try:
        assert eventually(lambda: lock.exists() and lock.read_text())
        with pytest.raises(ConfigError, match=f"process {process.pid}"):
            run(corpus, tmp_path / "out", fresh=True)
    finally:
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, err
    assert run(corpus, tmp_path / "out") == []
    assert not lock.exists()


def test_failed_build_gives_the_lock_back(copied: tuple[Path, Path], tmp_path: Path) -> None:
    config, _ = copied
    (config.parent / "Web.jsonl").write_text("no JSON\n")
    for _ in range(2):
        with pytest.raises(Exception, match="'Web'"):
            run(config, tmp_path / "new")
        assert not (tmp_path / "new" / ".work" / "lock").exists()
        assert not (tmp_path / "new" / "manifest.json").exists()
