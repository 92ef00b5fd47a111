"""The worker image is built from the Dockerfile without Docker, and its workers publish the output of a local build.

The base is made from Debian's packages; buildah runs the image in a chroot, with the network of this machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config
from finpile.version import __version__

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "localhost/finpile-worker"
TOOLS = ROOT / "pipelines" / "runners" / "image"
#: Of the pool that Beam's entry point starts, and of the job service.
POOL_PORT, JOB_PORT = 50000, 50001

#: Writes a line for each function that Numba compiles; a function that comes from the cache has none.
_PROBE = """
import os
from numba.core import event

class Recorder(event.Listener):
    def on_start(self, event):
        with open(os.environ["COMPILED"], "a") as file:
            file.write(f"{event.data['dispatcher']}\\n")
    def on_end(self, event):
        pass

event.register("numba:compile", Recorder())
"""


def run(*command: object, **options: Any) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def container() -> Iterator[str]:
    """A container of the image, just built."""
    missing = [tool for tool in ("buildah", "mmdebstrap", "go") if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"builds an image as root with buildah, mmdebstrap and Go; not here: {missing or 'root'}")
    run(TOOLS / "build")
    name = run(TOOLS / "buildah", "from", IMAGE).strip()
    yield name
    run(TOOLS / "buildah", "rm", name)


@pytest.fixture
def engine(
    container: str,
    eventually: Callable[[Callable[[], Any]], Any],
    tmp_path: Path,
) -> Iterator[Engine]:
    """Beam's job service on this machine, and a pool of workers in the container that see `tmp_path`."""
    if is_listening(POOL_PORT) or is_listening(JOB_PORT):
        pytest.skip(f"port {POOL_PORT} or {JOB_PORT} is in use")
    (tmp_path / "sitecustomize.py").write_text(_PROBE)
    variables = [f"--env=PYTHONPATH={tmp_path}", f"--env=COMPILED={tmp_path / 'compiled'}"]
    # Root: the workers write into the folder of the user who runs this test.
    mounts = [f"--volume={folder}:{folder}" for folder in (tmp_path, ROOT / "data_samples")]
    pool = [TOOLS / "buildah", "run", "--user=root", *variables, *mounts, container, "--", "/opt/apache/beam/boot"]
    service = [sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main", "--port", JOB_PORT]
    servers = [
        subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, start_new_session=True)
        for command, log in (
            ([*pool, "--worker_pool"], (tmp_path / "pool.log").open("w")),
            ([*service, "--staging_dir", tmp_path / "staging"], (tmp_path / "service.log").open("w")),
        )
    ]
    try:
        assert eventually(lambda: is_listening(JOB_PORT) and is_listening(POOL_PORT))
        environment = ("--environment_type=EXTERNAL", f"--environment_config=localhost:{POOL_PORT}")
        yield Engine(runner="spark", beam_args=(f"--job_endpoint=localhost:{JOB_PORT}", *environment))
    finally:
        for server in servers:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()


@pytest.mark.slow
def test_workers_of_the_image_publish_the_output_of_a_local_build_and_compile_nothing(
    engine: Engine,
    sample_config: Path,
    sample_build: Path,
    snapshot: Callable[[Path], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    build(load_config(sample_config), str(tmp_path / "out"), engine)
    found, expected = snapshot(tmp_path / "out"), snapshot(sample_build)
    assert sorted(found) == sorted(expected) != []
    assert [path for path in sorted(found) if found[path] != expected[path]] == []
    compiled = tmp_path / "compiled"
    assert not compiled.exists(), sorted(set(compiled.read_text().splitlines()))


@pytest.mark.slow
def test_the_image_has_the_command_and_no_setting_of_the_machine_that_built_it(container: str) -> None:
    tool = TOOLS / "buildah"
    assert run(tool, "run", container, "--", "finpile", "--version").strip() == f"finpile, version {__version__}"
    assert run(tool, "run", container, "--", "id", "-un").strip() == "finpile"
    assert run(tool, "run", container, "--", "sh", "-c", "cat /etc/pip.conf /run/secrets/* 2> /dev/null || true") == ""
