"""The held-out documents by source."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from finpile.report.figures import NOTHING, Cell, count, name, percent, ratio
from finpile.report.statistics import CorpusStatistics, HeldoutStatistics
from finpile.report.table import Row, RowKind, Table, columns


def heldout_table(statistics: CorpusStatistics) -> Table:
    """One row for each source with held-out documents, by falling number of tokens, and their sum."""
    training = {(row.dataset, row.source): (row.num_docs, row.num_tokens) for row in statistics.sources}
    rows = sorted(statistics.heldout, key=lambda row: (-row.num_tokens, row.dataset, row.source))
    lines = [_line(f"{row.dataset}: {row.source}", [row], training[row.dataset, row.source]) for row in rows]
    total = _line("TOTAL", rows, (statistics.num_docs, statistics.num_tokens))
    return Table(
        name="heldout",
        title="Held-out documents",
        caption="Documents and tokens that are not in the training set, their shares of those that are left of the "
        "source, characters per document (C/D) and per token (C/T), and the days of the first and the last one.",
        columns=columns(
            {
                "source": "Source",
                "num_docs": "Docs",
                "docs_percent": "of docs",
                "chars_per_doc": "C/D",
                "num_chars": "Chars",
                "chars_per_token": "C/T",
                "num_tokens": "Toks",
                "token_percent": "of toks",
                "num_bytes": "Bytes",
                "first_day": "First day",
                "last_day": "Last day",
            }
        ),
        rows=(*(Row(cells=cells) for cells in lines), Row(cells=total, kind=RowKind.TOTAL, gap=True)),
    )


def _line(label: str, rows: Sequence[HeldoutStatistics], training: tuple[int, int]) -> tuple[Cell, ...]:
    docs, chars, tokens, num_bytes = (
        sum(getattr(row, key) for row in rows) for key in ("num_docs", "num_chars", "num_tokens", "num_bytes")
    )
    return (
        name(label),
        count(docs),
        percent(docs, docs + training[0], 2),
        ratio(chars, docs, 0),
        count(chars),
        ratio(chars, tokens, 2),
        count(tokens),
        percent(tokens, tokens + training[1], 2),
        count(num_bytes),
        _day(min((row.first_day for row in rows if row.first_day), default=None)),
        _day(max((row.last_day for row in rows if row.last_day), default=None)),
    )


def _day(day: date | None) -> Cell:
    return Cell(NOTHING) if day is None else name(day.isoformat())
