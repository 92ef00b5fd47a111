"""Headings of items in a text: lines that begin with `Item`, a number of the form, and a title of that item.

References in sentences are not headings: a number before a quotation mark, a comma or a lower-case word, or a line
within a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from finpile.filings.item_titles import known_titles

#: White space within a line: spaces of any width.
_B = r"[^\S\n]"
_HEADING = re.compile(
    rf"^(?:{_B}|[|>*\u2022\u00b7\-])*"
    rf"(?:part{_B}+[iv]{{1,3}}(?:{_B}|[,.:;\-\u2013\u2014])*)?"
    rf"items?{_B}*(?:\.{_B}*)?(?P<number>\d{{1,2}}(?:\.{_B}?\d\d)?)(?P<rest>[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_LETTER = re.compile(rf"{_B}?\(?([A-C])\)?(?:{_B}?\(T\))?(?![A-Za-z])")
_CONTINUED = re.compile(r"\(\s*cont(?:inued|['\u2019]d|\.)|\bcont(?:inued|['\u2019]d|\.)\)?[\s.\-]*\Z", re.IGNORECASE)
_JOINED = re.compile(
    rf"(?:\([a-z0-9]\)|{_B}|,)*(?:and|&|through|to|[\-\u2013\u2014]){_B}*(?:items?{_B}*)?\d", re.IGNORECASE
)
_REFERENCE = re.compile(rf"{_B}*(?:[,;]|[\"\u201c\u2018']|(?:\([a-z0-9]\){_B}*)*(?:of|in|to|above|below|is|and)\b)")
_SEPARATORS = re.compile(r"^[\s\u00a0|.:;\-\u2013\u2014*_)\]]+|^\([a-z0-9]\)[\s\u00a0.]*")
_DASHES = re.compile("[\u2010-\u2015\u2212]")
#: The end of a line whose next line begins with a reference.
_OPEN_SENTENCE = re.compile(
    r"(?:,|\b(?:and|as|at|by|caption|captioned|entitled|for|from|heading|in|its|of|or|our|per|report|see|the|this|through"
    r"|to|under|with|part [iv]{1,3}))\Z",
    re.IGNORECASE,
)
#: A longer line before a heading, without the end of a sentence, is the sentence of a reference.
_LINE_OF_PROSE = 40
#: Characters of a heading with a title on the lines after it.
_TITLE_WINDOW = 200
#: A longer line with an unknown title is a sentence, not a heading.
_MAX_UNKNOWN_TITLE = 120
#: Headings of a document; more are not those of a filing.
_MAX_HEADINGS = 4096


@dataclass(frozen=True, slots=True)
class Heading:
    """A line that may begin a section."""

    number: str
    rank: int
    """Its place in the order of the form; -1 for an unknown title."""
    start: int
    line: str
    """In lower case, with single blanks."""
    is_known: bool
    """Whether its title is one of the item's."""


def find_headings(text: str, titles: Mapping[str, re.Pattern[str]]) -> list[Heading]:
    """The headings of a text, given the items of the form in its order; none above `_MAX_HEADINGS`."""
    ranks = {number: rank for rank, number in enumerate(titles)}
    found = []
    for match in _HEADING.finditer(text):
        heading = _heading(text, match, titles, ranks)
        if heading is not None:
            found.append(heading)
        if len(found) > _MAX_HEADINGS:
            return []
    return found


def is_heading(line: str) -> bool:
    """Whether a line is the heading of an item of any form, with a title of that item."""
    if _HEADING.match(line) is None:
        return False
    return any(heading.is_known for titles in known_titles() for heading in find_headings(line, titles))


def _heading(
    text: str, match: re.Match[str], titles: Mapping[str, re.Pattern[str]], ranks: Mapping[str, int]
) -> Heading | None:
    digits, rest = re.sub(r"\s", "", match["number"]), match["rest"]
    if digits.startswith("0"):
        digits = digits.lstrip("0")
    if _CONTINUED.search(rest) or _is_in_sentence(text, match.start()):
        return None
    names = [(digits, rest)]
    if letter := _LETTER.match(rest):
        names.insert(0, (digits + letter[1].upper(), rest[letter.end() :]))
    line = _plain(match[0])
    if _JOINED.match(rest):
        return Heading(_in_form(digits, ranks), -1, match.start(), line, is_known=False)
    for name, title in names:
        if _REFERENCE.match(title):
            return None
        plain = _title(text, match.end(), title)
        for number in _numbers(name, ranks):
            if titles[number].match(plain):
                return Heading(number, ranks[number], match.start(), line, is_known=True)
    number = _in_form(names[0][0], ranks)
    if not number or len(match[0]) > _MAX_UNKNOWN_TITLE or names[0][1][:1].isalnum():
        return None
    return Heading(number, -1, match.start(), line, is_known=False)


def _numbers(name: str, ranks: Mapping[str, int]) -> list[str]:
    """The items of the form with this number: in Form 10-Q, one of each part."""
    return (
        [number for number in ranks if number.rpartition(".")[2] == name]
        if "I.1" in ranks
        else [name] * (name in ranks)
    )


def _in_form(name: str, ranks: Mapping[str, int]) -> str:
    """The item's number if the form has it; of Form 10-Q without its part."""
    return name if _numbers(name, ranks) else ""


def _is_in_sentence(text: str, start: int) -> bool:
    """Whether the line before is prose whose sentence continues here."""
    begin = text.rfind("\n", max(0, start - _TITLE_WINDOW), max(0, start - 1)) + 1 or max(0, start - _TITLE_WINDOW)
    before = text[begin : max(0, start - 1)].strip()
    return len(before) > _LINE_OF_PROSE and bool(_OPEN_SENTENCE.search(before))


def _title(text: str, end: int, title: str) -> str:
    """The title as compared: from the heading's line, or if that has none, from the lines after it."""
    plain = _plain(_cut(title[:_TITLE_WINDOW]))
    if len(plain) > 1:
        following = text[end : end + _TITLE_WINDOW]
        return f"{plain} {_plain(following)}"
    return _plain(_cut(text[end : end + _TITLE_WINDOW]))


def _cut(title: str) -> str:
    while found := _SEPARATORS.match(title):
        title = title[found.end() :]
    return title


def _plain(text: str) -> str:
    return " ".join(_DASHES.sub("-", text.replace("\u2019", "'").replace("`", "'").replace("|", " ")).lower().split())
