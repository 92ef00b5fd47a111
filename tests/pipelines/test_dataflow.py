"""Dataflow gets the stored job requests, and a service that runs them publishes the output of a local build.

The service is a double of the part of Google's API (v1b3) that Beam's DataflowRunner calls. It runs the pipeline that
each request names: the one that Dataflow would run, as bytes in the staging folder.

`FINPILE_WRITE_GOLDEN=1 pytest tests/pipelines/test_dataflow.py` writes tests/golden/dataflow_requests.json again.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from finpile_pipelines.build import Sizes, build
from finpile_pipelines.engines import dataflow
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.owner import owned

from finpile.config import load_config
from finpile.errors import ConfigError, RunError
from finpile.output.layout import Layout
from finpile.storage import write_json
from tests.support.trees import assert_same

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "dataflow_requests.json"
TEMPLATE = ROOT / "pipelines" / "runners" / "dataflow"
ARGS = ROOT / "pipelines" / "runners" / "dataflow.args"


class Service(ThreadingHTTPServer):
    """Accepts jobs and runs them here, one after the other."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.jobs: list[dict[str, Any]] = []
        """The requests, each with its pipeline in `pipeline`."""
        self.states: dict[str, str] = {}
        self.messages: dict[str, str] = {}

    def accept(self, job: dict[str, Any]) -> dict[str, Any]:
        job["id"] = f"job-{len(self.jobs)}"
        options = job["environment"]["sdkPipelineOptions"]["options"]
        job["pipeline"] = beam_runner_api_pb2.Pipeline.FromString(Path(options["pipelineUrl"]).read_bytes())
        self.jobs.append(job)
        self.states[job["id"]] = "JOB_STATE_RUNNING"
        threading.Thread(target=self._run, args=(job["id"], job["pipeline"])).start()
        return self.state(job["id"]) | {"clientRequestId": job["clientRequestId"]}

    def state(self, job_id: str) -> dict[str, Any]:
        return {"id": job_id, "currentState": self.states[job_id]}

    def _run(self, job_id: str, pipeline: beam_runner_api_pb2.Pipeline) -> None:
        copy = beam_runner_api_pb2.Pipeline()
        copy.CopyFrom(pipeline)
        for environment in copy.components.environments.values():
            environment.urn, environment.payload = python_urns.EMBEDDED_PYTHON, b""
        try:
            FnApiRunner().run_via_runner_api(copy, PipelineOptions([])).wait_until_finish()
            self.states[job_id] = "JOB_STATE_DONE"
        except Exception:
            self.messages[job_id] = traceback.format_exc()  # as workers report it
            self.states[job_id] = "JOB_STATE_FAILED"


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        self._answer(self.server.accept(json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

    def do_PUT(self) -> None:
        from google.cloud.dataflow_v1beta3 import JobState

        job_id = self.path.partition("?")[0].rpartition("/")[2]
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["requestedState"]
        assert asked == JobState.JOB_STATE_CANCELLED
        self.server.states[job_id] = "JOB_STATE_CANCELLED"
        self._answer(self.server.state(job_id))

    def do_GET(self) -> None:
        parts = self.path.partition("?")[0].split("/")
        if parts[-1] == "jobs":
            return self._answer(
                {"jobs": [self.server.state(job["id"]) | {"name": job["name"]} for job in self.server.jobs]}
            )
        job_id = parts[parts.index("jobs") + 1]
        if parts[-1] != "messages":
            return self._answer(self.server.state(job_id))
        text = self.server.messages.get(job_id)
        message = {"messageText": text, "messageImportance": "JOB_MESSAGE_ERROR", "time": "2026-01-01T00:00:00Z"}
        return self._answer({"jobMessages": [message] if text else []})

    def _answer(self, body: Mapping[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    pytest.importorskip("google.cloud.dataflow_v1beta3", reason="needs apache-beam[gcp] (0.6 GB)")
    from apache_beam.runners.dataflow import dataflow_runner

    # Beam asks for the state of a job every five seconds.
    monkeypatch.setattr(dataflow_runner, "time", SimpleNamespace(time=time.time, sleep=lambda _: time.sleep(0.02)))
    server = Service()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def engine(service: Service, tmp_path: Path) -> Engine:
    """The options of dataflow.args, with folders of this machine and the double of the service."""
    (tmp_path / "staging").mkdir()
    own = {
        "temp_location": tmp_path / "staging",
        "staging_location": tmp_path / "staging",
        "dataflow_endpoint": f"http://localhost:{service.server_address[1]}",
    }
    lines = [line for line in ARGS.read_text().splitlines() if not line.startswith("#")]
    kept = [line for line in lines if line[2:].partition("=")[0] not in own]
    return Engine(
        runner="dataflow", beam_args=(*kept, *(f"--{key}={value}" for key, value in own.items()), "--no_auth")
    )


def test_jobs_are_the_stored_requests_and_publish_the_output_of_a_local_build(
    engine: Engine,
    service: Service,
    small_build: Path,
    write_corpus: Callable[..., Path],
    snapshot: Callable[[Path], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    build(load_config(write_corpus(tmp_path)), str(tmp_path / "out"), engine)
    assert_same(snapshot(tmp_path / "out"), snapshot(small_build / "out"))
    assert len({job["name"].rpartition("-")[2] for job in service.jobs}) == 1  # the run
    requests = [normalised(job, tmp_path) for job in service.jobs]
    if "FINPILE_WRITE_GOLDEN" in os.environ:
        GOLDEN.write_text(json.dumps(requests, indent=1) + "\n")
    assert requests == json.loads(GOLDEN.read_text())


def test_the_job_of_a_killed_launcher_is_cancelled(engine: Engine, service: Service, tmp_path: Path) -> None:
    """Those of other runs are not."""
    for name, state in (("near-0123456789ab", "RUNNING"), ("near-ba9876543210", "RUNNING"), ("a-0123456789ab", "DONE")):
        service.jobs.append({"id": f"job-{len(service.jobs)}", "name": f"finpile-{name}"})
        service.states[service.jobs[-1]["id"]] = f"JOB_STATE_{state}"
    record = {"run": "0123456789ab", "runner": "dataflow", "endpoint": ""}
    write_json(str(tmp_path / "out" / ".work" / "run.json"), record)
    told: list[str] = []
    with owned(Layout(str(tmp_path / "out")), engine, told.append):
        assert list(service.states.values()) == ["JOB_STATE_CANCELLED", "JOB_STATE_RUNNING", "JOB_STATE_DONE"]
    assert told == ["ended job finpile-near-0123456789ab of an earlier run, whose launcher was killed"]


def test_a_failed_job_is_one_line_with_the_error_of_its_task(engine: Engine) -> None:
    from finpile_pipelines import graph

    def fail(element: int) -> None:
        raise ValueError(f"no {element}")

    with pytest.raises(RunError, match=r"^stage asking failed: ValueError: no 3$"):
        engine.run("asking", lambda pipeline: pipeline | graph.Create([3]) | graph.Map(fail))


@pytest.mark.parametrize("option", ["--template_location=gs://bucket/template", "--dry_run=true"])
def test_options_that_run_no_job_are_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="run none"):
        Engine(runner="dataflow", beam_args=(option,))


def test_the_options_file_has_the_workers_of_the_default_sizes() -> None:
    derived = dataflow.worker_args(Sizes().part_bytes)
    assert [line for line in ARGS.read_text().splitlines() if line in derived] == derived
    with pytest.raises(ConfigError, match="use smaller files"):
        dataflow.worker_args(1 << 30)


def test_the_template_is_one_job_that_runs_the_build(
    engine: Engine, service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorder = tmp_path / "finpile"
    recorder.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path / "arguments"}\n')
    recorder.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    request = tmp_path / "job_object"
    template = load_template()
    own = ["--config=gs://bucket/corpus.yaml", "--output=gs://bucket/out", "--job_name=corpus"]
    template.main([*own, *engine.beam_args, "--runner=DataflowRunner", f"--template_location={request}"])
    assert service.jobs == []  # Google's launcher posts the request
    job = json.loads(request.read_text())
    (pool,) = job["environment"]["workerPools"]
    assert (job["name"], pool["machineType"], pool["autoscalingSettings"]["maxNumWorkers"]) == (
        "corpus",
        "n2-standard-2",
        1,
    )
    job_id = service.accept(job)["id"]
    while service.states[job_id] == "JOB_STATE_RUNNING":
        time.sleep(0.02)
    assert service.states[job_id] == "JOB_STATE_DONE", service.messages
    words = (tmp_path / "arguments").read_text().splitlines()
    assert words[:7] == [
        "build",
        "gs://bucket/corpus.yaml",
        "--output",
        "gs://bucket/out",
        "--runner",
        "dataflow",
        "--",
    ]
    assert tuple(words[-len(engine.beam_args) :]) == engine.beam_args


def test_parameters_of_the_template_are_those_of_its_program() -> None:
    parameters = {entry["name"]: entry for entry in json.loads((TEMPLATE / "template.json").read_text())["parameters"]}
    known = PipelineOptions([]).get_all_options()
    assert parameters.keys() - {"config", "output", "root"} <= known.keys()
    examples = {
        "config": ("gs://bucket/corpus.yaml", "corpus.yaml"),
        "output": ("gs://bucket/out", "/tmp/out"),
        "root": ("gs://bucket", "/data"),
        "sdk_container_image": ("europe-docker.pkg.dev/project/images/finpile-worker:0.1.0", "finpile-worker"),
        "sdk_location": ("container", "default"),
        "number_of_worker_harness_threads": ("1", "0"),
    }
    for name, (accepted, refused) in examples.items():
        (pattern,) = parameters[name]["regexes"]
        assert re.match(pattern, accepted) and not re.match(pattern, refused)
    assert parameters.keys() == examples.keys()


def load_template() -> Any:
    spec = importlib.util.spec_from_file_location("template", TEMPLATE / "template.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["template"] = module  # its functions are pickled by name
    spec.loader.exec_module(module)
    return module


def normalised(job: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What a request asks of Dataflow, without times, digests, paths and the version of Python."""
    environment = job["environment"]
    (pool,) = environment["workerPools"]
    options = environment["sdkPipelineOptions"]["options"]
    used = {"machineType", "diskSizeGb", "numThreadsPerWorker", "workerHarnessContainerImage", "autoscalingSettings"}
    assert str(folder) not in json.dumps({key: pool[key] for key in used & pool.keys()})
    return {
        "name": re.sub(r"-[0-9a-f]{12}$", "", job["name"]),  # of the run
        "type": job["type"],
        "experiments": sorted(environment["experiments"]),
        "workers": {key: pool[key] for key in sorted(used & pool.keys())},
        "options": {key: options[key] for key in ("project", "region", "sdk_location")},
        "steps": steps(job["pipeline"].components),
    }


def steps(components: beam_runner_api_pb2.Components) -> list[str]:
    """The transforms that Dataflow executes, by name, each with its kind."""
    executed = [transform for transform in components.transforms.values() if not transform.subtransforms]
    kinds = {step.unique_name: step.spec.urn.removeprefix("beam:transform:") for step in executed if step.spec.urn}
    return sorted(re.sub(r" at \w+\.py:\d+", "", f"{name}: {kind}") for name, kind in kinds.items())
