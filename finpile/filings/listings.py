"""Tables of contents: which headings of items are entries of a listing, and begin no section.

A listing is a run of headings in the order of the form, most of which occur again after it, of one of these forms:

- between one heading and the next are entries alone: short lines, at least half of them with a page number at their
  end, and page numbers do not descend. So a heading can have many entries below it, such as the statements of Item 1
  of Form 10-Q, and the figures of a statement are not taken for entries;
- nothing is between them. Two or three such headings are a listing if the section of the first one begins directly
  after them: the contents of a part;
- no more than `_GAP` letters and digits are between them.

Lengths are counted in letters and digits, so that the marks of a table count for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from finpile.filings.headings import Heading

#: Least number of headings of a listing without the line of signatures, by whether items have an order; and the
#: letters and digits from one to the next.
_SIZE = {True: 4, False: 2}
_GAP = 330
#: Share of the items of a listing that occur again after it.
_SHARE = 0.6
#: Characters of the entries below one heading, and of a line among them that has no page number.
_MAX_ENTRIES = 1 << 14
_MAX_LINE = 160
_PAGE = re.compile(r"(?:\A|[\s.\u2026_|])(?:(?P<number>\d{1,4})|[ivxl]{1,6}|[A-Z]{1,2}-?\d{1,3})\Z", re.IGNORECASE)
_PART = re.compile(r"part\s+[iv]{1,3}\b.{0,60}", re.IGNORECASE)
#: A heading whose title is on the next line.
_BARE = re.compile(r"(?:part\s+[iv]{1,3}\W+)?items?\s*[\d.]+\s*\(?[a-c]?\W*", re.IGNORECASE)
_BORDER = " \t\u00a0|"
#: Headings of two neighbouring lines: whether the second is the next one of a listing.
_Link = Callable[[str, Heading, Heading], bool]


def listed(text: str, known: Sequence[Heading], is_ordered: bool, signatures: re.Pattern[str]) -> set[int]:
    """Where the headings of listings start; `is_ordered`: whether the items of the form have an order."""
    found: set[int] = set()
    for link in (_has_entries, _is_near) if is_ordered else (_is_near,):
        left = [heading for heading in known if heading.start not in found]
        last = {heading.number: heading.start for heading in left}
        for first, end in _runs(text, left, link):
            run = left[first:end]
            again = sum(last[heading.number] > run[-1].start for heading in run)
            is_listing = len(run) >= _SIZE[is_ordered] or (
                link is _is_near and _is_before_signatures(text, run[-1].start, signatures)
            )
            if (is_listing and again >= _SHARE * len(run)) or _is_of_part(text, run, left[end : end + 1]):
                found.update(heading.start for heading in run)
    return found


def _runs(text: str, headings: Sequence[Heading], link: _Link) -> list[tuple[int, int]]:
    """Ranges of headings each of which is linked to the next."""
    ends = [
        place
        for place, (one, other) in enumerate(pairwise(headings), 1)
        if other.rank <= one.rank or not link(text, one, other)
    ]
    return list(pairwise([0, *ends, len(headings)])) if headings else []


def _is_before_signatures(text: str, start: int, signatures: re.Pattern[str]) -> bool:
    return signatures.search(text, start, start + _GAP) is not None


def _is_of_part(text: str, run: Sequence[Heading], following: Sequence[Heading]) -> bool:
    """Whether a run without text is followed by the section of its first item."""
    return (
        len(run) > 1
        and any(heading.number == run[0].number for heading in following)
        and all(is_adjacent(text, one, other) for one, other in pairwise([*run, *following]))
    )


def is_adjacent(text: str, heading: Heading, other: Heading) -> bool:
    """Whether nothing but the title, and the headings of parts, is between two headings."""
    if other.start - heading.start > _MAX_ENTRIES:
        return False
    lines = _lines(text, heading, other)
    num_titles = 1 + (_BARE.fullmatch(lines[0]) is not None)
    return sum(not _PART.fullmatch(line) for line in lines) <= num_titles


def _has_entries(text: str, heading: Heading, other: Heading) -> bool:
    if other.start - heading.start > _MAX_ENTRIES:
        return False
    if is_adjacent(text, heading, other):
        return True
    lines = [line for line in _lines(text, heading, other) if not _PART.fullmatch(line)]
    pages = [_PAGE.search(line) for line in lines]
    numbers = [int(page["number"]) for page in pages if page is not None and page["number"]]
    is_short = all(page or len(line) <= _MAX_LINE for line, page in zip(lines, pages, strict=True))
    return is_short and 2 * sum(map(bool, pages)) >= len(lines) and numbers == sorted(numbers)


def _lines(text: str, heading: Heading, other: Heading) -> list[str]:
    lines = (line.strip(_BORDER) for line in text[heading.start : other.start].split("\n"))
    return [line for line in lines if any(map(str.isalnum, line))]


def _is_near(text: str, heading: Heading, other: Heading) -> bool:
    between = text[heading.start : other.start]
    return len(between) <= _MAX_ENTRIES and sum(map(str.isalnum, between)) <= _GAP
