"""Table 2: the private datasets by year (rows) and source (columns), in tokens; and the same in documents.

The first and the last year have the range of months if the documents do not span the year: `2007 (from March)`, `2022
(to July)`, for the paper's `2007 [03-]`, `2022 [-07]`.

Source: BloombergGPT (Wu et al. 2023), Table 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from finpile.documents.document import Label
from finpile.report.figures import STEP_THOUSAND, Cell, choose_unit, count, name, unit_name
from finpile.report.statistics import CorpusStatistics, YearStatistics
from finpile.report.table import Column, Row, RowKind, Table
from finpile.timestamps.clock import MONTH_NAMES

UNDATED = "undated"
#: The paper prints 363,482 million tokens: the total has at least this number of units.
_LEAST_UNITS = 1000
_JANUARY, _DECEMBER = 1, 12


def table2(statistics: CorpusStatistics) -> Table:
    """Tokens by year and source of the private datasets; of all datasets if none is private."""
    return _by_year(covered(statistics), "num_tokens", "tokens", "table2", "Table 2")


def public_by_year(statistics: CorpusStatistics) -> Table:
    """The documents by year of the datasets that are not in `documents_by_year`; no rows if it has all datasets."""
    title = "Documents of public datasets by year"
    return _by_year(public_rows(statistics), "num_docs", "documents", "table2_public", title)


def documents_by_year(statistics: CorpusStatistics) -> Table:
    """Table 2 in documents, always in units of one, for comparison with the input files."""
    return _by_year(covered(statistics), "num_docs", "documents", "table2_documents", "Documents by year")


def covered(statistics: CorpusStatistics) -> list[YearStatistics]:
    """The rows of Table 2."""
    private = [row for row in statistics.years if row.dataset in statistics.private]
    return private or list(statistics.years)


def public_rows(statistics: CorpusStatistics) -> list[YearStatistics]:
    """The rows that are not in Table 2: those of public datasets, if there are private ones."""
    rows = [row for row in statistics.years if row.dataset not in statistics.private]
    return rows if len(rows) < len(statistics.years) else []


def year_labels(rows: Sequence[YearStatistics]) -> dict[int | None, str]:
    """The label of each year, in order, `undated` last.

    >>> year_labels([])
    {}
    """
    years = sorted({row.year for row in rows if row.year is not None})
    labels: dict[int | None, str] = {year: str(year) for year in years}
    if years:
        first, last = _first_month(rows, years[0]), _last_month(rows, years[-1])
        labels[years[0]] += _months(first, last if len(years) == 1 else 0)
        if len(years) > 1:
            labels[years[-1]] += _months(0, last)
    if any(row.year is None for row in rows):
        labels[None] = UNDATED
    return labels


def _by_year(rows: Sequence[YearStatistics], field: str, what: str, table: str, title: str) -> Table:
    cells: Counter[tuple[int | None, Label]] = Counter()
    for row in rows:
        cells[row.year, (row.dataset, row.source)] += getattr(row, field)
    sources = _columns({source for _, source in cells})
    exponent = choose_unit(sum(cells.values()), step=STEP_THOUSAND, least=_LEAST_UNITS) if what == "tokens" else 0
    lines = [
        Row(cells=_line(label, [cells[year, source] for source in sources], exponent))
        for year, label in year_labels(rows).items()
    ]
    sums = [sum(cells[year, source] for year in year_labels(rows)) for source in sources]
    lines.append(Row(cells=_line("Total", sums, exponent), kind=RowKind.TOTAL, gap=True))
    return Table(
        name=table,
        title=title,
        caption=_caption(rows, what, exponent),
        columns=(
            Column(key="year", title="Date"),
            *(Column(key=f"{source[0]}/{source[1]}", title=label) for source, label in sources.items()),
            Column(key="total", title="Total"),
        ),
        rows=tuple(lines),
    )


def _line(label: str, values: list[int], exponent: int) -> tuple[Cell, ...]:
    return (name(label), *(count(value, exponent) for value in values), count(sum(values), exponent))


def _columns(sources: set[Label]) -> dict[Label, str]:
    """Sources with their headings, sorted; with the dataset only if two datasets have a source of that name."""
    names = [source for _, source in sources]
    labels = {pair: pair[1] if names.count(pair[1]) == 1 else f"{pair[1]} ({pair[0]})" for pair in sources}
    return dict(sorted(labels.items(), key=lambda item: (item[1], item[0])))


def _caption(rows: Sequence[YearStatistics], what: str, exponent: int) -> str:
    datasets = ", ".join(sorted({row.dataset for row in rows})) or "the corpus"
    return f"The {what} of {datasets} by year (rows) and source (columns), in {unit_name(exponent, what)}."


def _first_month(rows: Sequence[YearStatistics], year: int) -> int:
    """The month in which the documents of a year begin; 0 for January, or if it is not known."""
    days = [row.first_day for row in rows if row.year == year and row.first_day is not None]
    return min(days).month if days and min(days).month > _JANUARY else 0


def _last_month(rows: Sequence[YearStatistics], year: int) -> int:
    """The month in which the documents of a year end; 0 for December, or if it is not known."""
    days = [row.last_day for row in rows if row.year == year and row.last_day is not None]
    return max(days).month if days and max(days).month < _DECEMBER else 0


def _month_name(number: int) -> str:
    return MONTH_NAMES[number - 1].title()


def _months(first: int, last: int) -> str:
    if first and first == last:
        return f" ({_month_name(first)})"
    words = f"from {_month_name(first)} " if first else ""
    words += f"to {_month_name(last)}" if last else ""
    return f" ({words.strip()})" if words else ""
