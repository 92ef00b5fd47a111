"""Pipelines on Spark and Flink, through Beam's job API: default options, one job server, one-line errors.

Without a job server (`--job_endpoint`), Beam's SparkRunner and FlinkRunner fetch the jar of one from Maven Central and
start it with an engine embedded in it. Python code then runs in the launcher (`--environment_type=LOOPBACK`).
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import JobServerOptions, PipelineOptions, PortableOptions
from apache_beam.portability.api import beam_job_api_pb2 as api
from apache_beam.portability.api import beam_job_api_pb2_grpc
from apache_beam.runners.portability.job_server import JavaJarJobServer, JobServer
from apache_beam.runners.portability.portable_runner import TERMINAL_STATES, PortableRunner
from apache_beam.runners.runner import PipelineResult
from apache_beam.runners.worker import data_plane

from finpile.errors import ConfigError, FinpileError, RunError
from finpile.plugins.engine import EngineType, Run
from finpile_pipelines.process_folder import at_end, process_folder, temporary_files_inside
from finpile_pipelines.runner.beam_options import Options
from finpile_pipelines.runner.beam_parts import are_tested
from finpile_pipelines.runner.failures import explain
from finpile_pipelines.runner.job_servers import find_job_server
from finpile_pipelines.runner.lean_imports import silent_log

#: Python workers wait so long for the next step of a pipeline. By default, every step starts new workers.
KEEP_WORKERS_MS = 10_000
_JAVA_SERVER = Path(__file__).with_name("java_server.py")
#: A job server answers within this time, and a cancelled job ends.
_ANSWER_SECONDS, _END_SECONDS, _POLL_SECONDS = 10.0, 60.0, 0.2
#: The beginning of Beam's message, before the URL.
_NOT_FETCHED = "Unable to fetch remote job server jar at "


def _end_jobs(endpoint: str, run: str) -> tuple[list[str], list[str]]:
    """Cancels the jobs of a run on the job server at `endpoint`; returns the ids of those that ended, and of others.

    Raises: grpc.RpcError or grpc.FutureTimeoutError if the job server does not answer.
    """
    with grpc.insecure_channel(endpoint) as channel:
        grpc.channel_ready_future(channel).result(timeout=_ANSWER_SECONDS)
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        jobs = service.GetJobs(api.GetJobsRequest(), timeout=_ANSWER_SECONDS).job_info
        found = [job.job_id for job in jobs if run in str(job) and job.state not in TERMINAL_STATES]
        for job in found:
            with suppress(grpc.RpcError):  # it has ended
                service.Cancel(api.CancelJobRequest(job_id=job), timeout=_ANSWER_SECONDS)
        end = time.monotonic() + _END_SECONDS
        running = found
        while running and time.monotonic() < end:
            requests = {job: api.GetJobStateRequest(job_id=job) for job in running}
            states = {job: service.GetState(one, timeout=_ANSWER_SECONDS).state for job, one in requests.items()}
            running = [job for job, state in states.items() if state not in TERMINAL_STATES]
            time.sleep(_POLL_SECONDS if running else 0.0)
        return [job for job in found if job not in running], running


@dataclass(frozen=True, kw_only=True)
class PortableEngine(EngineType):
    """An engine with a job server of Beam: a given one, or one of its own with the engine embedded in it."""

    runner: type[PortableRunner]
    """Its job server ends with the launcher."""
    runner_of_beam: type[PortableRunner]
    """In its place if a part of Beam has changed."""
    embedded: Callable[[int], list[str]]
    """Beam's options for an embedded engine of a number of cores."""

    def default_args(self, num_workers: int) -> list[str]:
        """Beam's options for an embedded engine that keeps `num_workers` cores busy; later options override them.

        An installed job server is used; otherwise Beam fetches one.
        """
        installed = find_job_server(self.name)
        jar = [f"--{self.name}_job_server_jar={installed}"] if installed else []
        workers = [f"--sdk_worker_parallelism={num_workers}", f"--environment_cache_millis={KEEP_WORKERS_MS}"]
        return [*workers, *self.embedded(num_workers), *jar]

    def check(self, beam_args: Sequence[str]) -> None:
        """Raises: ConfigError if a job server has to be started and Java is absent."""
        if self.endpoint(beam_args):
            return
        launcher = PipelineOptions(list(beam_args)).view_as(JobServerOptions).job_server_java_launcher
        if shutil.which(launcher) is None:
            raise ConfigError(
                f"--runner {self.name} starts Beam's job server with Java, and {launcher!r} is not found: install Java "
                "17 (Debian: openjdk-17-jre-headless), or name a running job server after `--`: "
                "--job_endpoint=HOST:PORT"
            )

    def run(self, run: Run) -> PipelineResult:
        """Raises: RunError if a task fails, or if the job server cannot be fetched, started or reached."""
        is_given = self.endpoint(run.beam_args)
        defaults = [] if is_given else self.default_args(run.num_workers)
        options = Options([*defaults, *run.beam_args], job_name=run.job_name)
        runner = PortableRunner() if is_given else self.runner_here()
        try:
            with _silent_beam(), temporary_files_inside(), beam.Pipeline(runner=runner, options=options) as pipeline:
                run.construct(pipeline)
            return pipeline.result
        except FinpileError:
            raise
        except grpc.FutureTimeoutError as error:
            raise RunError(
                f"stage {run.label}: no job server answers at {self.endpoint(run.beam_args)}: start it, or correct "
                "--job_endpoint"
            ) from error
        except grpc.RpcError as error:
            raise RunError(
                f"stage {run.label}: the connection to the job server was lost ({_status(error)}). Start it if it has "
                "ended, and run the same command again to go on from the last finished stage"
            ) from error
        except RuntimeError as error:
            if str(error).startswith(_NOT_FETCHED):
                jar = str(error).removeprefix(_NOT_FETCHED).split(": ")[0]
                raise RunError(
                    f"stage {run.label}: Beam could not fetch its {self.name} job server ({jar}): name its jar after "
                    f"`--` with --{self.name}_job_server_jar=FILE, or a running job server with "
                    "--job_endpoint=HOST:PORT"
                ) from error
            raise explain(run.label, error) from error

    def runner_here(self) -> PortableRunner:
        """The runner for the installed version of Beam."""
        return self.runner() if are_tested(self.parts) else self.runner_of_beam()

    def endpoint(self, beam_args: Sequence[str]) -> str:
        """The address of the running job server that Beam's options name; empty if they name none."""
        return str(PipelineOptions(list(beam_args)).view_as(PortableOptions).job_endpoint or "")

    def end_jobs(self, endpoint: str, run: str, beam_args: Sequence[str]) -> tuple[list[str], list[str]]:
        """Job servers that a launcher started end with it, and their jobs do."""
        del beam_args
        return _end_jobs(endpoint, run) if endpoint else ([], [])


class EmbeddedServer(JavaJarJobServer):
    """A job server whose process ends with this one, and keeps its temporary files in the folder of this process."""

    _service: Any = None

    def start(self) -> Any:
        """Starts it once; Beam would start it again for each pipeline."""
        if self._service is None:
            self._service = super().start()
        return self._service

    def subprocess_cmd_and_endpoint(self) -> tuple[list[str], str]:
        folder = process_folder() / "java"
        folder.mkdir(exist_ok=True)
        (java, *arguments), endpoint = super().subprocess_cmd_and_endpoint()
        properties = [f"-Djava.io.tmpdir={folder}", "-XX:-UsePerfData"]
        watched = [sys.executable, "-S", "-E", str(_JAVA_SERVER), str(os.getpid())]
        return [*watched, java, *properties, *arguments], endpoint


_JOB_SERVERS: dict[str, JobServer] = {}


def shared_server(server: type[EmbeddedServer], options: PipelineOptions, view: type[PipelineOptions]) -> JobServer:
    """One job server for all pipelines with these options; it is stopped when this process ends."""
    key = f"{options.view_as(view)} {options.view_as(JobServerOptions)}"
    if key not in _JOB_SERVERS:
        _JOB_SERVERS[key] = server(options)
        at_end(_JOB_SERVERS[key].stop)
        at_end(_silence)  # before it
    return _JOB_SERVERS[key]


@contextmanager
def _silent_beam() -> Iterator[None]:
    """Beam logs the engine's stack traces, and its threads print lost connections; the raised error is enough."""
    _ignore_lost_connections()
    try:
        with silent_log(logging.CRITICAL):
            yield
    finally:
        atexit.unregister(_silence)
        atexit.register(_silence)  # runs before the functions that are registered now, in which job servers end


def _silence() -> None:
    _ignore_lost_connections()
    logging.disable(logging.CRITICAL)


@cache
def _ignore_lost_connections() -> None:
    """Workers in this process lose their connections when they have waited too long, between two pipelines as well.

    Their threads neither log nor print that, as long as this process lives.
    """
    hook = threading.excepthook

    def without_connections(args: threading.ExceptHookArgs) -> None:
        if not isinstance(args.exc_value, grpc.RpcError):
            hook(args)

    threading.excepthook = without_connections
    logging.getLogger(data_plane.__name__).addFilter(_is_no_lost_connection)


def _is_no_lost_connection(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], grpc.RpcError))


def _status(error: grpc.RpcError) -> str:
    code = getattr(error, "code", None)
    return str(code().name) if callable(code) else type(error).__name__
