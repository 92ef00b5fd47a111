"""Compilation in background processes: the groups that run, the waiting stages, and the remaining processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from finpile_pipelines.engines import local
from finpile_pipelines.progress import Progress
from finpile_pipelines.runner import kernels
from finpile_pipelines.runner.kernels import Compilation
from finpile_pipelines.stage import Context, Sizes, Work, sized_engine

from finpile.output.stage_record import StageRecord

ROOT = Path(__file__).resolve().parents[2]
Eventually = Callable[[Callable[[], Any]], Any]

#: Groups that need no compiler. `slow` ends when its file appears.
GROUPS = """
import os, pathlib, time

def fast():
    pathlib.Path(os.environ["GROUPS_FOLDER"], f"fast.{os.getpid()}").touch()

def slow():
    while not pathlib.Path(os.environ["GROUPS_FOLDER"], "go").exists():
        time.sleep(0.02)

def broken():
    raise ValueError
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of markers; a module `groups` can be imported by the compile server."""
    (tmp_path / "groups.py").write_text(GROUPS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # of programs that tests start
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("GROUPS_FOLDER", str(tmp_path))
    monkeypatch.setattr(kernels, "marker_folder", lambda: tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return tmp_path


def no_children() -> bool:
    return not [
        child for child in psutil.Process().children(recursive=True) if "compile_server" in str(child.cmdline())
    ]


def test_groups_are_compiled_once_and_only_those_without_marker_the_next_time(folder: Path) -> None:
    for _ in range(2):
        with Compilation(["groups:fast"], 2) as compilation:
            compilation.start()
            kernels.wait_for(["groups:fast"], lambda: None)
    assert len(list(folder.glob("fast.*"))) == 1
    assert len(list(folder.glob("finpile-kernels-groups.fast-*"))) == 1
    assert no_children()


def test_a_stage_waits_for_its_own_groups_only(folder: Path) -> None:
    with Compilation(["groups:slow", "groups:fast"], 2) as compilation:
        compilation.start()
        kernels.wait_for(["groups:fast"], lambda: None)
        assert list(folder.glob("fast.*"))
        calls: list[int] = []

        def waiting() -> None:
            calls.append(len(kernels.compile_processes()))
            (folder / "go").touch()

        kernels.wait_for(["groups:slow"], waiting)
    assert calls and calls[0] >= 2
    assert list(folder.glob("finpile-kernels-groups.slow-*"))


def test_a_group_that_fails_is_not_waited_for_and_has_no_marker(folder: Path) -> None:
    with Compilation(["groups:broken", "groups:fast"], 2) as compilation:
        compilation.start()
        kernels.wait_for(["groups:broken", "groups:fast"], lambda: None)
    assert list(folder.glob("fast.*"))
    assert not list(folder.glob("finpile-kernels-groups.broken-*"))


def test_an_error_ends_all_processes_that_compile(folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Compilation(["groups:slow"], 2) as compilation:
        compilation.start()
        assert local.memory_bytes() > 0
        raise KeyboardInterrupt
    assert no_children()


def test_a_killed_launcher_leaves_no_process_that_compiles(folder: Path, eventually: Eventually) -> None:
    script = (
        "import os, sys, time\nfrom pathlib import Path\nfrom finpile_pipelines.runner import kernels\n"
        "os.cpu_count = lambda: 2\nkernels.marker_folder = lambda: Path(sys.argv[1])\n"
        "with kernels.Compilation(['groups:slow'], 2) as compilation:\n"
        "    compilation.start()\n    print('started', flush=True)\n    time.sleep(600)\n"
    )
    environment = {**os.environ, "TMPDIR": str(folder)}  # what a killed process leaves there
    command = [sys.executable, "-c", script, str(folder)]
    launcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert launcher.stdout is not None and launcher.stdout.readline() == "started\n"
    root = psutil.Process(launcher.pid)
    assert eventually(lambda: len(root.children(recursive=True)) >= 2)  # the compile server and its fork
    started = root.children(recursive=True)
    launcher.kill()
    launcher.wait()
    assert eventually(lambda: not any(process.is_running() for process in started))
    launcher.stdout.close()


@pytest.mark.parametrize("num_processes", [1, 2])
def test_nothing_is_started_for_one_worker_or_without_a_writable_cache(
    num_processes: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if num_processes > 1:
        monkeypatch.setattr(kernels, "marker_folder", lambda: None)
    with Compilation(["groups:fast"], num_processes) as compilation:
        compilation.start()
        assert kernels.compile_processes() == []
        kernels.wait_for(["groups:fast"], lambda: pytest.fail("waits for a group that nobody compiles"))


def test_progress_of_a_stage_reports_kernel_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    class Board:
        def progress(self) -> Progress:
            return Progress(3, 0, 1, note="keys")

    board: Any = Board()
    assert local._progress(board).note == "keys"
    monkeypatch.setattr(kernels, "is_compiling", lambda: True)
    assert local._progress(board).note == "compiling kernels (first run only)"


def test_this_process_notices_its_own_compilations() -> None:
    from numba import njit

    assert not kernels.is_compiling()
    seen: list[bool] = []

    @njit  # type: ignore[untyped-decorator]
    def one() -> int:
        return 1

    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            seen.append(kernels.is_compiling())

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        assert one() == 1
    assert seen == [True]
    assert not kernels.is_compiling()


def test_progress_while_a_thread_imports_numba_waits_for_nothing() -> None:
    program = """
import sys, threading
from finpile_pipelines.runner import kernels

assert "numba" not in sys.modules
imported = []
def load():
    import numba
    imported.append(numba.njit)
thread = threading.Thread(target=load, daemon=True)
thread.start()
while thread.is_alive():
    kernels.is_compiling()
assert imported
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(("corpus_bytes", "num_workers"), [(0, 1), ((4 << 20) - 1, 1), (4 << 20, 3), (1 << 40, 3)])
def test_small_corpora_are_processed_by_this_process_alone(
    corpus_bytes: int, num_workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FINPILE_SMALL_BYTES", raising=False)
    assert sized_engine(_context(Sizes()), Work(size_bytes=corpus_bytes)).num_workers == num_workers


@pytest.mark.parametrize(
    ("num_workers", "work_bytes", "expected"),
    [(2, 199, (True, 2)), (2, 200, (False, 2)), (3, 299, (True, 3)), (3, 300, (False, 3)), (8, 400, (False, 4))],
)
def test_workers_are_processes_where_each_has_enough_to_do(
    num_workers: int, work_bytes: int, expected: tuple[bool, int]
) -> None:
    context = _context(Sizes(worker_bytes=100, small_bytes=0), num_workers)
    engine = sized_engine(context, Work(size_bytes=work_bytes))
    assert (engine.threads, engine.num_workers) == expected


@pytest.mark.parametrize(("num_workers", "expected"), [(2, (True, 2)), (3, (False, 3))])
def test_the_size_of_the_corpus_decides_on_two_processes_and_not_its_work(
    num_workers: int, expected: tuple[bool, int]
) -> None:
    context = _context(Sizes(worker_bytes=100, small_bytes=0), num_workers)
    record = StageRecord(stage="clean", fingerprint="", files=(), counts={"sources": [{"text_bytes": 199}]})
    object.__setattr__(context, "records", {"clean": record})
    engine = sized_engine(context, Work(size_bytes=900))
    assert (engine.threads, engine.num_workers) == expected


def _context(sizes: Sizes, num_workers: int = 3) -> Context:
    from finpile_pipelines.runner.engine import Engine

    context: Any = Context.__new__(Context)
    for name, value in (("engine", Engine(num_workers=num_workers)), ("sizes", sizes), ("records", {})):
        object.__setattr__(context, name, value)
    found: Context = context
    return found


@pytest.mark.slow
def test_a_build_loads_all_kernels_that_it_calls(tmp_path: Path) -> None:
    """Each is in a group of its stage; one that is in none is compiled by the build, while other kernels are, too."""
    out, config = tmp_path / "out", ROOT / "pipelines" / "configs" / "sample.yaml"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DEBUG_CACHE": "1"}
    command = [sys.executable, "-m", "finpile_cli", "build", str(config), "-o", str(out), "--workers", "2"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "data loaded from" in done.stdout
    assert "data saved to" not in done.stdout


_FOLDER = """
import sys
from finpile_pipelines.runner.kernels import marker_folder, missing_groups
missing, imported = missing_groups(["finpile.dedup.near.warmup:none"]), "numba" in sys.modules
from finpile.dedup._hash_kernels import sign_documents
print(marker_folder(), sign_documents.dispatcher.stats.cache_path, missing, imported)
"""


@pytest.mark.parametrize("given", [False, True])
def test_markers_are_in_a_folder_of_numbas_cache_which_is_found_without_numba(given: bool, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment |= {"NUMBA_CACHE_DIR": str(tmp_path)} if given else {}
    run = subprocess.run([sys.executable, "-c", _FOLDER], env=environment, capture_output=True, text=True, check=True)
    markers, numbas, missing, imported = run.stdout.split()
    assert Path(numbas).is_relative_to(markers)
    assert markers == str(tmp_path) or not given
    assert (missing, imported) == ("['finpile.dedup.near.warmup:none']", "False")


@pytest.mark.parametrize("name", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_what_is_not_cached_has_no_markers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert kernels.marker_folder.__wrapped__() is None
