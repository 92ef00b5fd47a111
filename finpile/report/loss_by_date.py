"""Bits per byte by the month, quarter or year of the documents: as a table and a chart, with the day of the split."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Literal

from finpile.documents.split import HELDOUT, TRAIN
from finpile.report.bits_per_byte import (
    UNDATED,
    Group,
    Report,
    group_cells,
    group_columns,
    model_names,
    summed,
)
from finpile.report.drawing.lines import Line, LineChart, Rule
from finpile.report.drawing.svg import series_colour
from finpile.report.figures import name
from finpile.report.table import Column, Row, Table

Period = Literal["month", "quarter", "year"]
#: Periods of a year.
PER_YEAR = {"month": 12, "quarter": 4, "year": 1}
_SPLITS = {TRAIN: "training", HELDOUT: "held out"}
_MOST_TICKS = 9
_STEPS = (1, 2, 3, 4, 6, 12, 24, 60, 120, 240, 600)

#: The number of a period since year 0; None: documents without a date.
Number = int | None


def period_of(month: str, period: Period) -> int:
    """The number of the period of a month.

    >>> period_of("2021-05", "quarter") - period_of("2020-12", "quarter")
    2
    """
    per_year = PER_YEAR[period]
    return int(month[:4]) * per_year + (int(month[5:]) - 1) * per_year // 12


def period_name(number: int, period: Period) -> str:
    """`2021-05`, `2021 Q2` or `2021`.

    >>> period_name(period_of("2021-05", "quarter"), "quarter")
    '2021 Q2'
    """
    year, part = divmod(number, PER_YEAR[period])
    return {"month": f"{year:04}-{part + 1:02}", "quarter": f"{year:04} Q{part + 1}", "year": f"{year:04}"}[period]


def dated_groups(report: Report, split: str) -> dict[Number, Group]:
    """The documents of each period of the report, in order, those without a date last."""
    found: dict[Number, list[int]] = {}
    months = report["models"][0]["splits"][split]["months"]
    for index, entry in enumerate(months):
        number = None if entry["month"] is None else period_of(entry["month"], report["period"])
        found.setdefault(number, []).append(index)
    return {
        number: Group(
            UNDATED if number is None else period_name(number, report["period"]),
            [summed(model["splits"][split]["months"][at] for at in places) for model in report["models"]],
        )
        for number, places in found.items()
    }


def date_table(report: Report) -> Table:
    """A row for each period of each split."""
    rows = [
        Row(cells=(*group_cells(group), name(_SPLITS[split])))
        for split in _splits(report)
        for group in dated_groups(report, split).values()
    ]
    cut = f" Documents after {report['heldout_after']} are held out." if report["heldout_after"] else ""
    return Table(
        name="bits_by_date",
        title="Bits per byte by document date",
        caption=f"By the {report['period']} of the document's date (UTC).{cut}",
        columns=(
            *group_columns("period", report["period"].capitalize(), report),
            Column(key="split", title="Split"),
        ),
        rows=tuple(rows),
    )


def _splits(report: Report) -> Iterator[str]:
    return (split for split in _SPLITS if split in report["models"][0]["splits"])


def date_chart(report: Report) -> LineChart | None:
    """A line for each model, thin over training documents; None if no document has a date."""
    period: Period = report["period"]
    lines, numbers = [], []
    for split in _splits(report):
        dated = {number: group for number, group in dated_groups(report, split).items() if number is not None}
        numbers += list(dated)
        for index, model in enumerate(model_names(report)):
            points = [
                (number + 0.5, group.entries[index]["bits_per_byte"])
                for number, group in dated.items()
                if group.num_bytes
            ]
            is_thin = split == TRAIN
            lines.append(
                Line(
                    points=points,
                    label="" if is_thin else model,
                    colour=series_colour(index),
                    thin=is_thin,
                    dots=not is_thin,
                )
            )
    if not any(line.points for line in lines):
        return None
    return LineChart(
        title=f"Bits per byte by document date ({period}s)",
        x_title="date of the document",
        y_title="bits per byte",
        lines=lines,
        rules=[_cut(report["heldout_after"], period)] if report["heldout_after"] else [],
        x_ticks=list(_ticks(min(numbers), max(numbers), period)),
    )


def _cut(day: str, period: Period) -> Rule:
    """The end of the last day of training documents."""
    last = date.fromisoformat(day)
    place = (last.year + (last.month - 1 + last.day / 31) / 12) * PER_YEAR[period]
    return Rule(axis="x", value=place, label=f"held out after {day}")


def _ticks(first: int, last: int, period: Period) -> Iterator[tuple[float, str]]:
    """The middles of at most `_MOST_TICKS` periods with their names; of years, if they are that far apart."""
    step = next((step for step in _STEPS if (last - first) // step < _MOST_TICKS), _STEPS[-1])
    for number in range(-(-first // step) * step, last + 1, step):
        is_year = step % PER_YEAR[period] == 0
        yield number + 0.5, period_name(number, period)[:4] if is_year else period_name(number, period)
