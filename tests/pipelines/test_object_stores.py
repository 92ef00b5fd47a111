"""Builds from and to object stores: MinIO and fake-gcs-server, through a proxy that counts and injects faults.

The servers are programs of their own; without them these tests skip. `pipelines/runners/stores/up --install` builds
them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"s3": "s3fs", "gs": "gcsfs"}
FINPILE = str(Path(sys.executable).with_name("finpile"))
_COPY = """
import sys
from finpile.file_systems import file_system_of
what, url, folder = sys.argv[1:]
fs, path = file_system_of(url)
if what == "put":
    fs.put(folder + "/", path + "/", recursive=True)
else:
    fs.get(path + "/", folder + "/", recursive=True)
"""


class Client:
    """Runs commands against a store, whose requests pass a proxy."""

    def __init__(self, store: Any, proxy: Any) -> None:
        self.root: str = store.root
        self.proxy = proxy
        small = {"FINPILE_SMALL_BYTES": "0"}  # worker processes, however small the corpus
        self.environment = {**os.environ, **store.environment(proxy.url), **small}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [FINPILE, *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)

    def build(self, config: Path, workers: int = 2) -> subprocess.CompletedProcess[str]:
        places = ("--root", f"{self.root}/in", "-o", f"{self.root}/out")
        return self.run("build", str(config), *places, "--workers", str(workers))

    def copy(self, what: str, name: str, folder: Path) -> None:
        command = [sys.executable, "-c", _COPY, what, f"{self.root}/{name}", str(folder)]
        subprocess.run(command, env=self.environment, check=True, capture_output=True)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: import_module(f"benchmarks.stores.{name}")


@pytest.fixture
def client(request: pytest.FixtureRequest, modules: Callable[[str], ModuleType]) -> Iterator[Client]:
    scheme = getattr(request, "param", "s3")
    if find_spec(PACKAGES[scheme]) is None:
        pytest.skip(f"{PACKAGES[scheme]} is not installed")
    servers = modules("servers")
    try:
        servers.find_program(scheme)
    except servers.StoreMissing as missing:
        pytest.skip(str(missing))
    with servers.serve(scheme) as store, modules("proxy").Proxy(store.port) as proxy:
        yield Client(store, proxy)


def published(out: Path) -> dict[str, bytes]:
    """The files of OUT outside `.work`, without the manifest, which has times."""
    found = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    names = {name for name in found if not name.startswith(".work/") and name != "manifest.json"}
    assert len(names) > 20
    return {name: found[name].read_bytes() for name in names}


@pytest.fixture
def samples(sample_config: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "data_samples", tmp_path / "in", ignore=shutil.ignore_patterns("*.py", "*.md")))


@pytest.mark.slow
@pytest.mark.parametrize("client", ["s3", "gs"], indirect=True)
def test_build_on_an_object_store_equals_the_local_build(
    client: Client, samples: Path, sample_config: Path, sample_build: Path, tmp_path: Path
) -> None:
    client.copy("put", "in", samples)
    client.proxy.requests.clear()
    done = client.build(sample_config)
    assert done.returncode == 0, done.stderr
    assert len(client.proxy.requests) < 2_500  # 6,190 before requests were counted
    client.copy("get", "out", tmp_path / "got")
    assert published(tmp_path / "got") == published(sample_build)

    again = client.build(sample_config)
    assert again.returncode == 0
    assert "nothing to do" in again.stdout + again.stderr
    verified = client.run("verify", f"{client.root}/out")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    some_id = one_id(tmp_path / "got")
    shown = client.run("show", f"{client.root}/out", some_id)
    assert shown.returncode == 0, shown.stderr
    assert some_id in shown.stdout
    assert client.run("report", f"{client.root}/out").returncode == 0


def one_id(out: Path) -> str:
    import pyarrow.parquet as pq

    return str(pq.read_table(min((out / "documents").rglob("*.parquet")), columns=["id"])["id"][0].as_py())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_faults_of_a_store_change_no_byte(
    client: Client,
    modules: Callable[[str], ModuleType],
    samples: Path,
    sample_config: Path,
    sample_build: Path,
    tmp_path: Path,
    seed: int,
) -> None:
    """The build ends with equal bytes, or with one message, after which the same command finishes."""
    client.copy("put", "in", samples)
    client.proxy.faults = modules("proxy").Faults(seed=seed, share=0.03)
    done = client.build(sample_config)
    assert sum(request.fault is not None for request in client.proxy.requests) > 20
    client.proxy.faults = None
    if done.returncode:
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert client.build(sample_config).returncode == 0
    client.copy("get", "out", tmp_path / "got")
    assert published(tmp_path / "got") == published(sample_build)


MESSAGES = [
    ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "{root}/out", "the store denies access: change the permissions"),
    ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "{root}/out", "no credentials for the store"),
    ({}, "s3://no-such-bucket/out", "the bucket does not exist: create it, or name another"),
    ({}, "s4://finpile/out", "unknown file system s4://"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("variables", "out", "message"), MESSAGES)
def test_error_of_a_store_is_one_line_with_a_remedy(
    client: Client, sample_config: Path, variables: dict[str, str], out: str, message: str
) -> None:
    client.environment |= {"HOME": "/nonexistent", **variables}
    done = client.run("build", str(sample_config), "-o", out.format(root=client.root), "--workers", "1")
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("finpile:")]) == 1
    assert "Traceback" not in done.stderr
