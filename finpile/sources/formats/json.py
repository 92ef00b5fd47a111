"""JSON: a file with one object, which is one document, such as the items of a filing or the turns of a hearing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.plugins.format import Format
from finpile.sources.formats import jsonl
from finpile.sources.readers.accounting import Claim
from finpile.sources.readers.one_document import read_one
from finpile.sources.readers.records import TARGETS, field_keys


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The object of a file, however its lines are broken; its locator is the file's."""
    return read_one(stream, locator, source, _document)


def _document(data: bytes, locator: str, source: SourceConfig) -> RawDocument | Removal:
    return jsonl.document_of(data, locator, source, field_keys(source))


FORMAT = Format(
    name="json",
    read=read,
    reasons=jsonl.FORMAT.reasons,
    fields=TARGETS,
    keeps_fields=True,
    field_names=jsonl.field_names,
)
