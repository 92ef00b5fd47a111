"""Reuters-21578: SGML files of newswire stories.

A story is a `<REUTERS>` element. Of its markup only the three entities of its DTD (`lt`, `gt`, `amp`) and numeric
references occur; control characters below U+0020 other than tab and line feed, which steered teleprinters, are left
out of all text. The `<UNKNOWN>` element (wire codes) is not read.

Source: README.txt and lewis.dtd of the Reuters-21578 collection, distribution 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.documents.blank import is_blank
from finpile.plugins.format import Format
from finpile.sources.bytes.decoding import decode
from finpile.sources.readers.accounting import Claim, Lost, Structure
from finpile.sources.readers.base import removal
from finpile.sources.readers.converted import Converted, Refused, record_of
from finpile.sources.readers.pieces import Piece, lost, pieces
from finpile.sources.readers.xml_text import element

#: reut2-017.sgm holds one byte that is not UTF-8.
ENCODINGS = ("utf-8", "latin-1")

_END = b"</REUTERS>"
#: The tag's name ends there.
_START = rb"<REUTERS(?=[\s>])"
_PROLOG = re.compile(rb"\s*<!DOCTYPE[^<>]{0,200}>\s*", re.IGNORECASE)
_ATTRIBUTE = re.compile(r'([A-Z]+)="([^"]*)"')
_ENTRY = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_ENTITY = re.compile(r"&(lt|gt|amp|#\d{1,7});")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")
_DATE = re.compile(r"(\d{1,2}-[A-Z]{3}-\d{4})(?: +\d\d?:\d\d:\d\d)?")

_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&"}
_CATEGORIES = ("topics", "places", "people", "orgs", "exchanges", "companies")
#: Attributes of a story, and what `meta` calls them: TOPICS="YES" would clash with the list of topics.
_ATTRIBUTES = {
    "NEWID": "newid",
    "OLDID": "oldid",
    "LEWISSPLIT": "lewissplit",
    "CGISPLIT": "cgisplit",
    "TOPICS": "topics_assigned",
}


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The stories of a file. Locators end in the byte offset of the story, since NEWIDs may repeat.

    A story whose end tag is missing ends at the start of the next one; it is read if its body is whole.
    """
    for piece in pieces(stream, _START, _END):
        if piece.is_open:
            yield from _story_of(piece, locator, source)
        else:
            yield from _between(piece, locator, source)


def _story_of(piece: Piece, locator: str, source: SourceConfig) -> Iterator[Claim]:
    start, end, data = piece.start, piece.end, piece.data
    where = f"{locator}#{start}"
    num_bodies, num_ends = data.count(b"<BODY>"), data.count(b"</BODY>")
    if not piece.is_whole:
        yield lost(source, where, "too_large", f"a story of {end - start} bytes", piece)
    elif piece.is_last and not piece.is_closed:
        yield lost(source, where, "truncated_file", f"ends inside a story, after {len(data)} bytes of it", piece)
    elif num_bodies > 1 or num_ends > 1:
        yield lost(source, where, "unreadable_record", f"one story with {max(num_bodies, num_ends)} bodies", piece)
    elif not piece.is_closed and not (num_bodies and num_ends):
        yield lost(source, where, "unreadable_record", "neither </REUTERS> nor a whole <BODY>", piece)
    else:
        yield record_of(piece, where, source, partial(_story, source.encoding or ENCODINGS))
        if not piece.is_closed:
            row = removal(source, f"{where}/end", "unreadable_record", "no </REUTERS>: read up to the next story")
            yield Lost(end, end, row)


def _between(piece: Piece, locator: str, source: SourceConfig) -> Iterator[Claim]:
    is_all = piece.is_last and not piece.start
    prolog = _PROLOG.match(piece.data) if piece.start == 0 else None
    start = prolog.end() if prolog else 0
    if start:
        yield Structure(0, start, "sgml_prolog")
        piece = piece._replace(start=start, data=piece.data[start:])
    if piece.is_whole and (not piece.data or piece.data.isspace()):
        yield Structure(piece.start, piece.end, "white_space")
        return
    if is_all:
        yield lost(source, locator, "no_record", "no <REUTERS> element", piece)
    else:
        detail = "neither a story nor white space: a damaged start tag"
        yield lost(source, f"{locator}#{piece.start}", "unreadable_record", detail, piece)


def _story(encodings: Sequence[str], data: bytes) -> Converted:
    story, _ = decode(data, encodings)
    opening, _, markup = story.removesuffix(_END.decode()).partition(">")
    attributes = dict(_ATTRIBUTE.findall(opening))
    start = markup.find("<TEXT")
    head, text = (markup[:start], markup[start:]) if start >= 0 else (markup, "")
    body = _plain(element(text, "BODY"))
    date = element(head, "DATE").strip()
    timestamp = _moment(date)
    if is_blank(body):
        raise Refused("empty_text", "no text in <BODY>", timestamp)
    meta: dict[str, Any] = {name: attributes.get(key) for key, name in _ATTRIBUTES.items()}
    meta |= {name: _entries(_plain(element(head, name.upper()))) for name in _CATEGORIES}
    meta |= {name: _plain(element(text, name.upper())).strip() for name in ("author", "dateline")}
    if date and timestamp is None:
        meta["unreadable_timestamp"] = date
    return Converted(
        text=body,
        timestamp=timestamp,
        title=_plain(element(text, "TITLE")).strip(),
        meta={name: value for name, value in meta.items() if value},
    )


def _entries(text: str) -> list[str]:
    return _ENTRY.findall(text, 0, text.rfind("</D>") + len("</D>"))  # behind it each <D> would be searched to the end


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
    """The moment in a DATE, which may have junk before and after it; its day if the time is invalid (605:12:19)."""
    found = _DATE.search(date)
    return found and (timestamps.parse(found[0]) or timestamps.parse(found[1]))


FORMAT = Format(
    name="sgml",
    read=read,
    structure={"sgml_prolog": "the DOCTYPE line"},
    meta={
        **{name: f"the attribute {key} of the story" for key, name in _ATTRIBUTES.items()},
        **{name: f"list of the {name} that the story is tagged with" for name in _CATEGORIES},
        "author": "the author",
        "dateline": "place and day, as in the story",
    },
)
