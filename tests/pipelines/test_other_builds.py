"""OUT belongs to one build: another one is refused, and an old one is kept until the new one is complete."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines import tokens
from finpile_pipelines.build import build
from finpile_pipelines.corpus import clean
from finpile_pipelines.executors.shards import PlanOverShards
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage_runner import StageEvent, StageRunner

from finpile.config import load_config
from finpile.errors import ConfigError, InputError, IntegrityError, RunError
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.verify import verify
from tests.support.required_stages import required
from tests.support.trees import files_below

Snapshot = Callable[[Path], dict[str, bytes]]
WriteCorpus = Callable[..., Path]


def run(config: Path, out: Path, **options: Any) -> list[str]:
    """Builds; returns the stages that ran."""
    events: list[StageEvent] = []
    build(load_config(config), str(out), Engine(), listen=events.append, **options)
    return [event.stage for event in events if event.state == "done"]


@pytest.fixture(scope="module")
def built(corpus: Path) -> Path:
    out = corpus.parent / "out"
    (out / "manifest.json").unlink()  # the copy's manifest names the folder of the first build
    assert run(corpus, out) == []
    return out


@pytest.fixture
def out(built: Path, tmp_path: Path) -> Path:
    """A copy of the finished build, to be changed."""
    return Path(shutil.copytree(built, tmp_path / "out"))


@pytest.fixture
def other(corpus: Path, write_corpus: WriteCorpus, tmp_path: Path) -> Path:
    """The corpus file of another build over the same inputs."""
    return write_corpus(tmp_path / "other", {}, name="other", root=str(corpus.parent))


@pytest.fixture
def changed(corpus: Path, write_corpus: WriteCorpus, tmp_path: Path) -> Path:
    """The corpus file of the same build with another setting, which touches `split` first."""
    return write_corpus(
        tmp_path / "changed", {}, heldout={"after": date(2020, 6, 30), "undated": "train"}, root=str(corpus.parent)
    )


def failing(*_: object, **__: object) -> None:
    raise RunError("the power went")


def test_another_build_is_refused_and_every_byte_stays(out: Path, other: Path) -> None:
    before = files_below(out)
    for options in ({}, {"fresh": True}):
        with pytest.raises(
            ConfigError, match=r"holds the build 'mini', not 'other': name another folder, or .*--replac"
        ):
            run(other, out, **options)
    assert files_below(out) == before


def test_replaced_build_is_that_of_a_new_folder(out: Path, other: Path, snapshot: Snapshot, tmp_path: Path) -> None:
    assert run(other, out, replace=True)[-1] == "reports"
    run(other, tmp_path / "new")
    assert snapshot(out) == snapshot(tmp_path / "new")
    assert json.loads((out / "manifest.json").read_text())["name"] == "other"
    assert run(other, out) == []


def test_a_part_of_a_build_can_replace_the_whole(corpus: Path, out: Path) -> None:
    """All its stages are done: it is left to remove what the later ones wrote."""
    with pytest.raises(ConfigError, match=r"holds a whole build .* say --replace"):
        run(corpus, out, until="split")
    assert run(corpus, out, until="split", replace=True) == []
    assert not {"tokenizer", "tokens", "reports"} & {path.name for path in out.iterdir()}
    assert [check for check in verify(str(out)) if not check.ok] == []
    assert run(corpus, out) == ["tokenizer", "tokens", "reports"]


def test_unfinished_build_is_refused_to_another_one(
    corpus: Path, other: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch, pytest.raises(RunError):
        patch.setattr(clean, "STAGE", replace(clean.STAGE, run=failing))
        run(corpus, tmp_path / "out")
    with pytest.raises(ConfigError, match=r"holds the build 'mini'"):
        run(other, tmp_path / "out")
    with pytest.raises(InputError, match="no finished build: the build 'mini' is running, or was interrupted"):
        load_manifest(Layout(str(tmp_path / "out")))
    assert run(corpus, tmp_path / "out") == list(required()[1:])


def test_old_build_is_whole_until_the_first_published_stage_begins(
    corpus: Path, out: Path, write_corpus: WriteCorpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fold = write_corpus(tmp_path / "fold", {}, dedup={"exact_fold": "whitespace"}, root=str(corpus.parent))
    before = {name: data for name, data in files_below(out).items() if not name.startswith(".work/")}
    with monkeypatch.context() as patch, pytest.raises(RunError):
        patch.setattr(PlanOverShards, "run", failing)
        run(fold, out)
    assert {name: data for name, data in files_below(out).items() if not name.startswith(".work/")} == before
    assert [check for check in verify(str(out)) if not check.ok] == []


def test_old_manifest_stays_until_the_new_one_is_written(
    changed: Path, out: Path, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = (out / "manifest.json").read_bytes()
    with monkeypatch.context() as patch, pytest.raises(RunError):
        patch.setattr(tokens, "STAGE", replace(tokens.STAGE, run=failing))
        run(changed, out)
    assert (out / "manifest.json").read_bytes() == before
    with pytest.raises(InputError, match="no finished build: the build 'mini' is running, or was interrupted"):
        verify(str(out))
    assert run(changed, out) == ["tokens", "reports"]
    run(changed, tmp_path / "new")
    assert snapshot(out) == snapshot(tmp_path / "new")
    assert [check for check in verify(str(out)) if not check.ok] == []


def test_build_interrupted_before_its_manifest_writes_it_next_time(
    changed: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (out / "manifest.json").read_bytes()
    with monkeypatch.context() as patch, pytest.raises(RunError):
        patch.setattr(StageRunner, "finish", failing)
        run(changed, out)
    assert (out / "manifest.json").read_bytes() == before
    assert run(changed, out) == []
    assert (out / "manifest.json").read_bytes() != before
    assert [check for check in verify(str(out)) if not check.ok] == []


# --- files of the folder that are cut or garbage ---------------------------------------------------------------------

GARBAGE = [b"", b"{", b"[]", b"null", b'{"stages": 7}', b"\xff\xfe\x00", b"[" * 100_000]


@pytest.mark.parametrize("data", GARBAGE, ids=lambda data: repr(data[:9]))
@pytest.mark.parametrize("name", ["manifest.json", ".work/build.json"])
def test_garbage_in_the_manifest_or_the_state_is_rewritten(
    corpus: Path, out: Path, snapshot: Snapshot, name: str, data: bytes
) -> None:
    before, manifest = snapshot(out), json.loads((out / "manifest.json").read_bytes())
    (out / name).write_bytes(data)
    error, message = (IntegrityError, "damaged") if name == "manifest.json" else (InputError, "no finished build")
    with pytest.raises(error, match=message):
        verify(str(out))
    assert run(corpus, out) == []
    assert snapshot(out) == before
    assert json.loads((out / "manifest.json").read_bytes()) == manifest
    load_manifest(Layout(str(out)))


@pytest.mark.parametrize("data", GARBAGE[:3], ids=lambda data: repr(data[:9]))
def test_stage_whose_record_is_garbage_runs_again(corpus: Path, out: Path, snapshot: Snapshot, data: bytes) -> None:
    before = snapshot(out)
    record = out / ".work" / "exact" / "stage.json"
    record.write_bytes(record.read_bytes()[:40] + data)
    assert run(corpus, out) == ["exact"]
    assert snapshot(out) == before
    assert run(corpus, out) == []


def test_published_file_that_is_missing_or_cut_is_restored(corpus: Path, out: Path, snapshot: Snapshot) -> None:
    before = snapshot(out)
    (out / "reports" / "table1.csv").unlink()
    assert run(corpus, out) == ["reports"]
    part = next((out / "tokens").rglob("*.arrow"))
    part.write_bytes(part.read_bytes()[:100])
    assert run(corpus, out) == ["tokens"]
    assert snapshot(out) == before
    assert [check for check in verify(str(out)) if not check.ok] == []


# --- a disk that cannot be written -----------------------------------------------------------------------------------


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Has every call of the operating system that would change something below a folder fail, as on a read-only disk.

    Permissions do not stop the superuser, as whom tests may run.
    """

    def seal_off(folder: Path) -> None:
        def guard(module: Any, name: str, *, writes: Callable[..., bool] = lambda *_, **__: True) -> None:
            call = getattr(module, name)

            def guarded(path: Any, *arguments: Any, **options: Any) -> Any:
                if str(path).startswith(str(folder)) and writes(*arguments, **options):
                    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
                return call(path, *arguments, **options)

            monkeypatch.setattr(module, name, guarded)

        for name in ("unlink", "remove", "rename", "replace", "rmdir", "truncate", "utime"):
            guard(os, name)
        guard(os, "mkdir", writes=lambda *_, **__: True)
        guard(os, "open", writes=lambda flags, *_, **__: bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)))
        guard(__import__("builtins"), "open", writes=lambda mode="r", *_, **__: any(sign in mode for sign in "wax+"))

    return seal_off


def test_finished_build_on_a_read_only_disk_is_found(
    corpus: Path, out: Path, read_only: Callable[[Path], None]
) -> None:
    before = files_below(out)
    read_only(out)
    assert run(corpus, out) == []
    assert files_below(out) == before


def test_build_that_has_to_run_on_a_read_only_disk_is_one_message(
    changed: Path, out: Path, read_only: Callable[[Path], None]
) -> None:
    read_only(out)
    for options in ({}, {"fresh": True}):
        with pytest.raises(ConfigError, match=r"cannot be written, and .* run.*: name a folder that can be written"):
            run(changed, out, **options)
