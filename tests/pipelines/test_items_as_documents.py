"""`clean: {items: documents}`: the items of a filing are documents, and nothing of the filing is lost."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.as_of import Cut
from finpile.config import load_config
from finpile.errors import ConfigError
from finpile.filings import find_items
from finpile.report.summary import source_rows
from finpile.verify import verify
from tests.support.trees import rows_below

BODY = "The company sells pumps and valves to many customers. See Item 7 for more.\n\nSales were {0}. Costs were 7."
ITEMS = {
    "1": "Business",
    "1A": "Risk Factors",
    "2": "Properties",
    "3": "Legal Proceedings",
    "7": "Management's Discussion and Analysis of Financial Condition",
    "8": "Financial Statements and Supplementary Data",
}
HEADER = """<SEC-DOCUMENT>0000000001-24-00000{0}.txt : 20240302
<SEC-HEADER>0000000001-24-00000{0}.hdr.sgml : 20240302
<ACCEPTANCE-DATETIME>20240302163000
ACCESSION NUMBER:\t\t0000000001-24-00000{0}
CONFORMED SUBMISSION TYPE:\t10-K
FILED AS OF DATE:\t\t20240302
</SEC-HEADER>
"""


def filing(number: int) -> str:
    """A 10-K with a cover page, items, an item with two possible beginnings, signatures, and an exhibit."""
    sales = dict.fromkeys(ITEMS, number * 100) | {"8": 5}
    items = "\n\n".join(f"Item {item}. {title}\n\n{BODY.format(sales[item])}" for item, title in ITEMS.items())
    doubtful = "Item 9A. Controls and Procedures\n\nOne.\n\nItem 9A. Controls and Procedures of others\n\nTwo."
    text = f"ANNUAL REPORT {number}\n\nof Acme Pumps\n\n{items}\n\n{doubtful}\n\nSIGNATURES\n\nJane Doe\n"
    documents = (("10-K", text), ("EX-99.1", f"Press release {number}: Acme sells pumps in its year of records.\n"))
    body = "".join(
        f"<DOCUMENT>\n<TYPE>{kind}\n<SEQUENCE>{index}\n<FILENAME>{index}.txt\n<TEXT>\n{content}</TEXT>\n</DOCUMENT>\n"
        for index, (kind, content) in enumerate(documents, 1)
    )
    return f"{HEADER.format(number)}{body}</SEC-DOCUMENT>\n"


def built(folder: Path, name: str, items: str, **dedup: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The documents by locator, and the manifest, of a build that verifies."""
    source = {
        "name": "Filings",
        "dataset": "FinPile",
        "format": "edgar",
        "paths": "*.txt",
        "clean": {"items": items},
        "sub_source": "meta.document_type",
    }
    config = {"name": "items", "sources": [source], "dedup": {"exact": False, "near": None, **dedup}}
    for number in (1, 2):
        (folder / f"{number}.txt").write_text(filing(number))
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))
    out = folder / name
    manifest = build(load_config(folder / f"{name}.yaml"), str(out), Engine(num_workers=1), until="split")
    assert [check for check in verify(str(out)) if not check.ok] == []
    rows = sorted(rows_below(out / "documents"), key=lambda row: str(row["locator"]))
    return rows, manifest


def test_items_are_documents_whose_texts_sum_to_the_filing(tmp_path: Path) -> None:
    whole, _ = built(tmp_path, "meta", "meta")
    parts, manifest = built(tmp_path, "documents", "documents")
    assert len(whole) == 4
    for document in whole:
        mine = [part for part in parts if part["locator"].startswith(document["locator"])]
        mine.sort(key=lambda part: document["text"].index(part["text"]))
        assert "".join(part["text"] for part in mine) == document["text"]
        form = json.loads(document["meta"])["document_type"]
        items = find_items(document["text"], form).found
        assert len(mine) == (1 if form == "EX-99.1" else 2 + len(items))
        named = [part for part in mine if part["locator"] != document["locator"] and "/item-" in part["locator"]]
        assert [part["locator"].rpartition("/item-")[2] for part in named] == [item.number for item in items]
        for part, item in zip(named, items, strict=True):
            assert part["text"].rstrip() == document["text"][item.start : item.end]
            assert part["sub_source"] == json.loads(part["meta"])["document_type"] == f"10-K item {item.number}"
            assert (part["timestamp"], part["title"]) == (document["timestamp"], document["title"])
    [row] = source_rows(manifest)
    assert row["read"] == row["train"] == len(parts)


def test_parts_that_later_stages_remove_are_counted(tmp_path: Path) -> None:
    """The text behind the last certain item, item 8 first, is equal in both filings: one is an exact copy."""
    parts, manifest = built(tmp_path, "dedup", "documents", exact=True, exact_fold="none")
    [row] = source_rows(manifest)
    assert row["exact"] == 1
    assert row["read"] == row["exact"] + len(parts)


@pytest.mark.parametrize("undated", [False, True], ids=["dated", "undated"])
def test_parts_of_a_day_are_counted(tmp_path: Path, undated: bool) -> None:
    """Of a filing of 2024 and one of 2023 that differs in its figures, as of 2023; undated news is decided again."""
    (tmp_path / "1.txt").write_text(filing(1))
    (tmp_path / "2.txt").write_text(filing(2).replace("20240302", "20230302"))
    (tmp_path / "news.jsonl").write_text('{"text": "Oil rose on Monday after the ministers met."}\n')
    filings = {"name": "Filings", "dataset": "FinPile", "format": "edgar", "paths": "*.txt"}
    news = {"name": "News", "dataset": "FinPile", "format": "jsonl", "paths": "*.jsonl"}
    config = {"name": "items", "sources": [{**filings, "clean": {"items": "documents"}}, news]}
    (tmp_path / "corpus.yaml").write_text(yaml.safe_dump({**config, "dedup": {"order": "time", "near": None}}))
    whole = build(load_config(tmp_path / "corpus.yaml"), str(tmp_path / "out"), Engine(), until="split")
    cut = Cut(date(2023, 12, 31), undated)
    manifest = as_of(str(tmp_path / "out"), cut, str(tmp_path / "past"), Engine(), until="split")
    assert [check for check in verify(str(tmp_path / "past")) if not check.ok] == []
    row = source_rows(manifest)[0]
    assert row["read"] == row["train"] == source_rows(whole)[0]["read"] // 2 > 2


def test_filters_read_parts_and_remove_them_alone(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text(filing(1))
    filters = [{"gopher_quality": {"min_words": 12, "min_alphabetic_words": None, "min_stop_words": None}}]
    source = {"name": "Filings", "dataset": "FinPile", "format": "edgar", "paths": "1.txt", "max_removed": 1.0}
    source |= {"clean": {"items": "documents", "filters": filters}}
    (tmp_path / "corpus.yaml").write_text(yaml.safe_dump({"name": "items", "sources": [source]}))
    build(load_config(tmp_path / "corpus.yaml"), str(tmp_path / "out"), Engine(num_workers=1), until="split")
    assert [check for check in verify(str(tmp_path / "out")) if not check.ok] == []
    removed = rows_below(tmp_path / "out/removed")
    places = {row["locator"].rpartition("/")[2] for row in removed if row["reason"] == "gopher_short_document"}
    assert "text-1" in places
    assert not any(place.startswith("item-") for place in places)


def test_formats_without_items_refuse_the_key(tmp_path: Path) -> None:
    source = {"name": "News", "dataset": "A", "format": "text", "paths": "*.txt", "clean": {"items": "documents"}}
    (tmp_path / "corpus.yaml").write_text(yaml.safe_dump({"name": "items", "sources": [source]}))
    with pytest.raises(ConfigError, match="format text of source 'News' has no items"):
        load_config(tmp_path / "corpus.yaml")
