"""Builds from and to object stores: MinIO and fake-gcs-server, through a proxy that counts and injects faults.

The servers are programs of their own; without them these tests skip. `pipelines/runners/stores/up --install` builds
them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"s3": "s3fs", "gs": "gcsfs"}
FINPILE = str(Path(sys.executable).with_name("finpile"))


class Client:
    """Runs commands against a store, whose requests pass a proxy."""

    def __init__(self, store: Any, proxy: Any) -> None:
        self.root: str = store.root
        self.proxy = proxy
        self.without_proxy: dict[str, str] = store.environment()
        small = {"FINPILE_SMALL_BYTES": "0"}  # worker processes, however small the corpus
        self.environment = {**os.environ, **store.environment(proxy.url), **small}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [FINPILE, *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)

    def build(self, config: Path, workers: int = 2) -> subprocess.CompletedProcess[str]:
        places = ("--root", f"{self.root}/in", "-o", f"{self.root}/out")
        return self.run("build", str(config), *places, "--delta", "--workers", str(workers))

    def copy(self, what: str, name: str, folder: Path) -> None:
        import_module("benchmarks.stores.copies").copy_store(what, f"{self.root}/{name}", folder, self.environment)


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
    assert len(client.proxy.requests) < 2_050  # 6,190 before requests were counted; 114 are those of Delta tables
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


class _NoEnd:
    """Faults that let no upload in parts end: S3's last request is a POST, Google's the second part."""

    def find(self, method: str, target: str, number: int) -> str | None:
        if "uploadId=" in target:
            return "503" if method == "POST" else None
        return "503" if "upload_id=" in target and number > 0 else None


_WRITE_LARGE = (
    "import sys; from finpile import storage; storage.write_bytes(sys.argv[1], bytes(range(256)) * (3 << 16))"
)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["s3", "gs"], indirect=True)
def test_killed_upload_of_several_parts_leaves_nothing_that_can_be_seen(
    store_here: Client, eventually: Callable[[Callable[[], Any]], Any], tmp_path: Path
) -> None:
    from finpile import storage

    proxy, url = store_here.proxy, f"{store_here.root}/large/file"
    proxy.faults = _NoEnd()
    environment = {**store_here.environment, "TMPDIR": str(tmp_path)}  # what the killed process leaves there
    process = subprocess.Popen([sys.executable, "-c", _WRITE_LARGE, url], env=environment)
    assert eventually(lambda: any(request.fault for request in list(proxy.requests)))
    process.kill()
    process.wait()
    proxy.faults = None
    assert Counter(request.kind for request in proxy.requests)["write a part"] > 1
    assert not storage.is_file(url)
    assert storage.list_files(f"{store_here.root}/large") == []
    subprocess.run([sys.executable, "-c", _WRITE_LARGE, url], env=store_here.environment, check=True)
    assert storage.read_bytes(url) == bytes(range(256)) * (3 << 16)


#: Commands on a build, `{build}`, that write to `{to}`.
COMMANDS = """
dedup {build} -o {to}/dedup --workers 1
dedup {build}/documents/*/*/* -o {to}/cut --workers 1 \
  --substring-min-length 20 --substring-unit tokens --substring-tokenizer {build}/tokenizer
tokenizer train {build} -o {to}/trained --vocab-size 300 --chunks 2 --workers 1 --heldout {build}
export tokenizer {to}/trained -o {to}/exported
tokenizer compare {to}/trained a={to}/exported/tokenizer.json --ours {build} --on {build} -o {to}/compared
tokenizer sweep {build}/tokenizer --on {build} --sizes 300,350 -o {to}/swept
report {build} --compare {to}/trained
verify {build}
trace {build} --sequence 0
tokenizer encode {to}/trained
tokenizer encode {to}/exported/tokenizer.json
"""
LANGUAGE_MODEL = """
model train {to}/training.yaml --until-step 2
model train {to}/training.yaml
model evaluate {build} {to}/model --per-source 2
"""


def run_commands(commands: str, build: str, to: str) -> list[str]:
    """Runs the commands in this process; returns what `tokenizer encode` printed."""
    from click.testing import CliRunner
    from finpile_cli.main import finpile

    printed = []
    for command in commands.strip().splitlines():
        arguments = [part.format(build=build, to=to) for part in command.split()]
        done = CliRunner().invoke(finpile, arguments, input="Gold rose by 2 %.\n", catch_exceptions=False)
        assert done.exit_code == 0, (command, done.output)
        if command.startswith("tokenizer encode"):
            printed.append(done.output)
    return printed


@pytest.fixture
def store_here(client: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """The store, found by this process too."""
    for name, value in client.environment.items():
        monkeypatch.setenv(name, value)
    from fsspec.registry import get_filesystem_class

    scheme = client.root.split("://")[0]
    get_filesystem_class(scheme).clear_instance_cache()  # those of other servers
    yield client
    get_filesystem_class(scheme).clear_instance_cache()


def written(folder: Path) -> dict[str, bytes]:
    """The files that commands wrote, without those that hold times or paths, and Delta tables, which a store has only
    if they are asked for."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    skipped = (
        ".work/",
        "delta/",
        "manifest.json",
        "croissant.json",
        "config.json",
        "training.yaml",
        "comparison.json",
        "events.jsonl",
        "chronicle.md",
        "run.html",
        "evaluation.json",
        "evaluation.html",
    )
    return {name: path.read_bytes() for name, path in found.items() if not any(part in name for part in skipped)}


@pytest.mark.slow
@pytest.mark.parametrize("undated", [False, True], ids=["dated", "undated"])
def test_a_corpus_as_of_a_day_on_a_store_equals_one_on_a_disk(
    store_here: Client, tmp_path: Path, undated: bool
) -> None:
    """Of a build from which documents were taken down."""
    from finpile_pipelines.as_of import as_of
    from finpile_pipelines.build import build
    from finpile_pipelines.runner.engine import Engine
    from finpile_pipelines.snapshots.remove import remove

    from benchmarks.common.random_past import RandomPast
    from finpile.as_of import Cut
    from finpile.config import load_config
    from finpile.documents.conditions import Condition
    from finpile.output.takedowns import Wanted
    from finpile.verify import verify

    corpus, cut = RandomPast.of(3, heldout={}), Cut(date(2020, 3, 31), undated)
    config = load_config(corpus.write(tmp_path / "files"))
    for root in (str(tmp_path), store_here.root):
        build(config, f"{root}/whole", Engine(), until="split")
        remove(f"{root}/whole", Wanted(where=(Condition.parse("locator=*/00*"),)), "they asked", Engine())
        manifest = as_of(f"{root}/whole", cut, f"{root}/past", Engine())
        assert manifest["as_of"]["takedowns"]["num_rows"] > 0
        assert [check for check in verify(f"{root}/past") if not check.ok] == []
    store_here.copy("get", "past", tmp_path / "got")
    assert written(tmp_path / "got") == written(tmp_path / "past")


@pytest.mark.slow
def test_delta_tables_on_a_store_are_those_on_a_disk(store_here: Client, tmp_path: Path) -> None:
    """Every reader has every version, from the store itself; the logs have the same bytes."""
    from finpile_pipelines.runner.engine import Engine
    from finpile_pipelines.snapshots.vacuum import vacuum

    from finpile import delta, storage
    from finpile.output.layout import Layout
    from tests.support.delta_corpus import TABLES, expected, plain, steps
    from tests.support.delta_readers import READERS
    from tests.support.made_days import failed

    here, out = tmp_path / "here", f"{store_here.root}/delta/out"
    for _ in zip(steps(tmp_path / "files", str(here)), steps(tmp_path / "stored", out), strict=True):
        assert storage.list_files(f"{out}/delta") == storage.list_files(f"{here}/delta")
    assert failed(out) == []
    for table in TABLES:
        for name in storage.list_files(f"{here}/delta/{table}/_delta_log"):
            path = f"delta/{table}/_delta_log/{name}"
            assert storage.read_bytes(f"{out}/{path}") == (here / path).read_bytes()
        for reader, read in READERS.items():
            for number in range(4):
                # A reader that holds Python's lock while it waits would wait for the proxy of this process for ever.
                options = {**store_here.without_proxy, "AWS_ALLOW_HTTP": "true"}
                rows = plain(read(f"{out}/delta/{table}", number, options))
                assert rows == expected(here, number)[table], (table, reader, number)
    vacuum(out, Engine(), keep=2)
    assert failed(out) == []
    storage.remove_tree(f"{out}/delta")
    delta.make(Layout(out))
    assert failed(out) == []


@pytest.mark.slow
@pytest.mark.parametrize("client", ["s3", "gs"], indirect=True)
def test_commands_write_to_a_store_what_they_write_to_a_disk(
    store_here: Client, copy_small: Callable[[Path], Path], tmp_path: Path
) -> None:
    build = copy_small(tmp_path / "small").parent / "out"
    store_here.copy("put", "small/out", build)
    local = run_commands(COMMANDS, str(build), str(tmp_path / "to"))
    assert run_commands(COMMANDS, f"{store_here.root}/small/out", f"{store_here.root}/to") == local
    store_here.copy("get", "to", tmp_path / "got" / "to")
    store_here.copy("get", "small/out", tmp_path / "got" / "out")
    assert len(written(tmp_path / "to")) > 20
    assert written(tmp_path / "got" / "to") == written(tmp_path / "to")
    assert written(tmp_path / "got" / "out") == written(build)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["s3", "gs"], indirect=True)
def test_language_model_trained_on_a_store_equals_one_trained_on_a_disk(
    store_here: Client, small_build: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    from finpile import storage

    build = small_build / "out"
    store_here.copy("put", "small/out", build)
    settings = {"out": "model", "steps": 3, "batch_size": 2, "checkpoint_every": 2, "threads": 1}
    for base, to in ((str(build), str(tmp_path / "to")), (f"{store_here.root}/small/out", f"{store_here.root}/to")):
        training = {**settings, "tokens": f"{base}/tokens/split=train"}
        storage.write_bytes(f"{to}/training.yaml", yaml.safe_dump(training).encode())
        run_commands(LANGUAGE_MODEL, base, to)
    store_here.copy("get", "to", tmp_path / "got" / "to")
    assert {"model/checkpoint.pt", "model/losses.jsonl", "model/evaluation.md"} <= written(tmp_path / "to").keys()
    assert written(tmp_path / "got" / "to") == written(tmp_path / "to")


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
