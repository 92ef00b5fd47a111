"""Builds through Beam's job API publish the output of a local build, and failures of a job server are one line.

The job service is Beam's own in Python, so that no test here needs Java; workers are processes of an external pool.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions, PortableOptions
from apache_beam.utils.subprocess_server import JavaJarServer
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.job_servers import job_server_of
from finpile_pipelines.runner.portable import PortableEngine

from finpile.config import load_config
from finpile.errors import ConfigError, RunError
from finpile.plugins.engine import ENGINES, Run
from tests.pipelines.test_worker_pool import free_port
from tests.support.trees import assert_same

Snapshot = Callable[[Path], dict[str, bytes]]
_SERVICE = "apache_beam.runners.portability.local_job_service_main"
PATIENCE_SECONDS = 300
_POOL = "apache_beam.runners.worker.worker_pool_main"


def _portable(name: str) -> PortableEngine:
    engine = ENGINES.get(name)
    assert isinstance(engine, PortableEngine)
    return engine


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def job_service(eventually: Callable[[Callable[[], Any]], Any], tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """Beam's options for a job service and a worker pool that run while the test does."""
    # The pool starts workers by the name `python`.
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    jobs, workers = free_port(), free_port()
    commands = (
        [_SERVICE, "--port", str(jobs), "--staging_dir", str(tmp_path / "staging")],
        [_POOL, "--service_port", str(workers)],
    )
    servers = [
        subprocess.Popen(
            [sys.executable, "-m", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        for command in commands
    ]
    try:
        assert eventually(lambda: is_listening(jobs) and is_listening(workers))
        yield (
            f"--job_endpoint=localhost:{jobs}",
            "--environment_type=EXTERNAL",
            f"--environment_config=localhost:{workers}",
        )
    finally:
        for server in servers:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["files", "shuffle"])
def test_a_job_service_publishes_the_output_of_a_local_build(
    transport: Any,
    job_service: tuple[str, ...],
    small_build: Path,
    write_corpus: Callable[..., Path],
    snapshot: Snapshot,
    tmp_path: Path,
) -> None:
    config = load_config(write_corpus(tmp_path))
    build(config, str(tmp_path / "out"), Engine(runner="spark", beam_args=job_service, transport=transport))
    assert_same(snapshot(tmp_path / "out"), snapshot(small_build / "out"))


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["files", "shuffle"])
def test_a_job_service_runs_every_stage_filters_with_files_and_a_mixture(
    transport: Any, job_service: tuple[str, ...], full_build: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    config = load_config(full_build / "sample.yaml")
    build(config, str(tmp_path / "out"), Engine(runner="spark", beam_args=job_service, transport=transport))
    assert_same(snapshot(tmp_path / "out"), snapshot(full_build / "out"))


def test_options_after_the_dashes_override_those_of_an_embedded_engine() -> None:
    given = ["--flink_version=2.0", "--parallelism=7"]
    options = PipelineOptions([*_portable("flink").default_args(3), *given])
    assert options.view_as(FlinkRunnerOptions).flink_version == "2.0"
    assert int(options.get_all_options()["parallelism"]) == 7
    assert int(options.view_as(PortableOptions).sdk_worker_parallelism) == 3


@pytest.mark.parametrize("runner", ["spark", "flink"])
def test_an_embedded_engine_without_java_is_refused_with_the_remedy(
    runner: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"install Java 17 .* --job_endpoint=HOST:PORT$"):
        Engine(runner=runner)
    assert Engine(runner=runner, beam_args=("--job_endpoint=localhost:8099",)).runner == runner


def test_an_absent_job_server_is_reported_in_one_line() -> None:
    port = free_port()
    args = (f"--job_endpoint=localhost:{port}", "--job_server_timeout=1", "--environment_type=LOOPBACK")
    with pytest.raises(RunError, match=rf"^stage asking: no job server answers at localhost:{port}: start it"):
        Engine(runner="spark", beam_args=args).run("asking", lambda pipeline: None)


@pytest.mark.parametrize("runner", ["spark", "flink"])
def test_an_installed_job_server_is_started(runner: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FINPILE_ENGINES", str(tmp_path))
    option = f"--{runner}_job_server_jar="
    assert not [arg for arg in _portable(runner).default_args(1) if arg.startswith(option)]
    jar = job_server_of(runner)
    jar.parent.mkdir()
    jar.touch()
    assert f"{option}{jar}" in _portable(runner).default_args(1)


def test_a_job_server_that_cannot_be_fetched_is_reported_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FINPILE_ENGINES", str(tmp_path))  # no job server is installed there

    def fetch(*arguments: object, **options: object) -> str:
        raise RuntimeError(
            "Unable to fetch remote job server jar at https://host/server.jar: HTTP Error 404: Not Found."
        )

    monkeypatch.setattr(JavaJarServer, "local_jar", fetch)
    expected = r"^stage asking: .* its flink job server \(https://host/server.jar\): .*--flink_job_server_jar=FILE"
    run = Run(
        label="asking",
        steps=None,
        construct=lambda pipeline: None,
        job_name="finpile-asking",
        num_workers=1,
        threads=False,
        beam_args=(),
    )
    with pytest.raises(RunError, match=expected):
        _portable("flink").run(run)


_KILLED_DURING_A_TASK = """
import os, signal, sys
from finpile.errors import RunError
from finpile_pipelines import graph
from finpile_pipelines.runner.engine import Engine

def work(server):
    import os, signal, time
    os.killpg(server, signal.SIGKILL)
    time.sleep(5)

try:
    engine = Engine(runner="spark", beam_args=(f"--job_endpoint={sys.argv[1]}", "--environment_type=LOOPBACK"))
    engine.run("asking", lambda pipeline: pipeline | graph.Create([int(sys.argv[2])]) | graph.Map(work))
except RunError as error:
    print(error, flush=True)
"""


@pytest.mark.slow
def test_a_job_server_that_is_killed_ends_the_run_with_one_message(
    eventually: Callable[[Callable[[], Any]], Any], tmp_path: Path
) -> None:
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", _SERVICE, "--port", str(port)],
        env={**os.environ, "TMPDIR": str(tmp_path)},  # what a killed process leaves there
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert eventually(lambda: is_listening(port))
        command = [sys.executable, "-c", _KILLED_DURING_A_TASK, f"localhost:{port}", str(server.pid)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
    assert done.stdout.startswith("stage asking: the connection to the job server was lost (")
    assert (done.stdout.count("\n"), "Traceback" in done.stderr, done.returncode) == (1, False, 0)


_LOST_BETWEEN_PIPELINES = """
import logging, sys, threading
import grpc
from apache_beam.runners.worker.data_plane import _GrpcDataChannel
from finpile_pipelines.runner import portable

logging.basicConfig()
if sys.argv[1] == "after":
    with portable._silent_beam():
        pass

def elements():
    raise {"lost": grpc.RpcError, "broken": ValueError}[sys.argv[2]]("Multiplexer hanging up")
    yield

_GrpcDataChannel().set_inputs(elements())
for thread in threading.enumerate():
    if thread.name == "read_grpc_client_inputs":
        thread.join()
"""


@pytest.mark.parametrize(
    ("moment", "error", "is_shown"), [("before", "lost", True), ("after", "lost", False), ("after", "broken", True)]
)
def test_workers_in_the_launcher_that_lose_their_connection_between_pipelines_show_nothing(
    moment: str, error: str, is_shown: bool
) -> None:
    command = [sys.executable, "-c", _LOST_BETWEEN_PIPELINES, moment, error]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert (done.returncode, "hanging up" in done.stderr) == (0, is_shown), done.stderr
