"""Dates that a record has: one that cannot be read is noted, and so is the length of a period."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from finpile.documents.document import RawDocument
from tests.support.reading import read_as

DEBATE = """<TEI><teiHeader><sourceDesc><date when="{}"/></sourceDesc></teiHeader><text><p>Oil.</p></text></TEI>"""
ARTICLE = """<article><front><article-meta><pub-date>{}</pub-date></article-meta></front><body><p>Oil.</p></body>
</article>"""
LOG = "--- Log opened {}\n00:01 <ann> oil\n00:02 <bob> gas\n"
POSTS = """<posts><row Id="1" PostTypeId="1" CreationDate="2022-03-04T05:06:07" Body="Oil?"/>
<row Id="2" PostTypeId="2" ParentId="1" CreationDate="{}" Body="Oil."/></posts>"""
PAGE = "---\ndate: {}\n---\nOil.\n"


def read(form: str, data: str) -> RawDocument:
    [document] = read_as(form, data)
    assert isinstance(document, RawDocument)
    return document


@pytest.mark.parametrize(
    ("form", "data", "written"),
    [
        ("tei", DEBATE.format("May"), "May"),
        ("markdown", PAGE.format("someday"), "someday"),
        ("markdown", PAGE.format("3/4/2022"), "3/4/2022"),
        ("irc", LOG.format("Mi Mai 15 00:00:03 2013"), "Mi Mai 15 00:00:03 2013"),
        ("jats", ARTICLE.format("<day>30</day><month>2</month><year>2013</year>"), "2013-02-30"),
        ("stackexchange", POSTS.format("soon"), "soon"),
    ],
)
def test_a_date_that_cannot_be_read_is_noted(form: str, data: str, written: str) -> None:
    assert read(form, data).meta["unreadable_timestamp"] == written


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("tei", DEBATE.format("2022-03")),
        ("markdown", PAGE.format("2022-03")),
        ("jats", ARTICLE.format("<month>3</month><year>2022</year>")),
    ],
)
def test_a_month_is_its_last_second(form: str, data: str) -> None:
    found = read(form, data)
    assert found.timestamp == datetime(2022, 3, 31, 23, 59, 59, tzinfo=UTC)
    assert found.meta["timestamp_precision"] == "month"


@pytest.mark.parametrize("kind", ['pub-type="nihms-submitted"', 'date-type="preprint"'])
def test_an_article_is_not_dated_by_its_manuscript(kind: str) -> None:
    before = f"<pub-date {kind}><day>22</day><month>10</month><year>2012</year></pub-date>"
    of_article = "<day>3</day><month>2</month><year>2013</year>"
    data = ARTICLE.format(of_article).replace("<pub-date>", f'{before}<pub-date pub-type="epub">')
    assert read("jats", data).timestamp == datetime(2013, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize("date", ["soon", None])
def test_a_question_with_an_undated_answer_has_no_date(date: str | None) -> None:
    data = POSTS.format(date) if date else POSTS.replace('CreationDate="{}" ', "")
    assert read("stackexchange", data).timestamp is None
