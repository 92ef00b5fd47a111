"""The table of number fidelity: sums by source, before and after deduplication."""

from __future__ import annotations

from dataclasses import asdict

from finpile.report.facts import fact_statistics, facts_table
from finpile.report.statistics import CorpusStatistics

FILINGS = {"dataset": "FinPile", "source": "Filings"}
NEWS = {"dataset": "FinPile", "source": "News"}


def test_figures_are_summed_by_source_and_only_of_sources_that_have_them() -> None:
    of_tables = {"row_figures": 8, "row_figures_found": 6, "head_figures": 0, "head_figures_found": 0}
    cleaned = [{**FILINGS, "facts": 10, "facts_found": 9, **of_tables}, {**NEWS}]
    published = [{**FILINGS, "facts": 4, "facts_found": 4}, {**FILINGS, "facts": 4, "facts_found": 2}, {**NEWS}]
    (row,) = fact_statistics(cleaned, published)
    assert (row.num_facts, row.num_found, row.num_facts_kept, row.num_found_kept) == (10, 9, 8, 6)
    assert [cell.text for cell in facts_table([row]).rows[0].cells] == [
        "FinPile: Filings", "10", "9", "90.00%", "75.00%", "\u2013", "8", "6", "75.00%",
    ]  # fmt: skip
    assert fact_statistics([FILINGS, NEWS], published) == ()  # as of a day, `clean` does not count them
    statistics = CorpusStatistics(sources=(), facts=(row,))
    assert statistics.to_json()["facts"] == [asdict(row) for row in statistics.facts]
    assert "facts" not in CorpusStatistics(sources=()).to_json()
