"""Counts of documents without a date, or with an unusable one, by source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from finpile.report.figures import count, name, percent
from finpile.report.statistics import DateStatistics
from finpile.report.table import Field, Table, table_of

#: Share of a source's documents above which missing or unusable dates are a warning.
_CALLED_OUT = 0.05


def date_statistics(cleaned: Iterable[Mapping[str, Any]]) -> tuple[DateStatistics, ...]:
    """Date statistics from the counts of the clean stage by source; documents removed by filters do not count."""
    return tuple(
        DateStatistics(
            dataset=row["dataset"],
            source=row["source"],
            num_docs=row["documents"] + row["removed"].get("undated", 0),
            num_undated=row.get("undated", 0),
            num_unreadable=row.get("unreadable_dates", 0),
        )
        for row in cleaned
    )


def date_warnings(
    rows: Sequence[DateStatistics], settings: str = "`fields`, `date_format`, `heldout.undated`"
) -> list[str]:
    """One sentence for each source in which many documents have no date, or a date that could not be used.

    `settings` are those that decide about dates.
    """
    found = []
    for row in rows:
        for number, what in (
            (row.num_undated, f"have no date (see {settings})"),
            (row.num_unreadable, "have a date that could not be used (see the ledger, stage clean)"),
        ):
            if number > _CALLED_OUT * row.num_docs:
                share = f"{number / row.num_docs:.1%}"
                found.append(f"{row.dataset}/{row.source}: {number:,} of {row.num_docs:,} documents ({share}) {what}")
    return found


_FIELDS: Sequence[Field[DateStatistics]] = (
    Field("source", "Source", lambda row: name(f"{row.dataset}: {row.source}")),
    Field("num_docs", "Documents", lambda row: count(row.num_docs)),
    Field("num_undated", "Undated", lambda row: count(row.num_undated)),
    Field("undated_percent", "of documents", lambda row: percent(row.num_undated, row.num_docs, 2)),
    Field("num_unreadable", "Not usable", lambda row: count(row.num_unreadable)),
    Field("unreadable_percent", "of documents", lambda row: percent(row.num_unreadable, row.num_docs, 2)),
)


def dates_table(rows: Sequence[DateStatistics]) -> Table:
    """One row for each source."""
    return table_of(
        rows,
        _FIELDS,
        name="dates",
        title="Dates",
        caption="Documents after cleaning, before duplicates are removed. A date that could not be used is unreadable, "
        "ambiguous or implausible; such a document may have got another from its page, its URL or its file's name.",
    )
