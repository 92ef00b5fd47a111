"""Kernels of a build: compiled in the background if Numba's cache on disk does not hold them yet.

Compilation takes about half a minute in all. `Compilation` starts `runner.compile_server` for the groups that the
enabled stages name, in the order of the stages; the build runs meanwhile, and a stage waits for its own groups. For
each compiled group a marker file is written beside Numba's cache. If all markers exist, nothing is started.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import finpile_tokenizer
import psutil

import finpile
from finpile_pipelines.process_folder import process_folder
from finpile_pipelines.runner.child_processes import family, kill, start_module

#: Shown while a stage waits for its kernels.
NOTE = "compiling kernels (first run only)"
_SERVER_MODULE = "finpile_pipelines.runner.compile_server"
_WAIT_SECONDS = 0.05
#: With fewer processes, kernels are compiled by the process that calls them.
_MIN_PROCESSES = 2
#: Packages whose kernel modules a marker depends on.
_PACKAGES = (finpile, finpile_tokenizer)
_KERNEL_FILES = "**/_*kernels.py"
_PREFIX = "finpile-kernels-"
#: Lines of /proc/cpuinfo: of x86, and of ARM.
_OF_PROCESSOR = (
    *("vendor_id", "cpu family", "model", "stepping", "flags"),
    *("cpu implementer", "cpu architecture", "cpu variant", "cpu part", "features"),
)


class Compilation:
    """Compiles the groups that are not in the cache, in this order and in up to `num_processes` processes.

    A context manager: at its end all its processes end. `start` does nothing for one process, as kernels are then
    compiled when they are called first; neither if Numba does not compile (NUMBA_DISABLE_JIT), compiles for tests
    (NUMBA_BOUNDSCHECK), or cannot write its cache.
    """

    def __init__(self, groups: Iterable[str], num_processes: int) -> None:
        self._groups = list(dict.fromkeys(groups))
        self._num_processes = min(num_processes, os.cpu_count() or 1)
        self._waiting: set[str] = set()
        self._server: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Compilation:
        return self

    def __exit__(self, *error: object) -> None:
        if self._server is None:
            return
        _RUNNING.remove(self)
        if self._server.poll() is None:
            kill(self.processes())
        self._server.wait()
        self._thread.join()

    def start(self) -> None:
        """Starts the compile server; nothing if it was started before, or if all groups are compiled."""
        if self._server is not None or self._num_processes < _MIN_PROCESSES:
            return
        missing = missing_groups(self._groups)
        if not missing:
            self._num_processes = 0
            return
        self._waiting = set(missing)
        lock = str(process_folder() / "compile-lock")
        arguments = (str(os.getpid()), str(self._num_processes), lock, *missing)
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self._server = start_module(_SERVER_MODULE, *arguments, **options)
        _RUNNING.append(self)
        self._thread.start()

    def wait(self, groups: Iterable[str], waiting: Callable[[], None]) -> None:
        """Returns when the groups are compiled, or will not be; calls `waiting` at intervals until then."""
        needed = set(groups)
        while needed & self._waiting and self._thread.is_alive():
            waiting()
            time.sleep(_WAIT_SECONDS)

    def processes(self) -> list[psutil.Process]:
        """The compile server and its forks."""
        return [] if self._server is None else family(self._server.pid)

    def _listen(self) -> None:
        for line in (self._server and self._server.stdout) or ():
            group = line.strip()
            _mark(group)
            self._waiting.discard(group)


_RUNNING: list[Compilation] = []


def wait_for(groups: Iterable[str], waiting: Callable[[], None]) -> None:
    """Waits until the groups are compiled, if they are being compiled; calls `waiting` at intervals meanwhile."""
    for compilation in _RUNNING:
        compilation.wait(groups, waiting)


def compile_processes() -> list[psutil.Process]:
    """All processes that compile kernels now."""
    return [process for compilation in _RUNNING for process in compilation.processes()]


def missing_groups(groups: Sequence[str]) -> list[str]:
    """The groups that are not compiled; none if there is no folder for markers."""
    folder = marker_folder() if groups else None
    return [group for group in groups if not _marker(folder, group).exists()] if folder is not None else []


class _Compiling:
    """Counts the kernels that this process compiles now. A kernel that is loaded from the cache is not counted."""

    def __init__(self) -> None:
        self.is_registered = False
        self.num = 0

    def notify(self, event: Any) -> None:
        """Called by Numba when a compilation starts and when it ends."""
        self.num += 1 if event.is_start else -1


_COMPILING = _Compiling()


def is_compiling() -> bool:
    """True while this process compiles a kernel that it has called. The first call only starts to observe."""
    # An import of a part of Numba here, while another thread imports Numba, can stop both for ever.
    is_imported = hasattr(sys.modules.get("numba"), "njit")
    if is_imported and not _COMPILING.is_registered:
        event: Any = sys.modules["numba.core.event"]

        event.Listener.register(_Compiling)
        event.register("numba:compile", _COMPILING)
        _COMPILING.is_registered = True
    return _COMPILING.num > 0


@cache
def marker_folder() -> Path | None:
    """The first of the folders in which Numba caches kernels, without importing it; None if it caches nothing or cannot
    write there.

    Source: numba 0.68, core/caching.py.
    """
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK")):
        return None
    given = os.environ.get("NUMBA_CACHE_DIR")
    of_user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "numba"
    for folder in [Path(given)] if given else [Path(finpile.__path__[0]) / "dedup" / "__pycache__", of_user]:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
    return None


def _marker(folder: Path, group: str) -> Path:
    return folder / f"{_PREFIX}{group.replace(':', '.')}-{_cache_key()}"


def _mark(group: str) -> None:
    folder = marker_folder()
    if folder is None:
        return
    marker = _marker(folder, group)
    try:
        for old in folder.glob(f"{_PREFIX}{group.replace(':', '.')}-*"):
            old.unlink(missing_ok=True)
        marker.touch()
    except OSError:
        return  # the next build compiles again


@cache
def _cache_key() -> str:
    """Changes whenever Numba would compile again: with the compiler, the processor or a kernel's module."""
    parts = [platform.python_version(), version("numba"), version("llvmlite"), _processor()]
    parts += [f"{name}={os.environ[name]}" for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES") if name in os.environ]
    for package in _PACKAGES:
        for path in sorted(Path(package.__path__[0]).glob(_KERNEL_FILES)):
            facts = path.stat()
            parts.append(f"{path} {facts.st_size} {facts.st_mtime_ns}")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def _processor() -> str:
    """What tells the processor and its instructions from others: of Linux, what it says of the first one."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return "\n".join(line for line in first if line.split(":")[0].strip().lower() in _OF_PROCESSOR)
