"""Tables of a model's results on tasks, and the Markdown file and HTML page that hold them.

Results are those that `finpile_trainer` returns, as they are in `tasks.json`.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from finpile.report.figures import NOTHING, Cell, count, name
from finpile.report.html import html_page
from finpile.report.render import to_html, to_markdown
from finpile.report.table import Column, Row, RowKind, Table
from finpile.storage import join, write_bytes

MARKDOWN_NAME, PAGE_NAME = "tasks.md", "tasks.html"
#: Rows of a task in the table of contamination.
_NUM_STATUSES = 3
_METRICS = {"entity_f1": "entity F1", "exact_match": "exact match"}


def pairs_table(suite: str, group: str, kind: str, result: Mapping[str, Any]) -> Table:
    """Accuracy by set, the mean of each group, and the mean of all; `group` and `kind` are titles of columns."""
    columns = [
        Column(key="set", title=kind),
        Column(key="group", title=group),
        Column(key="pairs", title="Pairs"),
        Column(key="cut", title="Cut"),
        Column(key="accuracy", title="Accuracy"),
        Column(key="low", title="From"),
        Column(key="high", title="To"),
    ]
    rows = [_pair_row(entry["name"], entry) for entry in result["sets"]]
    means = [*result["groups"], {"group": "all", **result["all"]}]
    rows += [_pair_row(f"mean of {entry['num_sets']}", entry, RowKind.TOTAL) for entry in means]
    caption = (
        "Pairs whose grammatical sentence is likelier, with intervals of 95%. "
        "A sentence of a cut pair has lost its beginning, because the model reads less."
    )
    return Table(name=suite, title=suite.upper(), caption=caption, columns=tuple(columns), rows=tuple(rows))


def _pair_row(label: str, entry: Mapping[str, Any], kind: RowKind = RowKind.PLAIN) -> Row:
    values = [entry["accuracy"], *entry["interval"]]
    counts = [count(entry[key]) if key in entry else Cell("") for key in ("num_pairs", "num_truncated")]
    return Row(cells=(name(label), name(entry["group"]), *counts, *(_decimal(value, 3) for value in values)), kind=kind)


def classification_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Weighted F1 by each way of scoring, and the best."""
    methods = list(results[0]["scores"])
    columns = [
        Column(key="task", title="Task"),
        Column(key="test", title="Test"),
        Column(key="shots", title="Shots"),
        Column(key="cut", title="Cut prompts"),
        *(Column(key=method, title=method.capitalize()) for method in methods),
        Column(key="best", title="Best"),
    ]
    rows = [
        Row(
            cells=(
                name(result["task"]),
                count(result["num_test"]),
                count(result["num_shots"]),
                count(result["num_truncated"]),
                *(_decimal(100 * result["scores"][method], 2) for method in methods),
                Cell(f"{100 * result['score']:.2f} ({result['best_method']})", 100 * result["score"]),
            )
        )
        for result in results
    ]
    caption = (
        "The answer is the likeliest of a few, by three ways of scoring. "
        "A cut prompt has lost its beginning, because the model reads less."
    )
    return Table(name="classification", title="Weighted F1", caption=caption, columns=tuple(columns), rows=tuple(rows))


def generation_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """The score of each task whose answers are generated."""
    titles = {"task": "Task", "test": "Test", "shots": "Shots", "cut": "Cut prompts", "metric": "Metric"}
    columns = [Column(key=key, title=title) for key, title in {**titles, "score": "Score"}.items()]
    rows = [
        Row(
            cells=(
                name(result["task"]),
                count(result["num_test"]),
                count(result["num_shots"]),
                count(result["num_truncated"]),
                name(_METRICS[result["metric"]]),
                _decimal(100 * result["score"], 2),
            )
        )
        for result in results
    ]
    caption = "The answer is generated greedily. A cut prompt has lost its beginning, because the model reads less."
    return Table(
        name="generation", title="Generated answers", caption=caption, columns=tuple(columns), rows=tuple(rows)
    )


def lm_eval_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """The metrics of tasks of lm-evaluation-harness."""
    titles = {"task": "Task", "shots": "Shots", "cut": "Cut items", "metric": "Metric", "filter": "Filter"}
    titles |= {"value": "Value", "error": "Standard error"}
    columns = [Column(key=key, title=title) for key, title in titles.items()]
    rows = [
        Row(
            cells=(
                name(result["task"]),
                *(
                    Cell(NOTHING) if value is None else count(value)
                    for value in (result["num_shots"], result["num_truncated"])
                ),
                name(result["metric"]),
                name(result["filter"]),
                _decimal(result["value"], 4),
                _decimal(result["standard_error"], 4),
            )
        )
        for result in results
    ]
    caption = (
        "Data, prompts and metrics of lm-evaluation-harness. "
        "A cut item has lost its beginning, because the model reads less."
    )
    return Table(
        name="lm_eval", title="lm-evaluation-harness", caption=caption, columns=tuple(columns), rows=tuple(rows)
    )


def contamination_table(build: str, min_coverage: float, results: Sequence[Mapping[str, Any]]) -> Table:
    """The score on the clean, the contaminated, and the other items of each task."""
    titles = {"task": "Task", "metric": "Metric", "status": "Items", "num_items": "Number"}
    columns = [Column(key=key, title=title) for key, title in {**titles, "score": "Score"}.items()]
    columns += [Column(key="low", title="From"), Column(key="high", title="To")]
    rows = [
        Row(
            cells=(
                name(result["task"]),
                name(result["metric"]),
                name(result["status"]),
                count(result["num_items"]),
                _decimal(result["score"], 4),
                *(_decimal(bound, 4) for bound in result["interval"] or (None, None)),
            ),
            gap=number % _NUM_STATUSES == 0,
        )
        for number, result in enumerate(results)
    ]
    caption = (
        f"An item is contaminated if a training document of {build} covers {min_coverage:.0%} of its words or more by "
        "runs of 13 words, or by whole texts of 8 to 12. Items of shorter texts cannot be looked for. Intervals of 95%."
    )
    return Table(
        name="contamination",
        title="Scores on clean and contaminated items",
        caption=caption,
        columns=tuple(columns),
        rows=tuple(rows),
        footnotes=("contamination.csv has every item, its coverage, and the document.",),
    )


def items_table(items: Sequence[Mapping[str, Any]]) -> Table:
    """Every item of every task, for CSV."""
    keys = ("task", "item", "status", "coverage", "document", "text")
    rows = [
        Row(
            cells=(
                name(item["task"]),
                name(item["item"]),
                name(item["status"]),
                _decimal(item["coverage"], 4),
                name(item["document"] or ""),
                name(item["text"]),
            )
        )
        for item in items
    ]
    columns = tuple(Column(key=key, title=key) for key in keys)
    return Table(name="contamination_items", title="Items", caption="", columns=columns, rows=tuple(rows))


def _decimal(value: float | None, digits: int) -> Cell:
    return Cell(NOTHING) if value is None else Cell(f"{value:.{digits}f}", value)


def write_task_report(folder: str, model: str, tables: Sequence[Table]) -> list[str]:
    """Writes `tasks.md` and `tasks.html` into `folder` (an fsspec URL); returns their URLs."""
    title = f"Tasks: {model}"
    markdown = "\n".join([f"# {title}", "", *map(to_markdown, tables)])
    lead = (
        f"<p>Results on tasks of the model <code>{html.escape(model)}</code>; in full in <code>tasks.json</code>.</p>"
    )
    page = html_page(title, "FinPile evaluation", lead, [to_html(table) for table in tables])
    urls = [join(folder, MARKDOWN_NAME), join(folder, PAGE_NAME)]
    for url, text in zip(urls, (markdown, page), strict=True):
        write_bytes(url, text.encode())
    return urls
