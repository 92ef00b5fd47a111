"""Facts of Inline XBRL: read from the tags, at their places in the text, and nothing of what is hidden."""

from __future__ import annotations

import random
import re
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from finpile.clean import clean_batch
from finpile.clean.html import xbrl
from finpile.clean.html.page import to_text
from finpile.clean.html.xbrl import read_facts, without_marks
from finpile.clean.stage.normalise import normalise
from finpile.config import CleanConfig, SourceConfig
from finpile.documents.document import HTML, DocumentBuilder, RawDocument
from finpile.filings.facts import is_shown
from tests.support.real_data import find
from tests.support.references.inline_xbrl import reference_facts

PAGE = """<html><body><div style="display:none"><ix:header><ix:hidden>
<ix:nonFraction name="dei:X" contextRef="a" unitRef="n">77</ix:nonFraction></ix:hidden><ix:resources>
<xbrli:context id="a"><xbrli:entity><xbrli:identifier scheme="s">1</xbrli:identifier></xbrli:entity><xbrli:period>
<xbrli:startDate>2024-01-01</xbrli:startDate><xbrli:endDate>2024-12-31</xbrli:endDate></xbrli:period></xbrli:context>
<xbrli:context id="b"><xbrli:segment><xbrldi:explicitMember dimension="us-gaap:Axis">x:Pumps</xbrldi:explicitMember>
<xbrldi:typedMember dimension="x:Day"><x:day> 2024-02-01 </x:day></xbrldi:typedMember></xbrli:segment><xbrli:period>
<xbrli:instant>2025-01-01T00:00:00</xbrli:instant></xbrli:period></xbrli:context>
<xbrli:unit id="u"><xbrli:measure>iso4217:USD</xbrli:measure></xbrli:unit>
<xbrli:unit id="p"><xbrli:divide><xbrli:unitNumerator><xbrli:measure>iso4217:USD</xbrli:measure></xbrli:unitNumerator>
<xbrli:unitDenominator><xbrli:measure>xbrli:shares</xbrli:measure></xbrli:unitDenominator></xbrli:divide></xbrli:unit>
</ix:resources></ix:header></div><p style="Display: none">Nobody sees 88.</p><p hidden>Nor 99.</p>
<p>Sales were $<ix:nonFraction name="us-gaap:Revenues" contextRef="a" unitRef="u" scale="6" decimals="-6"
format="ixt:num-dot-decimal">1,234</ix:nonFraction> million, the loss
(<ix:nonFraction name="us-gaap:Loss" contextRef="b" unitRef="p" sign="-" format="ixt:num-dot-decimal"><b>0.</b>50
</ix:nonFraction>), debt <ix:nonFraction name="x:Debt" contextRef="a" unitRef="u" scale="3"
format="ixt:num-comma-decimal">1.234,5</ix:nonFraction>, and <ix:nonFraction name="x:None" contextRef="a" unitRef="u"
format="ixt:fixed-zero">&#8212;</ix:nonFraction></p></body></html>"""
YEAR = {"filer": "1", "period_start": date(2024, 1, 1), "period_end": date(2024, 12, 31), "dimensions": {}}


def places_of(page: str, **options: Any) -> tuple[str, dict[int, tuple[int, int]]]:
    """The text of a page, and the places of its facts in it."""
    read = to_text(page, main_content=False, **options)
    text, places = (read.text, {}) if read.marked is None else without_marks(read.marked)
    assert text == read.text
    return text, places


def test_facts_have_their_number_unit_period_dimensions_and_filer() -> None:
    shown = {"hidden": False, "decimals": None, "sign": None}
    assert read_facts(PAGE).rows == [
        {**shown, **YEAR, "fact": 0, "concept": "dei:X", "shown": "77", "value": "77", "unit": "n", "hidden": True},
        {
            **shown, **YEAR, "fact": 1, "concept": "us-gaap:Revenues", "shown": "1,234", "value": "1234000000",
            "unit": "USD", "decimals": "-6",
        },
        {
            **shown, "fact": 2, "concept": "us-gaap:Loss", "shown": "0.50", "value": "-0.50", "unit": "USD/shares",
            "sign": "-", "filer": None, "period_start": None, "period_end": date(2024, 12, 31),
            "dimensions": {"us-gaap:Axis": "x:Pumps", "x:Day": "2024-02-01"},
        },
        {
            **shown, **YEAR, "fact": 3, "concept": "x:Debt", "shown": "1.234,5", "value": "1234500", "unit": "USD",
        },
        {**shown, **YEAR, "fact": 4, "concept": "x:None", "shown": "\u2014", "value": "0", "unit": "USD"},
    ]  # fmt: skip


def test_what_the_page_hides_is_not_in_its_text_and_has_no_place() -> None:
    text, places = places_of(PAGE)
    assert all(hidden not in text for hidden in ("77", "88", "99", "2024"))
    assert "Sales were $1,234 million" in text
    assert [text[slice(*places[number])] for number in range(1, 5)] == ["1,234", "0.50", "1.234,5", "\u2014"]
    assert 0 not in places


TEXTS = """<p><ix:hidden><ix:nonNumeric name="dei:EntityRegistrantName" contextRef="c">Acme &amp; Co.</ix:nonNumeric>
</ix:hidden><xbrli:context id="c"><xbrli:instant>2024-12-31</xbrli:instant></xbrli:context>
<ix:nonNumeric name="dei:Shell" contextRef="c" format="ixt:fixed-false">&#9744;</ix:nonNumeric>
<ix:nonNumeric name="x:Nil" contextRef="c"/>
<ix:nonNumeric name="x:Policy" continuedAt="n1">We <b>hedge</b>
<ix:nonFraction name="x:Rate">5</ix:nonFraction>%%, <ix:exclude>7</ix:exclude> see</ix:nonNumeric> page 3
<ix:continuation id="n1" continuedAt="n2">the note</ix:continuation> page 4
<ix:continuation id="n2" continuedAt="n1">on risk.</ix:continuation>
<ix:nonNumeric name="x:Block"><ix:nonNumeric name="x:Inner">in</ix:nonNumeric><i>%s</i></ix:nonNumeric></p>"""


def test_text_facts_have_what_they_show_if_it_is_short() -> None:
    facts = read_facts(TEXTS % ("word " * 100)).rows
    assert [(fact["concept"], fact["shown"], fact["value"]) for fact in facts] == [
        ("dei:EntityRegistrantName", "Acme & Co.", "Acme & Co."),
        ("dei:Shell", "\u2610", "false"),
        ("x:Nil", "", None),
        ("x:Policy", "We hedge 5%, see the note on risk.", "We hedge 5%, see the note on risk."),
        ("x:Rate", "5", "5"),
        ("x:Block", None, None),
        ("x:Inner", "in", "in"),
    ]
    assert [fact["fact"] for fact in facts if "unit" in fact] == [4]


def test_long_and_continued_texts_have_a_place_from_their_first_part_to_the_last() -> None:
    text, places = places_of(TEXTS % ("word " * 100))
    block = "in" + "word " * 100
    assert {number: text[slice(*place)] for number, place in places.items()} == {
        1: "\u2610",
        3: "We hedge 5%, 7 see page 3 the note page 4 on risk.",
        4: "5",
        5: block.strip(),
        6: "in",
    }


def test_nested_facts_each_have_their_figure_and_place() -> None:
    inner = "<ix:nonFraction name='b'>12</ix:nonFraction>"
    page = f"<p>A <ix:nonFraction name='a'><b> {inner}&nbsp;</b></ix:nonFraction> x</p>"
    assert [(fact["concept"], fact["shown"]) for fact in read_facts(page).rows] == [("a", "12"), ("b", "12")]
    text, places = places_of(page)
    assert places == {0: (2, 4), 1: (2, 4)}
    assert text[2:4] == "12"


@pytest.mark.parametrize("tables", ["lines", "markdown"])
def test_figures_in_tables_have_their_places(tables: str) -> None:
    fact = "<ix:nonFraction name='a'>{}</ix:nonFraction>".format
    page = (
        "<table><tr><td></td><td colspan=3>2024</td><td colspan=3>2023</td></tr>"
        f"<tr><td>Sales<td>$<td>{fact('12')}<td><td>(<td>{fact('<p>34</p>')}<td>)</tr>"
        f"<tr><td>Costs {fact('one')}<td><td>{fact('12')}<td>%<td><td>{fact('&#8212;')}<td></tr></table>"
    )
    text, places = places_of(page, tables=tables)
    assert [text[slice(*places[number])] for number in range(5)] == ["12", "34", "one", "12", "\u2014"]
    row = text.index("Costs")
    assert places[0][0] < row < places[3][0]


@pytest.mark.parametrize("mark", ["\ufdd3", "\ufde0", "&#64979;", "&#xFDD4;"])
def test_a_page_with_characters_of_marks_keeps_them_and_has_no_places(mark: str) -> None:
    text, places = places_of(f"<p>a{mark}b <ix:nonFraction name='a'>12</ix:nonFraction></p>")
    assert (len(text), text[0], text[2:], places) == (6, "a", "b 12", {})


@pytest.mark.parametrize(("end", "has_places"), [("", True), ("<ix:nonFraction>&#8212;</ix:nonFraction>", False)])
def test_a_page_of_the_web_has_its_main_content_as_without_facts(
    monkeypatch: pytest.MonkeyPatch, end: str, has_places: bool
) -> None:
    """A dash alone is not main content, but one with marks is."""
    menu = "<nav><ul><li><a href='/'>Home</a><li><a href='/a'>About us</a></ul></nav>"
    sales = "<p>Sales were <ix:nonFraction>1,234</ix:nonFraction> million, and more than in the year before.</p>"
    page = f"<html><body>{menu}<article>{sales}<p>{end}</p></article></body></html>"
    read = to_text(page, main_content=True)
    assert (read.marked is not None) == has_places
    if read.marked is not None:
        text, places = without_marks(read.marked)
        assert (text, text[slice(*places[0])]) == (read.text, "1,234")
    monkeypatch.setattr(xbrl.Facts, "marked", lambda *_: None)
    assert to_text(page, main_content=True).text == read.text


@pytest.mark.parametrize(
    ("sentence", "settings", "has_places"),
    [
        ("Sales of caf\u00e9s were {}.", {}, True),
        ("Sales of cafe\u0301s were  {}  \u212b.", {}, True),
        ("Sales of cafe\u0301s were {}.", {"normalise": False}, True),
        ("Sales of caf\u00c3\u00a9s were {}.", {"mojibake": "repair"}, False),
        ("Sales of caf\u00e9s were {}.", {"mojibake": "repair"}, True),
        ("Sales were {}\u0301.", {}, False),  # the accent belongs to the last digit, also after a mark
    ],
)
def test_places_are_bytes_of_the_clean_text(sentence: str, settings: dict[str, Any], has_places: bool) -> None:
    page = sentence.format("<ix:nonFraction name='a' unitRef='u'>12e</ix:nonFraction>")
    builder = DocumentBuilder("FinPile", "Filings")
    builder.append(RawDocument(locator="a", text=f"<html><p>{page}</p></html>", media_type=HTML))
    config = CleanConfig(**settings)
    source = SourceConfig(name="Filings", dataset="FinPile", format="edgar", paths=("a",), clean=config)
    (row,) = clean_batch(builder.flush(), source).batch.to_pylist()
    (fact,) = row["facts"]
    text = row["text"].encode()
    assert (fact["start"] is not None) == has_places
    if has_places:
        assert text[fact["start"] : fact["end"]] == b"12e"


PARTS = [
    "<ix:nonFraction name='a' scale='99999'>", "</ix:nonFraction>", "1,2", "<ix:hidden>", "</ix:hidden>", "\u00a0",
    "<xbrli:unit id='u'>", "</xbrli:unit>", "<context id='c'>", "<b", "<ix:nonFraction/>", "&#x;", "<td>", "<tr>",
    "<table>", "</table>", "<p>", "</p>", "<pre>", "</pre>", "\n", " ", "&nbsp;", "<!-- x -->", "> ", "e\u0301", "$",
    "(",     "<ix:nonNumeric name='t' continuedAt='n'>", "</ix:nonNumeric>", "<ix:continuation id='n' continuedAt='n'>",
    "</ix:continuation>", "words " * 99, "<span style='display:none'>", "</span>", "<li>", "<br>", "\u0301",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(300))
def test_any_soup_of_tags_has_the_text_of_the_page_without_marks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    page = "".join(rng.choice(PARTS) for _ in range(80))
    for tables in ("lines", "markdown"):
        read = to_text(page, main_content=False, tables=tables)  # type: ignore[arg-type]
        with monkeypatch.context() as without:
            without.setattr(xbrl.Facts, "marked", lambda *_: None)
            plain = to_text(page, main_content=False, tables=tables)  # type: ignore[arg-type]
        assert read.text == plain.text
        assert all(xbrl._ANY_MARK.search(text or "") is None for text in (read.text, read.title))


@pytest.mark.parametrize(
    "part",
    [
        "<ix:nonFraction name=",
        "<ix:nonFraction>",
        "<ix:nonFraction> </ix:nonFraction>",
        "<unit id='u'>",
        "<ix:hidden>",
        "<",
        "<ix:nonNumeric>",
        "<ix:exclude>",
        "<ix:continuation id='a'>",
        "<ix:nonNumeric continuedAt='a'>",
    ],
)
def test_hostile_pages_take_linear_time(part: str) -> None:
    page = "<ix:nonFraction>" + part * 50_000
    facts = read_facts(page)
    assert all(not fact["shown"] for fact in facts.rows)
    assert facts.marked(page) in (None, page)


def test_facts_inside_each_other_are_marked_in_linear_time() -> None:
    page = "<ix:nonFraction>" * 30_000 + "x" + "</ix:nonFraction>" * 30_000
    text, places = without_marks(read_facts(page).marked(page) or "")
    assert text == page
    assert {page[slice(*place)] for place in places.values()} == {"x"}
    assert len(places) == 30_000


@pytest.mark.slow
def test_facts_of_real_reports_are_those_of_a_reading_as_xml() -> None:
    from benchmarks.sources.archives import members_of

    num_pages = num_facts = num_seen = 0
    archives = ("edgar_10k10q_ixbrl_html.tar.zst", "edgar_other_forms_html.tar.zst")
    members = [member for name in archives for member in members_of(find(f"fin_filings/{name}"))]
    for name, raw in members:
        page = raw.decode(errors="replace")
        if re.search(r"/(?:\w*Table|Nvidia|Delaware)", name) or "<ix:nonfraction" not in page.lower():
            continue  # not XML, or without facts
        num_pages += 1
        expected, read = reference_facts(page), to_text(page, main_content=False)
        assert read.marked is not None
        text, places = without_marks(normalise(read.marked))
        assert text == normalise(read.text)
        found = read.facts.rows
        assert len(found) == len(expected)
        for fact, wanted in zip(found, expected, strict=True):
            is_long, value = wanted.pop("is_long"), wanted.pop("value", None)
            if fact["shown"] is None:
                assert is_long, (name, fact)
                del wanted["shown"]
            seen = {**fact, "shown": "".join((fact["shown"] or "").split())}
            assert {key: seen[key] for key in wanted} == wanted, name
            if value is not None:
                assert Decimal(fact["value"]) == value, (name, fact)
            if fact["hidden"] or not fact["shown"]:
                continue
            num_seen += 1
            assert fact["fact"] in places, (name, fact)
            if "unit" in fact:
                assert is_shown(fact["shown"], text[slice(*places[fact["fact"]])]), (name, fact)
        num_facts += len(found)
    assert num_pages == 39
    assert min(num_facts - 50_000, num_seen - 45_000) > 0
