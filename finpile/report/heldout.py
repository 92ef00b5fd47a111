"""The held-out documents by source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from finpile.report.figures import count, day, name, percent, ratio
from finpile.report.statistics import CorpusStatistics, HeldoutStatistics
from finpile.report.table import Column, Line, Row, RowKind, Table


def heldout_table(statistics: CorpusStatistics) -> Table:
    """One row for each source with held-out documents, by falling number of tokens, and their sum."""
    training = {(row.dataset, row.source): (row.num_docs, row.num_tokens) for row in statistics.sources}
    rows = sorted(statistics.heldout, key=lambda row: (-row.num_tokens, -row.num_chars, row.dataset, row.source))
    lines = [_line(f"{row.dataset}: {row.source}", [row], training[row.dataset, row.source]) for row in rows]
    total = _line("TOTAL", rows, (statistics.num_docs, statistics.num_tokens))
    table = Table(
        name="heldout",
        title="Held-out documents",
        caption="Documents and tokens that are not in the training set, their shares of those that are left of the "
        "source, characters per document (C/D) and per token (C/T), and the days of the first and the last one.",
        columns=tuple(total),
        rows=(*map(Row.of, lines), Row.of(total, kind=RowKind.TOTAL, gap=True)),
    )
    if statistics.has_tokens:
        return table
    caption = table.caption.replace("Documents and tokens that", "Documents that").replace(" and per token (C/T)", "")
    return replace(table, caption=caption).without("chars_per_token", "num_tokens", "token_percent")


def _line(label: str, rows: Sequence[HeldoutStatistics], training: tuple[int, int]) -> Line:
    docs, chars, tokens, num_bytes = (
        sum(getattr(row, key) for row in rows) for key in ("num_docs", "num_chars", "num_tokens", "num_bytes")
    )
    return {
        Column("source", "Source"): name(label),
        Column("num_docs", "Docs"): count(docs),
        Column("docs_percent", "of docs"): percent(docs, docs + training[0], 2),
        Column("chars_per_doc", "C/D"): ratio(chars, docs, 0),
        Column("num_chars", "Chars"): count(chars),
        Column("chars_per_token", "C/T"): ratio(chars, tokens, 2),
        Column("num_tokens", "Toks"): count(tokens),
        Column("token_percent", "of toks"): percent(tokens, tokens + training[1], 2),
        Column("num_bytes", "Bytes"): count(num_bytes),
        Column("first_day", "First day"): day(min((row.first_day for row in rows if row.first_day), default=None)),
        Column("last_day", "Last day"): day(max((row.last_day for row in rows if row.last_day), default=None)),
    }
