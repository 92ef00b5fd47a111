"""The publication date that an HTML page states about itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from html import unescape
from typing import Any

from finpile import timestamps

#: Names (`property`, `name`, `itemprop` of <meta>) that give a publication date, best first. Dates of change are not
#: among them.
_META_NAMES = (
    "article:published_time", "og:article:published_time", "article:published", "og:published_time", "datepublished",
    "parsely-pub-date", "citation_publication_date", "citation_date", "dc.date.issued", "dcterms.issued",
    "dcterms.created", "dc.date.created", "dc.date", "dcterms.date", "publish-date", "publish_date", "publishdate",
    "publication_date", "published_date", "pubdate", "sailthru.date", "article.published", "date",
)  # fmt: skip
_META = re.compile(r"<meta\b([^>]{1,2000})>", re.IGNORECASE)
_TIME = re.compile(r"<time\b([^>]{1,2000})>", re.IGNORECASE)
_ITEMPROP = re.compile(r"""<[a-z][^>]{0,2000}?\bitemprop\s*=\s*["']?datePublished\b[^>]{0,2000}>""", re.IGNORECASE)
_JSON_LD = re.compile(r"<script\b[^>]{0,500}application/ld\+json[^>]{0,500}>(.*?)</script", re.IGNORECASE | re.DOTALL)
_JSON_DATE = re.compile(r'"datePublished"\s*:\s*"([^"]{4,64})"')
_ATTRIBUTE = re.compile(r"""([\w:.\-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")


def from_html(html: str) -> datetime | None:
    """The publication date that a page states about itself.

    Asked in this order: <meta> names (`article:published_time` first, plain `date` last), datePublished in JSON-LD,
    datePublished as itemprop, the first <time datetime>. Only plausible dates count, and of dates of three numbers
    only those whose order is not open.
    """
    return read_html(html)[0]


def read_html(html: str) -> tuple[datetime | None, str | None]:
    """What `from_html` gives; and where that is None, the first date that was not read because its order is open."""
    left_open = None
    for value in _html_values(html):
        moment = _plausible_date(value)
        if moment is not None:
            return moment, None
        if left_open is None and len(timestamps.possible_orders(value)) > 1:
            left_open = value
    return None, left_open


def _html_values(html: str) -> Iterator[str]:
    yield from _meta_values(html)
    if "datePublished" in html:  # spares nearly all pages two slow searches
        for script in _JSON_LD.finditer(html):
            yield from _json_ld_values(script[1])
        for tag in _ITEMPROP.finditer(html):
            yield from _attribute_values(tag[0], ("content", "datetime"))
    for tag in _TIME.finditer(html):
        yield from _attribute_values(tag[1], ("datetime",))


def _meta_values(html: str) -> list[str]:
    """Contents of the <meta> tags that name a date, best name first, then as they stand in the page."""
    found = []
    for tag in _META.finditer(html):
        attributes = _attributes(tag[1])
        names = (attributes.get(key, "").strip().lower() for key in ("property", "name", "itemprop"))
        ranks = [_META_NAMES.index(name) for name in names if name in _META_NAMES]
        if ranks:
            found.append((min(ranks), attributes.get("content", "")))
    return [content for _, content in sorted(found, key=lambda entry: entry[0])]


def _json_ld_values(script: str) -> Iterator[str]:
    """datePublished of a JSON-LD block, wherever it is nested; read by pattern where the block is not valid JSON."""
    try:
        yield from _walk(json.loads(script))
    except (ValueError, RecursionError):
        yield from (match[1] for match in _JSON_DATE.finditer(script))


def _walk(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        value = node.get("datePublished")
        if isinstance(value, str):
            yield value
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _walk(child)


def _attribute_values(tag: str, names: tuple[str, ...]) -> Iterator[str]:
    attributes = _attributes(tag)
    return (attributes[name] for name in names if attributes.get(name))


def _attributes(tag: str) -> dict[str, str]:
    """Attributes of a start tag; of a repeated one the first counts, as in HTML."""
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(tag):
        found.setdefault(name.lower(), unescape(double or single or bare))
    return found


def _plausible_date(value: str) -> datetime | None:
    moment = timestamps.parse(value)
    return moment if moment is not None and timestamps.is_plausible(moment) else None
