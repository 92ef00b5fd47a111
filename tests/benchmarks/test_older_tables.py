"""Labelled tables of older filings: every figure is in its row, and under all of its heads."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from tests.support.real_data import find


@pytest.fixture
def older(modules: None) -> Any:
    return import_module("benchmarks.sources.older_tables")


@pytest.mark.parametrize(("form", "least"), [("html", 41), ("text", 23)])
def test_labelled_figures_are_in_their_rows_and_under_their_heads(older: Any, form: str, least: int) -> None:
    data = find("fin_filings").parent
    truths = older.labels()[form]
    assert sum(len(truth.tables) for truth in truths.values()) == least
    filings = dict(older.documents_of(data, list(truths)))
    for tables in ("lines", "markdown"):
        texts = {
            name: "\n".join(older.text_of(one, tables) for one in documents) for name, documents in filings.items()
        }
        found = older.scored(truths, texts)
        assert found["num_in_line"] == found["num_in_rows"] > 0
        if tables == "markdown":
            assert (found["num_lowest"], found["num_all"]) == (found["num_heads"], found["num_levels"])
            assert found["num_exact"] >= 0.9 * found["num_compared"]


def test_no_number_of_a_text_table_is_lost(older: Any) -> None:
    data = find("fin_filings/edgar_crawler/RAW_8-K.zip").parents[2]
    assert all(kept == total > 10_000 for _, total, kept in older.figures_kept(data).values())
