"""A folder of this machine for the files of exchanges, for local workers of a build on an object store.

There, each table that one origin sends to one partition would be a request. The folder belongs to one process; it is
removed when a pipeline ends, and by a later process if its own process was killed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import psutil

_PREFIX = "finpile-exchange-"


def local_scratch() -> str:
    """The folder of this process; only this user can enter it."""
    return _folder(os.getpid())


def remove_local_scratch() -> None:
    """Removes the folder of this process, if there is one."""
    if _folder.cache_info().currsize:
        shutil.rmtree(local_scratch(), ignore_errors=True)
        _folder.cache_clear()


@cache
def _folder(process: int) -> str:
    for old in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = old.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(old, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"{_PREFIX}{process}-")
