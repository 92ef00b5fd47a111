"""The folder of this process for sockets, progress and temporary files: nothing else is left in the temporary folder.

It is removed when the process ends. A killed process leaves it to the next process that makes one: a lock in the folder
tells if its process, or a fork of that process, is alive.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_PREFIX = "finpile-process-"
_LOCK = "lock"
#: A folder without a held lock is removed after this time: its process may be about to lock it.
_NEW_SECONDS = 60.0
#: Bytes of a socket's path, its end mark included, on the strictest system (macOS), and of the names below the folder.
_PATH_BYTES, _NAME_BYTES = 104, 40
_AT_END: list[Callable[[], None]] = []


def process_folder() -> Path:
    """The folder of this process, made on first use. Only this user can enter it; paths of sockets in it are short."""
    return _folder(os.getpid())


def at_end(function: Callable[[], None]) -> None:
    """Calls a function before the folder is removed, the latest first."""
    process_folder()  # its exit handler is registered
    _AT_END.append(function)


def end_process_folder() -> None:
    """Removes the folder. Called at exit, and before an exit that runs no exit handlers."""
    while _AT_END:
        with contextlib.suppress(Exception):  # the process ends
            _AT_END.pop()()
    if _folder.cache_info().currsize:
        shutil.rmtree(process_folder(), ignore_errors=True)
        _folder.cache_clear()


@contextmanager
def temporary_files_inside() -> Iterator[None]:
    """Temporary files of this process are made in its folder, for packages that do not remove theirs."""
    before = tempfile.tempdir
    tempfile.tempdir = str(process_folder())
    try:
        yield
    finally:
        tempfile.tempdir = before


@cache
def _folder(process: int) -> Path:
    del process  # a fork of this process gets a folder of its own
    parent = tempfile.gettempdir()
    if len(os.fsencode(parent)) + _NAME_BYTES > _PATH_BYTES:
        parent = "/tmp"
    for old in Path(parent).glob(f"{_PREFIX}*"):
        _remove_ended(old)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    _locked(folder)  # until the process and its forks end
    _AT_END.clear()  # of the process that this one is a fork of
    atexit.register(_end_of, os.getpid())
    return folder


def _end_of(process: int) -> None:
    if process == os.getpid():
        end_process_folder()


def _remove_ended(folder: Path) -> None:
    """Removes the folder of a process that was killed."""
    with contextlib.suppress(OSError):
        if time.time() - folder.stat().st_mtime < _NEW_SECONDS:
            return
        lock = _locked(folder)
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked(folder: Path) -> int:
    """The descriptor of the folder's lock. Raises: BlockingIOError if another process holds it."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(lock)
        raise
    return lock
