"""Undated and unreadable dates by source: counted once, shown everywhere, called out above a share."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from finpile.report.dates import date_statistics, date_warnings, dates_table
from finpile.report.statistics import CorpusStatistics

EXPECTED = Path(__file__).resolve().parents[3] / "data_samples" / "expected.json"


def cleaned(undated: int = 0, unreadable_dates: int = 0, dropped: int = 0) -> list[dict[str, Any]]:
    """A source of 200 documents, as the clean stage counts it."""
    return [
        {
            "dataset": "D",
            "source": "News",
            "documents": 200 - dropped,
            "removed": {"undated": dropped},
            "undated": undated,
            "unreadable_dates": unreadable_dates,
        }
    ]


@pytest.mark.parametrize(
    ("counts", "warned"),
    [
        ({"undated": 10, "unreadable_dates": 10}, []),
        ({"undated": 11}, ["D/News: 11 of 200 documents (5.5%) have no date"]),
        ({"undated": 200, "dropped": 200}, ["D/News: 200 of 200 documents (100.0%) have no date"]),
        ({"unreadable_dates": 11}, ["D/News: 11 of 200 documents (5.5%) have a date that could not be used"]),
    ],
)
def test_many_dates_that_are_missing_or_unusable_are_called_out(counts: dict[str, int], warned: list[str]) -> None:
    found = date_warnings(date_statistics(cleaned(**counts)))
    assert [text.split(" (see")[0] for text in found] == warned


def test_documents_that_were_dropped_count() -> None:
    (row,) = date_statistics(cleaned(undated=50, dropped=50))
    assert (row.num_docs, row.num_undated) == (200, 50)
    assert [cell.value for cell in dates_table([row]).rows[0].cells[1:3]] == [200, 50]


def test_counts_are_published() -> None:
    statistics = CorpusStatistics(sources=(), dates=date_statistics(cleaned(3, 2)))
    assert statistics.to_json()["dates"] == [asdict(row) for row in statistics.dates]


def test_sample_counts_equal_the_planted_counts(sample_build: Path) -> None:
    """Expected: the notes of unreadable and implausible dates, and the documents without any."""
    planted = {(row["dataset"], row["source"]): row for row in json.loads(EXPECTED.read_text())["sources"]}
    statistics = json.loads((sample_build / "reports" / "statistics.json").read_text())
    assert {(row["dataset"], row["source"]) for row in statistics["dates"]} == planted.keys()
    for row in statistics["dates"]:
        notes = planted[row["dataset"], row["source"]]["notes"].get("clean", {})
        assert row["num_unreadable"] == sum(notes.values())
        assert row["num_undated"] >= planted[row["dataset"], row["source"]]["kept_by_year"].get("undated", 0)
    assert sum(row["num_undated"] for row in statistics["dates"]) > 0
    assert "<b>Dates.</b>" in (sample_build / "reports" / "index.html").read_text()
