"""`finpile model evaluate --memorization`: training documents that models continue exactly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from finpile_cli import language_models
from finpile_cli.console import Console
from finpile_cli.evaluate_documents import model_names

if TYPE_CHECKING:
    from finpile_trainer.training.retained import Which


def evaluate_memorization(
    models: Sequence[str], build: str, limit: int | None, step: Which | None, output: str, console: Console
) -> None:
    """Measures one model after the other on the same documents, prints the table, and writes the report to `output`.

    Raises: ConfigError if a model is named twice; InputError if the build has no training document.
    """
    from finpile_trainer.evaluation.memorization import DEFAULT_LIMIT, memorized, sample_by_copies

    from finpile.report.memorization import memorization_table, write_memorization

    names = model_names(models)
    groups = sample_by_copies(build, limit or DEFAULT_LIMIT)
    report: dict[str, Any] = {"on": build, "limit": limit or DEFAULT_LIMIT, "models": []}
    for model in models[1:]:  # what is wrong with a later one is said before the first is measured
        language_models.load_language_model(model, build, step)
    for name, model in zip(names, models, strict=True):
        loaded = language_models.load_language_model(model, build, step)
        total = sum(len(group.texts) for group in groups)
        with console.progress(f"evaluating {name}", total=total, unit="documents") as advance:
            found = memorized(loaded, groups, partial(advance, 1))
        report["models"].append({"name": name, "model": model, "step": loaded.step, "groups": found})
    table = memorization_table(report)
    console.report_table(table.title, table)
    console.line(f"Page, table and chart: {write_memorization(output, report)[-1]}")
    console.result(report)
