"""Clusters of Spark and Flink, several processes each, build from and to an S3 server what a local build publishes.

`make engines` installs what these tests need; without it they skip with the reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FINPILE = str(Path(sys.executable).with_name("finpile"))
ENGINES = ["spark", "flink"]


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


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_cluster_builds_on_an_object_store_what_a_local_build_publishes(
    engine: str,
    modules: Callable[[str], ModuleType],
    full_build: Path,
    snapshot: Callable[[Path], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    """Every stage is on, filters that read files and a mixture too."""
    skip_without(modules, engine)
    local, copy_store = full_build, modules("stores.copies").copy_store
    with modules("stores.servers").serve("s3") as store:
        environment = store.environment()
        copy_store("put", f"{store.root}/in", local / "in", environment)
        with modules("engines.clusters").running(engine, environment=environment) as cluster:
            places = ["--root", f"{store.root}/in", "-o", f"{store.root}/out"]
            command = [FINPILE, "build", str(local / "sample.yaml"), *places, "--runner", engine]
            done = run([*command, "--", *cluster.options], environment)
            assert done.returncode == 0, done.stderr
            folder = cluster.servers.folder
        assert not folder.exists()
        copy_store("get", f"{store.root}/out", tmp_path / "out", environment)
    found, expected = snapshot(tmp_path / "out"), snapshot(local / "out")
    assert sorted(found) == sorted(expected)
    assert len(expected) > 40
    assert [path for path in sorted(found) if found[path] != expected[path]] == []


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
