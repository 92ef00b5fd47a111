"""The main program of the Flex Template: a Dataflow job whose only task is `finpile build --runner dataflow`.

A template makes one job, and a build has several, each made from the results of the one before. So the job of the
template is the launcher. It has one worker, which starts the jobs of the build and waits for them. If that worker is
lost, Dataflow repeats the task, and the build continues from the last finished stage.

    template.py --config=gs://BUCKET/corpus.yaml --output=gs://BUCKET/out [--root=gs://BUCKET/archives] BEAM_OPTIONS...
"""

import argparse
from collections.abc import Sequence

import apache_beam as beam
from finpile_pipelines.build import Sizes
from finpile_pipelines.engines.dataflow import job_options, worker_args
from finpile_pipelines.process_folder import temporary_files_inside


def main(arguments: Sequence[str] | None = None) -> None:
    """Creates the job of the template; Google's launcher passes `--template_location`, where its request is written."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--config", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--root")
    for name in ("runner", "job_name", "template_location"):
        parser.add_argument(f"--{name}")
    own, beam_args = parser.parse_known_args(arguments)
    launcher = (*beam_args, "--machine_type=n2-standard-2", "--num_workers=1", "--max_num_workers=1")
    options = job_options(launcher, job_name=own.job_name, template_location=own.template_location)
    with temporary_files_inside(), beam.Pipeline(options=options) as pipeline:
        _ = pipeline | beam.Create([build_command(own.config, own.output, own.root, beam_args)]) | beam.Map(launch)


def build_command(config: str, output: str, root: str | None, beam_args: Sequence[str]) -> list[str]:
    """The command that the template's job runs; `beam_args` override the options of workers."""
    roots = [f"--root={root}"] if root else []
    workers = worker_args(Sizes().part_bytes)
    return ["finpile", "build", config, "--output", output, *roots, "--runner", "dataflow", "--", *workers, *beam_args]


def launch(command: list[str]) -> None:
    """Runs the command to its end. Raises: RuntimeError with its last line, for the messages of the job."""
    import subprocess

    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {done.stdout.strip().rpartition(chr(10))[2]}")


if __name__ == "__main__":
    main()
