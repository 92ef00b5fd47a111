"""The HTML page of a build: one self-contained file, in light and dark.

It has the counts of documents read, removed and held out, Tables 1 to 3 with links to their files, the removals by
reason, and the results of the near-duplicate and contamination stages.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from finpile.errors import count_of
from finpile.plugins.chart import CHARTS
from finpile.report.dates import dates_table
from finpile.report.eval_sets import EvalSetFacts, evaluation_table
from finpile.report.facts import facts_table
from finpile.report.licenses import licenses_table
from finpile.report.removed import removal_by_source_table, removal_table
from finpile.report.render import FORMATS, to_html
from finpile.report.statistics import CorpusStatistics, RemovalCount
from finpile.report.table import Table
from finpile.report.table3 import Comparison


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildFacts:
    """The figures of the page beyond the statistics of the corpus."""

    name: str
    """The name of the corpus."""
    num_read: int
    """Documents read, including unreadable records: training + held out + removed."""
    num_heldout: int = 0
    heldout_after: str = ""
    """Last day of the training documents; empty if nothing is held out."""
    comparison: Comparison | None = None
    """Table 3, against the tokenizer of this corpus, the last one; None if no tokenizers were compared."""
    quality: Sequence[Table] = ()
    """Those of `tokenizer_quality`; none if it was not measured."""
    near: Table | None = None
    """That of near duplicates; None if the stage `near` is off."""
    evaluation: Sequence[EvalSetFacts] = ()
    """The evaluation sets of the stage `contamination`."""
    read_by_source: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Documents read of each (dataset, source)."""
    warnings: tuple[str, ...] = ()
    """Warnings at the top of the page."""
    charts: tuple[str, ...] = ()
    """Names of charts of other packages."""
    details: tuple[tuple[str, str], ...] = ()
    """More lines for the foot of the page: the input, the version."""


def build_page(
    statistics: CorpusStatistics, removals: Sequence[RemovalCount], facts: BuildFacts, tables: Sequence[Table]
) -> str:
    """The whole page. The same build gives the same bytes."""
    charts = [CHARTS.get(name) for name in (*CHARTS.built_in, *facts.charts)]

    def shown(table: Table) -> list[str]:
        return [*(one.draw(statistics, removals, facts) for one in charts if one.above == table.name), to_html(table)]

    return html_page(
        facts.name,
        "FinPile corpus",
        _lead(statistics, facts),
        [
            *(f"<p class=warning role=alert>{html.escape(warning)}</p>" for warning in facts.warnings),
            _tiles(statistics, removals, facts),
            _balance(statistics, removals, facts),
            *(section for table in tables for section in (*shown(table), _links(table))),
            *([] if removals else ["<p>Nothing was removed.</p>"]),
            *(section for table in _further_tables(statistics, removals, facts) for section in shown(table)),
            _foot(facts),
        ],
    )


def html_page(title: str, kicker: str, lead: str, sections: Sequence[str]) -> str:
    """A self-contained page; `lead` and `sections` are HTML, `kicker` is the line above the title."""
    return "\n".join(
        [
            "<!doctype html>",
            "<html lang=en><head><meta charset=utf-8>",
            '<meta name=viewport content="width=device-width, initial-scale=1">',
            "<meta name=color-scheme content='light dark'>",
            f"<title>{html.escape(title)} · FinPile</title>",
            f"<style>{_style()}</style></head><body><main>",
            f"<header><p class=kicker>{html.escape(kicker)}</p>",
            f"<h1>{html.escape(title)}</h1>{lead}</header>",
            *sections,
            "</main></body></html>",
            "",
        ]
    )


def tiles(figures: Mapping[str, str]) -> str:
    """The figures at the top of a page, by their labels."""
    shown = (f"<div><dt>{html.escape(label)}</dt><dd>{value}</dd></div>" for label, value in figures.items())
    return f"<dl class=tiles>{''.join(shown)}</dl>"


def links(files: Mapping[str, str]) -> str:
    """Links to the files beside a page, by their labels."""
    shown = (f'<a href="{html.escape(file)}">{label}</a>' for label, file in files.items())
    return f"<p class=links>{' '.join(shown)}</p>"


def _links(table: Table) -> str:
    return links({suffix: f"{table.name}.{suffix}" for suffix in FORMATS})


def _further_tables(
    statistics: CorpusStatistics, removals: Sequence[RemovalCount], facts: BuildFacts
) -> Iterator[Table]:
    """The tables below those with links."""
    if removals:
        yield removal_table(removals, facts.num_read)
        yield removal_by_source_table(removals, facts.read_by_source)
    if statistics.dates:
        yield dates_table(statistics.dates)
    if statistics.licenses:
        yield licenses_table(statistics.licenses)
    if statistics.facts:
        yield facts_table(statistics.facts)
    if facts.near:
        yield facts.near
    if facts.evaluation:
        yield evaluation_table(facts.evaluation)


def _lead(statistics: CorpusStatistics, facts: BuildFacts) -> str:
    datasets = len({row.dataset for row in statistics.sources})
    text = f"{count_of(len(statistics.sources), 'source')} in {count_of(datasets, 'dataset')}"
    cut = f"; documents after {html.escape(facts.heldout_after)} are held out" if facts.heldout_after else ""
    return f"<p>{text}{cut}.</p>"


def _tiles(statistics: CorpusStatistics, removals: Sequence[RemovalCount], facts: BuildFacts) -> str:
    figures = {
        "documents read": facts.num_read,
        "removed": sum(row.num_docs for row in removals),
        "held out": facts.num_heldout,
        "in training": statistics.num_docs,
        **({"tokens": statistics.num_tokens} if statistics.has_tokens else {}),
        "bytes of text": statistics.num_bytes,
    }
    return tiles({label: f"{value:,}" for label, value in figures.items()})


def _balance(statistics: CorpusStatistics, removals: Sequence[RemovalCount], facts: BuildFacts) -> str:
    """A line if read = training + held out + removed, else a warning with both numbers."""
    accounted = statistics.num_docs + facts.num_heldout + sum(row.num_docs for row in removals)
    if accounted == facts.num_read:
        return "<p class=balance>Every document read is in training, held out, or in the removal ledger.</p>"
    return (
        f"<p class=warning role=alert>The counts do not add up: {facts.num_read:,} documents were read, but "
        f"{accounted:,} are in training, held out, or removed. Run <code>finpile verify</code>.</p>"
    )


def _foot(facts: BuildFacts) -> str:
    lines = "".join(
        f"<div><dt>{html.escape(key)}</dt><dd>{html.escape(value)}</dd></div>" for key, value in facts.details
    )
    more = "Settings, times, memory and versions of packages: <code>manifest.json</code>."
    return f"<footer><dl>{lines}</dl><p>{more}</p></footer>" if lines else ""


def _style() -> str:
    return files("finpile.report").joinpath("page.css").read_text(encoding="utf-8")
