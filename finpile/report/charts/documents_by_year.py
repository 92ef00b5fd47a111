"""Training documents by year and source."""

from __future__ import annotations

from collections.abc import Sequence

from finpile.plugins.chart import Chart
from finpile.report.drawing.years import year_chart
from finpile.report.html import BuildFacts
from finpile.report.statistics import CorpusStatistics, RemovalCount
from finpile.report.table2 import covered


def _draw(statistics: CorpusStatistics, removals: Sequence[RemovalCount], facts: BuildFacts) -> str:
    del removals, facts
    return year_chart(covered(statistics), "chart", "Documents by year")


CHART = Chart(name="documents_by_year", above="table2_documents", draw=_draw)
