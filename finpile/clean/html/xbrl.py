"""The facts of Inline XBRL in a page, and where its text shows them (`finpile.filings.facts`).

One pass over the tags, in time linear in the page: a parser's tree gives the same facts, but its nodes cost more than
the reading of the page. Facts can be nested; each has all the text within it, and a text fact that of its
continuations, each of which is part of one fact.

The text has a fact at the place that the parser gives it: the page is parsed with marks around what each fact shows,
which are taken out of the text at the end. Marks are noncharacters beside characters that are not white space, so that
the text is that of the page without marks. A page that has such characters has no places.

Source: Inline XBRL 1.1, §10 (ix:nonFraction), §11 (ix:nonNumeric), §4 (ix:continuation), §6 (ix:exclude), and its
Transformation Registries; XBRL 2.1, §4.7.2 (periods).
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
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
ANY_TAG = re.compile(r"<[^<>]*>")
_EXCLUDED = re.compile(r"<ix:exclude\b[^<>]*>(?:[^<]|<(?!/?ix:exclude))*+</ix:exclude\s*>", re.IGNORECASE)
_ELEMENT = re.compile(r"<(?:xbrli:)?(instant|startdate|enddate|measure)>\s*([^<\s]+)", re.IGNORECASE)
_ENTITY = re.compile(r"<(?:xbrli:)?identifier\b[^<>]*>\s*([^<\s]+)", re.IGNORECASE)
_EXPLICIT = re.compile(r'<xbrldi:explicitmember[^>]*\bdimension="([^"]*)"[^>]*>\s*([^<\s]+)', re.IGNORECASE)
_TYPED = re.compile(r'<xbrldi:typedmember[^>]*\bdimension="([^"]*)"[^>]*>\s*<[^<>]*>\s*([^<]*[^<\s])', re.IGNORECASE)
_DENOMINATOR = re.compile(r"<(?:xbrli:)?unitdenominator", re.IGNORECASE)
_COMMA_DECIMAL = re.compile(r"num-?comma-?decimal|numcomma", re.IGNORECASE)
_ZERO = re.compile(r"fixed-?zero|zero-?dash|num-?dash", re.IGNORECASE)
_BOOLEAN = re.compile(r"(?:fixed-?|boolean)(true|false)", re.IGNORECASE)
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d))?")

#: Above these a page's facts are not read: no filing has as many.
_MAX_FACTS = 1 << 16
_MAX_SCALE = 30
#: Characters of what a fact shows; longer ones are not kept.
_MAX_SHOWN = 256
#: Characters of what is between the tags of a fact that is kept, a context or a unit.
_MAX_CONTENT = 8192

#: What is before and after a fact, and the sixteen digits of its number, which end with the fourth mark.
_BEGIN, _END, _STOP, _DIGITS = "\ufdd3", "\ufdd4", "\ufdd5", "".join(map(chr, range(0xFDE0, 0xFDF0)))
_MARK = re.compile(f"([{_BEGIN}{_END}])([{_DIGITS}]+){_STOP}")
_ANY_MARK = re.compile(f"[{_BEGIN}{_END}{_STOP}{_DIGITS}]")
_REFERENCE_TO_MARK = re.compile(r"&#(?:0*64(?:97[6-9]|98\d|99\d)|0*65007|[xX]0*[fF][dD][dDeE][0-9a-fA-F])")
_READ_DIGITS = str.maketrans(_DIGITS, "0123456789abcdef")
_WRITE_DIGITS = str.maketrans("0123456789abcdef", _DIGITS)
#: What a reader does not see before the first character of a fact.
_UNSEEN = re.compile(r"(?:\s|<[^<>]*>|&(?:nbsp|#160|#[xX][aA]0);)*+")
_UNSEEN_REFERENCES = ("&nbsp;", "&#160;", "&#xa0;", "&#xA0;")

#: A part of the page or of a text.
_Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a page, in its order."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    """Values of the fields of `finpile.filings.facts.FACTS`, without places."""
    ranges: list[_Range | None] = field(default_factory=list)
    """What the page has of each fact; None for hidden ones and those without content."""

    def marked(self, page: str) -> str | None:
        """The page with marks around what each fact shows; None if there is nothing to mark."""
        if not any(self.ranges) or _REFERENCE_TO_MARK.search(page):
            return None
        if not page.isascii() and _ANY_MARK.search(page):
            return None
        shown = [(number, *place) for number, place in enumerate(self.ranges) if place is not None]
        begins = _first_seen(page, sorted({start for _, start, _ in shown}))
        ends = _last_seen(page, sorted({end for _, _, end in shown}))
        marks = []
        for number, start, end in shown:
            if begins[start] < ends[end] and page[begins[start]] != "<":  # of a broken tag
                name = f"{number:x}".translate(_WRITE_DIGITS)
                marks += [(begins[start], f"{_BEGIN}{name}{_STOP}"), (ends[end], f"{_END}{name}{_STOP}")]
        pieces, last = [], 0
        for place, mark in sorted(marks, key=lambda found: found[0]):
            pieces += [page[last:place], mark]
            last = place
        return "".join([*pieces, page[last:]])


def without_marks(text: str) -> tuple[str, dict[int, _Range]]:
    """The text of a marked page, and where the facts are in it, in characters, by their numbers."""
    pieces, begins, found = [], dict[int, int](), dict[int, _Range]()
    last = size = 0
    for mark in _MARK.finditer(text):
        pieces.append(text[last : mark.start()])
        size += mark.start() - last
        last, number = mark.end(), int(mark[2].translate(_READ_DIGITS), 16)
        if mark[1] == _BEGIN:
            begins.setdefault(number, size)
        elif number in begins and number not in found:
            found[number] = (begins[number], size)
    return "".join([*pieces, text[last:]]), {number: place for number, place in found.items() if place[0] < place[1]}


def unmarked(text: str) -> str:
    """The text without marks."""
    return _MARK.sub("", text) if _STOP in text else text


def read_facts(page: str) -> Facts:
    """The facts with numbers and with texts; none for a page without Inline XBRL."""
    if not may_have_facts(np.frombuffer(page.encode(), np.uint8)):
        return Facts()
    scan = _Scan(page)
    if not scan.run():
        return Facts()
    contexts = {key: _context(content) for key, content in scan.contexts.items()}
    units = {key: _unit(content) for key, content in scan.units.items()}
    facts = Facts()
    for number, raw in enumerate(scan.facts):
        ranges = scan.ranges(raw)
        shown = scan.shown(ranges)
        is_seen = not raw["hidden"] and any(start < end for start, end in ranges)
        facts.ranges.append((ranges[0][0], ranges[-1][1]) if is_seen else None)
        of_kind = _number(raw, shown, units) if raw["is_number"] else _text(raw, shown)
        known = {"fact": number, "concept": raw.get("name", ""), "shown": shown, "hidden": raw["hidden"]}
        facts.rows.append(known | of_kind | contexts.get(raw.get("contextref", ""), _NO_CONTEXT))
    return facts


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

    def ranges(self, raw: dict[str, Any]) -> list[_Range]:
        """The parts of a fact. Each continuation is in the first fact that names it."""
        ranges = [raw["range"]]
        while found := self._continuations.pop(raw.get("continuedat", ""), None):
            raw = found
            ranges.append(raw["range"])
        return ranges

    def shown(self, ranges: Sequence[_Range]) -> str | None:
        """The text of the parts, with single spaces; None for one that is too long to be kept."""
        if sum([end - start for start, end in ranges]) > _MAX_CONTENT:
            return None
        content = " ".join([self._page[start:end] for start, end in ranges])
        content = _EXCLUDED.sub(" ", content) if "xclude>" in content else content
        content = ANY_TAG.sub("", content) if "<" in content else content
        text = " ".join(html.unescape(content).split())
        if len(text) > _MAX_SHOWN:
            return None
        return text if text.isascii() else unicodedata.normalize("NFC", text)


def _first_seen(page: str, starts: Sequence[int]) -> dict[int, int]:
    """From each of ascending places on, the first character that a reader sees."""
    found: dict[int, int] = {}
    limit = len(page)
    for start in reversed(starts):
        unseen = _UNSEEN.match(page, start, limit)
        place = unseen.end() if unseen else start
        found[start] = found.get(limit, limit) if place == limit else place
        limit = start
    return found


def _last_seen(page: str, ends: Sequence[int]) -> dict[int, int]:
    """Before each of ascending places, where the last character ends that a reader sees; 0 inside a broken tag."""
    found: dict[int, int] = {}
    limit = 0
    for end in ends:
        place = end
        while place > limit:
            last = page[place - 1]
            if last == ">":
                begin = page.rfind("<", limit, place)
                if begin < 0 or page.find(">", begin, place - 1) >= 0:
                    break
                place = begin
            elif last == ";" and page.endswith(_UNSEEN_REFERENCES, max(limit, place - 6), place):
                place = page.rfind("&", limit, place)
            elif last.isspace():
                place -= 1
            else:
                break
        if place == limit:
            place = found.get(limit, limit)
        elif page.rfind("<", limit, place) > page.rfind(">", limit, place):
            place = 0
        found[end] = place
        limit = end
    return found


def _number(raw: dict[str, Any], shown: str | None, units: dict[str, str]) -> dict[str, Any]:
    unit = raw.get("unitref", "")
    return {
        "value": _value(shown or "", raw.get("format"), raw.get("scale"), raw.get("sign")),
        "unit": units.get(unit, unit),
        "decimals": raw.get("decimals"),
        "sign": raw.get("sign"),
    }


def _text(raw: dict[str, Any], shown: str | None) -> dict[str, Any]:
    boolean = _BOOLEAN.search(raw.get("format", ""))
    return {"value": boolean[1].lower() if boolean else shown or None}


def _attributes(written: str) -> dict[str, Any]:
    found = _ATTRIBUTE.findall(written)
    return {name.lower(): html.unescape(double or single) for name, double, single in found}


_NO_CONTEXT: dict[str, Any] = {"filer": None, "period_start": None, "period_end": None, "dimensions": {}}


def _context(content: str) -> dict[str, Any]:
    """The filer, the period and the dimensions of a context; an instant has the end of a period alone."""
    days = {name.lower(): value for name, value in _ELEMENT.findall(content)}
    entity = _ENTITY.search(content)
    members = [*_EXPLICIT.findall(content), *_TYPED.findall(content)]
    return {
        "filer": html.unescape(entity[1]) if entity else None,
        "period_start": _day(days.get("startdate", ""), is_end=False),
        "period_end": _day(days.get("enddate") or days.get("instant", ""), is_end=True),
        "dimensions": {html.unescape(axis): html.unescape(member) for axis, member in members},
    }


def _day(written: str, *, is_end: bool) -> date | None:
    """The day of a date or a moment; what ends at midnight ends on the day before."""
    found = _DAY.match(written)
    try:
        day = date.fromisoformat(found[1]) if found else None
        return day - timedelta(1) if day and found and found[2] == "00:00:00" and is_end else day
    except (ValueError, OverflowError):
        return None


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
