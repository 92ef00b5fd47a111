"""Forks the worker processes of the local runner, so that Beam and the kernels are loaded once, not once per worker.

`engines.local` starts it as `python -m finpile_pipelines.runner.fork_server FD PID [--lean]`: a listening socket, the
launcher's process id, and whether imports are lean (`lean_imports`). Beam starts each worker as a command,
`fork_client.py`, which sends its environment here, waits, and exits with the fork's exit code. If a client ends, its
fork is killed; if the launcher ends, all forks are killed.
The server has one thread and does not use gRPC before a fork.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import resource
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NoReturn

from finpile_pipelines.runner import worker
from finpile_pipelines.runner.lean_imports import LEAN, import_beam, import_lean

#: Modules to import and kernels to load before the first fork that names them: `module` or `module:function`, separated
#: by commas.
PRELOAD_VARIABLE = "FINPILE_PRELOAD"
LENGTH = struct.Struct("<q")
#: The file beside the socket that holds the CPU seconds, and its format.
CPU_SECONDS = "cpu_seconds"
SECONDS = struct.Struct("<d")
_WAIT_SECONDS = 0.5
_WATCH_SECONDS = 0.02


def main() -> None:
    """Serves until the launcher ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the launcher, whose end is noticed here
    launcher = int(sys.argv[2])  # not os.getppid(): the launcher may have been killed already
    logging.getLogger().addHandler(logging.NullHandler())  # else Beam logs every step of its own to standard error
    if LEAN in sys.argv:
        import_lean()
    import_beam()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        importlib.import_module("apache_beam.runners.worker.sdk_worker_main")
        for name in _modules(os.environ):  # while the launcher constructs its first pipeline
            with contextlib.suppress(ImportError):  # the worker that needs it reports it
                importlib.import_module(name.partition(":")[0])
        worker.end_bundles_soon()
        _connect_privately()
        _ForkServer(listener).serve(launcher)


def _connect_privately() -> None:
    from finpile_pipelines.runner import sockets  # and gRPC, which the launcher need not import

    sockets.connect_privately()


class _ForkServer:
    """Running forks and the connections of their clients."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._connections: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._cpu_seconds = 0.0

    def serve(self, launcher: int) -> None:
        while os.getppid() == launcher:
            for key, _ in self._selector.select(_WATCH_SECONDS if self._connections else _WAIT_SECONDS):
                if key.data is None:
                    self._accept()
                else:
                    _kill(key.data)  # a client sends nothing after its environment: it has ended
            self._reap()
        for pid in self._connections:
            _kill(pid)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        environment = receive(connection)
        if environment is None:
            connection.close()
            return
        for name in _modules(environment):
            _preload(name)
        pid = os.fork()
        if pid == 0:
            self._selector.close()
            _work(environment)
        self._connections[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, pid)

    def _post_cpu_seconds(self) -> None:
        """Writes the CPU seconds of this process and of all ended forks to a file beside the socket."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        total = self._cpu_seconds + own.ru_utime + own.ru_stime
        path = Path(self._listener.getsockname()).with_name(CPU_SECONDS)
        with contextlib.suppress(OSError):
            path.write_bytes(SECONDS.pack(total))

    def _reap(self) -> None:
        """Sends the exit codes of ended forks to their clients."""
        for pid in list(self._connections):
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                self._cpu_seconds += usage.ru_utime + usage.ru_stime
                self._post_cpu_seconds()
                connection = self._connections.pop(pid)
                self._selector.unregister(connection)
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError):  # the client may have ended before
                    connection.sendall(LENGTH.pack(code))
                connection.close()


def receive(connection: socket.socket) -> dict[str, str] | None:
    """The environment that a client sends; None if it ended."""
    try:
        length = _receive(connection, LENGTH.size)
        data = _receive(connection, LENGTH.unpack(length)[0]) if length else None
    except OSError:
        return None
    return json.loads(data) if data else None


def _receive(connection: socket.socket, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = connection.recv(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


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


def _work(environment: dict[str, str]) -> NoReturn:
    """Runs the worker in the fork. It exits without the exit handlers of the parent's modules."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        os.environ[worker.LAUNCHER_VARIABLE] = str(os.getppid())
        worker.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended and is reaped later
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
