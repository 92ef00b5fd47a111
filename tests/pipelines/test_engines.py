"""Clusters of Spark and Flink, several processes each, build what a local build publishes, on disk and an S3 server.

`make engines` installs what these tests need; without it they skip with the reason.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from tests.support.trees import assert_same

ROOT = Path(__file__).resolve().parents[2]
FINPILE = str(Path(sys.executable).with_name("finpile"))
ENGINES = ["spark", "flink"]
#: The last pipelines of a stage run as they do for many shards.
MANY_SHARDS = {"FINPILE_SHARDS_IN_MEMORY": "0"}
#: No document has a template or a repeated passage so long; pairs of near duplicates are connected by star rounds.
SKIPS_PASSES = {"near": "fast", "substring": {"min_length": 5000}, "templates": {"min_documents": 1000}}
MANY_PAIRS = {"FINPILE_PAIRS_IN_MEMORY": "0"}
PATIENCE_SECONDS = 300
_GUIDE = ROOT / "docs" / "guide-runners.md"
_CLUSTER_BLOCK = re.compile(r"<!-- not run: starts a cluster -->\n```console\n(.*?)```", re.DOTALL)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: import_module(f"benchmarks.{name}")


def skip_without(modules: Callable[[str], ModuleType], engine: str, *, needs_store: bool = True) -> None:
    jars, servers = modules("engines.jars"), modules("stores.servers")
    if needs_store and find_spec("s3fs") is None:
        pytest.skip("s3fs is not installed")
    try:
        jars.find_jars(engine)
        if needs_store:
            servers.find_program("s3")
    except (jars.EngineMissing, servers.StoreMissing) as missing:
        pytest.skip(str(missing))


def run(
    command: list[str], environment: dict[str, str], folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **environment}
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", params=ENGINES)
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A cluster whose workers have the disk of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        skip_without(lambda name: import_module(f"benchmarks.{name}"), request.param, needs_store=False)
        with import_module("benchmarks.engines.clusters").running(request.param) as running:
            yield running


def command_of(cluster: Any, config: Path, out: str) -> list[str]:
    return [FINPILE, "build", str(config), "-o", out, "--runner", cluster.engine, "--", *cluster.options]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_cluster_builds_on_an_object_store_what_a_local_build_publishes(
    engine: str,
    modules: Callable[[str], ModuleType],
    full_build: Path,
    snapshot: Callable[[Path], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    """Every stage is on, filters that read files and a mixture too, and no pass is skipped."""
    skip_without(modules, engine)
    local, copy_store = full_build, modules("stores.copies").copy_store
    with modules("stores.servers").serve("s3") as store:
        environment = store.environment()
        copy_store("put", f"{store.root}/in", local / "in", environment)
        with modules("engines.clusters").running(engine, environment=environment) as cluster:
            places = ["--root", f"{store.root}/in", "-o", f"{store.root}/out"]
            command = [FINPILE, "build", str(local / "sample.yaml"), *places, "--delta", "--runner", engine]
            done = run([*command, "--", *cluster.options], {**environment, **MANY_SHARDS})
            assert done.returncode == 0, done.stderr
            folder = cluster.servers.folder
        assert not folder.exists()
        copy_store("get", f"{store.root}/out", tmp_path / "out", environment)
    assert_same(snapshot(tmp_path / "out"), snapshot(local / "out"))
    assert len(snapshot(local / "out")) > 40


@pytest.mark.slow
def test_a_cluster_skips_passes(
    cluster: Any, write_corpus: Callable[..., Path], snapshot: Callable[[Path], dict[str, bytes]], tmp_path: Path
) -> None:
    """Every pass that can be skipped is. The output folder is relative to that of the launcher."""
    sources = [
        {
            "name": name,
            "dataset": "FinPile",
            "format": "jsonl",
            "paths": f"{name}.jsonl",
            "fields": {"timestamp": "date"},
            "clean": {"filters": []},
            "template_group": "source",
        }
        for name in ("News", "Web")
    ]
    config = write_corpus(tmp_path, dedup=SKIPS_PASSES, sources=sources)
    local = run([FINPILE, "build", config.name, "-o", "local", "--workers", "1"], {}, tmp_path)
    assert local.returncode == 0, local.stderr
    done = run(command_of(cluster, config, "out"), MANY_PAIRS, tmp_path)
    assert done.returncode == 0, done.stderr
    assert_same(snapshot(tmp_path / "out"), snapshot(tmp_path / "local"))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    stages = {stage["stage"]: stage for stage in manifest["stages"]}
    assert stages["near"]["counts"]["candidate_pairs"] > 0
    assert stages["substring"]["counts"]["rounds"] == stages["templates"]["counts"]["cut_bytes"] == 0
    assert stages["tokenizer"]["peak_memory_bytes"] > 100 << 20


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["ingest", "split"])
def test_a_killed_launcher_leaves_no_job_that_writes(
    stage: str,
    cluster: Any,
    write_corpus: Callable[..., Path],
    snapshot: Callable[[Path], dict[str, bytes]],
    eventually: Callable[[Callable[[], Any]], Any],
    tmp_path: Path,
) -> None:
    """Its workers stand still in a task until the same command, with other settings, has cancelled its job."""
    config = write_corpus(tmp_path, dedup={"near": "fast"}, heldout={"after": date(2022, 7, 31), "undated": "train"})
    command, owner = command_of(cluster, config, "out"), tmp_path / "out" / ".work" / "run.json"
    workers = kill_in(stage, cluster, command, tmp_path, eventually)
    killed = json.loads(owner.read_text())["run"]
    write_corpus(tmp_path, {}, dedup={"near": "paper"}, heldout={"after": date(2020, 7, 31), "undated": "drop"})
    again = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: not jobs_of(cluster, f"finpile-{stage}-{killed}") or again.poll() is not None)
    resume(workers)
    printed, errors = again.communicate(timeout=PATIENCE_SECONDS)
    assert again.returncode == 0, errors
    assert re.search(rf"ended job finpile-{stage}-{killed}\S+ of an earlier run, whose launcher was killed", printed)
    assert jobs_of(cluster) == []
    assert not owner.exists()
    local = run([FINPILE, "build", config.name, "-o", "local", "--workers", "1"], {}, tmp_path)
    assert local.returncode == 0, local.stderr
    assert_same(snapshot(tmp_path / "out"), snapshot(tmp_path / "local"))
    checked = run([FINPILE, "verify", "out"], {}, tmp_path)
    assert checked.returncode == 0, checked.stdout


def kill_in(
    stage: str,
    cluster: Any,
    command: list[str],
    folder: Path,
    eventually: Callable[[Callable[[], Any]], Any],
) -> list[psutil.Process]:
    """Starts a build, stops its workers before they run the job of a stage, kills it in this job.

    Returns the stopped processes. Workers of the job before wait for the next one; the pool starts no others.
    """
    name, started = f"finpile-{stage}-", folder / "out" / ".work" / stage / "started.json"
    for _ in range(10):
        with tempfile.TemporaryDirectory() as left:  # by the killed process
            launcher = subprocess.Popen(
                command,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, "TMPDIR": left},
                start_new_session=True,
            )

            def reaches(condition: Callable[[], Any], launcher: subprocess.Popen[bytes] = launcher) -> None:
                assert eventually(lambda: condition() or launcher.poll() is not None)
                assert launcher.poll() is None, launcher.communicate()

            reaches(started.exists)
            reaches(cluster.python_workers)
            workers = suspend(psutil.Process(cluster.servers.pid("pool")))
            reaches(lambda: jobs_of(cluster, name))
            is_running = jobs_of(cluster, name)
            os.kill(launcher.pid, signal.SIGKILL)
            launcher.communicate()
        if is_running:
            return workers
        resume(workers)
        shutil.rmtree(folder / "out")
    raise AssertionError(f"the job of {stage} ends too fast")


def suspend(pool: psutil.Process) -> list[psutil.Process]:
    """Stops a pool and all workers that it has started, also those that it is starting; returns them."""
    stopped = list[psutil.Process]()
    found = [pool]
    while found:
        for process in found:
            with suppress(psutil.Error):
                process.suspend()
        stopped += found
        found = [process for process in pool.children(recursive=True) if process not in stopped]
    return stopped


def resume(workers: list[psutil.Process]) -> None:
    for worker in workers:
        with suppress(psutil.Error):
            worker.resume()


def jobs_of(cluster: Any, name: str = "") -> list[str]:
    """The jobs that the job server of a cluster runs, by the beginning of their names."""
    import grpc
    from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
    from apache_beam.runners.portability.portable_runner import TERMINAL_STATES

    with grpc.insecure_channel(f"127.0.0.1:{cluster.ports['job']}") as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        jobs = service.GetJobs(beam_job_api_pb2.GetJobsRequest()).job_info
    return [job.job_id for job in jobs if job.state not in TERMINAL_STATES and job.job_id.startswith(name)]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_the_commands_of_the_guide_build_the_sample(
    engine: str,
    modules: Callable[[str], ModuleType],
    sample_build: Path,
    snapshot: Callable[[Path], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    skip_without(modules, engine, needs_store=False)
    for folder in ("data_samples", "pipelines/configs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    scripts = tmp_path / "pipelines" / "runners" / engine
    scripts.mkdir(parents=True)
    for name in ("up", "down"):
        (scripts / name).write_text(f'#!/bin/sh\nexec {ROOT}/pipelines/runners/{engine}/{name} "$@"\n')
        (scripts / name).chmod(0o755)
    blocks = [block for block in _CLUSTER_BLOCK.findall(_GUIDE.read_text()) if f"--runner {engine}" in block]
    commands = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    assert [command.split()[0] for command in commands] == ["finpile", f"pipelines/runners/{engine}/down"]
    environment = {"PATH": f"{Path(FINPILE).parent}{os.pathsep}{os.environ['PATH']}"}
    try:
        for command in commands:
            done = run(["bash", "-c", command], environment, tmp_path)
            assert done.returncode == 0, done.stderr
    finally:
        run([str(scripts / "down")], environment, tmp_path)
    assert_same(snapshot(tmp_path / "out" / f"sample-{engine}"), snapshot(sample_build))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_without_options_is_embedded_in_an_installed_job_server(
    engine: str,
    modules: Callable[[str], ModuleType],
    write_corpus: Callable[..., Path],
    small_build: Path,
    snapshot: Callable[[Path], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    skip_without(modules, engine, needs_store=False)
    config = write_corpus(tmp_path)
    done = run([FINPILE, "build", str(config), "-o", str(tmp_path / "out"), "--runner", engine], {})
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert snapshot(tmp_path / "out") == snapshot(small_build / "out")


def test_an_engine_without_jars_names_the_remedy(
    modules: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FINPILE_ENGINES", str(tmp_path))
    jars = modules("engines.jars")
    with pytest.raises(jars.EngineMissing, match=r"install"):
        jars.find_jars("spark")
