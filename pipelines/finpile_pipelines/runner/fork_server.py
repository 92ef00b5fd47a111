"""Forks the worker processes of the local runner, so that modules and kernels are loaded once, not once per worker.

`engines.local` starts it as `python -m finpile_pipelines.runner.fork_server FD PID [--lean]`: a listening socket, the
launcher's process id, and whether imports are lean (`lean_imports`). A launcher that connects sends its environment;
from then on the connection is that of a fork, `runner.worker`. If the launcher ends, all forks are killed.
The server has one thread.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import selectors
import signal
import socket
import sys
from collections.abc import Mapping
from functools import cache
from multiprocessing.connection import Connection
from typing import NoReturn

from finpile_tokenizer.arrays.jit import import_numba

from finpile_pipelines.runner import worker
from finpile_pipelines.runner.lean_imports import LEAN, import_lean

#: Modules to import and kernels to load before the first fork that names them: `module` or `module:function`, separated
#: by commas.
PRELOAD_VARIABLE = "FINPILE_PRELOAD"
_WAIT_SECONDS = 0.5


def main() -> None:
    """Serves until the launcher ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the launcher, whose end is noticed here
    launcher = int(sys.argv[2])  # not os.getppid(): the launcher may have been killed already
    logging.getLogger().addHandler(logging.NullHandler())  # else Beam logs every step of its own to standard error
    if LEAN in sys.argv:
        import_lean()
        import_numba()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        for name in _modules(os.environ):  # while the launcher constructs its first pipeline
            with contextlib.suppress(ImportError):  # the worker that needs it reports it
                importlib.import_module(name.partition(":")[0])
        _ForkServer(listener).serve(launcher)


class _ForkServer:
    """Running forks."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._forks: set[int] = set()

    def serve(self, launcher: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while os.getppid() == launcher:
                if selector.select(_WAIT_SECONDS):
                    self._accept()
                self._forks = {pid for pid in self._forks if os.waitpid(pid, os.WNOHANG)[0] == 0}
        for pid in self._forks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _accept(self) -> None:
        accepted, _ = self._listener.accept()
        with Connection(accepted.detach()) as launcher:
            try:
                environment: dict[str, str] = json.loads(launcher.recv_bytes())
            except (OSError, EOFError):  # it has ended
                return
            for name in _modules(environment):
                _preload(name)
            pid = os.fork()
            if pid == 0:
                self._listener.close()
                _work(environment, launcher)
            self._forks.add(pid)


def _modules(environment: Mapping[str, str]) -> list[str]:
    """Names in `PRELOAD_VARIABLE`."""
    return [name for name in environment.get(PRELOAD_VARIABLE, "").split(",") if name]


@cache
def _preload(name: str) -> None:
    """Imports a module and calls its function `compile_kernels` if it has one, or that of `module:function`.

    A module that cannot be imported is left to the worker that needs it, which reports the error.
    """
    module, _, function = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ImportError:
        return
    compile_kernels = getattr(found, function or "compile_kernels", None)
    if compile_kernels is not None:
        compile_kernels()


def _work(environment: dict[str, str], launcher: Connection) -> NoReturn:
    """Runs the worker in the fork. It exits without the exit handlers of the parent's modules."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        worker.main(launcher)
        code = 0
    except EOFError:  # the launcher has ended the pipeline
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
