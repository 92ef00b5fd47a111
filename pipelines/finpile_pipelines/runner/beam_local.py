"""A pipeline on Beam's local runner: in worker processes, or with options of Beam."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from finpile_pipelines import graph
from finpile_pipelines.process_folder import temporary_files_inside
from finpile_pipelines.runner.beam_caches import install_caches
from finpile_pipelines.runner.on_beam import add_steps
from finpile_pipelines.runner.sockets import serve_privately
from finpile_pipelines.runner.worker import end_bundles_soon


def prepare(
    steps: graph.Pipeline, num_workers: int, beam_args: Sequence[str], command: str | None
) -> Callable[[], object]:
    """The function that runs the pipeline to its end.

    Each worker process is started by `command`; without one, workers are threads.

    Raises: RunError if servers of Beam would be open to the network (`runner.sockets`).
    """
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL + 1)  # the error of the run reports failures once
    end_bundles_soon()
    install_caches()
    environment = None
    if command is not None:
        serve_privately()
        environment = SubprocessSDKEnvironment.from_command_string(command)
    with temporary_files_inside():
        options = PipelineOptions([f"--direct_num_workers={num_workers}", *beam_args])
        pipeline = beam.Pipeline(FnApiRunner(environment), options)
    # That of Beam for transforms of other languages; else it is removed with the folder of this process.
    if folder := getattr(pipeline, "local_tempdir", None):
        shutil.rmtree(folder)
    add_steps(steps, pipeline)
    return lambda: pipeline.run().wait_until_finish()
