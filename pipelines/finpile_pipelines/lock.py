"""One run at a time in a local folder."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from finpile.errors import ConfigError
from finpile.tree import Tree


@contextmanager
def hold(tree: Tree, what: str) -> Iterator[None]:
    """Holds the folder's lock; that of a run that died is taken over. `what` names such runs in messages.

    Raises: ConfigError where another run holds it, or no folder can be made.
    """
    if "://" in tree.root:
        yield
        return
    path = Path(tree.work("lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"-o {tree.root}: no folder can be made there ({error.strerror}): name another") from error
    if _is_held(path):
        host, _, pid = path.read_text().partition(" ")
        raise ConfigError(f"-o {tree.root}: another {what} (process {pid} on {host}) is running: wait for it or end it")
    path.unlink(missing_ok=True)
    try:
        with path.open("x") as lock:
            lock.write(f"{socket.gethostname()} {os.getpid()}")
    except FileExistsError:
        raise ConfigError(f"-o {tree.root}: another {what} has just begun there: wait for it or end it") from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _is_held(path: Path) -> bool:
    """Whether the lock's process lives; one of another machine cannot be asked, and is taken to."""
    if not path.exists():
        return False
    host, _, pid = path.read_text().partition(" ")
    if host != socket.gethostname():
        return bool(host)
    return pid.isdigit() and int(pid) != os.getpid() and psutil.pid_exists(int(pid))
