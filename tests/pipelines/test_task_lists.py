"""Lists of tasks in files: the request of a job does not grow with the shards of the corpus."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from finpile_pipelines import graph
from finpile_pipelines.exchange.jobs import Job, Lease, job_of
from finpile_pipelines.exchange.task_lists import REQUEST_BYTES, remove_task_lists, task_list
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.executors.shard_documents import ShardDocuments
from finpile_pipelines.executors.shards import PlanOverShards, _Unit
from finpile_pipelines.runner.beam_options import Options
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.on_beam import add_steps
from finpile_pipelines.shard_refs import ShardRef
from finpile_pipelines.stage import Sizes

from finpile import storage
from finpile.config import DedupConfig, NearConfig, SubstringConfig
from finpile.dedup.plan import Settings, plan_of
from finpile.errors import IntegrityError
from finpile.output.work_folder import WorkFolder
from finpile.plugins import stages


def _lease(folder: Path) -> Lease:
    lease = Lease(str(folder / ".work/run.json"), "ab12")
    storage.write_json(lease.url, {"run": lease.run})
    return lease


def _request_bytes(name: str, dedup: DedupConfig, num_shards: int, folder: Path) -> int:
    """The size of the pipeline of a stage as a job of an engine, without running it."""
    plan = plan_of(stages.find(name), Settings(dedup=dedup))
    assert plan is not None
    work = WorkFolder(str(folder))
    refs = tuple(ShardRef(index, 0, f"{index:06d}-0000", work / "clean") for index in range(num_shards))
    documents = ShardDocuments(scopes=("",), removals=())
    over = PlanOverShards(
        stage=name,
        plan=plan,
        inputs=plan.read(),
        refs=refs,
        documents=documents,
        folder=work / name,
        engine=replace(Engine(), transport="shuffle"),
        sizes=Sizes(),
    )
    units = [_Unit(over._round(plan.passes[0], documents, over._tables()))]
    steps = graph.Pipeline()
    with job_of(_lease(folder), steps, compares=False):
        over._construct(over.engine, units, 0, steps)
    pipeline = beam.Pipeline(FnApiRunner(), Options([]))
    add_steps(steps, pipeline)
    size = len(pipeline.to_runner_api().SerializeToString())
    shutil.rmtree(pipeline.local_tempdir)  # which a run would remove
    return size


@pytest.mark.parametrize(
    ("name", "dedup"),
    [
        ("exact", DedupConfig()),
        ("near", DedupConfig(near=NearConfig())),
        ("substring", DedupConfig(near=None, substring=SubstringConfig(min_length=50))),
    ],
)
def test_request_of_a_job_does_not_grow_with_the_shards(name: str, dedup: DedupConfig, tmp_path: Path) -> None:
    few, many = (_request_bytes(name, dedup, number, tmp_path / str(number)) for number in (5_000, 20_000))
    assert many < few + 10_000


def test_tasks_of_a_long_list_are_those_of_the_list(tmp_path: Path) -> None:
    lease, tasks = _lease(tmp_path), [f"task {number}" for number in range(REQUEST_BYTES // 8)]
    steps = graph.Pipeline()
    with job_of(lease, steps, compares=False):
        outcomes = steps | Tasks(tasks) | graph.Map(lambda task: {"task": task})
        _ = outcomes | Gather(str(tmp_path / "outcomes.json"))
    pipeline = beam.Pipeline(FnApiRunner(), Options([]))
    add_steps(steps, pipeline)
    pipeline.run().wait_until_finish()
    assert [row["task"] for row in storage.read_json(str(tmp_path / "outcomes.json"))] == sorted(tasks)
    assert len(list((tmp_path / ".work/tasks").iterdir())) == 1
    remove_task_lists(lease.url)
    assert not (tmp_path / ".work/tasks").exists()


def test_short_lists_and_those_of_the_local_runner_are_not_written(tmp_path: Path) -> None:
    job = Job(_lease(tmp_path), "here")
    assert task_list([1, 2], job).read() == [1, 2]
    assert task_list(range(REQUEST_BYTES), None).read() == range(REQUEST_BYTES)
    assert not (tmp_path / ".work/tasks").exists()


def test_damaged_list_is_named(tmp_path: Path) -> None:
    found = task_list(list(range(REQUEST_BYTES)), Job(_lease(tmp_path), "here"))
    assert list(found.read()) == list(range(REQUEST_BYTES))
    path = Path(found.url)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IntegrityError, match="run the same command again"):
        found.read()
