"""Processes that a build starts: Ctrl-C is kept from them, and none is left when the launcher ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil

_POLL_SECONDS = 0.2


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """A process started meanwhile never receives Ctrl-C, which a terminal sends to all processes of a command."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_module(module: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Starts Python with a module to run, which imports from where this process does.

    Python itself would look first in the working directory, in which any file can have the name of a module. `options`
    are those of `Popen`.
    """
    places = dict.fromkeys(str(place) or os.getcwd() for place in sys.path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    with interrupts_blocked():
        return subprocess.Popen([sys.executable, "-P", "-m", module, *arguments], env=environment, **options)


def end_with(parent: int) -> None:
    """Kills this process when its parent ends: a fork that is left would write into the folder of the next run."""
    while os.getppid() == parent:  # an orphan gets another parent, even if its dead one is still a zombie
        time.sleep(_POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def family(pid: int) -> list[psutil.Process]:
    """A process and all below it; none if it has ended."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def kill(processes: Iterable[psutil.Process]) -> None:
    """Kills processes, of which some may have ended."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
