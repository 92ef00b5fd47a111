"""Pipelines on Google Cloud Dataflow: default options, options of the workers, one-line errors."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

import apache_beam as beam
from apache_beam.options.pipeline_options import DebugOptions, GoogleCloudOptions, PipelineOptions, TestOptions
from apache_beam.runners.runner import PipelineResult

from finpile.errors import ConfigError, FinpileError, RunError
from finpile.plugins.engine import EngineType, Run
from finpile.storage.sizes import MOST_SHARD_BYTES
from finpile_pipelines.process_folder import temporary_files_inside
from finpile_pipelines.runner.beam_options import Options
from finpile_pipelines.runner.beam_parts import DATAFLOW_JOBS, is_tested
from finpile_pipelines.runner.failures import explain
from finpile_pipelines.runner.lean_imports import silent_log

#: Memory of a worker process without text, and for each byte of the text that it holds. A process took 595 MiB with
#: shards of 16 MiB and 342 MiB with 4.6 MB in all: benchmarks/results/2026-11-21_dedup.md. Larger shards: not measured.
PROCESS_BYTES, BYTES_PER_TEXT_BYTE = 300 << 20, 20
#: Memory of one core of Google's machine types, smallest first.
_MACHINES = (("n2-highcpu", 1 << 30), ("n2-standard", 4 << 30), ("n2-highmem", 8 << 30))
#: A cancelled job ends within this time. States in which it has ended: done, failed, cancelled, updated, drained.
_END_SECONDS, _POLL_SECONDS = 300.0, 5.0
_ENDED = frozenset({3, 4, 5, 6, 8})
#: The image, unpacked, the operating system, and logs; the cores of a machine.
_SYSTEM_BYTES, _CORES = 20 << 30, 4


def worker_args(part_bytes: int) -> list[str]:
    """Beam's options for workers whose processes, each with one thread, hold one file each.

    Dataflow starts a process for each core; `--sdk_worker_parallelism` is read by the job servers of Spark and Flink.

    `part_bytes` is that of `Sizes`, bytes of text; shards of large corpora have 128 MiB. Documents may be larger: they
    are never divided.

    Raises: ConfigError if no machine type has enough memory for each core.
    """
    text_bytes = max(MOST_SHARD_BYTES, part_bytes)
    needed = PROCESS_BYTES + BYTES_PER_TEXT_BYTE * text_bytes
    machine = next((name for name, memory in _MACHINES if memory >= needed), None)
    if machine is None:
        raise ConfigError(
            f"files of {text_bytes:,} bytes of text need {needed:,} bytes of memory for each core, and "
            f"{_MACHINES[-1][0]} has {_MACHINES[-1][1]:,}: use smaller files"
        )
    # A file that is read or written is kept on disk once while it is sent, beside the process's own temporary one.
    disk = _SYSTEM_BYTES + _CORES * 2 * text_bytes
    return [
        f"--machine_type={machine}-{_CORES}",
        f"--disk_size_gb={math.ceil(disk / 1e9)}",
        "--number_of_worker_harness_threads=1",
    ]


def job_options(beam_args: Sequence[str], **others: str | None) -> PipelineOptions:
    """The options of a Dataflow job; `others` have names without dashes and override `beam_args`."""
    options = Options(list(beam_args), runner="DataflowRunner", **others)
    # Beam would run `pip freeze` for each job, for its log; the packages are those of the image.
    options.view_as(DebugOptions).add_experiment("disable_logging_submission_environment")
    return options


class _Dataflow(EngineType):
    def check(self, beam_args: Sequence[str]) -> None:
        """Raises: ConfigError if Beam's clients of Google Cloud are absent, or if an option lets no job run."""
        options = PipelineOptions(list(beam_args))
        if options.view_as(GoogleCloudOptions).template_location or options.view_as(TestOptions).dry_run:
            raise ConfigError(
                "--template_location and --dry_run write one job and run none: a build has several, each made from the "
                "results of the one before"
            )
        if find_spec("google") is None or find_spec("google.cloud.dataflow_v1beta3") is None:
            raise ConfigError('--runner dataflow needs Beam\'s clients of Google Cloud: pip install "finpile[gcp]"')

    def run(self, run: Run) -> PipelineResult:
        """Raises: RunError if the job cannot be created, or ends in another state than done."""
        options = job_options(run.beam_args, job_name=run.job_name)
        try:
            with silent_log(logging.CRITICAL), temporary_files_inside(), beam.Pipeline(options=options) as pipeline:
                run.construct(pipeline)
            return pipeline.result
        except FinpileError:
            raise
        except Exception as error:  # of Beam, and of several clients of Google Cloud
            has_traceback = "Traceback" in str(error)
            raise explain(run.label, RuntimeError(str(error)) if has_traceback else error) from error

    def end_jobs(self, endpoint: str, run: str, beam_args: Sequence[str]) -> tuple[list[str], list[str]]:
        """Raises: errors of Google's clients; RunError if Beam's client of Dataflow is not the tested one."""
        del endpoint
        if not is_tested(DATAFLOW_JOBS):
            raise RunError(f"apache-beam {beam.__version__} is not the tested version")
        from apache_beam.runners.dataflow.internal.apiclient import DataflowApplicationClient

        api = import_module("google.cloud.dataflow_v1beta3")
        options = PipelineOptions(list(beam_args))
        client, place = DataflowApplicationClient(options), options.view_as(GoogleCloudOptions)
        request = api.ListJobsRequest(
            project_id=place.project, location=place.region, filter=api.ListJobsRequest.Filter.ACTIVE
        )
        jobs = client._jobs_client.list_jobs(request)
        found = {job.id: job.name for job in jobs if run in job.name and job.current_state not in _ENDED}
        for job in found:
            client.modify_job_state(job, "JOB_STATE_CANCELLED")
        end, running = time.monotonic() + _END_SECONDS, dict(found)
        while running and time.monotonic() < end:
            running = {job: name for job, name in running.items() if client.get_job(job).current_state not in _ENDED}
            time.sleep(_POLL_SECONDS if running else 0.0)
        return [name for job, name in found.items() if job not in running], list(running.values())


ENGINE = _Dataflow(name="dataflow", parts=(DATAFLOW_JOBS,), cancel="gcloud dataflow jobs cancel")
