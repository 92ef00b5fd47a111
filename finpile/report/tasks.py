"""Tables of a model's results on tasks, and the Markdown file and HTML page that hold them.

Results are those that `finpile_trainer` returns, as they are in `tasks.json`.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from finpile.report.figures import Cell, count, decimal, name
from finpile.report.html import html_page
from finpile.report.render import to_html, to_markdown
from finpile.report.table import Field, Row, RowKind, Table, columns, table_of
from finpile.storage import write_files

MARKDOWN_NAME, PAGE_NAME = "tasks.md", "tasks.html"
#: Rows of a task in the table of contamination.
_NUM_STATUSES = 3
_METRICS = {"entity_f1": "entity F1", "exact_match": "exact match"}

Result = Mapping[str, Any]


def pairs_table(suite: str, group: str, kind: str, result: Result) -> Table:
    """Accuracy by set, the mean of each group, and the mean of all; `group` and `kind` are titles of columns."""
    figures = {"pairs": "Pairs", "cut": "Cut", "accuracy": "Accuracy", "low": "From", "high": "To"}
    rows = [_pair_row(entry["name"], entry) for entry in result["sets"]]
    means = [*result["groups"], {"group": "all", **result["all"]}]
    rows += [_pair_row(f"mean of {entry['num_sets']}", entry, RowKind.TOTAL) for entry in means]
    caption = (
        "Pairs whose grammatical sentence is likelier, with intervals of 95%. "
        "A sentence of a cut pair has lost its beginning, because the model reads less."
    )
    titles = {"set": kind, "group": group, **figures}
    return Table(name=suite, title=suite.upper(), caption=caption, columns=columns(titles), rows=tuple(rows))


def _pair_row(label: str, entry: Result, kind: RowKind = RowKind.PLAIN) -> Row:
    values = [decimal(value, ".3f") for value in (entry["accuracy"], *entry["interval"])]
    counts = [count(entry[key]) if key in entry else Cell("") for key in ("num_pairs", "num_truncated")]
    return Row(cells=(name(label), name(entry["group"]), *counts, *values), kind=kind)


_OF_TASK: Sequence[Field[Result]] = (
    Field("task", "Task", lambda result: name(result["task"])),
    Field("test", "Test", lambda result: count(result["num_test"])),
    Field("shots", "Shots", lambda result: count(result["num_shots"])),
    Field("cut", "Cut prompts", lambda result: count(result["num_truncated"])),
)
_BEST: Field[Result] = Field(
    "best", "Best", lambda result: Cell(f"{100 * result['score']:.2f} ({result['best_method']})", 100 * result["score"])
)
_GENERATED: Sequence[Field[Result]] = (
    *_OF_TASK,
    Field("metric", "Metric", lambda result: name(_METRICS[result["metric"]])),
    Field("score", "Score", lambda result: decimal(100 * result["score"], ".2f")),
)
_LM_EVAL: Sequence[Field[Result]] = (
    Field("task", "Task", lambda result: name(result["task"])),
    Field("shots", "Shots", lambda result: count(result["num_shots"])),
    Field("cut", "Cut items", lambda result: count(result["num_truncated"])),
    Field("metric", "Metric", lambda result: name(result["metric"])),
    Field("filter", "Filter", lambda result: name(result["filter"])),
    Field("value", "Value", lambda result: decimal(result["value"], ".4f")),
    Field("error", "Standard error", lambda result: decimal(result["standard_error"], ".4f")),
)
_ITEM: Sequence[Field[Result]] = (
    Field("task", "task", lambda item: name(item["task"])),
    Field("item", "item", lambda item: name(item["item"])),
    Field("status", "status", lambda item: name(item["status"])),
    Field("coverage", "coverage", lambda item: decimal(item["coverage"], ".4f")),
    Field("document", "document", lambda item: name(item["document"] or "")),
    Field("text", "text", lambda item: name(item["text"])),
)


def _method(method: str) -> Field[Result]:
    return Field(method, method.capitalize(), lambda result: decimal(100 * result["scores"][method], ".2f"))


def classification_table(results: Sequence[Result]) -> Table:
    """Weighted F1 by each way of scoring, and the best."""
    return table_of(
        results,
        [*_OF_TASK, *map(_method, results[0]["scores"]), _BEST],
        name="classification",
        title="Weighted F1",
        caption="The answer is the likeliest of a few, by three ways of scoring. "
        "A cut prompt has lost its beginning, because the model reads less.",
    )


def generation_table(results: Sequence[Result]) -> Table:
    """The score of each task whose answers are generated."""
    caption = "The answer is generated greedily. A cut prompt has lost its beginning, because the model reads less."
    return table_of(results, _GENERATED, name="generation", title="Generated answers", caption=caption)


def lm_eval_table(results: Sequence[Result]) -> Table:
    """The metrics of tasks of lm-evaluation-harness."""
    caption = (
        "Data, prompts and metrics of lm-evaluation-harness. "
        "A cut item has lost its beginning, because the model reads less."
    )
    return table_of(results, _LM_EVAL, name="lm_eval", title="lm-evaluation-harness", caption=caption)


def contamination_table(build: str, min_coverage: float, results: Sequence[Result]) -> Table:
    """The score on the clean, the contaminated, and the other items of each task."""
    titles = {"task": "Task", "metric": "Metric", "status": "Items", "num_items": "Number"}
    titles |= {"score": "Score", "low": "From", "high": "To"}
    rows = [
        Row(
            cells=(
                name(result["task"]),
                name(result["metric"]),
                name(result["status"]),
                count(result["num_items"]),
                *(decimal(value, ".4f") for value in (result["score"], *(result["interval"] or (None, None)))),
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
        columns=columns(titles),
        rows=tuple(rows),
        footnotes=("contamination.csv has every item, its coverage, and the document.",),
    )


def items_table(items: Sequence[Result]) -> Table:
    """Every item of every task, for CSV."""
    return table_of(items, _ITEM, name="contamination_items", title="Items", caption="")


def write_task_report(folder: str, model: str, tables: Sequence[Table]) -> list[str]:
    """Writes `tasks.md` and `tasks.html` into `folder` (an fsspec URL); returns their URLs."""
    title = f"Tasks: {model}"
    markdown = "\n".join([f"# {title}", "", *map(to_markdown, tables)])
    lead = (
        f"<p>Results on tasks of the model <code>{html.escape(model)}</code>; in full in <code>tasks.json</code>.</p>"
    )
    page = html_page(title, "FinPile evaluation", lead, [to_html(table) for table in tables])
    return write_files(folder, {MARKDOWN_NAME: markdown.encode(), PAGE_NAME: page.encode()})
