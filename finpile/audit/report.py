"""The estimates as tables in all formats, and as a page, in OUT/audit. They have no texts."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, astuple
from typing import Any

from finpile import storage
from finpile.audit.estimates import Missed, Precision, missed, precisions
from finpile.audit.judgements import Answers
from finpile.audit.sample import NEAR, Sample
from finpile.counts.shares import Share
from finpile.explorer.corpus import Corpus
from finpile.explorer.pairs import BELOW
from finpile.report.figures import NOTHING, Cell, count, name
from finpile.report.files import write_table
from finpile.report.html import html_page
from finpile.report.render import to_html
from finpile.report.table import Column, Row, RowKind, Table, columns

_INTERVAL = "Intervals are at 95%. They are about the sample, not about mistakes of the person who judged."


def results(sample: Sample, answers: Answers) -> dict[str, Any]:
    """The estimates for JSON: `precision`, `missed` and `note`, which says why nothing is known of what is missed."""
    return {
        "items": len(sample.items),
        "judged": sum(item.shown in answers for item in sample.items),
        "precision": [asdict(row) for row in precisions(sample, answers)],
        "missed": [asdict(row) for row in missed(sample, answers)],
        "note": sample.note,
    }


def tables(sample: Sample, answers: Answers) -> list[Table]:
    """Precision, and what `near` misses if pairs were looked for."""
    found = [_precision_table(precisions(sample, answers))]
    rows = missed(sample, answers)
    return [*found, _missed_table(rows)] if rows else found


def write_results(corpus: Corpus, sample: Sample, answers: Answers) -> str:
    """Writes OUT/audit/audit.* and audit_missed.*, and the page with both; returns the page's URL."""
    folder, made = corpus.layout.audit, tables(sample, answers)
    for table in made:
        write_table(folder, table)
    judged = sum(item.shown in answers for item in sample.items)
    lead = f"<p>{judged:,} of {len(sample.items):,} items are judged. Manifest {html.escape(corpus.checksum)}.</p>"
    note = [f"<p>{html.escape(sample.note)}</p>"] if sample.note else []
    page = storage.join(folder, "index.html")
    sections = [*map(to_html, made), *note]
    storage.write_bytes(page, html_page(corpus.manifest["name"], "FinPile audit", lead, sections).encode())
    return page


def _precision_table(rows: Sequence[Precision]) -> Table:
    def row(found: Precision) -> Row:
        figures = (found.removals, found.sampled, found.judged, found.right)
        cells = (name(found.source or found.stage or "All"), *map(count, figures), *_cells(found.precision))
        kind = RowKind.PLAIN if found.source else RowKind.TOTAL
        return Row(cells=cells, kind=kind, group=found.stage, indent=bool(found.source), gap=not found.source)

    footnotes = [_INTERVAL, "Sums weigh each stage and source by its removals."]
    if left := rows[0].removals - rows[0].covered:
        footnotes.append(f"{left:,} removals of stages and sources without an answer are not in the precision of sums.")
    titles = {"removals": "Removals", "sampled": "Sampled", "judged": "Judged", "right": "Right"}
    return Table(
        name="audit",
        title="Precision",
        caption="The share of removals that a person judges to be right, by stage and source, from a sample.",
        columns=(Column(key="stage", title="Stage and source"), *columns(titles), *_columns("precision", "Precision")),
        rows=tuple(map(row, rows)),
        footnotes=tuple(footnotes),
    )


def _missed_table(rows: Sequence[Missed]) -> Table:
    def row(found: Missed) -> Row:
        figures = (found.documents, found.compared, found.pairs, found.judged, found.duplicates)
        counts = _cells(found.missed, "{:,.1f}")
        cells = (name(found.source or "All"), *map(count, figures), *counts, *_cells(found.recall))
        return Row(cells=cells, kind=RowKind.PLAIN if found.source else RowKind.TOTAL, indent=bool(found.source))

    titles = {"documents": "Kept", "compared": "Compared", "pairs": "Pairs", "judged": "Judged"}
    titles |= {"duplicates": "Duplicates", "missed": "Missed", "missed_low": "from", "missed_high": "to"}
    left = rows[0].documents - rows[0].covered
    return Table(
        name="audit_missed",
        title=f"What {NEAR} misses",
        caption=(
            "Kept documents that a person would have removed as near duplicates of another, of pairs whose words are "
            f"at most {BELOW} below the limit in similarity, or above it and kept."
        ),
        columns=(Column(key="source", title="Source"), *columns(titles), *_columns("recall", "Recall")),
        rows=tuple(map(row, rows)),
        footnotes=(
            _INTERVAL,
            "Recall is right removals over right removals and missed ones; its interval joins the ends of both "
            "intervals, and is wider. Pairs that are less similar, or that the hashes of the preset fast do not find, "
            "are not in it.",
            *([f"{left:,} kept documents of sources without an estimate are not in the sum."] if left else []),
        ),
    )


def _columns(key: str, title: str) -> tuple[Column, ...]:
    return columns({key: title, f"{key}_low": "from", f"{key}_high": "to"})


def _cells(share: Share | None, form: str = "{:.1%}") -> list[Cell]:
    """Value and interval; nothing if they are not known."""
    return [Cell(form.format(value), value) for value in astuple(share)] if share else [Cell(NOTHING)] * 3
