"""Plain text: a file is a document, dated by its name."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from finpile import timestamps
from finpile.blank import is_blank
from finpile.config import SourceConfig
from finpile.document import RawDocument
from finpile.format import Format
from finpile.ledger import Removal
from finpile.sources.accounting import Claim, Lost, Record
from finpile.sources.base import removal
from finpile.sources.decoding import UTF8, Undecodable, decode


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The one document of a file; its locator is the file's."""
    start = stream.tell()
    data = stream.read()
    if start:  # behind damage: a part of a text may decode to other characters
        detail = f"{len(data)} bytes of a text whose beginning is damaged"
        yield Lost(start, start + len(data), removal(source, f"{locator}#{start}", "corrupt_file", detail, data))
        return
    yield Record(0, len(data), locator, data, partial(_document, data, locator, source))


def _document(data: bytes, locator: str, source: SourceConfig) -> RawDocument | Removal:
    try:
        text, _ = decode(data, source.encoding or UTF8)
    except Undecodable as error:
        return removal(source, locator, "undecodable", str(error), data)
    if is_blank(text):
        return removal(source, locator, "empty_text", f"{len(data)} bytes, nothing visible", data)
    name = locator.rsplit("!", 1)[-1]  # of a member, only its own name may hold the date
    timestamp = timestamps.from_name(name, source.date_pattern) if source.date_pattern else None
    is_missing = source.date_pattern and timestamp is None
    return RawDocument(
        locator=locator,
        text=text,
        timestamp=timestamp,
        timestamp_origin="filename" if timestamp else "none",
        meta={"unreadable_timestamp": posixpath.basename(name)} if is_missing else {},
    )


FORMAT = Format(name="text", read=read)
