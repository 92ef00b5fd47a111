"""`finpile evaluate --tasks`: tasks on a run or on a model of Hugging Face transformers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finpile import storage
from finpile.errors import ConfigError
from finpile_cli.console import Console

if TYPE_CHECKING:
    from finpile.lm.language_model import LanguageModel
    from finpile.lm.minimal_pairs import Suite

TASKS_NAME = "tasks.json"
PAIR_SUITES: tuple[Suite, ...] = ("blimp", "clams")


def evaluate_tasks(
    load: Callable[[], LanguageModel],
    tasks: str,
    data: str | None,
    output: str,
    limit: int | None,
    console: Console,
    **about: Any,
) -> None:
    """Evaluates a model on tasks, prints their tables, and writes them to DIR/tasks.json, with `about`.

    Raises: ConfigError if a task is not known, or the folder of the data is not given.
    """
    from finpile.lm.few_shot import evaluate_classification
    from finpile.lm.financial_tasks import READERS, limited
    from finpile.lm.generative_tasks import GENERATIVE_READERS, evaluate_generation
    from finpile.lm.minimal_pairs import read_pairs, sample_pairs, score_pairs, summary

    suites = [suite for suite in PAIR_SUITES if suite in tasks.split(",")]
    classifications = [name for name in READERS if name in tasks.split(",")]
    generations = [name for name in GENERATIVE_READERS if name in tasks.split(",")]
    if unknown := sorted(set(tasks.split(",")) - {*suites, *classifications, *generations}):
        known = ", ".join((*PAIR_SUITES, *READERS, *GENERATIVE_READERS))
        raise ConfigError(f"--tasks {','.join(unknown)}: expected names of {known}")
    if data is None:
        raise ConfigError("--tasks: name the folder with the files of the tasks with --data DIR")
    chosen = {suite: sample_pairs(read_pairs(suite, _folder(data, suite)), limit) for suite in suites}
    questions = [limited(READERS[name](_folder(data, name)), limit) for name in classifications]
    written = [limited(GENERATIVE_READERS[name](_folder(data, name)), limit) for name in generations]
    loaded = load()
    report: dict[str, Any] = {**about, "limit": limit, "tasks": {}}
    for suite, sets in chosen.items():
        num_pairs = sum(len(entry.pairs) for entry in sets)
        scores = []
        with console.progress(suite, total=num_pairs, unit=" pairs") as advance:
            for entry in sets:
                scores.append(score_pairs(loaded, entry))
                advance(len(entry.pairs))
        report["tasks"][suite] = summary(scores)
        _print_pairs(console, suite, report["tasks"][suite])
    for task in questions:
        with console.progress(task.name, total=len(task.test), unit=" examples") as advance:
            report["tasks"][task.name] = evaluate_classification(loaded, task, on_example=partial(advance, 1))
    if questions:
        _print_classifications(console, [report["tasks"][task.name] for task in questions])
    for asked in written:
        with console.progress(asked.name, total=len(asked.test), unit=" examples") as advance:
            report["tasks"][asked.name] = evaluate_generation(loaded, asked, on_example=partial(advance, 1))
    if written:
        _print_generations(console, [report["tasks"][task.name] for task in written])
    storage.write_json(storage.join(output, TASKS_NAME), report)
    console.result(report)


def _folder(data: str, task: str) -> Path:
    """DIR/TASK if it exists, else DIR."""
    return Path(data, task) if Path(data, task).is_dir() else Path(data)


def _print_classifications(console: Console, results: list[dict[str, Any]]) -> None:
    methods = list(results[0]["scores"])
    rows = [
        [result["task"], f"{result['num_test']:,}", f"{result['num_shots']}"]
        + [f"{100 * result['scores'][method]:.2f}" for method in methods]
        + [f"{100 * result['score']:.2f} ({result['best_method']})"]
        for result in results
    ]
    console.table("Weighted F1", ["Task", "Test", "Shots", *(method.capitalize() for method in methods), "Best"], rows)


def _print_generations(console: Console, results: list[dict[str, Any]]) -> None:
    metrics = {"entity_f1": "entity F1", "exact_match": "exact match"}
    rows = [
        [
            result["task"],
            *(f"{result[name]:,}" for name in ("num_test", "num_shots", "num_truncated")),
            metrics[result["metric"]],
            f"{100 * result['score']:.2f}",
        ]
        for result in results
    ]
    console.table("Generated answers", ["Task", "Test", "Shots", "Cut prompts", "Metric", "Score"], rows)


def _print_pairs(console: Console, suite: str, result: dict[str, Any]) -> None:
    rows = [[entry["group"], entry["name"], f"{entry['num_pairs']:,}", *_shown(entry)] for entry in result["sets"]]
    rows += [[entry["group"], "mean", f"{entry['num_sets']} sets", *_shown(entry)] for entry in result["groups"]]
    whole = result["all"]
    rows.append(["all", "mean", f"{whole['num_sets']} sets", *_shown(whole)])
    titles = {"blimp": ("Term", "Phenomenon"), "clams": ("Language", "Test")}[suite]
    console.table(suite.upper(), [*titles, "Pairs", "Accuracy", "95% interval"], rows)


def _shown(entry: dict[str, Any]) -> list[str]:
    low, high = entry["interval"]
    return [f"{entry['accuracy']:.3f}", f"{low:.3f} to {high:.3f}"]
