"""Tables of removals by stage and reason and by source and reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from finpile.documents.document import Label
from finpile.report.figures import Cell, count, name, percent
from finpile.report.statistics import RemovalCount
from finpile.report.table import Column, Row, RowKind, Table, columns


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


def removal_by_source_table(removals: Sequence[RemovalCount], read: Mapping[Label, int]) -> Table:
    """Removals by source and reason; `read` has the number of documents read of each source."""
    lines: list[Row] = []
    for source, members in removals_by_source(removals).items():
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


def removals_by_source(removals: Iterable[RemovalCount]) -> dict[Label, list[RemovalCount]]:
    """The counts by (dataset, source), sorted."""
    rows: dict[Label, list[RemovalCount]] = {}
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
