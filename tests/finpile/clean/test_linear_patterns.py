"""Every pattern of the cleaning reads any text at most a bounded number of times.

The tests count the steps of a backtracking matcher over the tree of a compiled pattern. Its matches equal those of
`re`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile import timestamps
from finpile.clean.filters import c4
from finpile.clean.html import dates as html_dates
from finpile.clean.html import markup, tables
from finpile.clean.html import page as html
from finpile.clean.stage import dating, normalise

Next = Callable[[int], int | None]


class Matcher:
    """Matches as `re` does, by backtracking, and counts each comparison of a character."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.tree = list(_parser.parse(pattern.pattern, pattern.flags))
        self.flags = pattern.flags
        self.steps = 0
        self.known: dict[Any, bool] = {}
        """Whether a character is in a class, by `re` itself."""

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The spans of `finditer`; an empty match directly behind one does not occur in these patterns."""
        self.text, at = text, 0
        while at <= len(text):
            end = self.sequence(self.tree, 0, at, lambda position: position)
            if end is None:
                at += 1
                continue
            yield at, end
            at = end if end > at else at + 1

    def sequence(self, items: list[Any], index: int, at: int, then: Next) -> int | None:
        if index == len(items):
            return then(at)
        return self.item(items[index], at, lambda position: self.sequence(items, index + 1, position, then))

    def item(self, item: tuple[Any, Any], at: int, then: Next) -> int | None:
        op, value = item
        if op in (ops.LITERAL, ops.NOT_LITERAL, ops.IN, ops.ANY):
            return then(at + 1) if self.one(item, at) else None
        if op in (ops.MAX_REPEAT, ops.POSSESSIVE_REPEAT):
            return self.repeat(op, *value, at, then)
        if op is ops.SUBPATTERN:
            return self.sequence(list(value[3]), 0, at, then)
        if op is ops.BRANCH:
            ends = (self.sequence(list(branch), 0, at, then) for branch in value[1])
            return next((end for end in ends if end is not None), None)
        if op in (ops.ASSERT, ops.ASSERT_NOT):
            direction, inner = value
            start = at if direction > 0 else at - _parser.SubPattern.getwidth(inner)[1]
            found = start >= 0 and self.sequence(list(inner), 0, start, lambda position: position) is not None
            return then(at) if found == (op is ops.ASSERT) else None
        assert op is ops.AT
        return then(at) if self.is_at(value, at) else None

    def repeat(self, op: Any, least: int, most: Any, inner: Any, at: int, then: Next) -> int | None:
        """Greedy; a possessive one gives nothing back. What is repeated is one character, or matches at most once."""
        items = list(inner)
        positions = [at]
        while len(positions) <= most:
            end = self.sequence(items, 0, positions[-1], lambda position: position)
            if end is None or end == positions[-1]:
                break
            positions.append(end)
        tried = positions[least:] if op is ops.MAX_REPEAT else positions[least:][-1:]
        ends = (then(position) for position in reversed(tried))
        return next((end for end in ends if end is not None), None)

    def one(self, item: tuple[Any, Any], at: int) -> bool:
        self.steps += 1
        if at >= len(self.text):
            return False
        key = (id(item[1]) if item[0] is ops.IN else item, self.text[at])
        if key not in self.known:
            self.known[key] = compiled(item, self.flags).match(self.text[at]) is not None
        return self.known[key]

    def is_at(self, where: Any, at: int) -> bool:
        self.steps += 1
        if where in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
            return at == 0
        if where is ops.AT_END:
            return at == len(self.text) or (at == len(self.text) - 1 and self.text[at] == "\n")
        assert where is ops.AT_BOUNDARY
        word = [bool(re.match(r"\w", self.text[place : place + 1])) for place in (max(at - 1, 0), at)]
        return (at > 0 and word[0]) != word[1]


def compiled(item: tuple[Any, Any], flags: int) -> re.Pattern[str]:
    state = _parser.State()
    state.flags = flags
    return re._compiler.compile(_parser.SubPattern(state, [item]), flags & re.IGNORECASE)  # type: ignore[attr-defined]


PATTERNS = {
    f"{module.__name__.rsplit('.', 1)[-1]}.{name}": pattern
    for module in (c4, dating, html, html_dates, markup, normalise, tables, timestamps)
    for name, value in vars(module).items()
    for pattern in (value if isinstance(value, tuple) else [value])
    if isinstance(pattern, re.Pattern)
}
PATTERNS["c4._LONG_WORD"] = c4._long_word(c4.C4Parameters().max_word_characters)
#: What the patterns begin with and repeat: an attacker's alphabet.
UNITS = (
    ".", "?!", '."', "[", "[1", "1", "\n", "\t", " ", "\t ", "a", "a ", "a=", 'a="', "a='", "#1", "#", ".1", "&", "&a",
    "&#1", "&#x", "<meta", "<meta ", "<time ", "<script", "</script", "itemprop", "itemprop =", "itemprop=",
    '"datePublished"', '"datePublished" ', '"datePublished":"', "/2020", "-2020", "/2020/1", "2020", "x\n", "a:", "T",
    "&#0", "$", "1,", "-", "(a)", "\ufdd0", "\ufdd01", "\ufdd01\ufdd1", "%", ")",
)  # fmt: skip
ENDS = ("x", "\n")


def num_steps(pattern: re.Pattern[str], text: str) -> int:
    matcher = Matcher(pattern)
    list(matcher.spans(text))
    return matcher.steps


@pytest.mark.parametrize("name", PATTERNS)
def test_steps_at_most_double_with_the_text(name: str) -> None:
    pattern = PATTERNS[name]
    if name.startswith("timestamps."):
        ends: tuple[str, ...] = ("x",)  # of values that the module itself bounds, and of URLs
    else:
        ends = ENDS
    for unit in UNITS:
        for end in ends:
            small, large = (num_steps(pattern, unit * (size // len(unit)) + end) for size in (60, 240))
            assert large <= 5 * small + 100, (unit, end, small, large)


TEXTS = st.text(alphabet=st.sampled_from(".?!\"')[]1 \t\n\u00a0ax=&#;<>/-:\u2019")) | st.lists(
    st.sampled_from(UNITS), max_size=8
).map("".join)


@pytest.mark.parametrize("name", PATTERNS)
@given(TEXTS)
def test_the_counting_matcher_finds_the_matches_of_re(name: str, text: str) -> None:
    found = [match.span() for match in PATTERNS[name].finditer(text)]
    assert list(Matcher(PATTERNS[name]).spans(text)) == found


#: The patterns as they were when they backtracked: what they matched is the definition.
DEFINITIONS = {
    "c4._LINE": r"\n*([^\n]+)\n*",
    "c4.SENTENCE_END": r"[.?!]+[\"')\]\u2019\u201d]*(?=\s|$)",
    "c4._LONG_WORD": r"(?:\A|(?<=\s))\S{1001}",
    "dates._ATTRIBUTE": r"""([\w:.\-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""",
}


@pytest.mark.parametrize("name", DEFINITIONS)
@given(TEXTS)
def test_patterns_without_backtracking_match_like_their_definitions(name: str, text: str) -> None:
    text = text.replace("a", "a" * 300)
    found, expected = PATTERNS[name].finditer(text), re.finditer(DEFINITIONS[name], text)
    assert [match.group(0, *range(1, PATTERNS[name].groups + 1)) for match in found] == [
        match.group(0, *range(1, PATTERNS[name].groups + 1)) for match in expected
    ]


@given(st.lists(st.sampled_from(["\t", " ", "\u00a0", "\n", "a", "\u2003", "\r"]), max_size=20).map("".join))
def test_empty_cells_are_cut_as_by_their_definition(text: str) -> None:
    assert html._EMPTY_CELLS.sub(html._one_tab, text) == re.sub(r"\t[\t \u00a0]+(?=\S)", "\t", text)
