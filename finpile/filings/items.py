"""The items of a filing (Forms 10-K, 10-Q, 8-K): the section of each, or "unsure" where the text leaves it open.

A heading is a line that begins with `Item`, a number of the form, and a title of that item (`item_titles`), on the same
line or the next. Not every heading begins a section: there are tables of contents, page headers, indexes, and sentences
that begin so. A section is given only if nothing else is possible under these rules:

1. References are not headings: a number before a quotation mark, a comma or a lower-case word, or a line within a
   sentence.
2. Tables of contents (`listings`) are dropped. Of two headings of one item with nothing between them, the second is.
3. Items of Forms 10-K and 10-Q come in the order of the form. Of all longest ascending sequences of headings, an item
   begins where all agree. Items of Form 8-K can have any order, and each heading once.
4. Headings with equal text and no other between them are page headers of one section, which begins with the first. Of
   three or more, the ends of the texts may differ if each but the first is behind the end of a page.
5. A section ends where the next begins, or at the signatures. If the next could begin at several places, or there is a
   heading inside whose item has no place of its own, the section is unsure, too.
6. A heading with a title that the item does not have makes its item, and the section that it is in, unsure.

Source: Form 10-K, Form 10-Q and Form 8-K, https://www.sec.gov/forms.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from finpile.filings.headings import Heading, find_headings
from finpile.filings.item_titles import titles_of
from finpile.filings.listings import is_adjacent, listed

#: White space within a line: spaces of any width.
_B = r"[^\S\n]"
_SIGNATURES = re.compile(
    rf"^{_B}*(?:signatures?|s i g n a t u r e s?)(?:{_B}|[:.])*$"
    rf"|^{_B}*pursuant to the requirements of (?:section 13|the securities)",
    re.IGNORECASE | re.MULTILINE,
)
_PART = re.compile(rf"part{_B}+[iv]{{1,3}}(?:{_B}|[.\-_])*", re.IGNORECASE)
_LAST_PART = re.compile(rf"\n{_PART.pattern}\Z", re.IGNORECASE)
#: The last line of a page: a number alone, or beside a short text.
_PAGE_LINE = re.compile(r"(?:\A|\n)[^\S\n]*(?:\d{1,4}\b[^\n]{0,80}|[^\n]{0,80}\b\d{1,4}|<PAGE>)\s*\Z", re.IGNORECASE)
#: Characters before a page's heading that its last line is in; and those of the title that all its headings have.
_PAGE_END, _SAME_TITLE = 160, 40


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


def find_items(text: str, form_type: str) -> Items:
    """The items of the main document of a filing: `form_type` is that of the document (`10-K405`, `8-K/A`).

    Takes time linear in the text, and for a form without known items none.
    """
    titles = titles_of(form_type)
    if titles is None:
        return NO_ITEMS
    is_ordered = "9.01" not in titles
    headings = _of_one_form(find_headings(text, titles))
    known = [heading for heading in headings if heading.is_known]
    dropped = listed(text, known, is_ordered, _SIGNATURES)
    known = [heading for heading in known if heading.start not in dropped]
    dropped |= _doubled(text, known)
    known = [heading for heading in known if heading.start not in dropped]
    slots = _ordered_slots(known) if is_ordered else _free_slots(known)
    return _sections(text, slots, headings, dropped)


def _of_one_form(headings: list[Heading]) -> list[Heading]:
    """Without numbers such as `8` in a Form 8-K since 2004: they are those of another form, in a list of exhibits."""
    is_dotted = any(heading.is_known and "." in heading.number and heading.number[0].isdigit() for heading in headings)
    return [heading for heading in headings if "." in heading.number or not is_dotted]


def _doubled(text: str, known: Sequence[Heading]) -> set[int]:
    """The second of two headings of one item with nothing between them: that of the page, and that of the section."""
    return {
        other.start for one, other in pairwise(known) if one.number == other.number and is_adjacent(text, one, other)
    }


def _ordered_slots(known: Sequence[Heading]) -> list[list[Heading]]:
    """The headings of all longest ascending sequences, by their place in it."""
    before = _longest([heading.rank for heading in known])
    after = _longest([-heading.rank for heading in reversed(known)])[::-1]
    size = max(before, default=0)
    slots: list[list[Heading]] = [[] for _ in range(size)]
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


def _free_slots(known: Sequence[Heading]) -> list[list[Heading]]:
    """The headings of each item, in the order of the first one."""
    slots: dict[str, list[Heading]] = defaultdict(list)
    for heading in known:
        slots[heading.number].append(heading)
    return list(slots.values())


def _sections(text: str, slots: list[list[Heading]], headings: Sequence[Heading], dropped: set[int]) -> Items:
    starts = [heading.start for heading in headings if heading.is_known and heading.start not in dropped]
    sure = [slot[0] for slot in slots if _is_one(text, slot, starts)]
    numbers = {heading.number for heading in sure}
    repeats = {heading.start for slot in slots if _is_one(text, slot, starts) for heading in slot[1:]}
    doubts = sorted(
        heading.start
        for heading in headings
        if heading.start not in repeats | dropped and _bare(heading.number, numbers) not in numbers
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


def _is_one(text: str, slot: Sequence[Heading], starts: Sequence[int]) -> bool:
    """Whether the headings of a slot are one section: one alone, or page headers with no other between them."""
    first, last = slot[0], slot[-1]
    if len(slot) == 1:
        return True
    num_between = bisect_right(starts, last.start) - bisect_left(starts, first.start)
    if num_between != len(slot) or len({heading.number for heading in slot}) > 1:
        return False
    if len({heading.line for heading in slot}) == 1:
        return True
    title = min((heading.line for heading in slot), key=len)[:_SAME_TITLE]
    return len(slot) > 2 and all(
        heading.line.startswith(title) and (heading is first or _is_page_header(text, heading)) for heading in slot
    )


def _is_page_header(text: str, heading: Heading) -> bool:
    """Whether the line before, but for the heading of a part, has a page number at its start or its end."""
    before = text[max(0, heading.start - _PAGE_END) : heading.start].rstrip()
    before = _LAST_PART.sub("", before)
    return _PAGE_LINE.search(before) is not None


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
