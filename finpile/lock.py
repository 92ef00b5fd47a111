"""One run at a time in a local folder.

The lock is the operating system's (`flock`) on the open file `.work/lock`: the kernel gives it back when the process
ends, however it ends, so a lock of the dead does not exist and no process number is trusted. The file's content says
who holds it, for messages only.

Object stores have no locks, nor have some network file systems: there, nothing keeps two runs apart.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from finpile.errors import ConfigError
from finpile.layout import Layout

#: A file system that knows no locks, or whose lock service does not answer.
_NO_LOCKS = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}
_SAID_BYTES = 500


@contextmanager
def hold(layout: Layout, what: str) -> Iterator[bool]:
    """Holds the folder's lock; `what` names such runs in messages. Yields whether the folder can be written.

    Raises: ConfigError where another run holds it, or no folder can be made.
    """
    if "://" in layout.root:
        yield True
        return
    path = Path(layout.work("lock"))
    is_read_only, lock = False, None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(path)
    except OSError as error:
        is_read_only = error.errno in _READ_ONLY and Path(layout.root).is_dir()
        if not is_read_only:
            raise ConfigError(
                f"-o {layout.root}: no folder can be made there ({error.strerror}): name another"
            ) from error
    if is_read_only:
        yield False
        return
    if lock is None:
        raise ConfigError(f"-o {layout.root}: another {what}{_holder(path)} is running: wait for it or end it")
    try:
        os.truncate(lock, 0)
        os.write(lock, f"{socket.gethostname()} {os.getpid()}".encode())
        yield True
    finally:
        path.unlink(missing_ok=True)  # while it is held: who opened it before finds that it is no longer there
        os.close(lock)


def _locked(path: Path) -> int | None:
    """The descriptor of the locked file; None where another process holds it."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
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
        os.close(lock)  # its holder removed it as this process opened it


def _is_there(path: Path, lock: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock))
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    """Who holds the lock, as far as it says."""
    try:
        host, _, pid = path.read_text()[:_SAID_BYTES].partition(" ")
    except (OSError, ValueError):
        return ""
    return f" (process {pid} on {host})" if pid.isdigit() else ""
