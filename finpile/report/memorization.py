"""Memorized training documents by number of copies and model: a table, a chart and a page.

DIR/memorization.json      counts, by model and group of copies
DIR/memorization.md        the table
DIR/memorization.html      the table and the chart on one page
DIR/memorization.svg       the chart

The report is what `finpile model evaluate --memorization` writes as JSON: `models`, each with a `name` and `groups`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from finpile.report.drawing.lines import Line, LineChart
from finpile.report.drawing.svg import series_colour
from finpile.report.figures import count, decimal, name
from finpile.report.html import html_page, links
from finpile.report.render import to_html, to_markdown
from finpile.report.table import Field, Table, table_of
from finpile.storage import join, write_files, write_json

NAME = "memorization"
_CAPTION = (
    "Training documents whose first 50 tokens the model continues, greedily, by exactly their next 50 tokens, by the "
    "copies of the document in the corpus; with intervals of 95%. Short documents have fewer than 100 tokens."
)

Report = Mapping[str, Any]


def memorization_table(report: Report) -> Table:
    """A row for each model and group of copies."""
    groups = [{"model": model["name"], **group} for model in report["models"] for group in model["groups"]]
    return table_of(groups, _FIELDS, name=NAME, title="Memorization", caption=_CAPTION)


def _copies(group: Mapping[str, Any]) -> str:
    low, high = group["lowest_copies"], group["highest_copies"]
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


_FIELDS: Sequence[Field[Mapping[str, Any]]] = (
    Field("model", "Model", lambda group: name(group["model"])),
    Field("copies", "Copies", lambda group: name(_copies(group))),
    Field("documents", "Documents", lambda group: count(group["num_documents"])),
    Field("short", "Short", lambda group: count(group["num_short"])),
    Field("memorized", "Memorized", lambda group: count(group["num_memorized"])),
    Field("share", "Share", lambda group: decimal(group["share"], ".1%")),
    Field("low", "From", lambda group: decimal(group["interval"][0], ".1%")),
    Field("high", "To", lambda group: decimal(group["interval"][1], ".1%")),
)


def memorization_chart(report: Report) -> LineChart | None:
    """A line for each model over the copies; None if no document was measured."""
    lines = [
        Line(
            points=[
                (math.log2(group["lowest_copies"]), 100 * group["share"])
                for group in model["groups"]
                if group["share"] is not None
            ],
            label=model["name"],
            colour=series_colour(index),
            dots=True,
        )
        for index, model in enumerate(report["models"])
    ]
    if not any(line.points for line in lines):
        return None
    groups = report["models"][0]["groups"]
    return LineChart(
        title="Memorized training documents",
        x_title="copies in the corpus",
        y_title="% continued exactly",
        lines=lines,
        x_ticks=[(math.log2(group["lowest_copies"]), _copies(group)) for group in groups],
    )


def write_memorization(folder: str, report: Report) -> list[str]:
    """Writes the files into `folder` (an fsspec URL); returns their URLs, the page last."""
    table, chart = memorization_table(report), memorization_chart(report)
    title = f"Memorization: {', '.join(model['name'] for model in report['models'])}"
    files = {f"{NAME}.md": f"# {title}\n\n{to_markdown(table)}".encode()}
    figures = []
    if chart is not None:
        files[f"{NAME}.svg"] = chart.to_svg()
        figures = [chart.to_html("copies", "A line for each model."), links({"svg": f"{NAME}.svg"})]
    lead = f"<p>Training documents of <code>{html.escape(report['on'])}</code>.</p>"
    files[f"{NAME}.html"] = html_page(title, "FinPile evaluation", lead, [*figures, to_html(table)]).encode()
    write_json(join(folder, f"{NAME}.json"), report)
    return [join(folder, f"{NAME}.json"), *write_files(folder, files)]
