"""Held-out documents by source, and sources of which nothing is in training."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from finpile.errors import InputError
from finpile.output.layout import Layout
from finpile.report.from_manifest import corpus_statistics, write_from_manifest
from finpile.report.heldout import heldout_table
from finpile.report.statistics import CorpusStatistics
from finpile.report.table1 import table1


def group(source: str, split: str, year: int | None, docs: int) -> dict[str, Any]:
    day = None if year is None else f"{year}-03-0{docs}"
    sums = {"num_docs": docs, "num_chars": 100 * docs, "num_tokens": 20 * docs, "num_bytes": 110 * docs}
    return {"dataset": "D", "source": source, "split": split, "year": year, "first_day": day, "last_day": day, **sums}


GROUPS = [
    group("News", "train", 2021, 3),
    group("News", "heldout", 2022, 1),
    group("News", "heldout", 2023, 2),
    group("Late", "heldout", 2023, 5),
    group("Late", "heldout", None, 1),
]


@pytest.fixture
def statistics() -> CorpusStatistics:
    read = [("D", "Copies"), ("D", "Late"), ("D", "News")]
    return corpus_statistics(GROUPS, ("D",), read=read)


def test_sources_of_which_nothing_is_in_training_are_listed_and_named(statistics: CorpusStatistics) -> None:
    assert {row.source: row.num_docs for row in statistics.sources} == {"Copies": 0, "Late": 0, "News": 3}
    table = table1(statistics)
    assert {row.cells[0].text: row.cells[1].value for row in table.rows} == {
        "D": 3,
        "News": 3,
        "Copies": 0,
        "Late": 0,
        "TOTAL": 3,
    }
    assert table.footnotes == ("All documents are held out: D: Late.", "All documents are removed: D: Copies.")


def test_held_out_documents_have_counts_shares_and_days(statistics: CorpusStatistics) -> None:
    rows = [[cell.text for cell in row.cells] for row in heldout_table(statistics).rows]
    assert rows == [
        ["D: Late", "6", "100.00%", "100", "600", "5.00", "120", "100.00%", "660", "2023-03-05", "2023-03-05"],
        ["D: News", "3", "50.00%", "100", "300", "5.00", "60", "50.00%", "330", "2022-03-01", "2023-03-02"],
        ["TOTAL", "9", "75.00%", "100", "900", "5.00", "180", "75.00%", "990", "2022-03-01", "2023-03-05"],
    ]


def test_statistics_have_the_held_out_sources(statistics: CorpusStatistics) -> None:
    written = statistics.to_json()["heldout"]
    assert [row["num_tokens"] for row in written] == [row.num_tokens for row in statistics.heldout]
    assert written[0]["first_day"] == "2023-03-05"
    assert "heldout" not in corpus_statistics(GROUPS[:1], ("D",)).to_json()
    undated = statistics.heldout[0]
    with pytest.raises(InputError, match="twice"):
        CorpusStatistics(sources=statistics.sources, heldout=(undated, undated))
    with pytest.raises(InputError, match="held-out documents of D/Late, which is no source"):
        CorpusStatistics(sources=(), heldout=(undated,))


def test_a_report_counts_the_held_out_documents_of_a_build(sample_build: Path) -> None:
    documents = ds.dataset(sample_build / "documents", partitioning="hive").to_table()
    held = documents.filter(pc.equal(documents["split"], "heldout"))
    expected = Counter(f"{row['dataset']}: {row['source']}" for row in held.select(["dataset", "source"]).to_pylist())
    reports = sample_build / "reports"
    found = list(csv.DictReader((reports / "heldout.csv").open()))
    assert {row["source"]: int(row["num_docs"]) for row in found[:-1]} == expected
    assert int(found[-1]["num_docs"]) == held.num_rows > 0
    assert int(found[-1]["num_bytes"]) == pc.sum(pc.binary_length(held["text"])).as_py()
    for name in ("heldout.md", "heldout.tex", "heldout.json", "index.html"):
        assert all(label in (reports / name).read_text().replace("\\", "") for label in expected)


def test_a_report_lists_a_source_that_is_wholly_held_out(sample_build: Path, tmp_path: Path) -> None:
    """The sample build as if all documents of one source were after the cut."""
    manifest = json.loads((sample_build / "manifest.json").read_text())
    tokens = next(stage["counts"] for stage in manifest["stages"] if stage["stage"] == "tokens")
    late = ("FinPile", "Press")
    moved = [part for part in tokens["statistics"] if (part["dataset"], part["source"]) == late]
    assert moved
    for entry in (entry for part in moved for entry in part["groups"]):
        entry["split"] = "heldout"
    write_from_manifest(Layout(str(tmp_path)), manifest)
    reports = tmp_path / "reports"
    rows = {row["name"]: row for row in csv.DictReader((reports / "table1.csv").open())}
    assert (rows["Press"]["num_docs"], rows["Press"]["chars_per_doc"]) == ("0", "")
    held = {row["source"]: row for row in csv.DictReader((reports / "heldout.csv").open())}
    assert held["FinPile: Press"]["docs_percent"] == "100.0"
    for name in ("table1.md", "table1.tex", "table1.json", "index.html"):
        assert "All documents are held out: FinPile: Press." in (reports / name).read_text()
    assert "do not add up" not in (reports / "index.html").read_text()
