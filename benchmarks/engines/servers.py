"""Servers in the background: each has a session of its own, and a folder keeps their process ids and logs.

A folder can be used by several programs, one after the other: `up` starts what does not run, `down` stops what does.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_START_SECONDS = 90.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """A command that runs until it is stopped."""

    name: str
    command: Sequence[str]
    port: int | None = None
    """It is started when this port of loopback answers."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers whose process ids and logs are in `folder`."""

    folder: Path

    def start(self, server: Server) -> None:
        """Starts a server unless it runs. It is not yet ready: see `wait`."""
        if self.pid(server.name) is not None:
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._log(server.name).open("wb") as log:
            process = subprocess.Popen(
                server.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **server.environment},
                cwd=self.folder,
                start_new_session=True,
            )
        started = psutil.Process(process.pid).create_time()
        (self.folder / f"{server.name}.pid").write_text(f"{process.pid} {started}")

    def wait(self, server: Server) -> None:
        """Returns when the server's port answers. Raises: RuntimeError if it does not start."""
        self.wait_until(server.name, lambda: server.port is None or is_listening(server.port))

    def wait_until(self, name: str, condition: Callable[[], bool]) -> None:
        """Returns when a condition is met. Raises: RuntimeError if the server `name` ends first, or takes too long."""
        end = time.monotonic() + _START_SECONDS
        while self.pid(name) is not None:
            if condition():
                return
            if time.monotonic() > end:
                break
            time.sleep(_POLL_SECONDS)
        lines = [line for line in self._log(name).read_text(errors="replace").splitlines() if line.strip()]
        causes = [line for line in lines if "Caused by" in line or "Error" in line]
        raise RuntimeError(f"{name} does not start: {[*lines[-1:], *causes][-1] if lines else 'its log is empty'}")

    def pid(self, name: str) -> int | None:
        """The process id of a running server."""
        try:
            pid, started = (self.folder / f"{name}.pid").read_text().split()
            process = psutil.Process(int(pid))
            if process.create_time() == float(started) and process.status() != psutil.STATUS_ZOMBIE:
                return process.pid
        except (OSError, ValueError, psutil.Error):
            pass
        return None

    def processes(self, name: str) -> list[psutil.Process]:
        """The processes of a server: its session, in which its children are too."""
        leader = self.pid(name)
        return [] if leader is None else list(_session(leader))

    def stop(self, name: str) -> None:
        """Stops a server and all processes of its session."""
        members = self.processes(name)
        for member in members:
            with suppress(psutil.Error):
                member.terminate()
        _, alive = psutil.wait_procs(members, timeout=_STOP_SECONDS)
        for member in alive:
            with suppress(psutil.Error):
                member.kill()
        psutil.wait_procs(alive, timeout=_STOP_SECONDS)
        (self.folder / f"{name}.pid").unlink(missing_ok=True)

    def stop_all(self) -> None:
        """Stops all servers, the latest first, and removes the folder."""
        files = sorted(self.folder.glob("*.pid"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in files:
            self.stop(path.stem)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def free_ports(number: int) -> list[int]:
    """Ports of loopback that no process uses."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for bound in sockets:
            bound.bind(("127.0.0.1", 0))
        return [int(bound.getsockname()[1]) for bound in sockets]
    finally:
        for bound in sockets:
            bound.close()


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _session(leader: int) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.Error):
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                yield process
