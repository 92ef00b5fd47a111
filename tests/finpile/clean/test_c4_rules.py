"""The C4 rules against a slow reference implementation, and each rule by an example."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.clean.filters import c4
from finpile.clean.filters.c4 import C4Parameters
from finpile.clean.stage.normalise import normalise
from finpile.clean.stage.rules import apply_all, byte_spans, without
from finpile.errors import ConfigError
from finpile.plugins.filter import FILTERS, Filter, Rejection, Span

GOOD = "Oil prices rose again on Monday."
PAGE = "\n".join([GOOD, "Gold fell by two percent there.", "The dollar did not move much."])


def reference(text: str) -> list[str] | None:
    """The lines that stay, written straight from the table; None for a rejected page."""
    if "lorem ipsum" in text.lower() or "{" in text:
        return None
    kept, sentences = [], 0
    for line in text.split("\n"):
        bare = re.sub(r"\[\d*\]|\[edit\]|\[citation needed\]", "", line).rstrip()
        if any(len(word) > 1000 for word in line.split()) or len(bare.split()) < 5:
            continue
        if not bare.endswith((".", "?", "!", '"')) or bare.endswith("..."):
            continue
        low = bare.lower()
        phrases = ["javascript", "terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies"]
        if any(phrase in low for phrase in [*phrases, "use cookies"]):
            continue
        kept.append(re.sub(r"\[\d*\]|\[edit\]|\[citation needed\]", "", line))
        sentences += max(1, len(re.findall(r"[.?!]+[\"')\]\u2019\u201d]*(?=\s|$)", kept[-1])))
    return kept if sentences >= 3 else None


SAMPLES = (
    GOOD,
    "Gold fell [12] by two percent there.[3]",
    "Home",
    "Menu and more to read",
    "",
    "We said: “no” — and left it.",
    "Please enable Javascript to see this page.",
    "Please enable Java[1]script to see this page.",
    "We have a privacy[edit] policy and we use cook[EDIT]ies here.",
    "Read our privacy policy before you go on.",
    "It goes on and on ...",
    "x" * 1001 + " is a very long word.",
    "Too short.",
    "lorem ipsum dolor sit amet you know.",
    "f(x) { return x; }",
    'He said that "oil rose on Monday"',
    "Is it [citation needed] so? It is! It was. [edit]",
)
LINES = st.lists(st.sampled_from(SAMPLES), max_size=14)


@given(LINES)
def test_kept_lines_equal_those_of_the_reference(lines: list[str]) -> None:
    text = normalise("\n".join(lines))
    found, expected = apply_all([(c4.FILTER, C4Parameters())], text), reference(text)
    if isinstance(found, Rejection):
        assert expected is None
    else:
        assert [line for line in without(text, found).split("\n") if line] == expected
        assert not without(text, found).endswith("\n")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x" * 1001 + " and four more words.", "c4_long_word"),
        ("Menu and some more words", "c4_no_end_mark"),
        ("This one breaks off ...", "c4_ellipsis"),
        ("Only four words here.", "c4_short_line"),
        ("Please turn on JavaScript to read on.", "c4_javascript"),
        ("This fine site uses cookies for you.", "c4_policy"),
    ],
)
def test_a_line_is_removed_with_its_line_end_by_the_rule_it_breaks(line: str, reason: str) -> None:
    lines = PAGE.split("\n")
    middle = "\n".join([lines[0], line, *lines[1:]])
    at = len(lines[0]) + 1
    assert c4.apply(middle) == [Span(at, at + len(line) + 1, reason)]
    assert without(middle, c4.apply(middle)) == PAGE  # type: ignore[arg-type]
    assert c4.apply(f"{PAGE}\n\n{line}") == [Span(len(PAGE), len(PAGE) + 2 + len(line), reason)]
    assert c4.apply(f"{line}\n\n{PAGE}") == [Span(0, len(line) + 2, reason)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PAGE + "\nLOREM Ipsum", "c4_lorem_ipsum"),
        (PAGE + "\nvar x = {};", "c4_curly_bracket"),
        (GOOD + "\n" + GOOD, "c4_few_sentences"),
        ("Home\nMenu", "c4_few_sentences"),
        ("x", "c4_few_sentences"),
    ],
)
def test_a_page_is_rejected_as_a_whole(text: str, reason: str) -> None:
    found = c4.apply(text)
    assert isinstance(found, Rejection)
    assert found.reason == reason


def test_three_sentences_in_one_line_are_enough() -> None:
    assert c4.apply('Oil rose. Did gold fall? "Not at all!"') == []


@pytest.mark.parametrize(("length", "is_kept"), [(1000, True), (1001, False)])
def test_a_line_may_have_words_of_1000_characters(length: int, is_kept: bool) -> None:
    line = "x" * (length - 1) + "é and four more words."
    assert (c4.apply(f"{line}\n{PAGE}") == []) == is_kept


def test_dropped_neighbours_are_one_span_if_they_break_the_same_rule() -> None:
    first, *rest = PAGE.split("\n")
    start = len(first) + 1
    two = "\n".join([first, "Home page", "Menu", *rest])
    assert c4.apply(two) == [Span(start, start + len("Home page\nMenu\n"), "c4_no_end_mark")]
    other = "\n".join([first, "Home page", "Too short.", *rest])
    middle = start + len("Home page\n")
    assert c4.apply(other) == [
        Span(start, middle, "c4_no_end_mark"),
        Span(middle, middle + len("Too short.\n"), "c4_short_line"),
    ]
    apart = "\n".join([first, "Home page", rest[0], "Menu", *rest[1:]])
    later = start + len(f"Home page\n{rest[0]}\n")
    assert c4.apply(apart) == [
        Span(start, middle, "c4_no_end_mark"),
        Span(later, later + len("Menu\n"), "c4_no_end_mark"),
    ]


def test_citations_in_dropped_lines_are_no_spans_of_their_own() -> None:
    line = "Menu [12] and more to read"
    assert c4.apply(f"{line}\n{PAGE}") == [Span(0, len(line) + 1, "c4_no_end_mark")]


def test_citations_are_spans_inside_lines_that_stay() -> None:
    text = PAGE.replace("Gold fell", "Gold[12] fell[citation needed]")
    found = c4.apply(text)
    assert isinstance(found, list)
    assert [(text[span.start : span.end], span.reason) for span in found] == [
        ("[12]", "c4_citation"),
        ("[citation needed]", "c4_citation"),
    ]
    assert without(text, found) == PAGE


def _cut(text: str, what: str) -> list[Span]:
    return [Span(found.start(), found.end(), "cut") for found in re.finditer(what, text)]


#: Removes every occurrence of a string, its parameter.
CUT = Filter(name="cut", apply=_cut, reasons={"cut": "an occurrence of the string"}, parameters=str)


@given(st.text(alphabet="abcé", max_size=30), st.lists(st.sampled_from(["a", "b", "ab", "bc", "cé", "aa"]), max_size=4))
def test_spans_of_filters_in_a_row_are_spans_of_the_first_text(text: str, cuts: list[str]) -> None:
    expected = text
    for cut in cuts:
        expected = expected.replace(cut, "")
    spans = apply_all([(CUT, cut) for cut in cuts], text)
    assert isinstance(spans, list)
    assert without(text, spans) == expected
    assert all(first.end <= second.start for first, second in itertools.pairwise(spans))
    data = text.encode()
    for span, (start, end, *_) in zip(spans, byte_spans(text, spans), strict=True):
        assert data[start:end].decode() == text[span.start : span.end] != ""


def test_parameters_move_the_bounds_of_the_rules() -> None:
    text = "Oil rose. Gold fell.\nA line of exactly seven words, no less."
    assert c4.apply(text) == Rejection("c4_few_sentences", "1 sentences in 1 lines < 3")
    assert c4.apply(text, C4Parameters(min_sentences=1)) == [Span(0, 21, "c4_short_line")]
    assert c4.apply(text, C4Parameters(min_sentences=1, min_words_per_line=4)) == []
    assert c4.apply(text, C4Parameters(min_sentences=4, min_words_per_line=1)) == Rejection(
        "c4_few_sentences", "3 sentences in 2 lines < 4"
    )


def test_reason_that_a_filter_does_not_declare_is_an_error() -> None:
    undeclared = Filter(name="cut", apply=_cut, reasons={})
    with pytest.raises(ValueError, match="'cut' is not a reason of filter cut"):
        apply_all([(undeclared, "a")], "banana")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A Darn page.", "'darn' at character 2"),
        ("darn", "'darn' at character 0"),
        ("so (hell-bent) it", "'hell-bent' at character 4"),
        ("the \u00e9 word", "'\u00e9' at character 4"),
        ("darned", None),
        ("undarn", None),
        ("darn_it", None),
        ("darn2", None),
        ("caf\u00e9", None),
        ("hell bent", None),
    ],
)
def test_page_with_a_word_of_the_list_is_rejected(text: str, found: str | None) -> None:
    parameters = C4Parameters(bad_words=("darn", "Hell-Bent", "\u00c9"))
    result = c4.apply(f"{text}\n{PAGE}", parameters)
    assert (result.detail if isinstance(result, Rejection) and result.reason == "c4_bad_word" else None) == found


def test_empty_word_in_the_list_is_an_error() -> None:
    with pytest.raises(ConfigError, match="bad_words has an empty word"):
        C4Parameters(bad_words=("darn", " "))


def test_phrase_across_two_lines_is_none() -> None:
    page = f"{PAGE}\nThis is about terms of\nuse and more of it."
    assert [span.reason for span in c4.apply(page)] == ["c4_no_end_mark"]  # type: ignore[union-attr]


def test_rules_do_not_see_a_text_of_which_nothing_is_left() -> None:
    """Such a text has no words to divide by; the clean stage removes it with the reason `nothing_left`."""
    cut = Filter(name="cut", apply=lambda text, _: [Span(0, len(text), "cut")], reasons={"cut": ""})
    rules = [(FILTERS.get(name), FILTERS.get(name).parameters()) for name in ("gopher_repetition", "fineweb", "c4")]
    assert apply_all([(cut, None), *rules], "abc") == [Span(0, 3, "cut")]
