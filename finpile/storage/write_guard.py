"""A check before this thread changes anything on a file system, such as whether its run may still do so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Guard(threading.local):
    check: Callable[[], None] | None = None


_GUARD = _Guard()


@contextmanager
def guarded(check: Callable[[], None]) -> Iterator[None]:
    """`finpile.storage` calls `check` before a file appears, moves or is removed; its error leaves all as it was."""
    before, _GUARD.check = _GUARD.check, check
    try:
        yield
    finally:
        _GUARD.check = before


def check_write() -> None:
    """Called before a change. Raises: what the check of this thread raises."""
    if _GUARD.check is not None:
        _GUARD.check()
