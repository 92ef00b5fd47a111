"""Dates that a record has: one that cannot be read is noted, and so is the length of a period."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from finpile.config import SourceConfig
from finpile.config.rows import RowsConfig
from finpile.documents.document import RawDocument
from tests.support.reading import read_as, read_input, split

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


@pytest.mark.parametrize("days", [("2015-10-26", "2015-10-27"), ("2015-10-27", "2015-10-26"), ("soon", "2015-10-27")])
def test_a_debate_of_two_days_has_the_date_of_the_later_one(days: tuple[str, str]) -> None:
    data = DEBATE.format(f'{days[0]}"/><date when="{days[1]}')
    assert read("tei", data).timestamp == datetime(2015, 10, 27, tzinfo=UTC)


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


@pytest.mark.parametrize(
    ("form", "data"), [("text", "\xff"), ("text", " "), ("jsonl", "{\n"), ("csv", "a,b\n1\n"), ("markdown", "\xff")]
)
def test_what_cannot_be_read_has_the_date_in_its_files_name(form: str, data: str) -> None:
    _, [row] = split(read_as(form, data.encode("latin-1"), "wire-2022-03.x", date_pattern="%Y-%m"))
    assert row.timestamp == datetime(2022, 3, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"text": "Oil.", "kind": "x"}, "unknown_source"),
        ({"text": " ", "kind": "News"}, "empty_text"),
        ({"text": 7, "kind": "News"}, "wrong_type"),
        ({"kind": "News"}, "no_text"),
    ],
)
@pytest.mark.parametrize(
    ("written", "declared", "day"),
    [
        ("2022-03-04", None, 4),
        ("2022-03-04T00:00:00+09:00", "%Y-%m-%dT00:00:00+09:00", 4),
        ("04/03/2022", "day-first", 4),
        ("04/03/2022", None, 5),  # the order is that of the field, which one record does not know
        ("1022-03-04", None, 5),
    ],
)
def test_a_record_that_is_no_document_has_its_date(
    record: dict[str, object], reason: str, written: str, declared: str | None, day: int
) -> None:
    """Without one, that of its file's name."""
    data = json.dumps({**record, "timestamp": written})
    settings: dict[str, Any] = {"name": RowsConfig(field="meta.kind", allow=("News",)), "date_format": declared}
    source = SourceConfig(dataset="D", format="jsonl", paths=("*",), date_pattern="%Y-%m-%d", **settings)
    _, [row] = split(read_input(source, data, "2022-03-05.jsonl"))
    assert (row.reason, row.timestamp) == (reason, datetime(2022, 3, day, tzinfo=UTC))


WIKI = (
    "<mediawiki><siteinfo><base>https://en.wikipedia.org/wiki/Main</base></siteinfo><page><title>A</title>"
    "<ns>{space}</ns><id>1</id>{redirect}<revision><id>2</id><timestamp>2021-03-04T05:06:07Z</timestamp>"
    "<model>{model}</model><text>{text}</text></revision></page></mediawiki>"
)
#: By format and reason: a file, and its name.
REFUSED: dict[tuple[str, str], tuple[str, str]] = {
    ("wikipedia", "redirect"): (
        WIKI.format(space=0, redirect='<redirect title="B" />', model="wikitext", text="#REDIRECT [[B]]"),
        "a.xml",
    ),
    ("wikipedia", "other_namespace"): (WIKI.format(space=3, redirect="", model="wikitext", text="Oil"), "a.xml"),
    ("wikipedia", "not_text"): (WIKI.format(space=0, redirect="", model="json", text="{}"), "a.xml"),
    ("wikipedia", "empty_text"): (WIKI.format(space=0, redirect="", model="wikitext", text="{{a}}"), "a.xml"),
    ("sgml", "empty_text"): (
        '<REUTERS NEWID="1"><DATE> 4-MAR-2021 05:06:07.00</DATE><TEXT><TITLE>Oil</TITLE></TEXT></REUTERS>',
        "a.sgm",
    ),
    ("uspto", "empty_text"): (
        '<?xml version="1.0"?><us-patent-grant><us-bibliographic-data-grant><publication-reference><document-id>'
        "<doc-number>1</doc-number><date>20210304</date></document-id></publication-reference>"
        "</us-bibliographic-data-grant></us-patent-grant>",
        "a.xml",
    ),
    ("stackexchange", "empty_text"): (
        '<posts>\n<row Id="1" PostTypeId="1" CreationDate="2021-03-04T05:06:07.000" Body=" " Title="A" />\n</posts>',
        "Posts.xml",
    ),
    ("jats", "empty_text"): (
        "<article><front><article-meta><pub-date><day>4</day><month>3</month><year>2021</year></pub-date>"
        "</article-meta></front><body/></article>",
        "a.xml",
    ),
    ("tei", "empty_text"): (
        '<TEI><teiHeader><fileDesc><sourceDesc><bibl><date when="2021-03-04"/></bibl></sourceDesc></fileDesc>'
        "</teiHeader><text/></TEI>",
        "a.xml",
    ),
    ("mail", "empty_text"): ("Date: Thu, 04 Mar 2021 05:06:07 +0000\nFrom: a@b.example\n\n \n", "a.eml"),
    ("markdown", "empty_text"): ("---\ndate: 2021-03-04\n---\n\n", "a.md"),
}


@pytest.mark.parametrize(("of", "reason"), REFUSED)
def test_what_a_format_refuses_has_the_date_in_it(of: str, reason: str) -> None:
    written, name = REFUSED[of, reason]
    _, [row] = split(read_as(of, written, name))
    assert row.reason == reason
    assert row.timestamp in (datetime(2021, 3, 4, tzinfo=UTC), datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC))
