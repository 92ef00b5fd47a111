"""JSON Lines: one object a line, one document an object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

from finpile.config import SourceConfig
from finpile.document import RawDocument
from finpile.ledger import Removal
from finpile.sources.base import removal
from finpile.sources.decoding import UTF8, Undecodable, decode
from finpile.sources.records import field_keys, to_document

#: NaN and Infinity are no JSON, yet common; they are read as null, which can be written again.
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[RawDocument | Removal]:
    """The documents of a file. Locators end in the byte offset of the line, decompressed.

    Blank lines are no records.
    """
    keys = field_keys(source)
    offset = 0
    for line in stream:
        if not line.isspace():
            yield _record(line, f"{locator}#{offset}", source, keys)
        offset += len(line)


def _record(line: bytes, locator: str, source: SourceConfig, keys: dict[str, str]) -> RawDocument | Removal:
    try:
        text, _ = decode(line, source.encoding or UTF8)
        record = _DECODER.decode(text)
    except Undecodable as error:
        return removal(source, locator, "undecodable", str(error), line)
    except (ValueError, RecursionError) as error:
        return removal(source, locator, "broken_json", str(error), line)
    if not isinstance(record, dict):
        return removal(source, locator, "not_an_object", f"a {type(record).__name__}", line)
    return to_document(record, locator, source, keys, line)
