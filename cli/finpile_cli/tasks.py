"""`finpile model tasks`: accuracy of a model on tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from finpile_trainer.evaluation.task import TASKS

from finpile_cli import language_models
from finpile_cli.console import Console, json_option
from finpile_cli.language_models import require_torch, retained_option, tokenizer_of_option
from finpile_cli.paths import Output, PathOrUrl

if TYPE_CHECKING:
    from finpile_trainer.evaluation.language_model import LanguageModel
    from finpile_trainer.training.retained import Which


@click.command()
@click.argument("model", type=PathOrUrl(file_okay=False))
@click.argument("tasks", metavar="TASK,...")
@click.option("--data", type=click.Path(file_okay=False), metavar="DIR", help="Folder with the files of the tasks.")
@click.option(
    "--against",
    multiple=True,
    type=PathOrUrl(file_okay=False),
    metavar="DIR",
    help="Folder with results of another model on the tasks, for win rates. May be repeated.",
)
@click.option(
    "--contamination",
    type=PathOrUrl(file_okay=False),
    metavar="OUT",
    help="A build: scores on the items of tasks that are in its training documents, and on those that are not.",
)
@click.option("-o", "--output", type=Output(), metavar="DIR", help="Output folder.  [default: MODEL]")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N items of each set, the same ones in every run.  [default: all]",
)
@tokenizer_of_option
@retained_option
@json_option
def tasks_command(
    model: str,
    tasks: str,
    data: str | None,
    against: tuple[str, ...],
    contamination: str | None,
    output: str | None,
    limit: int | None,
    tokenizer_of: str | None,
    retained: Which | None,
    as_json: bool,
) -> None:
    """Accuracy of a model on tasks.

    MODEL is the folder of a run, or of a causal model of Hugging Face transformers with its tokenizer. TASK is one of
    TASK_NAMES, or any of lm-evaluation-harness. Tables are written to DIR/tasks.html, .md and .json.
    """
    require_torch()
    from finpile_cli.evaluate_tasks import evaluate_tasks

    def load() -> LanguageModel:
        return language_models.load_language_model(model, tokenizer_of, retained)

    evaluate_tasks(load, tasks, data, output or model, limit, Console(as_json), against, contamination, model)


tasks_command.help = (tasks_command.help or "").replace("TASK_NAMES", ", ".join(TASKS.names()))
