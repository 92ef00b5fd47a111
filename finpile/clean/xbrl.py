"""The numeric facts of Inline XBRL in a page, for `meta` (`finpile.filings.facts`).

One pass over the tags, in time linear in the page: a parser's tree gives the same facts, but its nodes cost more than
the reading of the page. Facts can be nested; each has all the text within it.

Source: Inline XBRL 1.1, §10 (ix:nonFraction), and its Transformation Registries.
"""

from __future__ import annotations

import html
import re
from decimal import Decimal, InvalidOperation
from typing import Any

#: Start and end tags; the prefixes are those that filers use.
_TAG = re.compile(
    r"<(?=/?[ixcu])"  # spares the groups for nearly all tags
    r"(/?)(?:ix:(hidden|nonfraction)|(?:xbrli:)?(context|unit))\b([^<>]{0,4096})>",
    re.IGNORECASE,
)
_MARK = re.compile(r"<ix:nonfraction\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w:.\-]{1,64})\s{0,8}=\s{0,8}(?:"([^"]*)"|'([^']*)')""")
_ANY_TAG = re.compile(r"<[^<>]*>")
_ELEMENT = re.compile(r"<(?:xbrli:)?(instant|startdate|enddate|measure)>\s*([^<\s]+)", re.IGNORECASE)
_EXPLICIT = re.compile(r'<xbrldi:explicitmember[^>]*\bdimension="([^"]*)"[^>]*>\s*([^<\s]+)', re.IGNORECASE)
_DENOMINATOR = re.compile(r"<(?:xbrli:)?unitdenominator", re.IGNORECASE)
_COMMA_DECIMAL = re.compile(r"num-?comma-?decimal|numcomma", re.IGNORECASE)
_ZERO = re.compile(r"fixed-?zero|zero-?dash|num-?dash", re.IGNORECASE)

#: Above these a page's facts are not read: no filing has as many.
_MAX_FACTS = 1 << 16
_MAX_SCALE = 30
_MAX_FIGURE = 64


#: Characters of a figure, and of what is between the tags of a fact, a context or a unit.
_MAX_CONTENT = 8192


def read_facts(page: str) -> list[dict[str, Any]]:
    """The numeric facts in the order of the page; none for a page without Inline XBRL."""
    if not _MARK.search(page):
        return []
    facts: list[dict[str, Any]] = []
    contexts: dict[str, str] = {}
    units: dict[str, str] = {}
    num_hidden = 0
    open_facts: list[tuple[int, int]] = []
    opened = ("", 0)
    for tag in _TAG.finditer(page):
        is_end, name = bool(tag[1]), (tag[2] or tag[3]).lower()
        if name == "hidden":
            num_hidden += -1 if is_end else 1
        elif name == "nonfraction" and not is_end:
            facts.append(_attributes(tag[4]) | {"hidden": num_hidden > 0, "figure": ""})
            if len(facts) > _MAX_FACTS:
                return []
            if not tag[4].endswith("/"):
                open_facts.append((len(facts) - 1, tag.end()))
        elif name == "nonfraction" and open_facts:
            number, start = open_facts.pop()
            facts[number]["figure"] = _figure(page[start : min(tag.start(), start + _MAX_CONTENT)])
        elif not is_end:
            opened = (_attributes(tag[4]).get("id", ""), tag.end())
        elif opened[0]:
            content = page[opened[1] : min(tag.start(), opened[1] + _MAX_CONTENT)]
            (contexts if name == "context" else units)[opened[0]] = content
            opened = ("", 0)
    periods, dimensions = _periods(contexts)
    named = {key: _unit(content) for key, content in units.items()}
    return [_fact(fact, named, periods, dimensions) for fact in facts]


def _fact(
    raw: dict[str, Any], units: dict[str, str], periods: dict[str, str], dimensions: dict[str, dict[str, str]]
) -> dict[str, Any]:
    unit, context, figure = raw.get("unitref", ""), raw.get("contextref", ""), raw["figure"]
    fact = {
        "name": raw.get("name"),
        "figure": figure,
        "value": _value(figure, raw.get("format"), raw.get("scale"), raw.get("sign")),
        "unit": units.get(unit, unit),
        "period": periods.get(context),
        "dimensions": dimensions.get(context),
        "hidden": raw["hidden"],
    }
    return {key: value for key, value in fact.items() if value or key == "figure"}


def _attributes(written: str) -> dict[str, Any]:
    found = _ATTRIBUTE.findall(written)
    return {name.lower(): html.unescape(double or single) for name, double, single in found}


def _figure(content: str) -> str:
    return " ".join(html.unescape(_ANY_TAG.sub("", content)).split())[:_MAX_FIGURE]


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
