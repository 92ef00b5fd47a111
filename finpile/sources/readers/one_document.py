"""Formats whose files are one document each."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.documents.blank import is_blank
from finpile.documents.document import PLAIN, RawDocument
from finpile.documents.ledger import Removal
from finpile.sources.bytes.decoding import UTF8, Undecodable, decode
from finpile.sources.readers.accounting import Claim, Lost, Record
from finpile.sources.readers.base import removal

Parse = Callable[[bytes, str, SourceConfig], RawDocument | Removal]


class Refused(Exception):
    """A file is not a document."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class LeftOut(NamedTuple):
    """A part of a record that its document does not have; a row of the ledger."""

    place: str
    """Follows the locator of the record."""
    reason: str
    detail: str
    data: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class Converted:
    """What a file or record says."""

    text: str
    media_type: str = PLAIN
    timestamp: datetime | None = None
    """The date in the file; without one, the file's name is searched for `date_pattern`."""
    title: str | None = None
    url: str | None = None
    license: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


Convert = Callable[[bytes], Converted]


def read_one(stream: BinaryIO, locator: str, source: SourceConfig, parse: Parse) -> Iterator[Claim]:
    """The one record of a file; its locator is the file's. What follows damage is a ledger row."""
    found = _whole(stream, locator, source)
    if isinstance(found, Lost):
        yield found
    else:
        yield Record(0, len(found), locator, found, partial(parse, found, locator, source))


def _whole(stream: BinaryIO, locator: str, source: SourceConfig) -> bytes | Lost:
    start = stream.tell()
    data = stream.read()
    if not start:
        return data
    detail = f"{len(data)} bytes of a document whose beginning is damaged"  # a part may decode to other characters
    return Lost(start, start + len(data), removal(source, f"{locator}#{start}", "corrupt_file", detail, data))


def read_bytes(stream: BinaryIO, locator: str, source: SourceConfig, convert: Convert) -> Iterator[Claim]:
    """The document that `convert` makes of a file's bytes, and rows for what it leaves out."""
    found = _whole(stream, locator, source)
    if isinstance(found, Lost):
        yield found
    else:
        yield from converted_record(0, found, locator, source, convert)


def read_text(
    stream: BinaryIO, locator: str, source: SourceConfig, convert: Callable[[str], Converted]
) -> Iterator[Claim]:
    """The document that `convert` makes of a file's text, and rows for what it leaves out."""
    return read_bytes(stream, locator, source, lambda data: convert(decode(data, source.encoding or UTF8)[0]))


def converted_record(
    start: int, data: bytes, locator: str, source: SourceConfig, convert: Convert
) -> Iterator[Record | Lost]:
    """The record `data`, at `start`, and rows of no bytes for what its document leaves out.

    A record that `convert` raises Refused or Undecodable for is a row itself.
    """
    left_out: list[LeftOut] = []

    def parse() -> RawDocument | Removal:
        try:
            found = convert(data)
        except Undecodable as error:
            return removal(source, locator, "undecodable", str(error), data)
        except Refused as error:
            return removal(source, locator, error.reason, str(error), data)
        if is_blank(found.text):
            return removal(source, locator, "empty_text", f"{len(data)} bytes, nothing visible", data)
        left_out.extend(found.left_out)
        return _dated(found, locator, source)

    end = start + len(data)
    yield Record(start, end, locator, data, parse)
    for place, reason, detail, part in left_out:
        yield Lost(end, end, removal(source, f"{locator}{place}", reason, detail, part))


def _dated(found: Converted, locator: str, source: SourceConfig) -> RawDocument:
    """The document, with the date of its file's name if it has none of its own."""
    moment, origin, meta = found.timestamp, "header", dict(found.meta)
    if moment is None and source.date_pattern:
        name = locator.rsplit("!", 1)[-1]  # of a member, only its own name may hold the date
        reading = timestamps.from_name(name, source.date_pattern)
        moment, origin = reading.moment, "filename"
        if moment is None:
            meta.setdefault("unreadable_timestamp", posixpath.basename(name))
        elif reading.precision != "second":
            meta["timestamp_precision"] = reading.precision
    return RawDocument(
        locator=locator,
        text=found.text,
        media_type=found.media_type,
        timestamp=moment,
        timestamp_origin="none" if moment is None else origin,
        title=found.title or None,
        url=found.url,
        license=found.license,
        meta=meta,
    )
