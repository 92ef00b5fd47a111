"""The worker image is built from the Dockerfile without Docker, and its workers publish the output of a local build.

The base is made from Debian's packages; buildah runs the image in a chroot, with the network of this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config
from finpile.version import __version__
from tests.support.trees import assert_same

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


@contextmanager
def job_service(folder: Path) -> Iterator[list[str]]:
    """Beam's job service in Python, on this machine."""
    if is_listening(JOB_PORT):
        pytest.skip(f"port {JOB_PORT} is in use")
    service = [sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main", "--port", JOB_PORT]
    with server([*service, "--staging_dir", folder / "staging"], folder / "service.log"):
        yield [f"--job_endpoint=localhost:{JOB_PORT}"]


@contextmanager
def spark(folder: Path) -> Iterator[list[str]]:
    """A Spark cluster on this machine: a master, two workers, a job server.

    It has one executor: Beam's pool knows the workers of several by the same id, and stops the one of another.
    """
    clusters, jars = import_module("benchmarks.engines.clusters"), import_module("benchmarks.engines.jars")
    try:
        with clusters.running("spark", settings={"spark.cores.max": "1"}) as cluster:
            yield cluster.options
    except jars.EngineMissing as missing:
        pytest.skip(str(missing))


@contextmanager
def server(command: Sequence[object], log: Path) -> Iterator[None]:
    """A process with its children, which ends with the block."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(part) for part in command], stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


@pytest.fixture(params=[job_service, spark])
def engine(
    request: pytest.FixtureRequest,
    container: str,
    eventually: Callable[[Callable[[], Any]], Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Engine]:
    """An engine on this machine, and a pool of workers in the container that see `tmp_path`."""
    if is_listening(POOL_PORT):
        pytest.skip(f"port {POOL_PORT} is in use")
    monkeypatch.syspath_prepend(str(ROOT))
    (tmp_path / "sitecustomize.py").write_text(_PROBE)
    variables = [f"--env=PYTHONPATH={tmp_path}", f"--env=COMPILED={tmp_path / 'compiled'}"]
    # Root: the workers write into the folder of the user who runs this test.
    mounts = [f"--volume={folder}:{folder}" for folder in (tmp_path, ROOT / "data_samples")]
    pool = [TOOLS / "buildah", "run", "--user=root", *variables, *mounts, container, "--", "/opt/apache/beam/boot"]
    with server([*pool, "--worker_pool"], tmp_path / "pool.log"), request.param(tmp_path) as options:
        job_port = int(options[0].rpartition(":")[2])
        assert eventually(lambda: is_listening(POOL_PORT) and is_listening(job_port))
        environment = ("--environment_type=EXTERNAL", f"--environment_config=localhost:{POOL_PORT}")
        yield Engine(runner="spark", beam_args=(*options, *environment))


@pytest.mark.slow
def test_workers_of_the_image_publish_the_output_of_a_local_build_and_compile_nothing(
    engine: Engine,
    sample_config: Path,
    sample_build: Path,
    snapshot: Callable[[Path], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    build(load_config(sample_config), str(tmp_path / "out"), engine)
    assert_same(snapshot(tmp_path / "out"), snapshot(sample_build))
    compiled = tmp_path / "compiled"
    assert not compiled.exists(), sorted(set(compiled.read_text().splitlines()))


@pytest.mark.slow
def test_the_command_of_the_dockerfile_compiles_kernels_of_every_module(tmp_path: Path) -> None:
    [command] = re.findall(r'^RUN python -c "(.+?)"$', (ROOT / "Dockerfile").read_text(), re.MULTILINE | re.DOTALL)
    program = command.replace("\\\n", "")
    run(sys.executable, "-c", program, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
    compiled = {path.name.partition(".")[0] for path in tmp_path.rglob("*.nbi")}
    packages = [ROOT / "finpile", ROOT / "tokenizer" / "finpile_tokenizer"]
    files = [path for package in packages for path in package.rglob("*.py")]
    cached = re.compile(r"^@(njit\(cache=True|kernel\b)", re.MULTILINE)
    assert compiled == {path.stem for path in files if cached.search(path.read_text())} != set()


@pytest.mark.slow
def test_the_image_has_the_command_and_no_setting_of_the_machine_that_built_it(container: str) -> None:
    tool = TOOLS / "buildah"
    assert run(tool, "run", container, "--", "finpile", "--version").strip() == f"finpile, version {__version__}"
    assert run(tool, "run", container, "--", "id", "-un").strip() == "finpile"
    assert run(tool, "run", container, "--", "sh", "-c", "cat /etc/pip.conf /run/secrets/* 2> /dev/null || true") == ""
