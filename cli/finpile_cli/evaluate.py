"""`finpile model evaluate`: bits per byte of the held-out documents of a build, or what models have memorized."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from finpile_cli import language_models
from finpile_cli.console import Console, json_option
from finpile_cli.language_models import retained_option
from finpile_cli.paths import Output, PathOrUrl

if TYPE_CHECKING:
    from finpile_trainer.training.retained import Which

    from finpile.report.loss_by_date import Period


@click.command()
@click.argument("out", type=PathOrUrl())
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=PathOrUrl(file_okay=False))
@click.option("-o", "--output", type=Output(), metavar="DIR", help="Output folder.  [default: MODEL]")
@click.option(
    "--per-source",
    type=click.IntRange(min=1),
    metavar="N",
    help="N of each source: documents, those with the smallest ids.  [default: all]",
)
@click.option(
    "--window",
    type=click.IntRange(min=2),
    metavar="N",
    help="Tokens read at once.  [default: those of a training sequence; of a Hugging Face model, what it reads, up to "
    "2,048]",
)
@click.option(
    "--types",
    metavar="RULE",
    help="Document types: source, host, folder or meta.KEY, as meta.form_type.  [default: the sub-sources of OUT]",
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
    help="Training documents of OUT whose first 50 tokens the models continue exactly, by number of copies; "
    "--per-source N takes N documents of each number.  [default: 100]",
)
@click.option("--training", is_flag=True, help="Score training documents, too: for the loss by document date.")
@retained_option
@json_option
def evaluate_command(
    out: str,
    models: tuple[str, ...],
    output: str | None,
    per_source: int | None,
    window: int | None,
    types: str | None,
    period: Period,
    memorization: bool,
    training: bool,
    retained: Which | None,
    as_json: bool,
) -> None:
    """Held-out bits per byte of models, by source, document type, year and date.

    A MODEL is the folder of a run, or of a causal model of Hugging Face transformers with its tokenizer. Prints first
    how many documents and tokens are scored, and an estimate of the time. Tables and charts are written to
    DIR/evaluation.html, .md, .csv and .json, and bits_by_*.svg; with --memorization, to DIR/memorization.html, .md,
    .json and .svg.
    """
    language_models.require_torch()
    if memorization and training:
        raise click.UsageError("--memorization is an evaluation of its own: leave --training out")
    if output is None and len(models) > 1:
        raise click.UsageError("several models: name the folder of the result with -o DIR")
    from finpile_cli.evaluate_documents import DocumentChoice, evaluate_documents
    from finpile_cli.evaluate_memorization import evaluate_memorization

    folder, console = output or models[0], Console(as_json)
    if memorization:
        evaluate_memorization(models, out, per_source, retained, folder, console)
        return
    chosen = DocumentChoice(build=out, limit=per_source, types=types, period=period, with_training=training)
    evaluate_documents(models, chosen, window, retained, folder, console)
