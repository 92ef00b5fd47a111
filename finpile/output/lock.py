"""The lock of an output folder: one run at a time in a local folder.

The lock is a `flock` on the open file `.work/lock`. The kernel releases it when the process ends for any reason, so
there are no stale locks. The content of the file names the holder, for messages only. The file is removed after the
run, and `.work` if it has no other file.

Object stores and some network file systems have no locks; two runs in one folder are not detected there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from finpile.errors import ConfigError
from finpile.output.layout import Layout

#: The file system has no locks, or its lock service does not respond.
_NO_LOCKS = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}
_SAID_BYTES = 500


@contextmanager
def hold(layout: Layout, what: str) -> Iterator[bool]:
    """Holds the lock of the folder; `what` names the run in messages of others. Yields whether the folder is writable.

    Raises: ConfigError if another run holds it, or no folder can be made.
    """
    if "://" in layout.root:
        yield True
        return
    path = Path(layout.lock)
    is_read_only, lock = False, None
    try:
        lock = _locked(path)
    except OSError as error:
        is_read_only = error.errno in _READ_ONLY and Path(layout.root).is_dir()
        if not is_read_only:
            raise ConfigError(
                f"-o {layout.root}: cannot create the folder ({error.strerror}): name another one"
            ) from error
    if is_read_only:
        yield False
        return
    if lock is None:
        raise ConfigError(f"{layout.root}: another command is running{_holder(path)}: wait for it or end it")
    try:
        os.truncate(lock, 0)
        os.write(lock, f"{socket.gethostname()} {os.getpid()} {what}".encode())
        yield True
    finally:
        path.unlink(missing_ok=True)  # before the release: a process that opened the file detects that it is deleted
        os.close(lock)
        with suppress(OSError):  # it has other files
            path.parent.rmdir()


@contextmanager
def hold_to_write(layout: Layout, what: str, refusal: str) -> Iterator[None]:
    """As `hold`. Raises: ConfigError, with the text `refusal` if the folder is not writable."""
    with hold(layout, what) as is_writable:
        if not is_writable:
            raise ConfigError(refusal)
        yield


def _locked(path: Path) -> int | None:
    """The descriptor of the locked file; None if another process holds the lock."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except (FileExistsError, FileNotFoundError):
            if os.path.lexists(path.parent) or not path.parent.parent.exists():
                raise
            continue  # the previous holder removed the empty folder meanwhile
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return lock
            os.close(lock)
            raise
        if _is_there(path, lock):
            return lock
        os.close(lock)  # the previous holder deleted the file after this process opened it


def _is_there(path: Path, lock: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock))
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    """The holder of the lock for messages; empty if unknown."""
    try:
        host, pid, what = path.read_text()[:_SAID_BYTES].split(" ")
    except (OSError, ValueError):
        return ""
    return f", {what} (process {pid} on {host})"
