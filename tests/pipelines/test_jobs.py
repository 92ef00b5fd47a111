"""Jobs of engines: the right to write into OUT, versions of workers, and what workers report."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from finpile_pipelines import graph
from finpile_pipelines.exchange import jobs, versions
from finpile_pipelines.exchange.jobs import Lease, job_of
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables
from finpile_pipelines.exchange.tasks import Gather, RemoveFolder, Tasks
from finpile_pipelines.exchange.versions import versions_here
from finpile_pipelines.process_folder import temporary_files_inside
from finpile_pipelines.runner import engine as engines
from finpile_pipelines.runner import owner, usage
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.on_beam import add_steps
from finpile_pipelines.runner.owner import owned

from finpile import storage
from finpile.errors import ConfigError, RunError
from finpile.output.layout import Layout
from finpile.output.work_folder import WorkFolder
from finpile.plugins.engine import ENGINES, EngineType, Run
from finpile.storage.write_guard import guarded

_ENDPOINT = "--job_endpoint=localhost:1"
_CLUSTER = Engine(runner="spark", beam_args=(_ENDPOINT, "--environment_type=LOOPBACK"))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a worker knows of the owner of OUT is never old, and job servers answer at once."""
    monkeypatch.setattr(jobs, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(owner, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr("finpile_pipelines.runner.portable._ANSWER_SECONDS", 0.2)
    with temporary_files_inside():
        yield


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(str(tmp_path / "out"))


def owner_of(layout: Layout) -> Any:
    path = Path(layout.root, ".work", "run.json")
    return storage.read_json(str(path)) if path.exists() else None


# --- who may write ---------------------------------------------------------------------------------------------------


def test_a_run_owns_out_until_it_ends(layout: Layout) -> None:
    with owned(layout, _CLUSTER) as engine:
        assert engine.lease is not None
        assert owner_of(layout) == {"run": engine.lease.run, "runner": "spark", "endpoint": "localhost:1"}
        engine.lease.check()
    assert owner_of(layout) is None
    with pytest.raises(RunError, match=r"run\.json: another run has taken over, and this one writes no more"):
        engine.lease.check()


def test_local_runs_own_nothing_and_read_only_folders_stay_so(layout: Layout) -> None:
    for engine, is_writable in ((Engine(), True), (_CLUSTER, False)):
        with owned(layout, engine, is_writable=is_writable) as same:
            assert same is engine
            assert not Path(layout.root).exists()


def end_later(monkeypatch: pytest.MonkeyPatch, ended: list[str], running: list[str]) -> list[tuple[str, str, str]]:
    """The jobs of an earlier run, of which some end; the result lists the calls."""
    calls: list[tuple[str, str, str]] = []

    def end(runner: str, endpoint: str, run: str, engine: Engine) -> tuple[list[str], list[str]]:
        calls.append((runner, endpoint, run))
        return ended, running

    monkeypatch.setattr(owner, "_end_jobs", end)
    return calls


@pytest.mark.parametrize("later", [Engine(), _CLUSTER], ids=["local", "cluster"])
def test_the_next_run_takes_over_and_ends_the_job_of_a_killed_launcher(
    later: Engine, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = killed_run(layout)
    calls, told = end_later(monkeypatch, ["finpile-near-1_ab"], []), list[str]()
    with owned(layout, later, told.append):
        with pytest.raises(RunError, match="writes no more"):
            lease.check()
        assert calls == [("spark", "localhost:1", lease.run)]
        assert told == ["ended job finpile-near-1_ab of an earlier run, whose launcher was killed"]
    assert owner_of(layout) is None


def killed_run(layout: Layout) -> Lease:
    """The lease of a run whose launcher was killed."""
    lease = Lease(f"{layout.root}/.work/run.json", "0123456789ab")
    storage.write_json(lease.url, {"run": lease.run, "runner": "spark", "endpoint": "localhost:1"})
    return lease


def test_a_job_that_does_not_end_is_named_with_the_remedy(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_run(layout)
    end_later(monkeypatch, [], ["finpile-near-1_ab"])
    expected = (
        r"job finpile-near-1_ab of an earlier run is running on spark at localhost:1 .*: cancel it there, and run"
    )
    with pytest.raises(ConfigError, match=expected), owned(layout, Engine()):
        pass


def test_jobs_on_a_job_server_that_is_gone_write_no_more(layout: Layout) -> None:
    """Then nothing can be cancelled."""
    lease, told = killed_run(layout), list[str]()
    with owned(layout, Engine(), told.append), pytest.raises(RunError, match="writes no more"):
        lease.check()
    assert told == [f"a job of an earlier run, {lease.run}, may be running on spark at localhost:1: it writes no more"]


def test_dataflow_that_does_not_answer_is_refused(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def end_jobs(*_: Any) -> None:
        raise OSError("no credentials")

    monkeypatch.setattr(type(ENGINES.get("dataflow")), "end_jobs", end_jobs)
    storage.write_json(f"{layout.root}/.work/run.json", {"run": "ab12", "runner": "dataflow", "endpoint": ""})
    expected = r"name ends with ab12, may be running.*gcloud dataflow jobs cancel"
    with pytest.raises(ConfigError, match=expected), owned(layout, Engine()):
        pass


def test_a_failed_run_cancels_its_job(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = end_later(monkeypatch, [], [])
    with pytest.raises(KeyboardInterrupt), owned(layout, _CLUSTER) as engine:
        raise KeyboardInterrupt
    assert engine.lease is not None
    assert calls == [("spark", "localhost:1", engine.lease.run)]
    assert owner_of(layout) is None


def test_names_of_jobs_end_with_the_run() -> None:
    assert engines._job_name("near: components", "ab12") == "finpile-near-components-ab12"
    assert engines._job_name("near", "") == "finpile-near"


@pytest.mark.parametrize("change", ["write", "move", "remove_tree", "remove_files"])
def test_what_a_run_changes_after_it_was_taken_over_stays(change: str, layout: Layout, tmp_path: Path) -> None:
    lease, url = killed_run(layout), str(tmp_path / "file")
    storage.write_bytes(url, b"of the new run")
    with owned(layout, Engine()), guarded(lease.check), pytest.raises(RunError, match="taken over"):
        match change:
            case "write":
                storage.write_bytes(url, b"of the old run")
            case "move":
                storage.move(url, str(tmp_path / "other"))
            case "remove_tree":
                storage.remove_tree(url)
            case _:
                storage.remove_files(str(tmp_path), ["file"])
    assert storage.read_bytes(url) == b"of the new run"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "out"]


# --- jobs ------------------------------------------------------------------------------------------------------------


def _steps(pipeline: graph.Pipeline, folder: str, written: str) -> None:
    """A task writes, a partition writes, a summary is written, a folder is removed."""
    import pyarrow as pa

    def write(task: int) -> PartitionedTables:
        storage.write_bytes(f"{folder}/task-{task}", b"")
        return PartitionedTables(str(task), {task: pa.table({"a": [task]})})

    def receive(group: tuple[int, pa.Table]) -> dict[str, int]:
        storage.write_bytes(f"{folder}/{written}-{group[0]}", b"")
        return {"of": group[0]}

    storage.write_bytes(f"{folder}/removed/file", b"")
    exchange = ExchangeByPartition("shuffle", WorkFolder(folder), "By")
    received = pipeline | Tasks([1, 2]) | graph.Map(write) | exchange | "Receive" >> graph.Map(receive)
    _ = received | Gather(f"{folder}/outcomes.json") | RemoveFolder(WorkFolder(folder) / "removed")


def run_job(construct: Callable[[graph.Pipeline], None], lease: Lease | None, compares: bool = False) -> Any:
    steps = graph.Pipeline()
    with job_of(lease, steps, compares=compares):
        construct(steps)
    pipeline = beam.Pipeline(FnApiRunner(), PipelineOptions([]))
    add_steps(steps, pipeline)
    result = pipeline.run()
    result.wait_until_finish()
    return result


def names_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_tasks_of_a_run_that_was_taken_over_do_nothing(layout: Layout, tmp_path: Path) -> None:
    lease, folder = killed_run(layout), tmp_path / "files"
    run_job(lambda pipeline: _steps(pipeline, str(folder), "partition"), lease)
    done = ["outcomes.json", "partition-1", "partition-2", "task-1", "task-2"]
    assert names_in(folder) == done
    with owned(layout, Engine()), pytest.raises(Exception, match="writes no more"):
        run_job(lambda pipeline: _steps(pipeline, str(folder), "late"), lease)
    assert names_in(folder) == [*done[:3], "removed/file", *done[3:]]


def test_other_versions_of_workers_are_named_before_the_first_task(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = versions_here()
    assert re.fullmatch(r"Python 3\.\d+, apache-beam 2\.77\.\d+ and FinPile \S+ \(source [0-9a-f]{12}\)", str(here))
    run_job(lambda pipeline: _steps(pipeline, str(tmp_path / "same"), "partition"), None, compares=True)
    assert "task-1" in names_in(tmp_path / "same")
    image = dataclasses.replace(here, python="3.9", finpile="0.0.9 (source 0123456789ab)")
    monkeypatch.setattr(versions, "versions_here", lambda: image)
    expected = f"the workers have {image}, and the launcher has {here}: build the image"
    with pytest.raises(Exception, match=re.escape(expected)):
        run_job(lambda pipeline: _steps(pipeline, str(tmp_path / "other"), "partition"), None, compares=True)
    assert names_in(tmp_path / "other") == ["removed/file"]


def test_the_digest_of_the_source_depends_on_every_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "made_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(versions, "_PACKAGES", ("made_package",))
    found = [versions._source_digest()]
    (package / "module.py").write_text("a = 1")
    found.append(versions._source_digest())
    (package / "module.py").write_text("a = 2")
    found.append(versions._source_digest())
    (package / "module.py").rename(package / "other.py")
    assert len({*found, versions._source_digest()}) == 4


def test_workers_report_their_cpu_time_and_their_largest_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(usage, "USED", usage.Usage())
    monkeypatch.setattr(jobs._Usage, "cpu_milliseconds", 0)

    def work(task: int) -> dict[str, int]:
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
        return {"task": task}

    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | Tasks([1, 2, 3]) | graph.Map(work) | Gather(str(tmp_path / "out.json"))

    usage.add_usage(run_job(construct, None))
    assert usage.Usage() == usage.USED  # the launcher itself did the work
    before = time.process_time()
    names = iter(["launcher"])
    monkeypatch.setattr(jobs, "this_process", lambda: next(names, "worker"))
    usage.add_usage(run_job(construct, None))
    assert before <= usage.USED.cpu_seconds + 0.3 and usage.USED.cpu_seconds <= time.process_time()
    assert usage.USED.peak_bytes > 1 << 20
    usage.add_usage(object())  # a result without metrics


def test_the_first_job_of_a_process_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bool] = []

    def run(engine: EngineType, given: Run) -> None:
        pipeline = beam.Pipeline(options=PipelineOptions([]))
        given.construct(pipeline)
        compared.append("CompareVersions" in str(pipeline.to_runner_api()))

    monkeypatch.setattr(type(ENGINES.get("spark")), "run", run)
    monkeypatch.setattr(engines, "_COMPARED", set())
    for engine in (_CLUSTER, _CLUSTER, dataclasses.replace(_CLUSTER, beam_args=("--job_endpoint=localhost:2",))):
        engine.run("a", lambda pipeline: None)
    assert compared == [True, False, True]
