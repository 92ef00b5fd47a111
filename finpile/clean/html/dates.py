"""The publication date that an HTML page states about itself."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from html import unescape
from typing import TYPE_CHECKING, Any

from finpile import timestamps
from finpile.timestamps import Reading

if TYPE_CHECKING:
    from finpile.clean.html.markup import MarkupCounts

#: Names (`property`, `name`, `itemprop` of <meta>) that give a publication date, best first. Dates of change are not
#: among them.
_META_NAMES = (
    "article:published_time", "og:article:published_time", "article:published", "og:published_time", "datepublished",
    "parsely-pub-date", "citation_publication_date", "citation_date", "dc.date.issued", "dcterms.issued",
    "dcterms.created", "dc.date.created", "dc.date", "dcterms.date", "publish-date", "publish_date", "publishdate",
    "publication_date", "published_date", "pubdate", "sailthru.date", "article.published", "date",
)  # fmt: skip
_META = re.compile(r"<meta\b", re.IGNORECASE)
_TIME = re.compile(r"<time\b", re.IGNORECASE)
_SCRIPT = re.compile(r"<script\b", re.IGNORECASE)
_SCRIPT_END = re.compile(r"</script", re.IGNORECASE)
_ITEMPROP = re.compile(r"""\bitemprop\s*+=\s*+["']?datePublished\b""", re.IGNORECASE)
_JSON_DATE = re.compile(r'"datePublished"\s*+:\s*+"([^"]{4,64})"')
_ATTRIBUTE = re.compile(r"""(?<![\w:.\-])([\w:.\-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""")

#: A longer tag is not a statement about a date.
_MAX_TAG_CHARACTERS = 2000
#: A longer block of JSON-LD is read by pattern: as objects it would take many times its size in memory.
_MAX_JSON_CHARACTERS = 1 << 20
#: Values that name no date, after which no more are tried: dateutil takes 100 us for each.
_MAX_VALUES = 1000


def read_html(html: str, counts: MarkupCounts | None = None) -> tuple[Reading, str | None]:
    """The publication date or period that a page states about itself; if there is none, also the first date that was
    not read because its order is open.

    Asked in this order: <meta> names (`article:published_time` first, plain `date` last), datePublished in JSON-LD,
    datePublished as itemprop, the first <time datetime>. Only plausible dates count, and of dates of three numbers
    only those whose order is not open. `counts`, of the same page, spare the search behind the last <meta> and <time>.
    """
    meta_end, time_end = (counts.meta_end, counts.time_end) if counts else (len(html), len(html))
    left_open = None
    for value in itertools.islice(_html_values(html, meta_end, time_end), _MAX_VALUES):
        reading = timestamps.read(value)
        if reading.moment is not None and timestamps.is_plausible(reading.moment):
            return reading, None
        if left_open is None and len(timestamps.possible_orders(value)) > 1:
            left_open = value
    return Reading(), left_open


def _html_values(html: str, meta_end: int, time_end: int) -> Iterator[str]:
    yield from _meta_values(html, meta_end)
    if "datePublished" in html:  # spares nearly all pages two searches
        for script in _json_ld_blocks(html):
            yield from _json_ld_values(script)
        for tag in _itemprop_tags(html):
            yield from _attribute_values(tag, ("content", "datetime"))
    for tag, _ in _tags(html, _TIME, time_end):
        yield from _attribute_values(tag, ("datetime",))


def _tags(html: str, opening: re.Pattern[str], end: int) -> Iterator[tuple[str, int]]:
    """The inside of each tag that `opening` begins before `end`, up to the next `>`, and the offset of that.

    A tag is left out if a comment that is open begins within the `_MAX_TAG_CHARACTERS` before it.
    The search for `>` never reads a character twice: a page of tags that do not end is read once.
    """
    at, close = 0, -1
    while found := opening.search(html, at, end):
        at = found.end()
        if close < at:
            close = html.find(">", at)
        if close < 0:
            return
        if 0 < close - at <= _MAX_TAG_CHARACTERS:
            before = max(0, found.start() - _MAX_TAG_CHARACTERS)
            if html.rfind("<!--", before, found.start()) <= html.rfind("-->", before, found.start()):
                yield html[at:close], close
            at = close + 1


def _json_ld_blocks(html: str) -> Iterator[str]:
    read = 0
    for tag, close in _tags(html, _SCRIPT, len(html)):
        if close < read or "application/ld+json" not in tag.lower():
            continue
        end = _SCRIPT_END.search(html, close)
        if end is None:
            return
        read = end.end()
        yield html[close + 1 : end.start()]


def _itemprop_tags(html: str) -> Iterator[str]:
    for found in _ITEMPROP.finditer(html):
        start = html.rfind("<", max(0, found.start() - _MAX_TAG_CHARACTERS), found.start())
        close = html.find(">", max(start, 0), found.end() + _MAX_TAG_CHARACTERS)
        if start >= 0 and close >= found.end():
            yield html[start:close]


def _meta_values(html: str, end: int) -> list[str]:
    """Contents of the <meta> tags that name a date, best name first, then in the order of the page."""
    found = []
    for tag, _ in _tags(html, _META, end):
        attributes = _attributes(tag)
        names = (attributes.get(key, "").strip().lower() for key in ("property", "name", "itemprop"))
        ranks = [_META_NAMES.index(name) for name in names if name in _META_NAMES]
        if ranks:
            found.append((min(ranks), attributes.get("content", "")))
    return [content for _, content in sorted(found, key=lambda entry: entry[0])]


def _json_ld_values(script: str) -> Iterator[str]:
    """datePublished of a JSON-LD block, at any depth; read by pattern if the block is not valid JSON."""
    try:
        if len(script) > _MAX_JSON_CHARACTERS:
            raise ValueError("too long")
        node = json.loads(script)
    except (ValueError, RecursionError):
        return (match[1] for match in _JSON_DATE.finditer(script))
    return _walk(node)


def _walk(root: Any) -> Iterator[str]:
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            value = node.get("datePublished")
            if isinstance(value, str):
                yield value
            node = list(node.values())
        if isinstance(node, list):
            nodes += reversed(node)


def _attribute_values(tag: str, names: tuple[str, ...]) -> Iterator[str]:
    attributes = _attributes(tag)
    return (attributes[name] for name in names if attributes.get(name))


def _attributes(tag: str) -> dict[str, str]:
    """Attributes of a start tag; of a repeated one the first counts, as in HTML."""
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(tag):
        found.setdefault(name.lower(), unescape(double or single or bare))
    return found
