"""Flink, through a job server of Beam."""

from __future__ import annotations

from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions
from apache_beam.runners.portability.flink_runner import FlinkJarJobServer, FlinkRunner
from apache_beam.runners.portability.job_server import JobServer

from finpile_pipelines.runner.beam_parts import FLINK_SERVER, JAVA_COMMAND
from finpile_pipelines.runner.portable import EmbeddedServer, PortableEngine, shared_server

#: The version whose job server is started. Beam's own default changes from release to release.
VERSION = "1.19"


class _Server(EmbeddedServer, FlinkJarJobServer):
    pass


class _Runner(FlinkRunner):
    def default_job_server(self, options: PipelineOptions) -> JobServer:
        if options.view_as(FlinkRunnerOptions).flink_submit_uber_jar:
            return super().default_job_server(options)
        return shared_server(_Server, options, FlinkRunnerOptions)


ENGINE = PortableEngine(
    name="flink",
    parts=(FLINK_SERVER, JAVA_COMMAND),
    runner=_Runner,
    runner_of_beam=FlinkRunner,
    embedded=lambda num_workers: [
        f"--flink_version={VERSION}",
        "--flink_master=[local]",
        f"--parallelism={num_workers}",
    ],
)
