"""The items of a filing (Forms 10-K, 10-Q, 8-K): the section of each, or "unsure" where the text leaves it open.

A heading is a line that begins with `Item`, a number of the form, and a title of that item (`item_titles`), on the same
line or the next. Not every heading begins a section: there are tables of contents, page headers, indexes, and sentences
that begin so. A section is given only if nothing else is possible under these rules:

1. References are not headings: a number before a quotation mark, a comma or a lower-case word, or a line within a
   sentence.
2. A listing is a run of close headings, in the order of the form, most of which occur again later: a table of contents.
   It is dropped.
3. Items of Forms 10-K and 10-Q come in the order of the form. Of all longest ascending sequences of headings, an item
   begins where all agree. Items of Form 8-K can have any order, and each heading once.
4. Headings with equal text and no other between them are page headers of one section, which begins with the first.
5. A section ends where the next begins, or at the signatures. If the next could begin at several places, or there is a
   heading inside whose item has no place of its own, the section is unsure, too.
6. A heading with a title that the item does not have makes its item, and the section that it is in, unsure.

Source: Form 10-K, Form 10-Q and Form 8-K, https://www.sec.gov/forms.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from finpile.filings.item_titles import titles_of

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
#: The end of a line whose next line begins with a reference.
_OPEN_SENTENCE = re.compile(
    r"(?:,|\b(?:and|as|at|by|caption|captioned|entitled|for|from|heading|in|its|of|or|our|per|report|see|the|this|through"
    r"|to|under|with|part [iv]{1,3}))\Z",
    re.IGNORECASE,
)
_SIGNATURES = re.compile(
    rf"^{_B}*(?:signatures?|s i g n a t u r e s?)(?:{_B}|[:.])*$"
    rf"|^{_B}*pursuant to the requirements of (?:section 13|the securities)",
    re.IGNORECASE | re.MULTILINE,
)
_PART = re.compile(rf"part{_B}+[iv]{{1,3}}(?:{_B}|[.\-_])*", re.IGNORECASE)

#: Least number of headings of a listing without the line of signatures, by whether items have an order; and the
#: characters from one to the next.
_LISTING_SIZE = {True: 4, False: 2}
_LISTING_GAP = 400
#: Share of the items of a listing that occur again after it.
_LISTING_SHARE = 0.6
#: A longer line before a heading, without the end of a sentence, is the sentence of a reference.
_LINE_OF_PROSE = 40
#: Characters of a heading with a title on the lines after it.
_TITLE_WINDOW = 200
#: A longer line with an unknown title is a sentence, not a heading.
_MAX_UNKNOWN_TITLE = 120
#: Headings of a document; more are not those of a filing.
_MAX_HEADINGS = 4096


@dataclass(frozen=True, slots=True)
class Item:
    """The section of one item."""

    number: str
    """`7A`, `5.02`; of Form 10-Q with its part, `II.1A`."""
    start: int
    """Characters from the start of the text, at its heading."""
    end: int


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a document."""

    found: tuple[Item, ...]
    """In the order of the text; sections do not overlap."""
    unsure: tuple[str, ...]
    """Items that the text names in a heading, but whose section is not certain."""


NO_ITEMS = Items((), ())


@dataclass(frozen=True, slots=True)
class _Heading:
    number: str
    rank: int
    start: int
    line: str
    is_known: bool
    """Whether its title is one of the item's."""


def find_items(text: str, form_type: str) -> Items:
    """The items of the main document of a filing: `form_type` is that of the document (`10-K405`, `8-K/A`).

    Takes time linear in the text, and for a form without known items none.
    """
    titles = titles_of(form_type)
    if titles is None:
        return NO_ITEMS
    is_ordered = "9.01" not in titles
    headings = _headings(text, titles)
    known = [heading for heading in headings if heading.is_known]
    listed = _listed(text, known, is_ordered)
    known = [heading for heading in known if heading.start not in listed]
    slots = _ordered_slots(known) if is_ordered else _free_slots(known)
    return _sections(text, slots, headings, listed)


def _headings(text: str, titles: Mapping[str, re.Pattern[str]]) -> list[_Heading]:
    ranks = {number: rank for rank, number in enumerate(titles)}
    found = []
    for match in _HEADING.finditer(text):
        heading = _heading(text, match, titles, ranks)
        if heading is not None:
            found.append(heading)
        if len(found) > _MAX_HEADINGS:
            return []
    return found


def _heading(
    text: str, match: re.Match[str], titles: Mapping[str, re.Pattern[str]], ranks: Mapping[str, int]
) -> _Heading | None:
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
        return _Heading(_in_form(digits, ranks), -1, match.start(), line, is_known=False)
    for name, title in names:
        if _REFERENCE.match(title):
            return None
        plain = _title(text, match.end(), title)
        for number in _numbers(name, ranks):
            if titles[number].match(plain):
                return _Heading(number, ranks[number], match.start(), line, is_known=True)
    number = _in_form(names[0][0], ranks)
    if not number or len(match[0]) > _MAX_UNKNOWN_TITLE or names[0][1][:1].isalnum():
        return None
    return _Heading(number, -1, match.start(), line, is_known=False)


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
    return " ".join(text.replace("\u2019", "'").replace("`", "'").replace("|", " ").lower().split())


def _listed(text: str, known: Sequence[_Heading], is_ordered: bool) -> set[int]:
    """Where the headings of tables of contents start."""
    last = {heading.number: heading.start for heading in known}
    found: set[int] = set()
    index = 0
    while index < len(known):
        end = index + 1
        while end < len(known) and _is_next(known[end - 1], known[end]):
            end += 1
        run = known[index:end]
        again = sum(last[heading.number] > run[-1].start for heading in run)
        is_listing = len(run) >= _LISTING_SIZE[is_ordered] or _is_before_signatures(text, run[-1].start)
        if is_listing and again >= _LISTING_SHARE * len(run):
            found.update(heading.start for heading in run)
        index = end
    return found


def _is_before_signatures(text: str, start: int) -> bool:
    return _SIGNATURES.search(text, start, start + _LISTING_GAP) is not None


def _is_next(heading: _Heading, other: _Heading) -> bool:
    return other.rank > heading.rank and other.start - heading.start <= _LISTING_GAP


def _ordered_slots(known: Sequence[_Heading]) -> list[list[_Heading]]:
    """The headings of all longest ascending sequences, by their place in it."""
    before = _longest([heading.rank for heading in known])
    after = _longest([-heading.rank for heading in reversed(known)])[::-1]
    size = max(before, default=0)
    slots: list[list[_Heading]] = [[] for _ in range(size)]
    for heading, left, right in zip(known, before, after, strict=True):
        if left + right - 1 == size:
            slots[left - 1].append(heading)
    return slots


def _longest(ranks: Sequence[int]) -> list[int]:
    """The length of the longest ascending sequence that ends with each."""
    ends: list[int] = []
    lengths = []
    for rank in ranks:
        place = bisect_left(ends, rank)
        ends[place : place + 1] = [rank]
        lengths.append(place + 1)
    return lengths


def _free_slots(known: Sequence[_Heading]) -> list[list[_Heading]]:
    """The headings of each item, in the order of the first one."""
    slots: dict[str, list[_Heading]] = defaultdict(list)
    for heading in known:
        slots[heading.number].append(heading)
    return list(slots.values())


def _sections(text: str, slots: list[list[_Heading]], headings: Sequence[_Heading], listed: set[int]) -> Items:
    starts = [heading.start for heading in headings if heading.is_known and heading.start not in listed]
    sure = [slot[0] for slot in slots if _is_one(slot, starts)]
    numbers = {heading.number for heading in sure}
    repeats = {heading.start for slot in slots if _is_one(slot, starts) for heading in slot[1:]}
    doubts = sorted(
        heading.start
        for heading in headings
        if heading.start not in repeats | listed and _bare(heading.number, numbers) not in numbers
    )
    bounds = sorted({heading.start for heading in sure} | {heading.start for slot in slots for heading in slot})
    found: list[Item] = []
    for heading in sorted(sure, key=lambda heading: heading.start):
        place = bisect_right(bounds, heading.start)
        while place < len(bounds) and bounds[place] in repeats:
            place += 1
        end = bounds[place] if place < len(bounds) else _end_of_last(text, heading.start)
        is_open = bisect_right(doubts, heading.start) < bisect_left(doubts, end + (end < len(text)))
        if not is_open:
            found.append(Item(heading.number, heading.start, _without_part(text, heading.start, end)))
    named = dict.fromkeys(heading.number for heading in headings if heading.number)
    certain = {item.number for item in found}
    return Items(tuple(found), tuple(name for name in named if _bare(name, certain) not in certain))


def _is_one(slot: Sequence[_Heading], starts: Sequence[int]) -> bool:
    """Whether the headings of a slot are one section: one alone, or page headers with no other between them."""
    first, last = slot[0], slot[-1]
    if len(slot) == 1:
        return True
    num_between = bisect_right(starts, last.start) - bisect_left(starts, first.start)
    return num_between == len(slot) and len({(heading.number, heading.line) for heading in slot}) == 1


def _bare(number: str, numbers: set[str]) -> str:
    """A number without part as an item that is known, if only one has it."""
    if number in numbers or "." in number:
        return number
    found = [name for name in numbers if name.startswith("I") and name.rpartition(".")[2] == number]
    return found[0] if len(found) == 1 else number


def _end_of_last(text: str, start: int) -> int:
    found = _SIGNATURES.search(text, start)
    return len(text) if found is None else found.start()


def _without_part(text: str, start: int, end: int) -> int:
    """The end of a section without white space and the headings of parts at its end."""
    end = start + len(text[start:end].rstrip())
    begin = text.rfind("\n", start, end) + 1
    if begin <= start or not _PART.fullmatch(text, begin, end):
        return end
    return start + len(text[start:begin].rstrip())
