"""The files of an evaluation of bits per byte.

DIR/evaluation.json       all sums, by model, split and group
DIR/evaluation.csv        the same, one row each
DIR/evaluation.md         the tables
DIR/evaluation.html       the tables and charts on one page
DIR/bits_by_source.svg    figure 3 of BloombergGPT
DIR/bits_by_type.svg      the same by document type, if types are known
DIR/bits_by_date.svg      loss against document date, if documents have dates
"""

from __future__ import annotations

import html

from finpile.documents.split import HELDOUT, TRAIN
from finpile.report.bits_per_byte import (
    Report,
    breakdown_tables,
    figure3,
    long_table,
    models_table,
    type_chart,
)
from finpile.report.html import html_page, links, tiles
from finpile.report.loss_by_date import date_chart, date_table
from finpile.report.render import to_csv, to_html, to_markdown
from finpile.report.table import Table
from finpile.storage import join, write_files, write_json

NAME = "evaluation"
_BARS_CAPTION = "A bar for each model; lower is better."


def evaluation_tables(report: Report) -> list[Table]:
    """All tables, in the order of the page."""
    return [models_table(report), *breakdown_tables(report), date_table(report)]


def write_evaluation(folder: str, report: Report) -> list[str]:
    """Writes the files into `folder` (an fsspec URL); returns their URLs, the page last."""
    tables = evaluation_tables(report)
    charts = {"bits_by_source": figure3(report), "bits_by_type": type_chart(report), "bits_by_date": date_chart(report)}
    write_json(join(folder, f"{NAME}.json"), report)
    written = {f"{NAME}.csv": to_csv(long_table(report)).encode(), f"{NAME}.md": _markdown(report, tables)}
    written |= {f"{key}.svg": chart.to_svg() for key, chart in charts.items() if chart}
    written[f"{NAME}.html"] = evaluation_page(report).encode()
    return [join(folder, f"{NAME}.json"), *write_files(folder, written)]


def _markdown(report: Report, tables: list[Table]) -> bytes:
    return "\n".join([f"# {_title(report)}", "", *map(to_markdown, tables)]).encode()


def evaluation_page(report: Report) -> str:
    """The whole page. The same report gives the same bytes."""
    figures = {"bits_by_source": figure3(report).to_html("figure3", _BARS_CAPTION)}
    if bars := type_chart(report):
        figures["bits_by_type"] = bars.to_html("types", _BARS_CAPTION)
    if lines := date_chart(report):
        thin = " Thin lines are of training documents." if TRAIN in report["models"][0]["splits"] else ""
        figures["bits_by_date"] = lines.to_html("dates", f"Documents without a date are in the table only.{thin}")
    sections = []
    for table in evaluation_tables(report):
        if table.name in figures:
            sections += [figures[table.name], links({"svg": f"{table.name}.svg"})]
        sections.append(to_html(table))
    files = links({suffix: f"{NAME}.{suffix}" for suffix in ("json", "csv", "md")})
    return html_page(_title(report), "FinPile evaluation", _lead(report), [_tiles(report), *sections, files])


def _title(report: Report) -> str:
    names = [model["name"] for model in report["models"]]
    return f"Bits per byte: {names[0]}" if len(names) == 1 else f"Bits per byte of {len(names)} models"


def _lead(report: Report) -> str:
    cut = f"; documents after {html.escape(report['heldout_after'])} are held out" if report["heldout_after"] else ""
    sample = f"; at most {report['limit']:,} of each source" if report["limit"] else ""
    return f"<p>Documents of <code>{html.escape(report['on'])}</code>{cut}{sample}.</p>"


def _tiles(report: Report) -> str:
    total = report["models"][0]["splits"][HELDOUT]["total"]
    figures = {"held-out documents": f"{total['num_documents']:,}", "bytes of text": f"{total['num_bytes']:,}"}
    for model in report["models"]:
        bits = model["splits"][HELDOUT]["total"]["bits_per_byte"]
        figures[model["name"]] = "–" if bits is None else f"{bits:.4f} bits per byte"
    return tiles(figures)
