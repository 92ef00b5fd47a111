"""The summary table of a build: every record that was read is in exactly one column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from finpile.report.summary import source_rows, total_row

EXPECTED = Path(__file__).resolve().parents[3] / "data_samples" / "expected.json"


@pytest.fixture
def manifest(sample_build: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((sample_build / "manifest.json").read_text())
    return loaded


def test_columns_add_up_to_the_records_read(manifest: dict[str, Any]) -> None:
    removed = ("unreadable", "cleaned_out", "exact", "near", "substring", "overlap", "contamination")
    for row in source_rows(manifest):
        assert sum(row[name] for name in (*removed, "train", "held_out")) == row["read"] > 0
        assert sum(row["reasons"].values()) == sum(row[name] for name in removed)


def test_sample_is_summed_up_as_its_makers_counted(manifest: dict[str, Any]) -> None:
    expected = {(row["dataset"], row["source"]): row for row in json.loads(EXPECTED.read_text())["sources"]}
    found = {(row["dataset"], row["source"]): row for row in source_rows(manifest)}
    assert found.keys() == expected.keys()
    for key, row in found.items():
        removed = expected[key]["removed"]
        sums = {stage: sum(removed.get(stage, {}).values()) for stage in ("ingest", "clean", "exact", "near")}
        assert [row["unreadable"], row["cleaned_out"], row["exact"], row["near"]] == list(sums.values()), key
        assert (row["read"], row["train"], row["held_out"]) == tuple(
            expected[key][name] for name in ("read", "kept_train", "kept_heldout")
        )


def test_rows_are_sorted_by_name(manifest: dict[str, Any]) -> None:
    names = [(row["dataset"], row["source"]) for row in source_rows(manifest)]
    assert names == sorted(names)


def test_total_is_the_sum_of_every_column_and_bytes_are_those_of_the_ledger(
    manifest: dict[str, Any], sample_build: Path
) -> None:
    rows = source_rows(manifest)
    total = total_row(rows)
    assert total["dataset"] == "TOTAL"
    assert total.keys() == rows[0].keys() - {"reasons"}
    for name, value in total.items():
        if isinstance(value, int):
            assert value == sum(row[name] for row in rows) > 0 or name in ("substring", "overlap", "contamination")
    removed = pq.read_table(sample_build / "removed", columns=["removed_text"])
    assert total["removed_bytes"] == pc.sum(pc.binary_length(removed["removed_text"])).as_py()
    statistics = json.loads((sample_build / "reports" / "statistics.json").read_text())
    assert total["tokens"] == sum(row["num_tokens"] for row in statistics["sources"])


def stage(name: str, **counts: Any) -> dict[str, Any]:
    return {"stage": name, "counts": counts}


def test_parts_and_entries_of_one_source_are_summed() -> None:
    news = {"dataset": "D", "source": "News"}
    removed = {**news, "num_spans": 0, "num_bytes": 9}
    ledger = [
        {"stage": "ingest", "removed": [{**removed, "reason": "no_text", "num_docs": 2}]},
        {"stage": "clean", "removed": [{**removed, "reason": "c4_policy", "num_docs": 0}]},
        {"stage": "exact", "removed": [{**removed, "reason": "exact_duplicate", "num_docs": 1}]},
        {"stage": "exact", "removed": [{**removed, "reason": "exact_duplicate", "num_docs": 3}]},
        {"stage": "substring", "removed": [{**removed, "reason": "repeated_text", "num_docs": 0, "num_spans": 2}]},
        {"stage": "substring", "removed": [{**removed, "reason": "nothing_left", "num_docs": 1}]},
        {"stage": "overlap", "removed": [{**removed, "reason": "heldout_overlap", "num_docs": 2}]},
        {"stage": "contamination", "removed": [{**removed, "reason": "contamination", "num_docs": 5}]},
    ]
    documents = [{**news, "documents": 4, "heldout": 1}, {**news, "documents": 2, "heldout": 2}]
    groups = [
        {"split": "train", "year": 2021, "num_tokens": 9},
        {"split": "heldout", "year": 2022, "num_tokens": 100},
        {"split": "train", "year": None, "num_tokens": 5},
    ]
    found = source_rows(
        {
            "stages": [
                stage("ingest", sources=[{**news, "documents": 18, "removed": {"no_text": 2}}]),
                stage("clean", sources=[{**news, "documents": 18, "undated": 7, "unreadable_dates": 2}]),
                stage("split", documents=documents, ledger=ledger),
                stage("tokens", statistics=[{**news, "groups": groups[:2]}, {**news, "groups": groups[2:]}]),
            ]
        }
    )
    assert found == [
        {
            **news,
            "read": 20,
            "unreadable": 2,
            "cleaned_out": 0,
            "exact": 4,
            "near": 0,
            "substring": 1,
            "overlap": 2,
            "contamination": 5,
            "train": 3,
            "held_out": 3,
            "removed_bytes": 72,
            "tokens": 14,
            "undated": 7,
            "unreadable_dates": 2,
            "reasons": {
                "no_text": 2,
                "c4_policy": 0,
                "exact_duplicate": 4,
                "repeated_text": 0,
                "nothing_left": 1,
                "heldout_overlap": 2,
                "contamination": 5,
            },
        }
    ]
