"""Facts of Inline XBRL: read from the tags, found in the text, and nothing of what is hidden."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from resiliparse.parse.html import HTMLTree

from finpile.clean.html.page import to_text
from finpile.clean.html.xbrl import read_facts
from finpile.filings.facts import FACTS, fact_counts, figures, num_found
from tests.support.real_data import find

PAGE = """<html><body><div style="display:none"><ix:header><ix:hidden>
<ix:nonFraction name="dei:X" contextRef="a" unitRef="n">77</ix:nonFraction></ix:hidden><ix:resources>
<xbrli:context id="a"><xbrli:entity><xbrli:identifier scheme="s">1</xbrli:identifier></xbrli:entity><xbrli:period>
<xbrli:startDate>2024-01-01</xbrli:startDate><xbrli:endDate>2024-12-31</xbrli:endDate></xbrli:period></xbrli:context>
<xbrli:context id="b"><xbrli:segment><xbrldi:explicitMember dimension="us-gaap:Axis">x:Pumps</xbrldi:explicitMember>
</xbrli:segment><xbrli:period><xbrli:instant>2024-12-31</xbrli:instant></xbrli:period></xbrli:context>
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


def test_facts_have_their_number_unit_period_and_dimensions() -> None:
    assert to_text(PAGE, main_content=False).facts.numbers == [
        {
            "name": "dei:X", "figure": "77", "value": "77", "unit": "n", "period": "2024-01-01/2024-12-31",
            "hidden": True,
        },
        {
            "name": "us-gaap:Revenues", "figure": "1,234", "value": "1234000000", "unit": "USD",
            "period": "2024-01-01/2024-12-31",
        },
        {
            "name": "us-gaap:Loss", "figure": "0.50", "value": "-0.50", "unit": "USD/shares", "period": "2024-12-31",
            "dimensions": {"us-gaap:Axis": "x:Pumps"},
        },
        {"name": "x:Debt", "figure": "1.234,5", "value": "1234500", "unit": "USD", "period": "2024-01-01/2024-12-31"},
        {"name": "x:None", "figure": "\u2014", "value": "0", "unit": "USD", "period": "2024-01-01/2024-12-31"},
    ]  # fmt: skip


def test_what_the_page_hides_is_not_in_its_text() -> None:
    text = to_text(PAGE, main_content=False).text
    assert all(hidden not in text for hidden in ("77", "88", "99", "2024"))
    assert "Sales were $1,234 million" in text


def test_shown_figures_are_counted_as_numbers_of_their_own() -> None:
    facts = read_facts(PAGE).numbers
    assert figures(facts) == ["1,234", "0.50", "1.234,5"]
    assert num_found(["1,234", "234", "12"], "It was 1,234; then 1.2, 12.5 and 12.") == 2
    rows = pa.RecordBatch.from_pydict({"text": ["1,234 and 0.50", "no"], "meta": [json.dumps({FACTS: facts}), "{}"]})
    assert fact_counts(rows) == {"facts": 3, "facts_found": 2}
    assert fact_counts(rows.slice(1)) == {}


TEXTS = """<p><ix:hidden><ix:nonNumeric name="dei:EntityRegistrantName" contextRef="c">Acme &amp; Co.</ix:nonNumeric>
</ix:hidden><xbrli:context id="c"><xbrli:instant>2024-12-31</xbrli:instant></xbrli:context>
<ix:nonNumeric name="dei:Shell" contextRef="c" format="ixt:fixed-false">&#9744;</ix:nonNumeric>
<ix:nonNumeric name="x:Nil" contextRef="c"/>
<ix:nonNumeric name="x:Policy" continuedAt="n1">We <b>hedge</b>
<ix:nonFraction name="x:Rate">5</ix:nonFraction>%%, see</ix:nonNumeric> page 3
<ix:continuation id="n1" continuedAt="n2">the note</ix:continuation> page 4
<ix:continuation id="n2" continuedAt="n1">on risk.</ix:continuation>
<ix:nonNumeric name="x:Block"><ix:nonNumeric name="x:Inner">in</ix:nonNumeric><i>%s</i></ix:nonNumeric></p>"""


def test_text_facts_are_kept_if_they_are_short_and_long_ones_by_their_length() -> None:
    facts = read_facts(TEXTS % ("word " * 100))
    assert [fact["name"] for fact in facts.numbers] == ["x:Rate"]
    assert facts.texts == [
        {"name": "dei:EntityRegistrantName", "text": "Acme & Co.", "period": "2024-12-31", "hidden": True},
        {"name": "dei:Shell", "text": "\u2610", "value": "false", "period": "2024-12-31"},
        {"name": "x:Nil", "text": "", "period": "2024-12-31"},
        {"name": "x:Policy", "text": "We hedge 5%, see the note on risk."},
        {"name": "x:Block", "length": len("in" + "word " * 100)},
        {"name": "x:Inner", "text": "in"},
    ]


@pytest.mark.parametrize("size", [256, 257, 8192, 100_000])
def test_the_length_of_a_long_text_is_that_without_tags(size: int) -> None:
    marked = "".join(f"<b class='{index}'>{'x' * 10}</b>" for index in range(size // 10)) + "x" * (size % 10)
    [fact] = read_facts(f"<p>before</p><ix:nonNumeric name='a'>{marked}</ix:nonNumeric><p>after</p>").texts
    assert fact == ({"name": "a", "text": "x" * size} if size == 256 else {"name": "a", "length": size})


def test_nested_facts_each_have_their_figure() -> None:
    page = "<p><ix:nonFraction name='a'><ix:nonFraction name='b'>12</ix:nonFraction></ix:nonFraction></p>"
    assert [(fact["name"], fact["figure"]) for fact in read_facts(page).numbers] == [("a", "12"), ("b", "12")]


@pytest.mark.parametrize("seed", range(100))
def test_any_soup_of_tags_gives_facts_or_none(seed: int) -> None:
    rng = random.Random(seed)
    parts = ["<ix:nonFraction name='a' scale='99999'>", "</ix:nonFraction>", "1,2", "<ix:hidden>", "</ix:hidden>",
             "<xbrli:unit id='u'>", "</xbrli:unit>", "<context id='c'>", "<b", "<ix:nonFraction/>", "&#x;",
             "<ix:nonNumeric name='t' continuedAt='n'>", "</ix:nonNumeric>", "<ix:continuation id='n' continuedAt='n'>",
             "</ix:continuation>", "words " * 99]  # fmt: skip
    facts = read_facts("".join(rng.choice(parts) for _ in range(60)))
    assert all(isinstance(fact["figure"], str) for fact in facts.numbers)
    assert all(("text" in fact) != ("length" in fact) for fact in facts.texts)


@pytest.mark.parametrize(
    "part",
    [
        "<ix:nonFraction name=",
        "<ix:nonFraction>",
        "<unit id='u'>",
        "<ix:hidden>",
        "<",
        "<ix:nonNumeric>",
        "<ix:continuation id='a'>",
        "<ix:nonNumeric continuedAt='a'>",
    ],
)
def test_hostile_pages_take_linear_time(part: str) -> None:
    facts = read_facts("<ix:nonFraction>" + part * 50_000)
    assert all(not fact["figure"] for fact in facts.numbers)
    assert all(not fact.get("text") for fact in facts.texts)


@pytest.mark.slow
def test_facts_of_real_pages_equal_those_of_a_parser() -> None:
    folder = find("fin_filings/edgar_10k10q_ixbrl_html.tar.zst")
    from benchmarks.sources.formats import members_of

    pages = [data.decode() for name, data in members_of(folder, r"(aapl|hubs)-10-q")]
    assert len(pages) == 2
    for page in pages:
        nodes = HTMLTree.parse(page).document.query_selector_all(r"ix\:nonfraction")
        facts = read_facts(page).numbers
        assert [fact["figure"] for fact in facts] == [" ".join(node.text.split()) for node in nodes]
        assert [fact["name"] for fact in facts] == [node.getattr("name") for node in nodes]
        wanted = figures(facts)
        assert num_found(wanted, to_text(page, main_content=False).text) == len(wanted) > 600
