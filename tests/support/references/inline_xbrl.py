"""The facts of an Inline XBRL page by its XML tree: slow, and nothing shared with `finpile.clean.html.xbrl`.

Reports that the SEC accepts are XML. Names are read with their namespaces, and nothing is bounded but the texts.

Source: Inline XBRL 1.1; XBRL 2.1, §4.7 (contexts), §4.8 (units); XBRL Dimensions 1.0.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

_IX = "{http://www.xbrl.org/2013/inlineXBRL}"
_XBRLI = "{http://www.xbrl.org/2003/instance}"
_XBRLDI = "{http://xbrl.org/2006/xbrldi}"
_MAX_SHOWN, _MAX_MARKUP = 256, 8192


def reference_facts(page: str) -> list[dict[str, Any]]:
    """Values of the fields of `finpile.filings.facts.FACTS`, but for places; `shown` without white space.

    `is_long` says that the page has so much between the tags that either reading may leave out what is shown.
    """
    root = ElementTree.fromstring(page)
    contexts = {one.get("id"): _context(one) for one in root.iter(f"{_XBRLI}context")}
    units = {one.get("id"): _unit(one) for one in root.iter(f"{_XBRLI}unit")}
    continuations = {one.get("id"): one for one in root.iter(f"{_IX}continuation")}
    hidden = {id(one) for part in root.iter(f"{_IX}hidden") for one in part.iter()}
    found: list[dict[str, Any]] = []
    for node in root.iter():
        if node.tag not in (f"{_IX}nonFraction", f"{_IX}nonNumeric"):
            continue
        parts = [node]
        while after := parts[-1].get("continuedAt"):
            parts.append(continuations[after])
        shown = " ".join("".join(_texts(part)) for part in parts)
        fact = {
            "fact": len(found),
            "concept": node.get("name"),
            "shown": "".join(unicodedata.normalize("NFC", shown).split()),
            "is_long": len(" ".join(shown.split())) > _MAX_SHOWN or sum(map(_size, parts)) > _MAX_MARKUP,
            "hidden": id(node) in hidden,
            **contexts[node.get("contextRef")],
        }
        if node.tag == f"{_IX}nonFraction":
            fact |= {name: node.get(name) for name in ("decimals", "sign")}
            fact |= {"unit": units[node.get("unitRef")], "value": _value(node, shown)}
        found.append(fact)
    return found


def _texts(node: ElementTree.Element) -> Iterator[str]:
    if node.tag == f"{_IX}exclude":
        yield " "
    else:
        yield node.text or ""
        for child in node:
            yield from _texts(child)
            yield child.tail or ""


def _size(node: ElementTree.Element) -> int:
    return len(ElementTree.tostring(node))


def _context(node: ElementTree.Element) -> dict[str, Any]:
    days = {name: node.find(f"{_XBRLI}period/{_XBRLI}{name}") for name in ("startDate", "endDate", "instant")}
    end = days["endDate"] if days["endDate"] is not None else days["instant"]
    dimensions = {}
    for member in node.iter(f"{_XBRLDI}explicitMember"):
        dimensions[member.get("dimension")] = (member.text or "").strip()
    for member in node.iter(f"{_XBRLDI}typedMember"):
        dimensions[member.get("dimension")] = (member[0].text or "").strip()
    return {
        "filer": (node.findtext(f"{_XBRLI}entity/{_XBRLI}identifier") or "").strip(),
        "period_start": _day(days["startDate"]),
        "period_end": _day(end),
        "dimensions": dimensions,
    }


def _day(node: ElementTree.Element | None) -> date | None:
    return None if node is None else date.fromisoformat((node.text or "").strip())


def _unit(node: ElementTree.Element) -> str:
    def product(parent: ElementTree.Element) -> str:
        return "*".join((one.text or "").strip().rpartition(":")[2] for one in parent.findall(f"{_XBRLI}measure"))

    divide = node.find(f"{_XBRLI}divide")
    if divide is None:
        return product(node)
    sides = [divide.find(f"{_XBRLI}unit{side}") for side in ("Numerator", "Denominator")]
    return "/".join(product(side) for side in sides if side is not None)


def _value(node: ElementTree.Element, shown: str) -> Decimal | None:
    """The number by the two transformations that filers use for digits, and those for zero; None for others."""
    name = (node.get("format") or "").rpartition(":")[2]
    if name in ("fixed-zero", "zerodash", "numdash", "num-dash"):
        return Decimal(0)
    digits = "".join(sign for sign in shown if sign.isdigit() or sign == ".")
    if name not in ("num-dot-decimal", "numdotdecimal", "") or not digits.strip("."):
        return None
    number = Decimal(digits).scaleb(int(node.get("scale") or 0))
    return -number if node.get("sign") == "-" else number
