"""The facts of Inline XBRL in a page, for `meta` (`finpile.filings.facts`).

One pass over the tags, in time linear in the page: a parser's tree gives the same facts, but its nodes cost more than
the reading of the page. Facts can be nested; each has all the text within it, and a text fact that of its
continuations, each of which is part of one fact.

Source: Inline XBRL 1.1, §10 (ix:nonFraction), §11 (ix:nonNumeric), §4 (ix:continuation), and its Transformation
Registries.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Any

import numpy as np

from finpile.clean.html._tag_kernels import may_have_facts

#: Start and end tags; the prefixes are those that filers use.
_TAG = re.compile(
    r"<(?=/?[ixcu])"  # spares the groups for nearly all tags
    r"(/?)(?:ix:(hidden|nonfraction|nonnumeric|continuation)|(?:xbrli:)?(context|unit))\b([^<>]{0,4096})>",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""([\w:.\-]{1,64})\s{0,8}=\s{0,8}(?:"([^"]*)"|'([^']*)')""")
_ANY_TAG = re.compile(r"<[^<>]*>")
_ELEMENT = re.compile(r"<(?:xbrli:)?(instant|startdate|enddate|measure)>\s*([^<\s]+)", re.IGNORECASE)
_EXPLICIT = re.compile(r'<xbrldi:explicitmember[^>]*\bdimension="([^"]*)"[^>]*>\s*([^<\s]+)', re.IGNORECASE)
_DENOMINATOR = re.compile(r"<(?:xbrli:)?unitdenominator", re.IGNORECASE)
_COMMA_DECIMAL = re.compile(r"num-?comma-?decimal|numcomma", re.IGNORECASE)
_ZERO = re.compile(r"fixed-?zero|zero-?dash|num-?dash", re.IGNORECASE)
_BOOLEAN = re.compile(r"(?:fixed-?|boolean)(true|false)", re.IGNORECASE)

#: Above these a page's facts are not read: no filing has as many.
_MAX_FACTS = 1 << 16
_MAX_SCALE = 30
_MAX_FIGURE = 64
#: Characters of a text that is kept; of a longer one, its length.
_MAX_TEXT = 256
#: Characters of a figure or a text that is kept, and of what is between the tags of a context or a unit.
_MAX_CONTENT = 8192

#: A part of the page.
_Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a page, in its order."""

    numbers: list[dict[str, Any]] = field(default_factory=list)
    texts: list[dict[str, Any]] = field(default_factory=list)


def read_facts(page: str) -> Facts:
    """The numeric facts and the text facts; none for a page without Inline XBRL."""
    if not may_have_facts(np.frombuffer(page.encode(), np.uint8)):
        return Facts()
    scan = _Scan(page)
    if not scan.run():
        return Facts()
    periods, dimensions = _periods(scan.contexts)
    units = {key: _unit(content) for key, content in scan.units.items()}
    facts, too_long = Facts(), list[tuple[dict[str, Any], list[_Range]]]()
    for raw in scan.facts:
        of_context = raw.get("contextref", "")
        common = {
            "period": periods.get(of_context),
            "dimensions": dimensions.get(of_context),
            "hidden": raw["hidden"],
        }
        if raw["is_number"]:
            fact = _number(raw, scan.number_content(raw["range"]), units) | common
            facts.numbers.append({key: value for key, value in fact.items() if value or key == "figure"})
        else:
            ranges = scan.text_ranges(raw)
            fact = _text(raw, scan.text(ranges)) | common
            facts.texts.append({key: value for key, value in fact.items() if value or key == "text"})
            if "text" not in fact:
                too_long.append((facts.texts[-1], ranges))
    lengths = _lengths(page, [ranges for _, ranges in too_long])
    for (kept, _), length in zip(too_long, lengths, strict=True):
        kept["length"] = length
    return facts


def _lengths(page: str, parts: Sequence[Sequence[_Range]]) -> list[int]:
    """Characters without tags of each list of parts; what several have in common is read once."""
    changes: Counter[int] = Counter()
    for start, end in chain.from_iterable(parts):
        changes[start] += 1
        changes[end] -= 1
    before, length, num_open, last = {}, 0, 0, 0
    for place, change in sorted(changes.items()):
        if num_open:
            length += len(_ANY_TAG.sub("", page[last:place]))
        before[place], num_open, last = length, num_open + change, place
    return [sum(before[end] - before[start] for start, end in ranges) for ranges in parts]


class _Scan:
    """One pass over the tags of a page."""

    def __init__(self, page: str) -> None:
        self._page = page
        self.facts: list[dict[str, Any]] = []
        self.contexts: dict[str, str] = {}
        self.units: dict[str, str] = {}
        self._continuations: dict[str, dict[str, Any]] = {}
        self._num_hidden = 0
        self._open: dict[str, list[dict[str, Any]]] = {"nonfraction": [], "nonnumeric": [], "continuation": []}
        self._definition = ("", 0)

    def run(self) -> bool:
        """Whether the page has no more facts than are read."""
        for tag in _TAG.finditer(self._page):
            name = (tag[2] or tag[3]).lower()
            if name == "hidden":
                self._num_hidden += -1 if tag[1] else 1
            elif name in ("context", "unit"):
                self._define(name, tag)
            elif tag[1]:
                self._close(name, tag.start())
            else:
                self._start(name, tag)
            if len(self.facts) + len(self._continuations) > _MAX_FACTS:
                return False
        return True

    def _start(self, name: str, tag: re.Match[str]) -> None:
        raw = _attributes(tag[4]) | {"range": (tag.end(), tag.end())}
        if name == "continuation":
            self._continuations[raw.get("id", "")] = raw
        else:
            raw |= {"is_number": name == "nonfraction", "hidden": self._num_hidden > 0}
            self.facts.append(raw)
        if not tag[4].endswith("/"):
            self._open[name].append(raw)

    def _close(self, name: str, end: int) -> None:
        if self._open[name]:
            raw = self._open[name].pop()
            raw["range"] = (raw["range"][0], end)

    def _define(self, name: str, tag: re.Match[str]) -> None:
        key, start = self._definition
        if not tag[1]:
            self._definition = (_attributes(tag[4]).get("id", ""), tag.end())
        elif key:
            content = self._page[start : min(tag.start(), start + _MAX_CONTENT)]
            (self.contexts if name == "context" else self.units)[key] = content
            self._definition = ("", 0)

    def number_content(self, of_fact: _Range) -> str:
        """What is between the tags of a numeric fact, the beginning of a long one."""
        return self._page[of_fact[0] : min(of_fact[1], of_fact[0] + _MAX_CONTENT)]

    def text_ranges(self, raw: dict[str, Any]) -> list[_Range]:
        """The parts of a text fact. Each continuation is in the first fact that names it."""
        ranges = [raw["range"]]
        while found := self._continuations.pop(raw.get("continuedat", ""), None):
            raw = found
            ranges.append(raw["range"])
        return ranges

    def text(self, ranges: Sequence[_Range]) -> str | None:
        """The text of the parts, with single spaces; None for one that is too long to be kept."""
        if sum(end - start for start, end in ranges) > _MAX_CONTENT:
            return None
        content = " ".join(self._page[start:end] for start, end in ranges)
        text = _plain(content)
        return text if len(text) <= _MAX_TEXT else None


def _number(raw: dict[str, Any], content: str, units: dict[str, str]) -> dict[str, Any]:
    unit, figure = raw.get("unitref", ""), _plain(content)[:_MAX_FIGURE]
    return {
        "name": raw.get("name"),
        "figure": figure,
        "value": _value(figure, raw.get("format"), raw.get("scale"), raw.get("sign")),
        "unit": units.get(unit, unit),
    }


def _text(raw: dict[str, Any], text: str | None) -> dict[str, Any]:
    boolean = _BOOLEAN.search(raw.get("format", ""))
    kept = {} if text is None else {"text": text}
    return {"name": raw.get("name"), **kept, "value": boolean[1].lower() if boolean else None}


def _plain(content: str) -> str:
    return " ".join(html.unescape(_ANY_TAG.sub("", content)).split())


def _attributes(written: str) -> dict[str, Any]:
    found = _ATTRIBUTE.findall(written)
    return {name.lower(): html.unescape(double or single) for name, double, single in found}


def _periods(contexts: dict[str, str]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    periods: dict[str, str] = {}
    dimensions: dict[str, dict[str, str]] = {}
    for key, content in contexts.items():
        days = [value for name, value in _ELEMENT.findall(content) if name.lower() != "measure"]
        periods[key] = "/".join(days[:2])
        if members := dict(_EXPLICIT.findall(content)):
            dimensions[key] = members
    return periods, dimensions


def _unit(content: str) -> str:
    """`USD`, or `USD/shares` for a quotient."""
    below = _DENOMINATOR.search(content)
    parts = [content[: below.start()], content[below.start() :]] if below else [content]
    names = ["*".join(value.rpartition(":")[2] for _, value in _ELEMENT.findall(part)) for part in parts]
    return "/".join(filter(None, names))


def _value(figure: str, written: str | None, scale: str | None, sign: str | None) -> str | None:
    """The number of a figure as a decimal; None for words and for a format that is not known."""
    if _ZERO.search(written or ""):
        return "0"
    digits = figure.replace(".", "").replace(",", ".") if _COMMA_DECIMAL.search(written or "") else figure
    digits = re.sub(r"[^\d.]", "", digits)
    try:
        exponent = int(scale or 0)
        number = Decimal(digits)
    except (ValueError, InvalidOperation):
        return None
    if abs(exponent) > _MAX_SCALE:
        return None
    number = number.scaleb(exponent)
    return format(-number if sign == "-" else number, "f")
