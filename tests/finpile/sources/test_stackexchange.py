"""Stack Exchange: questions with their answers, most votes first."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from finpile.config import SourceConfig
from finpile.config.limits import LimitsConfig
from finpile.documents.document import HTML, RawDocument
from tests.support.reading import Items, damaged_copies, read_as, read_folder, split

HEAD = '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<posts>\n'


def row(number: int, kind: int, body: str, parent: int = 0, score: int = 0, **more: str) -> str:
    facts = {"Id": number, "PostTypeId": kind, "Score": score, "Body": body, **({"ParentId": parent} if parent else {})}
    element = ET.Element("row", {name: str(value) for name, value in {**facts, **more}.items()})
    return "  " + ET.tostring(element, encoding="unicode") + "\n"


def read(data: str | bytes, **settings: Any) -> Items:
    documents, rows = split(read_as("stackexchange", data, "oil.stackexchange.com/Posts.xml", **settings))
    assert "unclaimed_bytes" not in {row.reason for row in rows}
    return documents, rows


def test_question_has_its_answers_by_votes_and_the_date_of_the_newest() -> None:
    data = HEAD + "".join(
        [
            row(1, 1, "<p>Why?</p>", score=3, Title="A & B", Tags="<oil><gas>", CreationDate="2014-03-13T20:32:04.033"),
            row(2, 2, "<p>low</p>", 1, -2, CreationDate="2014-03-14T00:00:00"),
            row(3, 1, "<p>Other</p>", CreationDate="2014-03-13T20:32:04.033", ContentLicense="CC BY-SA 4.0"),
            row(4, 2, "<p>high</p>", 1, 7, CreationDate="2014-03-14T00:00:00", LastEditDate="2020-01-02T03:04:05.6"),
        ]
    )
    [first, second], [] = read(data + "</posts>")
    assert first == RawDocument(
        locator=f"oil.stackexchange.com/Posts.xml#{data.encode().index(b'<row')}",
        text="<h1>A &amp; B</h1>\n<p>Why?</p>\n<h2>Answer</h2>\n<p>high</p>\n<h2>Answer</h2>\n<p>low</p>",
        media_type=HTML,
        timestamp=datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC),
        timestamp_origin="header",
        title="A & B",
        url="https://oil.stackexchange.com/q/1",
        meta={
            "question": 1,
            "score": 3,
            "answer_scores": [7, -2],
            "tags": ["oil", "gas"],
            "created": "2014-03-13T20:32:04.033",
        },
    )
    assert (second.text, second.license, second.meta["answer_scores"]) == ("<p>Other</p>", "CC BY-SA 4.0", [])


def test_rows_that_belong_to_no_question_are_in_the_ledger() -> None:
    wiki, orphan, twice = row(1, 5, "wiki"), row(2, 2, "orphan", 99), row(3, 1, "again")
    broken = '  <row Id="4" PostTypeId="1" Body="<" />\n'
    data = HEAD + wiki + orphan + row(3, 1, "first") + twice + broken + '<row Id="x" PostTypeId="1" Body="" />'
    [document], rows = read(data)
    assert document.text == "first"
    assert {(row.reason, row.removed_text.decode()) for row in rows} == {
        ("other_post", wiki.strip()),
        ("no_question", orphan.strip()),
        ("unreadable_record", twice.strip()),
        ("unreadable_record", broken.strip()),
        ("unreadable_record", '<row Id="x" PostTypeId="1" Body="" />'),
    }


def test_threads_and_rows_above_the_limit_are_in_the_ledger() -> None:
    answers = "".join(row(number, 2, "x" * 300, 1) for number in range(2, 8))
    [document], rows = read(HEAD + row(1, 1, "q") + answers + row(9, 1, "y" * 3000), limits=LimitsConfig(record=1024))
    assert document.text.count("<h2>") == 2
    assert Counter(row.reason for row in rows) == {"too_large": 5}


def test_no_other_file_is_read_as_posts() -> None:
    assert [row.reason for row in read("<posts></posts>")[1]] == ["no_record"]
    assert [row.reason for row in read('<users><row Id="1" Reputation="2" /></users>')[1]][-1] == "unreadable_record"


def test_damaged_dumps_lose_nothing_silently() -> None:
    rows = [row(n, 1 + n % 3 % 2, f"<p>Post {n} of oil</p>", parent=n - n % 3, score=n) for n in range(1, 30)]
    for data in damaged_copies((HEAD + "".join(rows) + "</posts>").encode(), 4):
        assert all(row.reason != "reader_error" for row in read(data)[1])


def test_dumps_of_two_sites(real_data: Callable[[str], Path]) -> None:
    archive = real_data("stackexchange") / "stackexchange_dumps_xml.tar.zst"
    source = SourceConfig(
        name="N", dataset="D", format="stackexchange", paths=(archive.name,), members=("*/Posts.xml",)
    )
    documents, rows, _ = read_folder(source, archive.parent)
    lost = Counter(row.reason for row in rows)
    names = ["history.meta.stackexchange/Posts.xml", "matheducators.stackexchange/Posts.xml"]
    unpack = ["tar", "-I", "zstd", "-xOf", str(archive), *names]
    whole = subprocess.run(unpack, check=True, capture_output=True).stdout.decode()
    kinds = Counter(re.findall(r'<row [^>]*?PostTypeId="(\d+)"', whole))
    answers = [score for document in documents for score in document.meta["answer_scores"]]
    assert len(documents) == kinds["1"] and len(answers) + lost["no_question"] == kinds["2"]
    assert lost["other_post"] == kinds.total() - kinds["1"] - kinds["2"]
    assert all(d.meta["answer_scores"] == sorted(d.meta["answer_scores"], reverse=True) for d in documents)
