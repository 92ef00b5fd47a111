"""Tables of removals by stage and reason and by source and reason, and a bar chart by source."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from finpile.report.charts.by_year import legend, ranked
from finpile.report.figures import Cell, count, name, percent, rounded
from finpile.report.statistics import RemovalCount
from finpile.report.table import Column, Row, RowKind, Table, columns

OTHER = "other reasons"
#: Decimals of the widths of a bar's parts.
_DIGITS = 3

_Source = tuple[str, str]


def removal_table(removals: Sequence[RemovalCount], num_read: int) -> Table:
    """Removals by stage (in the given order) and reason, over all sources."""
    order = {stage: at for at, stage in reversed(list(enumerate(row.stage for row in removals)))}
    rows = sorted(removals, key=lambda row: (order[row.stage], row.reason))
    lines: list[Row] = []
    for stage, group in groupby(rows, key=lambda row: row.stage):
        members = list(group)
        lines.append(_row(stage, members, num_read, total=True))
        for reason, same in groupby(members, key=lambda row: row.reason):
            lines.append(_row(reason, list(same), num_read))
    return Table(
        name="removed",
        title="Removed",
        caption="By stage and reason. Spans were cut from kept documents. Every one is in the removal ledger.",
        columns=_columns("Stage and reason"),
        rows=tuple(lines),
    )


def removal_by_source_table(removals: Sequence[RemovalCount], read: Mapping[_Source, int]) -> Table:
    """Removals by source and reason; `read` has the number of documents read of each source."""
    lines: list[Row] = []
    for source, members in _by_source(removals).items():
        label = f"{source[1]} ({source[0]})"
        lines.append(_row(label, members, read.get(source, 0), total=True, group=source[0]))
        for reason in sorted({row.reason for row in members}):
            same = [row for row in members if row.reason == reason]
            lines.append(_row(reason, same, read.get(source, 0), group=source[0]))
    return Table(
        name="removed_by_source",
        title="Removed by source",
        caption="By source and reason, with the share of the source's documents that were read.",
        columns=_columns("Source and reason"),
        rows=tuple(lines),
    )


def removal_bars(removals: Sequence[RemovalCount], read: Mapping[_Source, int]) -> str:
    """A figure with one bar per source: its removed documents by reason, as a share of the documents read.

    The longest bar has the width of the figure. Empty if no document was removed.
    """
    rows = _by_source(removals)
    removed = {source: sum(row.num_docs for row in some) for source, some in rows.items()}
    shares = {source: num / read[source] for source, num in removed.items() if num and read.get(source)}
    if not shares:
        return ""
    widest = max(shares.values())
    reasons = ranked(((row.reason, row.num_docs) for row in removals), OTHER)
    lines = [
        _bar(source, rows[source], reasons, read[source], widest)
        for source in sorted(shares, key=lambda source: (-shares[source], source))
    ]
    return "\n".join(
        [
            '<figure id="removed_bars">',
            "<figcaption><b>Removed documents by source.</b> As a share of those read, by reason; the longest bar is "
            f"{percent(round(widest * 10_000), 10_000, 1).text}. Point at a bar for its figures.</figcaption>",
            "<ol class=bars>",
            *lines,
            "</ol>",
            legend(reasons),
            "</figure>",
        ]
    )


def _bar(source: _Source, rows: Sequence[RemovalCount], reasons: Sequence[str], num_read: int, widest: float) -> str:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.reason if row.reason in reasons else OTHER] += row.num_docs
    total = sum(counts.values())
    scale = round(widest * num_read * 10**6)
    parts = "".join(
        f'<i class=s{colour} style="width:{rounded(counts[reason] * 10**8, scale, _DIGITS)}%"></i>'
        for colour, reason in enumerate(reasons)
        if counts[reason]
    )
    lines = [f"{source[1]}: {total:,} of {num_read:,} documents"]
    lines += [f"{reason}: {counts[reason]:,}" for reason in reasons if counts[reason]]
    title = html.escape("\n".join(lines))
    label = f"{html.escape(source[1])} <small>{html.escape(source[0])}</small>"
    value = f"{percent(total, num_read, 1).text} <small>{total:,}</small>"
    return f'<li title="{title}"><span>{label}</span><span class=track>{parts}</span><span>{value}</span></li>'


def _by_source(removals: Sequence[RemovalCount]) -> dict[_Source, list[RemovalCount]]:
    rows: dict[_Source, list[RemovalCount]] = {}
    for row in sorted(removals, key=lambda row: (row.dataset, row.source)):
        rows.setdefault((row.dataset, row.source), []).append(row)
    return rows


def _columns(first: str) -> tuple[Column, ...]:
    figures = {"num_docs": "Documents", "doc_percent": "of read", "num_spans": "Spans", "num_bytes": "Bytes"}
    return columns({"reason": first, **figures})


def _row(label: str, rows: Sequence[RemovalCount], num_read: int, total: bool = False, group: str = "") -> Row:
    docs, spans, size = (sum(getattr(row, key) for row in rows) for key in ("num_docs", "num_spans", "num_bytes"))
    cells: tuple[Cell, ...] = (name(label), count(docs), percent(docs, num_read, 2), count(spans), count(size))
    kind = RowKind.TOTAL if total else RowKind.PLAIN
    return Row(cells=cells, kind=kind, group=group, indent=not total, gap=total)
