"""Spark, through a job server of Beam."""

from __future__ import annotations

from apache_beam.options.pipeline_options import PipelineOptions, SparkRunnerOptions
from apache_beam.runners.portability.job_server import JobServer
from apache_beam.runners.portability.spark_runner import SparkJarJobServer, SparkRunner

from finpile_pipelines.runner.beam_parts import JAVA_COMMAND, SPARK_SERVER
from finpile_pipelines.runner.portable import EmbeddedServer, PortableEngine, shared_server


class _Server(EmbeddedServer, SparkJarJobServer):
    pass


class _Runner(SparkRunner):
    def default_job_server(self, options: PipelineOptions) -> JobServer:
        if options.view_as(SparkRunnerOptions).spark_submit_uber_jar:
            return super().default_job_server(options)
        return shared_server(_Server, options, SparkRunnerOptions)


ENGINE = PortableEngine(
    name="spark",
    parts=(SPARK_SERVER, JAVA_COMMAND),
    runner=_Runner,
    runner_of_beam=SparkRunner,
    embedded=lambda num_workers: [f"--spark_master_url=local[{num_workers}]"],
)
