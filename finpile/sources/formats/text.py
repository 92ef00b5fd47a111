"""Plain text: a file is a document, dated by its name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from finpile.config import SourceConfig
from finpile.plugins.format import Format
from finpile.sources.readers.accounting import Claim
from finpile.sources.readers.converted import Converted, read_text


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The one document of a file; its locator is the file's."""
    return read_text(stream, locator, source, lambda text: Converted(text=text))


FORMAT = Format(name="text", read=read)
