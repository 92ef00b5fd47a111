"""Records whose bytes say what the document is: what a format reads in them, as a document or a row of the ledger."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
from finpile.sources.readers.pieces import Piece
from finpile.sources.readers.xml_text import XmlError


class Refused(Exception):
    """A record is not a document. `timestamp` is its date, or that of what it is a part of, such as a filing."""

    def __init__(self, reason: str, detail: str, timestamp: datetime | None = None) -> None:
        super().__init__(detail)
        self.reason = reason
        self.timestamp = timestamp


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
    """The date in the record."""
    written: str = ""
    """That date as it is written, if it is not read yet or cannot be read."""
    title: str | None = None
    url: str | None = None
    license: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


Convert = Callable[[bytes], Converted]


def document_of(data: bytes, locator: str, source: SourceConfig, convert: Convert) -> RawDocument | Removal:
    """The document that `convert` makes of a record.

    A record that `convert` raises Refused, Undecodable or XmlError for is a row; so is one without visible text.
    """
    found = _converted(data, locator, source, convert)
    return found if isinstance(found, Removal) else _raw_document(found, locator)


def record_of(piece: Piece, locator: str, source: SourceConfig, convert: Convert) -> Record:
    """A piece that is a record, whose document is that of `document_of`."""
    return Record(
        piece.start, piece.end, locator, piece.data, partial(document_of, piece.data, locator, source, convert)
    )


def read_whole(
    stream: BinaryIO, locator: str, source: SourceConfig, claims: Callable[[bytes], Iterable[Claim]]
) -> Iterator[Claim]:
    """What `claims` makes of the bytes of a file. What follows damage is a ledger row."""
    start, data = stream.tell(), stream.read()
    if not start:
        yield from claims(data)
        return
    detail = f"{len(data)} bytes of a document whose beginning is damaged"  # a part may decode to other characters
    yield Lost(start, start + len(data), removal(source, f"{locator}#{start}", "corrupt_file", detail, data))


def read_bytes(stream: BinaryIO, locator: str, source: SourceConfig, convert: Convert) -> Iterator[Claim]:
    """The document that `convert` makes of a file's bytes, and rows for what it leaves out."""
    return read_whole(stream, locator, source, lambda data: converted_record(0, data, locator, source, convert))


def read_text(
    stream: BinaryIO, locator: str, source: SourceConfig, convert: Callable[[str], Converted]
) -> Iterator[Claim]:
    """The document that `convert` makes of a file's text, and rows for what it leaves out."""
    return read_bytes(stream, locator, source, lambda data: convert(decode(data, source.encoding or UTF8)[0]))


def converted_record(
    start: int, data: bytes, locator: str, source: SourceConfig, convert: Convert
) -> Iterator[Record | Lost]:
    """The record `data`, at `start`, as `document_of` reads it, and rows of no bytes for what its document leaves out,
    with the date of that.

    Without a date in it, the file's name is searched for `date_pattern`.
    """
    left_out: list[Removal] = []

    def parse() -> RawDocument | Removal:
        found = _converted(data, locator, source, convert)
        if isinstance(found, Removal):
            return found
        document = _dated(_raw_document(found, locator), source)
        moment = timestamps.plausible(document.timestamp)
        for place, reason, detail, part in found.left_out:
            row = removal(source, f"{locator}{place}", reason, detail, part)
            left_out.append(replace(row, timestamp=moment))
        return document

    end = start + len(data)
    yield Record(start, end, locator, data, parse)
    yield from (Lost(end, end, row) for row in left_out)


def _converted(data: bytes, locator: str, source: SourceConfig, convert: Convert) -> Converted | Removal:
    try:
        found = convert(data)
    except Undecodable as error:
        return removal(source, locator, "undecodable", str(error), data)
    except XmlError as error:
        return removal(source, locator, "unreadable_record", str(error), data)
    except Refused as error:
        return _of_day(removal(source, locator, error.reason, str(error), data), error.timestamp)
    if is_blank(found.text):
        row = removal(source, locator, "empty_text", f"{len(data)} bytes, nothing visible", data)
        return _of_day(row, _raw_document(found, locator).timestamp)
    return found


def _of_day(row: Removal, moment: datetime | None) -> Removal:
    """The row with the date of its record, if it has one."""
    return replace(row, timestamp=timestamps.plausible(moment) or row.timestamp)


def _raw_document(found: Converted, locator: str) -> RawDocument:
    moment, meta = found.timestamp, dict(found.meta)
    if found.written and moment is None:
        reading = timestamps.read(found.written)
        moment = reading.moment
        meta |= {"unreadable_timestamp": found.written} if moment is None else {}
        meta |= {"timestamp_precision": reading.precision} if reading.precision != "second" else {}
    return RawDocument(
        locator=locator,
        text=found.text,
        media_type=found.media_type,
        timestamp=moment,
        timestamp_origin="none" if moment is None else "header",
        title=found.title or None,
        url=found.url,
        license=found.license,
        meta=meta,
    )


def _dated(document: RawDocument, source: SourceConfig) -> RawDocument:
    """The document, with the date of its file's name if it has none of its own."""
    if document.timestamp is not None or not source.date_pattern:
        return document
    reading, meta = timestamps.from_name(document.locator, source.date_pattern), dict(document.meta)
    if reading.moment is None:
        meta.setdefault("unreadable_timestamp", posixpath.basename(document.locator.rsplit("!", 1)[-1]))
        return replace(document, meta=meta)
    if reading.precision != "second":
        meta["timestamp_precision"] = reading.precision
    return replace(document, timestamp=reading.moment, timestamp_origin="filename", meta=meta)
