"""Training documents of public datasets by year and source."""

from __future__ import annotations

from collections.abc import Sequence

from finpile.plugins.chart import Chart
from finpile.report.drawing.years import year_chart
from finpile.report.html import BuildFacts
from finpile.report.statistics import CorpusStatistics, RemovalCount
from finpile.report.table2 import public_rows


def _draw(statistics: CorpusStatistics, removals: Sequence[RemovalCount], facts: BuildFacts) -> str:
    del removals, facts
    return year_chart(public_rows(statistics), "chart_public", "Documents of public datasets by year")


CHART = Chart(name="public_by_year", above="table2_public", draw=_draw)
