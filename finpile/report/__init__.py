"""Reports: Tables 1 to 3 of the paper for any corpus, in Markdown, CSV, TeX, JSON and on one HTML page."""

from __future__ import annotations

from finpile.report.evaluation import EvalSetFacts
from finpile.report.files import report_tables, write_reports, write_table
from finpile.report.html import BuildFacts
from finpile.report.near import NearFacts
from finpile.report.statistics import (
    CorpusStatistics,
    RemovalCount,
    SourceStatistics,
    YearStatistics,
    load_statistics,
    save_statistics,
)
from finpile.report.table import Table
from finpile.report.table1 import table1
from finpile.report.table2 import documents_by_year, table2
from finpile.report.table3 import Comparison, compare, efficiency, table3

__all__ = [
    "BuildFacts",
    "Comparison",
    "CorpusStatistics",
    "EvalSetFacts",
    "NearFacts",
    "RemovalCount",
    "SourceStatistics",
    "Table",
    "YearStatistics",
    "compare",
    "documents_by_year",
    "efficiency",
    "load_statistics",
    "report_tables",
    "save_statistics",
    "table1",
    "table2",
    "table3",
    "write_reports",
    "write_table",
]
