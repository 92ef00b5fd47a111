"""Nothing is left in the temporary folder: not by commands, failed ones included, and not for long by killed ones."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FINPILE = str(Path(sys.executable).with_name("finpile"))
#: Makes the folder, says where it is, and ends when its input ends.
_PROGRAM = """
import sys, tempfile
from finpile_pipelines.process_folder import at_end, process_folder, temporary_files_inside
folder = process_folder()
with temporary_files_inside():
    tempfile.mkdtemp()
at_end(lambda: print(folder.exists()))
print(folder, flush=True)
sys.stdin.read()
"""
_AN_HOUR = 3600


@pytest.fixture
def temporary() -> Iterator[Path]:
    """An empty folder; the path of `tmp_path` may be too long for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def start(temporary: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )


def folder_of(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def test_the_folder_is_removed_when_its_process_ends(temporary: Path) -> None:
    process = start(temporary)
    folder = folder_of(process)
    assert folder.parent == temporary
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert process.communicate()[0] == "True\n"  # what `at_end` got was called before the folder was removed
    assert list(temporary.iterdir()) == []


def test_folders_of_killed_processes_are_removed_later(temporary: Path) -> None:
    killed, living = start(temporary), start(temporary)
    folders = [folder_of(killed), folder_of(living)]
    killed.kill()
    killed.communicate()
    new = start(temporary)
    assert folder_of(new) not in folders
    assert folders[0].exists()  # its process may be about to lock it
    for folder in folders:
        then = folder.stat().st_mtime - _AN_HOUR
        os.utime(folder, (then, then))
    later = start(temporary)
    folder_of(later)
    assert [folder.exists() for folder in folders] == [False, True]
    for process in (living, new, later):
        process.communicate()
    assert list(temporary.iterdir()) == []


def test_paths_of_sockets_are_short_in_any_temporary_folder(tmp_path: Path) -> None:
    deep = tmp_path / ("long" * 30)
    deep.mkdir()
    process = start(deep)
    folder = folder_of(process)
    assert len(str(folder)) < 80
    process.communicate()
    assert not folder.exists()


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("is_empty", [False, True], ids=["finished", "failed"])
def test_a_build_leaves_nothing(
    workers: int, is_empty: bool, write_corpus: Callable[..., Path], temporary: Path, tmp_path: Path
) -> None:
    """A build whose documents are all removed fails; its exit handlers do not run."""
    filters = [{"gopher_quality": {"min_words": 90_000}}] if is_empty else []
    source = {"name": "News", "dataset": "FinPile", "format": "jsonl", "paths": "News.jsonl"}
    config = write_corpus(tmp_path / "in", sources=[{**source, "clean": {"filters": filters}, "max_removed": 1.0}])
    command = [FINPILE, "build", str(config), "-o", str(tmp_path / "out"), "--workers", str(workers)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ("no document is left" in done.stderr) == (done.returncode != 0) == is_empty, done.stderr
    assert list(temporary.iterdir()) == []
