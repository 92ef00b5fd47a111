"""Fixtures of all tests: folders that all test processes share, such as a build of the sample corpus, and real data."""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

from finpile.config import load_config
from tests.support.kernels import CACHE, folder_in, variables
from tests.support.real_data import find

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_SECONDS = 120
SAMPLE_CONFIG = ROOT / "pipelines" / "configs" / "sample.yaml"

#: Processes that tests start load the bytecode of modules; without it, each start compiles hundreds of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

#: The same examples on every run, however slow the machine.
settings.register_profile("finpile", deadline=None, derandomize=True)
settings.load_profile("finpile")


#: Files and folders of tests that run first, so that no process is left alone with a long file at the end.
_LONGEST_FIRST = ("test_docs.py", "pipelines", "trainer", "finpile/dedup", "tokenizer", "cli", "benchmarks")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects no garbage: what is imported and found stays until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves the files and folders that take longest to the front; all else keeps its order."""
    places = [ROOT / "tests" / name for name in _LONGEST_FIRST]

    def rank(item: pytest.Item) -> int:
        return next((at for at, place in enumerate(places) if item.path.is_relative_to(place)), len(places))

    items.sort(key=rank)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes have the name of their parameter: compressed ones contain the time, and processes have to agree."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Files are not forced to the disk: only a machine that stops loses them, and no test stops one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


#: A folder that PyTorch makes with the first optimizer, one for each user.
_CACHE_OF_TORCH = "torchinductor_"


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_in_the_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each test process has a temporary folder of its own. Tests that kill a process give it another one."""
    tmp_path_factory.getbasetemp()  # in the folder that was there before
    folder = tempfile.mkdtemp(prefix="fp-")  # short: sockets have short paths
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield
        if (used := sys.modules.get("finpile_pipelines.process_folder")) is not None:
            used.end_process_folder()
        left = sorted(name for name in os.listdir(folder) if not name.startswith(_CACHE_OF_TORCH))
        shutil.rmtree(folder)
        assert left == []


Share = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def share(tmp_path_factory: pytest.TempPathFactory) -> Share:
    """`share("name", make)`: a folder that `make(folder)` fills, once for all processes of a test run. Read only.

    The first process that needs the folder makes it; another that needs it in the meantime waits.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def find(name: str, make: Callable[[Path], object]) -> Path:
        place = root / "shared" / name
        place.mkdir(parents=True, exist_ok=True)
        with (place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (place / "made").exists():
                shutil.rmtree(place / "folder", ignore_errors=True)  # of a process whose `make` failed
                (place / "folder").mkdir()
                make(place / "folder")
                (place / "made").touch()
        return place / "folder"

    return find


@pytest.fixture(scope="session")
def sample_config() -> Path:
    """The corpus file of data_samples."""
    return SAMPLE_CONFIG


@pytest.fixture(scope="session")
def sample_build(share: Share) -> Path:
    """A finished one-worker build of data_samples. Read only: a test that writes takes `copy_of_sample`."""

    def make(folder: Path) -> None:
        from finpile_pipelines.build import build  # Beam: seconds that a test of one function does not need
        from finpile_pipelines.runner.engine import Engine

        build(load_config(SAMPLE_CONFIG), str(folder / "out"), Engine(num_workers=1))

    return share("sample", make) / "out"


@pytest.fixture
def copy_of_sample(sample_build: Path, tmp_path: Path) -> Path:
    """The sample build without its scratch, for a test to damage."""
    return Path(shutil.copytree(sample_build, tmp_path / "build", ignore=shutil.ignore_patterns(".work")))


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """`real_data("fin_news")`: that path in the real corpora; skips the test if it is absent."""
    return find


@pytest.fixture(scope="session")
def start_python(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.Popen[str]]:
    """Starts Python on arguments, in a session (a process group) of its own, with the project importable."""
    scratch = str(tmp_path_factory.mktemp("scratch"))  # what a killed process leaves is left there

    def start(*arguments: object, **environment: str) -> subprocess.Popen[str]:
        paths = [str(ROOT / folder) for folder in ("", "pipelines", "tokenizer", "cli", "trainer")]
        return subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
            # A job in the background of a shell inherits a SIGINT that is ignored; what is started here must not.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": scratch, **environment},
        )

    return start


@pytest.fixture(scope="session")
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """Calls a function until its result is true or the time is over; returns the last result."""

    def ask(question: Callable[[], Any]) -> Any:
        end = time.monotonic() + PATIENCE_SECONDS
        while not (answer := question()) and time.monotonic() < end:
            time.sleep(0.01)
        return answer

    return ask


@pytest.fixture(scope="session")
def checked_kernels(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of kernels compiled with bounds checks, kept between runs while no file with kernels changes."""
    cache: pytest.Cache | None = getattr(pytestconfig, "cache", None)
    if cache is None:
        return tmp_path_factory.mktemp("kernels")
    folder = folder_in(cache.mkdir(CACHE))
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def run_with_bounds_checks(checked_kernels: Path) -> Callable[..., None]:
    """`run_with_bounds_checks(program, *folders)`: runs Python code that must print "within bounds"."""

    def run(program: str, *folders: Path) -> None:
        paths = os.pathsep.join(map(str, (ROOT, ROOT / "tokenizer", *folders)))
        environment = {**variables(checked_kernels), "PYTHONPATH": paths}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "within bounds", done.stderr

    return run


@pytest.fixture(scope="session")
def renderer() -> ModuleType:
    """The program `schemas/render.py`."""
    pytest.importorskip("torch")  # the contract of training files is that of the trainer
    spec = importlib.util.spec_from_file_location("finpile_schemas_render", ROOT / "schemas" / "render.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "schemas"))  # as `python schemas/render.py` has it
        spec.loader.exec_module(module)
    return module
