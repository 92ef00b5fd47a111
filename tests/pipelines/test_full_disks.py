"""An append that finds no space ends in a clear error; with space, the same command ends with the same bytes."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import pytest
import yaml
from finpile_cli.failures import explain
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append

from finpile import storage
from finpile.config import load_config
from finpile.errors import RunError
from finpile.output.layout import Layout
from finpile.output.snapshots import load_snapshot
from finpile.storage import file_systems
from finpile.storage.file_systems import file_system_of
from finpile.verify import verify
from tests.support.made_days import CORPUS, TOKENS, documents_of, failed, make_days, write_batch
from tests.support.takedowns import published_of

ROOT = Path(__file__).resolve().parents[2]
_PAGE = 4096
_PLENTY = 256 << 20


class Disk:
    """A file system in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def resize(self, size_bytes: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size_bytes}", str(self.folder)], check=True)

    @property
    def used_bytes(self) -> int:
        about = os.statvfs(self.folder)
        return (about.f_blocks - about.f_bfree) * about.f_frsize


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() or shutil.which("mount") is None:
        pytest.skip("only root can mount a file system in memory")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_PLENTY}", "finpile-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"no file system in memory: {made.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus file, its build in `base`, and files that the build has not read."""
    days, config = make_days(7, 8), tmp_path / "corpus.yaml"
    config.write_text(yaml.safe_dump({**CORPUS, **TOKENS}, sort_keys=False))
    write_batch(tmp_path, "0", *days[2:6])
    build(load_config(config), str(tmp_path / "base"), Engine())
    write_batch(tmp_path, "1", *days[:2], *days[6:])
    return config


def needs_of_files(disk: Disk, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes that are used when each file of a run is written, in order."""
    used: list[int] = []
    write = storage.write_atomically

    @contextmanager
    def measured(url: str, *, durable: bool = True) -> Iterator[IO[bytes]]:
        with write(url, durable=durable) as stream:
            yield stream
            stream.flush()
            used.append(disk.used_bytes)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_atomically", measured)
        run()
    return used


@pytest.mark.parametrize("part", [1.0, *(pytest.param(part, marks=pytest.mark.slow) for part in (0.2, 0.4, 0.6, 0.8))])
def test_an_append_without_space_is_continued_when_there_is_some(
    disk: Disk, corpus: Path, monkeypatch: pytest.MonkeyPatch, part: float
) -> None:
    """The disk is too small by the bytes of one of the files that the append writes; with part 1, of the last one."""
    base, config = corpus.parent / "base", load_config(corpus)
    undisturbed = Path(shutil.copytree(base, disk.folder / "undisturbed"))
    used = needs_of_files(disk, lambda: append(config, str(undisturbed), Engine()), monkeypatch)
    expected, documents = published_of(undisturbed), documents_of(undisturbed)
    shutil.rmtree(undisturbed)
    out = Path(shutil.copytree(base, disk.folder / "undisturbed"))
    disk.resize(used[round(part * (len(used) - 1))] - _PAGE)
    with pytest.raises((OSError, RunError)) as failure:  # of the launcher, or of a task
        append(config, str(out), Engine())
    error = failure.value
    line, code = (str(error), error.exit_code) if isinstance(error, RunError) else explain(error)
    assert os.strerror(errno.ENOSPC) in line and str(out) in line and code == 1
    assert "free space there and run the same command again" in line
    assert load_snapshot(Layout(str(out))).get("snapshot") is None
    disk.resize(_PLENTY)
    append(config, str(out), Engine())
    assert published_of(out) == expected
    assert documents_of(out).equals(documents)
    assert failed(out) == []


@pytest.mark.slow
def test_an_append_to_a_full_store_is_continued(
    disk: Disk, corpus: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server keeps its objects in memory, of which half as much is left as the append needs."""
    s3fs = pytest.importorskip("s3fs")
    monkeypatch.syspath_prepend(str(ROOT))
    servers: ModuleType = import_module("benchmarks.stores.servers")
    try:
        servers.find_program("s3")
    except servers.StoreMissing as missing:
        pytest.skip(str(missing))
    base, config = corpus.parent / "base", load_config(corpus)
    monkeypatch.setattr(tempfile, "tempdir", str(disk.folder))
    monkeypatch.setattr(file_systems, "PAUSES_SECONDS", (0.1, 0.2))
    with servers.serve("s3") as store:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        for name, value in store.environment().items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()  # they have the address of another server
        undisturbed, out = f"{store.root}/undisturbed", f"{store.root}/out"
        for url in (undisturbed, out):
            copy_folder(str(base), url)
        before = disk.used_bytes
        append(config, undisturbed, Engine())
        needed, expected = disk.used_bytes - before, objects_of(undisturbed)
        disk.resize(disk.used_bytes + needed // 2)
        with pytest.raises(RunError, match=r"StorageFull.* run the same command again later; it resumes"):
            append(config, out, Engine())
        assert load_snapshot(Layout(out)).get("snapshot") is None
        disk.resize(_PLENTY)
        append(config, out, Engine())
        assert objects_of(out) == expected
        assert [check for check in verify(out) if not check.ok] == []


def copy_folder(source: str, target: str) -> None:
    fs, path = file_system_of(target)
    fs.put(f"{source}/", f"{path}/", recursive=True)


def objects_of(out: str) -> dict[str, bytes]:
    """All published files but manifests, which have times."""
    names = [name for name in storage.list_files(out) if not name.startswith((".work/", "index/"))]
    return {name: storage.read_bytes(f"{out}/{name}") for name in names if not name.endswith(".json")}
