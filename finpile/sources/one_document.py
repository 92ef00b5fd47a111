"""Formats whose files are one document each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO

from finpile.config import SourceConfig
from finpile.document import RawDocument
from finpile.ledger import Removal
from finpile.sources.accounting import Claim, Lost, Record
from finpile.sources.base import removal

Parse = Callable[[bytes, str, SourceConfig], RawDocument | Removal]


def read_one(stream: BinaryIO, locator: str, source: SourceConfig, parse: Parse) -> Iterator[Claim]:
    """The one record of a file; its locator is the file's. What follows damage is a ledger row."""
    start = stream.tell()
    data = stream.read()
    if start:
        detail = f"{len(data)} bytes of a document whose beginning is damaged"
        row = removal(source, f"{locator}#{start}", "corrupt_file", detail, data)
        yield Lost(start, start + len(data), row)
        return
    yield Record(0, len(data), locator, data, partial(parse, data, locator, source))
