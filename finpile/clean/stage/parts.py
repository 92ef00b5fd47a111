"""Parts of a document that become documents of their own: the items of a filing, under `clean: {items: documents}`.

The text, in its normal form and before the filters, is cut where a part begins and where it ends. What is outside all
parts, such as a cover page or an item whose section is unsure, is in parts of its own, and the white space between two
parts belongs to the first: the texts of all parts, in their order, are the text, byte for byte. The locator of a
part is that of the document with its name behind: `a.txt#1234/item-7A`, `a.txt#1234/text-1`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from finpile.documents.blank import is_blank
from finpile.plugins.section import Section

_SUFFIX = re.compile(r"/(?:item|text)-[^/]*$")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text."""

    section: str | None
    """The name of its section; None for text outside all sections."""
    suffix: str
    """The end of its locator."""
    text: str


def divide(text: str, sections: Iterable[Section]) -> list[Part]:
    """The parts of a text, in order; none if there is no section. Sections ascend and do not overlap."""
    pieces: list[tuple[str | None, str]] = []
    position = 0
    for section in sections:
        _add(pieces, None, text[position : section.start])
        _add(pieces, section.name, text[section.start : section.end])
        position = section.end
    if not position:
        return []
    _add(pieces, None, text[position:])
    parts, num_outside = [], 0
    for name, content in pieces:
        num_outside += name is None
        parts.append(Part(name, f"/text-{num_outside}" if name is None else f"/item-{name}", content))
    return parts


def divided(locator: str) -> str | None:
    """The locator of the document of which a document is a part; None for a locator of no part.

    >>> divided("a.txt#1234/item-7A"), divided("a.txt#1234")
    ('a.txt#1234', None)
    """
    found = _SUFFIX.search(locator)
    return locator[: found.start()] if found else None


def meta_of_parts(parts: Sequence[Part], meta: Mapping[str, Any], known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What each part has in `meta` beside the `meta` of the document.

    A section has its name as `item`, and a `document_type` of its own, such as `10-K item 7A`. What else is `known` is
    with the first part.
    """
    form = meta.get("document_type", "")
    found = []
    for number, part in enumerate(parts):
        item = {"item": part.section, "document_type": f"{form} item {part.section}"} if part.section else {}
        found.append({**({} if number else known), **item})
    return found


def facts_of_parts(parts: Sequence[Part], facts: Iterable[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
    """The facts of each part, at their places in it: a fact is with the part that has its beginning.

    It has no place if it ends in a later part. A fact without a place is with the first part.
    """
    ends = list(accumulate(len(part.text) for part in parts))
    found: list[list[dict[str, Any]]] = [[] for _ in parts]
    for fact in facts:
        start, end = fact["start"], fact["end"]
        number = 0 if start is None else bisect_right(ends, start)
        first = ends[number - 1] if number else 0
        is_whole = start is not None and end <= ends[number]
        place = {"start": start - first, "end": end - first} if is_whole else {"start": None, "end": None}
        found[number].append({**fact, **place})
    return found


def _add(pieces: list[tuple[str | None, str]], name: str | None, content: str) -> None:
    """Adds a piece; white space at its beginning, or all of it, is joined to the one before."""
    if pieces:
        before, text = pieces[-1]
        rest = "" if is_blank(content) else content.lstrip()
        pieces[-1] = (before, text + content.removesuffix(rest))
        content = rest
    if content:
        pieces.append((name, content))
