"""Licences of the published documents: counts of a file, sums over files, and the table."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa

from finpile.counts.published import license_counts
from finpile.report.licenses import MAX_LICENSES, license_statistics, licenses_table
from finpile.report.statistics import CorpusStatistics, LicenseStatistics

CODE = {"dataset": "Public", "source": "Code"}
NEWS = {"dataset": "FinPile", "source": "News"}


def test_documents_and_bytes_of_each_licence_are_counted() -> None:
    documents = pa.table(
        {"text": ["a", "öl", "", "ccc"], "license": ["MIT", None, "GPL-2.0", "MIT"]},
        schema=pa.schema({"text": pa.large_string(), "license": pa.string()}),
    )
    assert license_counts(documents) == [
        {"license": None, "documents": 1, "text_bytes": 3},
        {"license": "GPL-2.0", "documents": 1, "text_bytes": 0},
        {"license": "MIT", "documents": 2, "text_bytes": 4},
    ]
    assert license_counts(documents.slice(0, 0)) == []


def test_files_of_a_row_are_summed_and_rows_without_licences_are_listed_beside_others() -> None:
    mit = {"license": "MIT", "documents": 2, "text_bytes": 30}
    none = {"license": None, "documents": 1, "text_bytes": 10}
    rows = license_statistics(
        [{**CODE, "licenses": [none, mit]}, {**CODE, "licenses": [mit]}, {**NEWS, "licenses": [none]}]
    )
    assert [(row.source, row.license, row.num_docs, row.num_bytes) for row in rows] == [
        ("News", None, 1, 10), ("Code", None, 1, 10), ("Code", "MIT", 4, 60),
    ]  # fmt: skip
    assert [[cell.text for cell in row.cells] for row in licenses_table(rows).rows] == [
        ["FinPile: News", "none", "1", "10", "100.00%"],
        ["Public: Code", "MIT", "4", "60", "85.71%"],
        ["Public: Code", "none", "1", "10", "14.29%"],
    ]
    statistics = CorpusStatistics(sources=(), licenses=rows)
    assert statistics.to_json()["licenses"] == [asdict(row) for row in statistics.licenses]


def test_corpora_without_licences_have_no_table() -> None:
    assert license_statistics([{**NEWS, "licenses": [{"license": None, "documents": 1, "text_bytes": 9}]}, NEWS]) == ()
    assert "licenses" not in CorpusStatistics(sources=()).to_json()


def test_small_licences_of_a_row_are_one_line() -> None:
    rows = [
        LicenseStatistics(**CODE, license=f"L{number:02}", num_docs=1, num_bytes=100 - number)
        for number in range(MAX_LICENSES + 3)
    ]
    lines = licenses_table(rows).rows
    assert [row.cells[1].text for row in lines] == [*(f"L{number:02}" for number in range(MAX_LICENSES)), "3 others"]
    assert sum(int(row.cells[3].value or 0) for row in lines) == sum(row.num_bytes for row in rows)
