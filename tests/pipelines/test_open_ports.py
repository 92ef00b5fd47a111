"""A run with worker processes opens no port: they unpickle what they receive, so access must be restricted."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import psutil
from finpile_pipelines import graph
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import Progress
from finpile_pipelines.runner.engine import Engine

from finpile import storage


def internet_sockets() -> set[tuple[Any, ...]]:
    """(address, port, status) of all sockets but Unix ones, of this process and of those below it."""
    found = set()
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            found |= {(*one.laddr, one.status) for one in process.net_connections("inet")}
        except psutil.Error:
            continue
    return found


def unix_sockets() -> set[str]:
    """The paths of those of this process and of those below it."""
    found = set()
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            found |= {one.laddr for one in process.net_connections("unix") if one.laddr}
        except psutil.Error:
            continue
    return found


def test_two_workers_listen_on_no_network_interface(tmp_path: Path) -> None:
    """Looked at from the launcher while tasks run, and from within each task."""
    before = internet_sockets()
    seen: list[set[tuple[Any, ...]]] = []
    folders: list[Path] = []

    def watch(label: str, progress: Progress) -> None:
        del label, progress
        is_working = any(tmp_path.glob("began-*"))
        seen.append(internet_sockets() - before)
        folders.extend(Path(name).parent for name in unix_sockets())
        if is_working:
            (tmp_path / "looked").touch()

    def work(task: int) -> dict[str, Any]:
        import time

        import psutil

        (tmp_path / f"began-{task}").touch()
        waits = 0
        while not (tmp_path / "looked").exists() and waits < 3000:
            waits += 1
            time.sleep(0.01)
        sockets = psutil.Process().net_connections("inet")
        return {"task": task, "process": os.getpid(), "sockets": [str(one) for one in sockets]}

    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | Tasks(range(4)) | graph.Map(work) | Gather(str(tmp_path / "out.json"))

    Engine(num_workers=2, watch=watch).run("looking", construct)
    reported = storage.read_json(str(tmp_path / "out.json"))
    assert len({row["process"] for row in reported} - {os.getpid()}) == 2
    assert [row["sockets"] for row in reported] == [[]] * 4
    assert set().union(*seen) == set()
    assert (tmp_path / "looked").exists(), "sockets were looked at while tasks ran"
    assert folders
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders if folder.exists()} == {0o700}
