"""Licences of the published documents: how many documents and bytes of text have each, by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from finpile.report.figures import count, name, percent
from finpile.report.statistics import LicenseStatistics, summed
from finpile.report.table import Field, Table, largest, table_of

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
    fields: list[Field[tuple[str, str, int, Sequence[LicenseStatistics]]]] = [
        Field("source", "Source", lambda line: name(line[0])),
        Field("license", "Licence", lambda line: name(line[1])),
        Field("num_docs", "Docs", lambda line: count(sum(row.num_docs for row in line[3]))),
        Field("num_bytes", "Bytes", lambda line: count(_num_bytes(line[3]))),
        Field("byte_percent", "of bytes", lambda line: percent(_num_bytes(line[3]), line[2], 2)),
    ]
    return table_of(
        [
            (f"{dataset}: {source}", label, _num_bytes(group), some)
            for (dataset, source), group in groups.items()
            for label, some in largest(group, lambda row: row.license, lambda row: row.num_bytes, MAX_LICENSES)
        ],
        fields,
        name="licenses",
        title="Licences",
        caption="Published documents, held-out ones too, and bytes of their texts by the licence of the record or of "
        "its source. The share is that in the bytes of the row.",
    )


def _num_bytes(rows: Sequence[LicenseStatistics]) -> int:
    return sum(row.num_bytes for row in rows)
