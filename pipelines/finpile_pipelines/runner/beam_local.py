"""A pipeline on Beam's local runner, in this process, with options of Beam."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from finpile_pipelines import graph
from finpile_pipelines.process_folder import temporary_files_inside
from finpile_pipelines.runner.beam_options import Options
from finpile_pipelines.runner.on_beam import add_steps


def prepare(steps: graph.Pipeline, num_workers: int, beam_args: Sequence[str]) -> Callable[[], object]:
    """The function that runs the pipeline to its end; workers are threads."""
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL + 1)  # the error of the run reports failures once
    with temporary_files_inside():
        options = Options([f"--direct_num_workers={num_workers}", *beam_args])
        pipeline = beam.Pipeline(FnApiRunner(), options)
    # That of Beam for transforms of other languages; else it is removed with the folder of this process.
    if folder := getattr(pipeline, "local_tempdir", None):
        shutil.rmtree(folder)
    add_steps(steps, pipeline)
    return lambda: pipeline.run().wait_until_finish()
