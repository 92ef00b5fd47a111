"""JSON Lines: one object a line, one document an object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO, cast

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.plugins.format import Format
from finpile.sources.bytes.decoding import UTF8, Undecodable
from finpile.sources.bytes.streams import ByteStream, TooLarge
from finpile.sources.readers.accounting import Claim, Lost, Record, Structure
from finpile.sources.readers.base import removal
from finpile.sources.readers.json_line import MAX_DEPTH, parse_line
from finpile.sources.readers.records import RECORD_REASONS, TARGETS, field_keys, to_document


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The lines of a file. Locators end in the byte offset of the line, decompressed.

    Blank lines are not records. The rest of a line whose beginning is damaged is not a JSON object by itself, and so
    needs no other treatment than any broken line.
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
            yield Record(offset, end, where, line, partial(document_of, line, where, source, keys))
        offset = end


def document_of(line: bytes, locator: str, source: SourceConfig, keys: dict[str, str]) -> RawDocument | Removal:
    """The document of an object's bytes, or the ledger row with the reason why it has none."""
    try:
        record = parse_line(line, source.encoding or UTF8)
    except Undecodable as error:
        return removal(source, locator, "undecodable", str(error), line)
    except ValueError as error:
        return removal(source, locator, "broken_json", str(error), line)
    if not isinstance(record, dict):
        return removal(source, locator, "not_an_object", f"a {type(record).__name__}", line)
    return to_document(record, locator, source, keys, line)


def field_names(stream: BinaryIO, record: bytes) -> list[str]:
    """Names of the keys of a record without text; none for a record that is not a JSON object."""
    del stream
    try:
        value = json.loads(record)
    except (ValueError, RecursionError):
        return []
    return list(value) if isinstance(value, dict) else []


FORMAT = Format(
    name="jsonl",
    read=read,
    reasons={
        "broken_json": f"a line or file that is not JSON, or is nested more than {MAX_DEPTH} deep",
        "not_an_object": "a line or file of JSON that is not an object",
        **RECORD_REASONS,
    },
    fields=TARGETS,
    keeps_fields=True,
    has_ascii_marks=True,
    field_names=field_names,
    suffixes=(".jsonl", ".ndjson", ".json"),
)
