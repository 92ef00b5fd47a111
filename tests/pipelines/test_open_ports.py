"""A run with worker processes opens no port: its servers unpickle their input, so access must be restricted."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import psutil
import pytest
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from finpile_pipelines import graph
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import Progress
from finpile_pipelines.runner.engine import Engine

from finpile import storage
from finpile.errors import RunError


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
    return {one.laddr for one in psutil.Process().net_connections("unix") if one.laddr}


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


def test_every_server_that_beam_starts_is_among_those_replaced() -> None:
    """Beam's modules that bind servers, as they are installed: a new version may bind another one."""
    folder = Path(worker_handlers.__file__).parents[1]
    binding = {
        path.name: text.count("add_insecure_port('[::]:0')")
        for path in folder.rglob("*.py")
        if "_test" not in path.name and "add_insecure_port" in (text := path.read_text())
    }
    assert binding["worker_handlers.py"] == 4
    assert binding["local_job_service.py"] == 1
    # Servers of other runners' job services, which FinPile does not start.
    assert set(binding) <= {
        "worker_handlers.py",
        "local_job_service.py",
        "abstract_job_service.py",
        "expansion_service_main.py",
    }


def test_beam_that_binds_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from finpile_pipelines.runner import sockets

    sockets.serve_privately()
    server = worker_handlers.grpc.server(None)
    with pytest.raises(RunError, match="expected"):
        server.add_insecure_port("0.0.0.0:0")
    monkeypatch.setattr(worker_handlers, "grpc", object())
    with pytest.raises(RunError, match="apache-beam"):
        sockets.serve_privately()
