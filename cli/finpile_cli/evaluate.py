"""`finpile evaluate`: bits per byte of documents, or accuracy on tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from finpile_trainer.evaluation.task import TASKS

from finpile_cli import language_models
from finpile_cli.console import Console, json_option
from finpile_cli.language_models import step_option
from finpile_cli.paths import Output, PathOrUrl

if TYPE_CHECKING:
    from finpile_trainer.evaluation.language_model import LanguageModel
    from finpile_trainer.training.retained import Which

    from finpile.report.loss_by_date import Period


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=PathOrUrl(file_okay=False))
@click.option(
    "--on",
    "build",
    type=PathOrUrl(),
    metavar="OUT",
    help="The build whose held-out documents are read, or whose tokenizer the tasks use.",
)
@click.option(
    "--tasks",
    metavar="NAME,...",
    help=f"Tasks instead of held-out documents: {', '.join(TASKS.names())}, or any of lm-evaluation-harness.",
)
@click.option("--data", type=click.Path(file_okay=False), metavar="DIR", help="Folder with the files of the tasks.")
@click.option(
    "--against",
    multiple=True,
    type=PathOrUrl(file_okay=False),
    metavar="DIR",
    help="Folder with results of another model on the tasks, for win rates; may be repeated.",
)
@click.option(
    "--contamination",
    type=PathOrUrl(file_okay=False),
    metavar="OUT",
    help="A build: scores on the items of tasks that are in its training documents, and on those that are not.",
)
@click.option("-o", "--output", type=Output(), metavar="DIR", help="Folder of the result.  [default: MODEL]")
@click.option(
    "--limit",
    "--max-documents",
    "max_documents",
    type=click.IntRange(min=1),
    metavar="N",
    help="Documents of each source, those with the smallest ids; or items of each set of a task.  [default: all]",
)
@click.option(
    "--window",
    type=click.IntRange(min=2),
    help="Tokens read at once.  [default: those of a training sequence; of a Hugging Face model, what it reads, up to "
    "2,048]",
)
@click.option(
    "--types",
    metavar="RULE",
    help="Document types: row, host, folder, or meta.KEY, such as meta.form_type.  [default: the sub-sources of OUT]",
)
@click.option(
    "--period",
    type=click.Choice(["month", "quarter", "year"]),
    default="quarter",
    show_default=True,
    help="Periods of the loss by document date.",
)
@click.option(
    "--memorization",
    is_flag=True,
    help="Training documents of --on OUT whose first 50 tokens the models continue exactly, by number of copies; "
    "--limit N takes N documents of each number.  [default: 100]",
)
@click.option("--training", is_flag=True, help="Score training documents, too: for the loss by document date.")
@step_option
@json_option
def evaluate_command(
    models: tuple[str, ...],
    build: str | None,
    tasks: str | None,
    data: str | None,
    against: tuple[str, ...],
    contamination: str | None,
    output: str | None,
    max_documents: int | None,
    window: int | None,
    types: str | None,
    period: Period,
    memorization: bool,
    training: bool,
    step: Which | None,
    as_json: bool,
) -> None:
    """Held-out bits per byte of models, by source, document type, year and date; or the accuracy of one on tasks.

    A MODEL is the folder of a run, or of a causal model of Hugging Face transformers with its tokenizer. Prints first
    how many documents and tokens are scored, and an estimate of the time. Tables and charts are written to
    DIR/evaluation.html, .md, .csv and .json, and bits_by_*.svg; with --tasks, to DIR/tasks.html, .md and .json; with
    --memorization, to DIR/memorization.html, .md, .json and .svg.
    """
    language_models.require_torch()
    if memorization and (tasks is not None or training):
        raise click.UsageError("--memorization is an evaluation of its own: leave --tasks and --training out")
    if tasks is not None:
        from finpile_cli.evaluate_tasks import evaluate_tasks

        if len(models) > 1:
            raise click.UsageError("--tasks: evaluates one MODEL at a time; --against DIR compares it with the others")
        run = models[0]

        def load() -> LanguageModel:
            return language_models.load_language_model(run, build, step)

        console, about = Console(as_json), {"model": run, "step": step}
        evaluate_tasks(load, tasks, data, output or run, max_documents, console, against, contamination, about)
        return
    if against or contamination:
        option = "--against" if against else "--contamination"
        raise click.UsageError(f"{option} is about results on tasks: name them with --tasks")
    if build is None:
        raise click.UsageError("name the build whose held-out documents are read with --on OUT, or --tasks")
    from finpile_cli.evaluate_documents import DocumentChoice, evaluate_documents
    from finpile_cli.evaluate_memorization import evaluate_memorization

    chosen = DocumentChoice(build=build, limit=max_documents, types=types, period=period, with_training=training)
    if output is None and len(models) > 1:
        raise click.UsageError("several models: name the folder of the result with -o DIR")
    if memorization:
        evaluate_memorization(models, build, max_documents, step, output or models[0], Console(as_json))
        return
    evaluate_documents(models, chosen, window, step, output or models[0], Console(as_json))
