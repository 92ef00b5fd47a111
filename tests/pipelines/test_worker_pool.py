"""The pool of Python workers for Spark and Flink: it starts forks on request, and leaves none behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import psutil
import pytest
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc, endpoints_pb2
from apache_beam.runners.worker.statesampler import DEFAULT_SAMPLING_PERIOD_MS, StateSampler
from apache_beam.utils.counters import CounterFactory
from finpile_pipelines.runner import worker_pool

Eventually = Callable[[Callable[[], Any]], Any]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def pool(eventually: Eventually) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    port = free_port()
    command = [sys.executable, "-m", "finpile_pipelines.runner.worker_pool", "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    assert eventually(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
    yield process, port
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def workers(pool: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The forks of the process that forks."""
    return [worker for forks in psutil.Process(pool.pid).children() for worker in forks.children()]


def start(port: int, worker_id: str, control: str) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(channel)
        place = endpoints_pb2.ApiServiceDescriptor(url=control)
        stub.StartWorker(beam_fn_api_pb2.StartWorkerRequest(worker_id=worker_id, control_endpoint=place))


def test_two_engine_processes_with_equal_ids_have_workers_of_their_own(
    pool: tuple[subprocess.Popen[bytes], int], eventually: Eventually
) -> None:
    """Every worker connects to the engine process that requested it; all end with the pool."""
    process, port = pool
    with socket.socket() as first, socket.socket() as second:
        for engine in (first, second):
            engine.bind(("127.0.0.1", 0))
            engine.listen()
            start(port, "1-1", f"127.0.0.1:{engine.getsockname()[1]}")
        for engine in (first, second):
            engine.settimeout(60)
            engine.accept()[0].close()
        found = workers(process)
        assert len(found) == 2
        process.terminate()
        assert eventually(lambda: not [worker for worker in found if worker.is_running()])


def test_the_pool_listens_on_loopback_only(pool: tuple[subprocess.Popen[bytes], int]) -> None:
    process, port = pool
    listening = [one for one in psutil.Process(process.pid).net_connections() if one.status == psutil.CONN_LISTEN]
    assert {(one.laddr.ip.removeprefix("::ffff:"), one.laddr.port) for one in listening} == {("127.0.0.1", port)}


def test_ends_of_bundles_wait_for_no_look_of_the_default_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StateSampler.__init__, "__defaults__", StateSampler.__init__.__defaults__)
    worker_pool._end_bundles_soon()
    assert StateSampler("any", CounterFactory()).sampling_period_ms < DEFAULT_SAMPLING_PERIOD_MS / 10
