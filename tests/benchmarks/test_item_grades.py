"""Items of real reports are where the links of their contents lead, in both forms of tables."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from tests.support.real_data import find

_ARCHIVE = "fin_filings/edgar_10k10q_ixbrl_html.tar.zst"


@pytest.fixture
def items(modules: None) -> Any:
    return import_module("benchmarks.sources.items")


@pytest.mark.parametrize("name", ["aapl-10-q-2025-08-01", "unp-10-q-2025-07-24", "ibm-10-k-2025-02-25"])
def test_items_of_a_report_are_where_its_contents_say(items: Any, name: str) -> None:
    page = next(raw for path, raw in items.members_of(find(_ARCHIVE)) if path.endswith(f"{name}.html")).decode()
    form = "10-Q" if "10-q" in name else "10-K"
    truth, _ = items.read_items(name, page, form)
    assert len(truth) >= 11
    for tables in ("lines", "markdown"):
        found, _ = items.run_finpile(tables, {name: (form, page)})
        assert set(items.graded(truth, found[name]).values()) == {"found"}


def test_a_section_with_another_begin_or_end_is_wrong(items: Any) -> None:
    grade, words_of = items.grade, items.words_of
    truth = words_of("Item 7. Discussion " + "word " * 200 + "the end.")
    text = "12 Item 7. Discussion " + "word " * 200 + "the end."
    assert grade(text, truth) == "found"
    assert grade(f"{text} {'more ' * 60}", truth) == "wrong"
    assert grade(text.partition("word")[2], truth) == "wrong"
    assert (grade(None, truth), grade(text, None)) == ("unsure", "wrong")
