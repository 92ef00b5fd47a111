"""Licences of the published documents: how many documents and bytes of text have each, by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from finpile.report.figures import Cell, count, name, percent
from finpile.report.statistics import LicenseStatistics, summed
from finpile.report.table import Column, Row, Table

#: Licences of a row that have a line of their own; the others are one line.
MAX_LICENSES = 10


def license_statistics(published: Iterable[Mapping[str, Any]]) -> tuple[LicenseStatistics, ...]:
    """Sums over the files of documents, as the stage `split` counts them; empty if no document has a licence."""
    rows = ({**file, **row} for file in published for row in file.get("licenses", ()))
    counts = {"num_docs": "documents", "num_bytes": "text_bytes"}
    sums = summed(rows, ("dataset", "source", "license"), counts)
    return tuple(LicenseStatistics(**row) for row in sums) if any(row["license"] is not None for row in sums) else ()


def licenses_table(rows: Sequence[LicenseStatistics]) -> Table:
    """The licences of each row by falling bytes; of a row with more than `MAX_LICENSES`, the others are one line."""
    groups: dict[tuple[str, str], list[LicenseStatistics]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.source), []).append(row)
    return Table(
        name="licenses",
        title="Licences",
        caption="Published documents, held-out ones too, and bytes of their texts by the licence of the record or of "
        "its source. The share is that in the bytes of the row.",
        columns=(
            Column(key="source", title="Source"),
            Column(key="license", title="Licence"),
            Column(key="num_docs", title="Docs"),
            Column(key="num_bytes", title="Bytes"),
            Column(key="byte_percent", title="of bytes"),
        ),
        rows=tuple(
            Row(
                cells=(
                    name(f"{dataset}: {source}"),
                    label,
                    count(sum(row.num_docs for row in some)),
                    count(sum(row.num_bytes for row in some)),
                    percent(sum(row.num_bytes for row in some), sum(row.num_bytes for row in group), 2),
                )
            )
            for (dataset, source), group in groups.items()
            for label, some in _lines(group)
        ),
    )


def _lines(group: Sequence[LicenseStatistics]) -> list[tuple[Cell, list[LicenseStatistics]]]:
    """The lines of a row: the largest licences, the others, and the documents without one."""
    named = sorted((row for row in group if row.license is not None), key=lambda row: (-row.num_bytes, row.license))
    lines = [(name(str(row.license)), [row]) for row in named[:MAX_LICENSES]]
    rest = named[MAX_LICENSES:]
    if rest:
        lines.append((name(f"{len(rest):,} others"), rest))
    unnamed = [row for row in group if row.license is None]
    if unnamed:
        lines.append((name("none"), unnamed))
    return lines
