"""The date that a page states about itself."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.clean.html.dates import _META, _tags, read_html
from finpile.clean.html.markup import measure
from finpile.timestamps import Reading


def stated(html: str) -> datetime | None:
    """The publication date of a page."""
    return read_html(html)[0].moment


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    "html",
    [
        '<META Content="2021-03-15T01:02:03Z" PROPERTY=article:published_time>',
        "<meta name='DC.date.issued' content='2021-03-15 01:02:03'>",
        '<script type="application/ld+json">{"@graph": [{"x": {"datePublished": "2021-03-15T01:02:03Z"}}]}</script>',
        '<script type="application/ld+json">{"datePublished": "2021-03-15T01:02:03Z", broken</script>',
        '<span itemprop="datePublished" content="2021-03-15T01:02:03Z">a week ago</span>',
        '<time datetime="yesterday">x</time><time datetime="2021-03-15T01:02:03+00:00">',
        '<time datetime="2020-01-01"><meta name="date" content="2021-03-15T01:02:03Z">',
        '<meta name=date content="2020-01-01"><meta property="article:published_time" content="2021-03-15T01:02:03Z">',
        '<meta name=date content="0201-03-15"><time datetime="2021-03-15T01:02:03Z">',
    ],
)
def test_the_best_date_that_a_page_states_is_found(html: str) -> None:
    assert stated(html) == utc(2021, 3, 15, 1, 2, 3)


@pytest.mark.parametrize("html", ["", "<time>2021-03-15</time>", '<meta name="revised" content="2021-03-15">', "<meta"])
def test_a_page_without_a_publication_date_has_none(html: str) -> None:
    assert stated(html) is None


JSON_LD = '<script type="application/ld+json">{}</script>'


@pytest.mark.parametrize("depth", [10, 400, 900, 5_000, 200_000])
def test_json_ld_is_read_at_any_depth(depth: int) -> None:
    """JSON nested deeper than the parser's limit is read by pattern."""
    block = '{"a": ' * depth + '{"datePublished": "2021-03-15"}' + "}" * depth
    assert stated(JSON_LD.replace("{}", block)) == utc(2021, 3, 15)


def test_number_of_tried_values_is_bounded() -> None:
    unreadable = '{"datePublished": "soon, or a bit later"},' * 2_000
    page = JSON_LD.replace("{}", f'[{unreadable} {{"datePublished": "2021-03-15"}}]')
    assert stated(page) is None
    assert stated(page.replace(unreadable, unreadable[: len(unreadable) // 4])) == utc(2021, 3, 15)


TAGS = st.lists(
    st.sampled_from(["<meta ", "<META", "<meta>", ">", "<", "name=date ", 'content="2021-03-15"', "x" * 1500, "é"]),
    max_size=12,
).map("".join)


@given(TAGS)
def test_tags_are_those_of_the_pattern_that_defines_them(page: str) -> None:
    expected = [match[1] for match in re.finditer(r"<meta\b([^>]{1,2000})>", page, re.IGNORECASE)]
    assert [tag for tag, _ in _tags(page, _META, len(page))] == expected


@given(TAGS)
def test_counts_of_the_page_spare_work_and_change_no_date(page: str) -> None:
    assert read_html(page, measure(page)) == read_html(page)


class Page(str):
    """A page that counts the characters that searches for one character pass."""

    passed = 0

    def find(self, *values: Any) -> int:
        found = super().find(*values)
        self.passed += (found if found >= 0 else len(self)) - values[1]
        return found


@pytest.mark.parametrize("unit", ["<meta ", "<meta", "<meta name=date ", "<meta><meta "])
@pytest.mark.parametrize("end", ["", ">"])
def test_unfinished_tags_are_searched_for_their_end_once(unit: str, end: str) -> None:
    page = Page(unit * 5_000 + end)
    list(_tags(page, _META, len(page)))
    assert page.passed <= len(page)


def test_a_date_whose_order_is_open_is_passed_over_and_named() -> None:
    """`2/10/2008` is not evidence; a later one is taken where there is one."""
    open_date = '<meta name="date" content="2/10/2008">'
    assert read_html(open_date) == (Reading(), "2/10/2008")
    assert read_html(open_date + '<time datetime="2008-10-02">') == (Reading(datetime(2008, 10, 2, tzinfo=UTC)), None)
    assert read_html('<meta name="date" content="23/10/2008">') == (Reading(datetime(2008, 10, 23, tzinfo=UTC)), None)


def test_a_date_in_a_comment_is_not_that_of_the_page() -> None:
    old = '<meta name="date" content="2009-01-01">'
    assert stated(f"<!-- <title>Old</title> {old} --><time datetime=2021-03-15>") == utc(2021, 3, 15)
    assert stated(f"<!-- {old}") is None
    assert stated(f"<!-- new --><!-->{old}") == utc(2009, 1, 1)
    assert stated('<!-- <script type="application/ld+json">{"datePublished": "2009-01-01"}</script> -->') is None
