"""Plain text: a file is a document, dated by its name."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import BinaryIO

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.document import RawDocument
from finpile.ledger import Removal
from finpile.sources.base import removal
from finpile.sources.decoding import UTF8, Undecodable, decode


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[RawDocument | Removal]:
    """The one document of a file; its locator is the file's."""
    data = stream.read()
    try:
        text, _ = decode(data, source.encoding or UTF8)
    except Undecodable as error:
        yield removal(source, locator, "undecodable", str(error), data)
        return
    if not text or text.isspace():
        yield removal(source, locator, "empty_text", f"{len(data)} bytes, all of them white space", data)
        return
    name = locator.rsplit("!", 1)[-1]  # of a member, only its own name is asked for the date
    timestamp = timestamps.from_name(name, source.date_pattern) if source.date_pattern else None
    is_missing = source.date_pattern and timestamp is None
    yield RawDocument(
        locator=locator,
        text=text,
        timestamp=timestamp,
        timestamp_origin="filename" if timestamp else "none",
        meta={"unreadable_timestamp": posixpath.basename(name)} if is_missing else {},
    )
