"""Measures of texts beside peers, on samples counted by hand."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

PAGE = (
    "<html><body><p>Menu</p><div id='article'><h3>Title</h3><p>One two three four five six seven eight "
    'nine<a name="f1"></a> ten.</p><script>var x = 1</script><p><a name="f1"></a>1. A note of many words that nobody '
    "reads at all. Return to text</p></div></body></html>"
)
WIKITEXT = """'''Oil''' is a liquid of many kinds, which [[fuel]]s burn and from which plastics are made in large
plants.<ref>Ten words of a reference that no text of a page ever has.</ref>
{{infobox|a={{b|ten words of a template that no text of a page ever has in it}}}}
{|
| ten words of a table that is counted in no measure of prose here
|}
[[File:a.png|thumb|ten words of a [[caption]] that is counted in no measure of prose here]]
"""


@pytest.fixture
def quality(modules: None) -> ModuleType:
    return import_module("benchmarks.sources.quality")


def test_overlap_counts_words_as_often_as_they_occur(quality: ModuleType) -> None:
    """Common: `a` twice, `b` once; four words against five."""
    found = quality.overlap(quality.words_of("A a b x"), quality.words_of("a, a, a; b y"))
    assert found == (3 / 4, 3 / 5, 6 / 9)
    assert quality.overlap([], ["a"]) == quality.overlap(["a"], []) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("Plain text, 5 < 6 & 7 > 2; a 'quoted' word (see [1]).\n\n- item\nA: b", {}),
        ("{{cite web|url=x}}", {"braces": 2, "bar": 1}),
        ("{|class='x'\n|-\n| a || b\n|}", {"table": 3, "bar": 6, "attribute": 1}),
        ("[[a|b]] [http://x y] ''z'' <ref name=q>r</ref>", {"link": 2, "bar": 1, "address": 1, "quotes": 2, "tag": 2}),
        ("File:a.png Kategorie:Welle thumb|right|250px|x <!-- c -->", {"file": 2, "option": 2, "bar": 3, "comment": 2}),
        ("== A ==\n* b\n: c\nfr:Pétrole\nbe-x-old:N\n__TOC__ &nbsp;&#160;",
         {"heading": 1, "list": 2, "language": 2, "switch": 1, "entity": 2}),
    ],
)  # fmt: skip
def test_leftover_marks_are_counted(quality: ModuleType, text: str, marks: dict[str, int]) -> None:
    assert {kind: count for kind, count in quality.leftover(text).items() if count} == marks


def test_prose_is_what_stands_between_marks_of_wikitext(quality: ModuleType) -> None:
    runs = quality.prose_runs(WIKITEXT)
    assert runs == ["burn and from which plastics are made in"]
    assert quality.num_kept(runs, "They burn, and from which plastics are made in plants.") == 1
    assert quality.num_kept(runs, "They burn; from which plastics are made in plants.") == 0


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("One two three four five six seven eight nine ten.", True),
        ("Two three four five six seven eight nine", True),
        ("One two three", False),
        ("Main Menu Toggle Button one two three four five six seven eight nine ten", False),
        ("", False),
    ],
)
def test_a_text_is_whole_if_it_ends_where_the_speech_does(quality: ModuleType, text: str, is_whole: bool) -> None:
    assert quality.is_whole(text, quality.article_of(PAGE)) == is_whole


def test_a_page_without_the_element_has_whole_texts(quality: ModuleType) -> None:
    assert quality.article_of("<p>One") is None
    assert quality.is_whole("One", None)


def test_redirects_and_elements_that_are_no_wikitext_do_not_count(quality: ModuleType) -> None:
    pages = [quality.Page("a", "#REDIRECT [[b]]"), quality.Page("b", "x <math>{{y}}</math><nowiki /> [[z]]</nowiki>")]
    assert quality.articles(pages) == [quality.Page("b", "x  <nowiki /> [[z]]</nowiki>")]


def test_tools_that_are_not_installed_are_left_out(quality: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality, "find_spec", lambda name: None)
    assert list(quality.wikitext_tools()) == ["finpile"]
    assert all(name.startswith(("finpile", "resiliparse")) for name in quality.page_tools())


def test_tables_have_each_tool(quality: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(quality, "find_spec", lambda name: None)
    totals, worst = quality.speech_tables(
        [(quality.Page("a", PAGE), "one two three four five six seven eight nine ten")]
    )
    assert totals.count("\n") == 5
    assert "| a | notes below the speech |" in worst
    totals, by_kind, worst = quality.wikitext_tables([quality.Page("a", WIKITEXT)])
    assert "| finpile | 1 |" in totals
    assert "100.00%" in totals
    assert by_kind.count("\n") == 1 + len(quality.LEFTOVER)
    assert worst.count("\n") == 1
