"""The date that a page states about itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from finpile.clean.html_dates import from_html


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
    assert from_html(html) == utc(2021, 3, 15, 1, 2, 3)


@pytest.mark.parametrize("html", ["", "<time>2021-03-15</time>", '<meta name="revised" content="2021-03-15">', "<meta"])
def test_a_page_without_a_publication_date_has_none(html: str) -> None:
    assert from_html(html) is None
