"""Reuters-21578: SGML files of newswire stories.

A story is a `<REUTERS>` element. Of its markup only the three entities of its DTD (`lt`, `gt`, `amp`) and numeric
references occur; control characters below U+0020 other than tab and line feed, which steered teleprinters, are left
out of all text. The `<UNKNOWN>` element (wire codes) is not read.

Source: README.txt and lewis.dtd of the Reuters-21578 collection, distribution 1.0.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO

from finpile.config import SourceConfig
from finpile.document import RawDocument
from finpile.ledger import Removal
from finpile.sources.base import removal
from finpile.sources.decoding import Undecodable, decode
from finpile.sources.streams import BrokenStream

#: reut2-017.sgm holds one byte that is no UTF-8.
ENCODINGS = ("utf-8", "latin-1")

_END = b"</REUTERS>"
_START = b"<REUTERS"
_ATTRIBUTE = re.compile(r'([A-Z]+)="([^"]*)"')
_ENTRY = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_ENTITY = re.compile(r"&(lt|gt|amp|#\d{1,7});")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")
_DATE = re.compile(r"(\d{1,2})-([A-Z]{3})-(\d{4})(?: +(\d\d?):(\d\d):(\d\d))?")

_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&"}
_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_CATEGORIES = ("topics", "places", "people", "orgs", "exchanges", "companies")
#: Attributes of a story, and what `meta` calls them: TOPICS="YES" would clash with the list of topics.
_ATTRIBUTES = {
    "NEWID": "newid",
    "OLDID": "oldid",
    "LEWISSPLIT": "lewissplit",
    "CGISPLIT": "cgisplit",
    "TOPICS": "topics_assigned",
}


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[RawDocument | Removal]:
    """The stories of a file that have a body. Locators end in the story's NEWID."""
    broken: BrokenStream | None = None
    try:
        data = stream.read()
    except BrokenStream as error:
        broken, data = error, error.partial
    end = data.rfind(_END) + len(_END) if _END in data else 0
    yield from _stories(data[:end], locator, source)
    rest = data[end:]
    if broken is not None:
        broken.partial = rest
        raise broken
    if _START in rest:
        detail = f"ends inside a story, {len(rest)} bytes after the last whole one"
        yield removal(source, locator, "truncated_file", detail, rest)
    elif not end:
        yield removal(source, locator, "no_record", "no <REUTERS> element", data)


def _stories(data: bytes, locator: str, source: SourceConfig) -> Iterator[RawDocument | Removal]:
    try:
        text, encoding = decode(data, source.encoding or ENCODINGS)
    except Undecodable as error:
        yield removal(source, locator, "undecodable", str(error), data)
        return
    for ordinal, story in enumerate(text.split(_END.decode())[:-1]):
        opening, _, markup = story.partition(_START.decode())[2].partition(">")
        attributes = dict(_ATTRIBUTE.findall(opening))
        where = f"{locator}#{attributes.get('NEWID', f'story-{ordinal}')}"
        yield _story(attributes, markup, where, source, encoding)


def _story(
    attributes: dict[str, str], markup: str, locator: str, source: SourceConfig, encoding: str
) -> RawDocument | Removal:
    start = markup.find("<TEXT")
    head, text = (markup[:start], markup[start:]) if start >= 0 else (markup, "")
    body = _plain(_element(text, "BODY") or "")
    if not body or body.isspace():
        removed = text[: text.rfind(">") + 1] or markup
        return removal(source, locator, "empty_text", "no text in <BODY>", removed.encode(encoding))
    date = (_element(head, "DATE") or "").strip()
    timestamp = _moment(date)
    meta: dict[str, Any] = {name: attributes.get(key) for key, name in _ATTRIBUTES.items()}
    meta |= {name: _ENTRY.findall(_plain(_element(head, name.upper()) or "")) for name in _CATEGORIES}
    meta |= {name: _plain(_element(text, name.upper()) or "").strip() for name in ("author", "dateline")}
    if date and timestamp is None:
        meta["unreadable_timestamp"] = date
    return RawDocument(
        locator=locator,
        text=body,
        timestamp=timestamp,
        timestamp_origin="none" if timestamp is None else "header",
        title=_plain(_element(text, "TITLE") or "").strip() or None,
        meta={name: value for name, value in meta.items() if value},
    )


def _element(markup: str, name: str) -> str | None:
    """What stands in the first element of that name (none nests). A lazy regular expression takes ten times as long."""
    start = markup.find(f"<{name}>") + len(name) + 2
    end = markup.find(f"</{name}>", start)
    return markup[start:end] if start >= len(name) + 2 and end >= 0 else None


def _plain(markup: str) -> str:
    return _CONTROL.sub("", _ENTITY.sub(_character, markup))


def _character(match: re.Match[str]) -> str:
    name = match[1]
    if name in _CHARACTERS:
        return _CHARACTERS[name]
    code = int(name[1:])
    is_character = code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
    return chr(code) if is_character else match[0]


def _moment(date: str) -> datetime | None:
    """The moment in a DATE, which may have junk before and after it; its day where the time is none (605:12:19)."""
    found = _DATE.search(date)
    if found is None or found[2] not in _MONTHS:
        return None
    year, month, day = int(found[3]), _MONTHS[found[2]], int(found[1])
    times = [tuple(map(int, found.group(4, 5, 6)))] if found[4] else []
    for hour, minute, second in [*times, (0, 0, 0)]:
        with contextlib.suppress(ValueError):
            return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    return None
