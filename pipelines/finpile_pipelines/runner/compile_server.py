"""Compiles groups of kernels into Numba's cache on disk, each group in a process of its own.

`runner.kernels` starts it as `python -m finpile_pipelines.runner.compile_server LAUNCHER PROCESSES LOCK GROUP...`.
Numba compiles under a lock and under Python's, so only processes use several cores. They are forks of this process,
which has imported the groups' modules and compiled the library functions that most kernels call. A group is named
`module` (its function `compile_kernels`) or `module:function`.
The name of each group that is done is printed to standard output, one per line.

A fork ends when this process ends, and this process ends when the launcher ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from finpile_tokenizer.arrays._array_kernels import compile_common

from finpile_pipelines.runner.child_processes import end_with

_POLL_SECONDS = 0.05
#: Compilation uses the cores that the build leaves free.
_NICENESS = 5
_DEFAULT_FUNCTION = "compile_kernels"


def main() -> None:
    """Compiles all groups, in the order given, or ends early with the launcher."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the launcher, whose end is noticed here
    launcher, num_processes, lock = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    waiting, running = sys.argv[4:], dict[int, str]()
    os.nice(_NICENESS)
    groups = {group: find_group(group) for group in waiting}
    compile_common()
    gc.freeze()
    while (waiting or running) and os.getppid() == launcher:
        if waiting and len(running) < num_processes:
            group = waiting.pop(0)
            pid = os.fork()
            if pid == 0:
                _compile(groups[group], lock)
            running[pid] = group
            continue
        ended, status = os.waitpid(-1, os.WNOHANG)
        if not ended:
            time.sleep(_POLL_SECONDS)
            continue
        group = running.pop(ended)
        if os.waitstatus_to_exitcode(status) == 0:
            sys.stdout.write(group + "\n")
            sys.stdout.flush()
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def find_group(name: str) -> Callable[[], Any]:
    """The function that compiles a group of kernels: `module:function`, or `compile_kernels` of `module`.

    Raises: ImportError or AttributeError if it does not exist.
    """
    module, _, function = name.partition(":")
    found: Callable[[], Any] = getattr(importlib.import_module(module), function or _DEFAULT_FUNCTION)
    return found


def _compile(compile_group: Callable[[], Any], lock: str) -> NoReturn:
    """The work of a fork. Its exit code is 0 if the group is compiled."""
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    code = 1
    try:
        _save_one_at_a_time(Path(lock))
        compile_group()
        code = 0
    finally:
        os._exit(code)


def _save_one_at_a_time(lock: Path) -> None:
    """Numba does not lock its cache: two processes that save one function for two types could exchange the code."""
    from numba.core.caching import IndexDataCacheFile

    save = IndexDataCacheFile.save

    def locked_save(self: Any, key: Any, data: Any) -> None:
        with lock.open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            save(self, key, data)

    IndexDataCacheFile.save = locked_save


if __name__ == "__main__":
    main()
