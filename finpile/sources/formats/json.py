"""JSON: a file with one object, which is one document, such as the items of a filing or the turns of a hearing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from finpile.config import SourceConfig
from finpile.plugins.format import Format
from finpile.sources.formats import jsonl
from finpile.sources.readers.accounting import Claim, Record
from finpile.sources.readers.converted import read_whole
from finpile.sources.readers.records import TARGETS, field_keys


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The object of a file, however its lines are broken; its locator is the file's."""
    return read_whole(stream, locator, source, lambda data: [_record(data, locator, source)])


def _record(data: bytes, locator: str, source: SourceConfig) -> Record:
    parse = partial(jsonl.document_of, data, locator, source, field_keys(source))
    return Record(0, len(data), locator, data, parse)


FORMAT = Format(
    name="json",
    read=read,
    reasons=jsonl.FORMAT.reasons,
    fields=TARGETS,
    keeps_fields=True,
    field_names=jsonl.field_names,
)
