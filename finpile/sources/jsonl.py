"""JSON Lines: one object a line, one document an object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO, cast

from finpile.config import SourceConfig
from finpile.document import RawDocument
from finpile.ledger import Removal
from finpile.sources.accounting import Claim, Lost, Record, Structure
from finpile.sources.base import removal
from finpile.sources.decoding import UTF8, Undecodable, decode
from finpile.sources.records import field_keys, to_document
from finpile.sources.streams import ByteStream, TooLarge

#: NaN and Infinity are no JSON, yet common; they are read as null, which can be written again.
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)

#: Objects and lists in each other. Python's own limit depends on who calls, and so would the documents of a build.
MAX_DEPTH = 100


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The lines of a file. Locators end in the byte offset of the line, decompressed.

    Blank lines are no records. The rest of a line whose beginning is damaged is no JSON object by itself, and so needs
    no other treatment than any broken line.
    """
    keys = field_keys(source)
    offset = stream.tell()
    lines = cast(ByteStream, stream)
    for line in lines.lines():
        where = f"{locator}#{offset}"
        if isinstance(line, TooLarge):
            row = removal(source, where, "too_large", line.detail(lines.limits), line.head)
            yield Lost(offset, offset + line.num_bytes, row)
            offset += line.num_bytes
            continue
        end = offset + len(line)
        if line.isspace():
            yield Structure(offset, end, "white_space")
        else:
            yield Record(offset, end, where, line, partial(_record, line, where, source, keys))
        offset = end


def _record(line: bytes, locator: str, source: SourceConfig, keys: dict[str, str]) -> RawDocument | Removal:
    try:
        text, _ = decode(line, source.encoding or UTF8)
        record = _DECODER.decode(text)
        if _is_deep(record):
            raise RecursionError
    except Undecodable as error:
        return removal(source, locator, "undecodable", str(error), line)
    except RecursionError:
        return removal(source, locator, "broken_json", f"nested more than {MAX_DEPTH} deep", line)
    except ValueError as error:
        return removal(source, locator, "broken_json", str(error), line)
    if not isinstance(record, dict):
        return removal(source, locator, "not_an_object", f"a {type(record).__name__}", line)
    return to_document(record, locator, source, keys, line)


def _is_deep(value: Any) -> bool:
    """Whether a value is nested more than `MAX_DEPTH` deep; without recursion."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        level = [
            entry
            for outer in level
            for entry in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(entry, (dict, list))
        ]
        if not level:
            return False
    return True
