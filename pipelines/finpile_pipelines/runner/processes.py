"""Runs a pipeline in worker processes: each does one unit of work at a time (`runner.in_process`).

The launcher keeps what waits between the steps, divides it into units, and sends each to the next free worker. What
exchanges send is in files, so that elements between workers are small. A worker is a fork of the fork server, which has
imported all modules; it is given the steps once, and lives as long as the pipeline.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import socket
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

import cloudpickle

from finpile_pipelines import graph
from finpile_pipelines.runner.in_process import Steps, in_threads
from finpile_pipelines.runner.worker import Answer


class WorkerLost(Exception):
    """A worker process ended before its work was done."""


def run(pipeline: graph.Pipeline, num_workers: int, fork_server: str) -> float:
    """Runs the pipeline to its end in forks of the server at this address; returns their CPU seconds.

    Raises: the first error of a step; WorkerLost.
    """
    steps = Steps(pipeline.nodes)
    with _Pool(cloudpickle.dumps(pipeline.nodes), num_workers, fork_server) as pool:

        def spread(number: int, units: Iterator[Any], size: int) -> None:
            in_threads(map(partial(partial, pool.do, steps, number), units), min(num_workers, size))

        steps.run(spread)
        return pool.end()


class _Pool:
    """Worker processes, started when the first unit of work needs one more. Whatever happens, none is left."""

    def __init__(self, steps: bytes, num_workers: int, fork_server: str) -> None:
        self._steps = steps
        self._fork_server = fork_server
        self._all: list[_Worker] = []
        self._failures: list[BaseException] = []
        self._free: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
        for _ in range(num_workers):
            self._free.put(None)

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._kill()

    def do(self, steps: Steps, number: int, unit: Any) -> None:
        """Has a unit done by a free worker, and keeps what it brings."""
        worker = self._free.get()
        try:
            if worker is None:
                worker = _Worker(self._fork_server, self._steps)
                self._all.append(worker)
            found, error = worker.do(number, unit)
            if error is not None:
                raise error
        except BaseException as failure:
            self._failures.append(failure)
            self._kill()  # the others may work for hours; they are lost because of this failure
            raise self._failures[0] from None
        self._free.put(worker)
        for place, element in found:
            steps.take(place, element)

    def end(self) -> float:
        """Ends all workers; returns their CPU seconds."""
        return sum(worker.end() for worker in self._all)

    def _kill(self) -> None:
        for worker in self._all:
            worker.kill()


class _Worker:
    """A worker process."""

    def __init__(self, fork_server: str, steps: bytes) -> None:
        """Raises: WorkerLost if the fork server has ended."""
        with _lost():
            server = socket.socket(socket.AF_UNIX)
            server.connect(fork_server)
            self._channel = Connection(server.detach())
            self._channel.send_bytes(json.dumps(dict(os.environ)).encode())
            self._pid = int(self._channel.recv_bytes())
            self._channel.send_bytes(steps)

    def do(self, number: int, unit: Any) -> Answer:
        """Raises: WorkerLost."""
        message = cloudpickle.dumps((number, unit))
        with _lost():
            self._channel.send_bytes(message)
            answer = self._channel.recv_bytes()
        found: Answer = pickle.loads(answer)
        return found

    def end(self) -> float:
        """Raises: WorkerLost."""
        with _lost():
            self._channel.send_bytes(b"")
            seconds = float(self._channel.recv_bytes())
        self._channel.close()
        return seconds

    def kill(self) -> None:
        """Has no effect after `end`."""
        if not self._channel.closed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)


@contextlib.contextmanager
def _lost() -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError) as error:
        raise WorkerLost("its connection was closed") from error
