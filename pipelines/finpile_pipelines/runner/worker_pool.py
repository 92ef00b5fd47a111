"""A pool of Python workers for Spark and Flink (`--environment_type=EXTERNAL`): each worker is a fork of one process.

    python -m finpile_pipelines.runner.worker_pool --port 50000

It serves the protocol of Beam's own pool (`apache_beam.runners.worker.worker_pool_main`), with these differences:

- Beam and the stages are imported once, not by each worker. An engine starts new workers for every pipeline.
- It listens on loopback only, unless `--host` names another address. The protocol has no authentication.
- A worker ends when its engine closes the connection. Beam's pool stops workers by id, and two engine processes on one
  machine use the same ids: the first that ends would stop the workers of the other.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

#: What a worker imports for the first task of a build.
_PRELOAD = (
    "apache_beam.runners.worker.sdk_worker_main",
    "finpile_pipelines.build",
    "finpile_pipelines.tokens",
    "finpile_pipelines.unigram",
)

_SAMPLING_MS = 5


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves until it is terminated; all workers end with it."""
    parser = argparse.ArgumentParser(description="Starts Python workers for Spark and Flink.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default="127.0.0.1", help="The address to listen on.")
    options = parser.parse_args(arguments)
    requests, forks = socket.socketpair()
    if os.fork() == 0:
        requests.close()
        _fork_workers(forks)
    forks.close()
    _serve(f"{options.host}:{options.port}", requests)


def _serve(address: str, requests: socket.socket) -> None:
    """Forwards requests for workers to the process that forks them, which has no gRPC thread that a fork would lose."""
    import grpc
    from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc
    from apache_beam.utils.thread_pool_executor import shared_unbounded_instance

    class Pool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
        def StartWorker(self, request: Any, context: Any) -> Any:  # noqa: N802  (names of the protocol)
            worker = {"id": request.worker_id, "control": request.control_endpoint.url}
            requests.sendall(json.dumps(worker).encode() + b"\n")
            return beam_fn_api_pb2.StartWorkerResponse()

        def StopWorker(self, request: Any, context: Any) -> Any:  # noqa: N802
            return beam_fn_api_pb2.StopWorkerResponse()

    # Without SO_REUSEPORT a port that another process uses is an error.
    server = grpc.server(shared_unbounded_instance(), options=[("grpc.so_reuseport", 0)])
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(Pool(), server)
    if not server.add_insecure_port(address):
        raise SystemExit(f"worker pool: cannot listen on {address}")
    server.start()
    server.wait_for_termination()


def _fork_workers(requests: socket.socket) -> NoReturn:
    """Forks a worker for each line of `requests`; when the pool closes it, ends all workers and itself."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes ended workers
    from finpile_pipelines.exchange.versions import versions_here

    for name in _PRELOAD:
        with contextlib.suppress(ImportError):  # a worker that needs it reports it
            importlib.import_module(name)
    versions_here()  # of the modules that are imported: the files may change later
    with requests.makefile("r") as lines:
        for line in lines:
            if os.fork() == 0:
                _work(**json.loads(line))
    os.killpg(0, signal.SIGKILL)
    raise AssertionError


def _work(id: str, control: str) -> NoReturn:  # noqa: A002  (the name in the request)
    from apache_beam.runners.worker.sdk_worker import SdkHarness

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _end_bundles_soon()
    try:
        SdkHarness(control, worker_id=id).run()
    finally:  # exit handlers are those of the pool; an engine that ended has closed the connection with an error
        sys.stderr.flush()
        os._exit(0)


def _end_bundles_soon() -> None:
    """Makes Beam sample a bundle's state every 5 ms: a bundle ends at the next sample, by default up to 200 ms later.

    Beam has no option for it.
    """
    from finpile_pipelines.runner.beam_parts import SAMPLING, is_tested, part_of

    if is_tested(SAMPLING):
        part_of(SAMPLING).__defaults__ = (_SAMPLING_MS,)


if __name__ == "__main__":
    main()
