"""The first records of a source, which `finpile check` reads to find wrong settings before hours of work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from finpile.config import SourceConfig
from finpile.config.limits import HEAD_BYTES
from finpile.config.text_template import input_keys
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.errors import FinpileError, InputError, closest
from finpile.plugins.format import FORMATS
from finpile.sources.bytes.compression import codec_of, decompress, split_codecs
from finpile.sources.bytes.streams import BrokenStream, blocks_of
from finpile.sources.readers.finding import InputFile, locate
from finpile.sources.readers.looks import looks_like
from finpile.sources.readers.reading import read_file
from finpile.sources.readers.record_evidence import FieldEvidence
from finpile.storage.file_systems import open_in

#: The most that is read of one file.
MAX_RECORDS = 100
MAX_BYTES = 1 << 20
#: Files are read until both numbers are reached, of files and of documents, but at most `_MAX_FILES`.
_NUM_FILES = 3
_NUM_DOCUMENTS = 20
_MAX_FILES = 20


@dataclass(slots=True)
class Peek:
    """The first records of a source entry."""

    documents: list[RawDocument] = field(default_factory=list)
    removals: list[tuple[InputFile, Removal]] = field(default_factory=list)
    evidence: FieldEvidence = field(default_factory=FieldEvidence)
    is_whole: bool = True
    """Whether these are all records of the source."""

    @property
    def num_records(self) -> int:
        return len(self.documents) + len(self.removals)


def peek(source: SourceConfig, files: Sequence[InputFile]) -> Peek:
    """The first records of the first files.

    Raises: InputError if they hold no document, with the likely kind of the file, or the names of its fields.
    """
    found = Peek()
    for number, file in enumerate(files):
        has_enough = number >= _NUM_FILES and len(found.documents) >= _NUM_DOCUMENTS
        if has_enough or number >= _MAX_FILES:
            found.is_whole = False
            break
        found.is_whole &= _read_head(found, file, source)
    if not found.documents:
        raise InputError(_why_nothing(found, source, files))
    return found


def read_whole(source: SourceConfig, file: InputFile, evidence: FieldEvidence) -> None:
    """Adds all documents of a file to the evidence."""
    for item in read_file(file, source):
        if isinstance(item, RawDocument):
            evidence.add(item)


def _read_head(found: Peek, file: InputFile, source: SourceConfig) -> bool:
    """Whether the file was read to its end."""
    items = read_file(file, source)
    num_records = num_bytes = 0
    try:
        for item in items:
            if isinstance(item, RawDocument):
                found.documents.append(item)
                found.evidence.add(item)
                num_bytes += len(item.text)
            else:
                found.removals.append((file, item))
                num_bytes += len(item.removed_text)
            num_records += 1
            if num_records >= MAX_RECORDS or num_bytes >= MAX_BYTES:
                return next(items, None) is None
        return True
    finally:
        cast(Generator[Any], items).close()


def _why_nothing(found: Peek, source: SourceConfig, files: Sequence[InputFile]) -> str:
    head = f"source {source.label!r}: no document in the first {found.num_records:,} records"
    missing = [(file, row) for file, row in found.removals if row.reason == "no_text"]
    if missing:
        key = source.fields.get("text", "text")
        wanted = input_keys(key)
        names = sorted({name for file, row in missing for name in field_names(file, source, row)})
        if not {*wanted} & {*names}:  # else it is there, and null
            return (
                f"{source.where.of('fields', key)}{head}: none has the field {_quoted(wanted)}, which is to be its "
                f"text; fields there are: {', '.join(names) or 'none'}{closest(wanted[0], names)}. Name the one with "
                "the text: `fields: {text: ...}`"
            )
    for reason, setting in (("no_members", "members"), ("unknown_source", "name")):
        rows = [row for _, row in found.removals if row.reason == reason]
        if rows and len(rows) == len(found.removals):
            return f"{source.where.of(setting)}{head}: {rows[0].locator}: {rows[0].reason}: {rows[0].detail}"
    looked_at = found.removals[0][0] if found.removals else files[0]
    reasons = Counter(row.reason for _, row in found.removals)
    counted = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    looks = looks_like(_head(looked_at))
    remedy = f": set `format: {looks.format}`" if looks.format and looks.format != source.format else ""
    return (
        f"{source.where.of('format')}{head} can be read as {source.format} ({counted}); {looked_at.locator} looks like "
        f"{looks.description}{remedy}"
    )


def _quoted(names: Sequence[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def field_names(file: InputFile, source: SourceConfig, row: Removal) -> list[str]:
    """The names of the fields of a record without text; none if the format has no named fields."""
    names_of = FORMATS.get(source.format).field_names
    if names_of is None:
        return []
    fs, path = locate(file.url)
    with open_in(fs, path) as stream:
        return names_of(stream, row.removed_text)


def _head(file: InputFile) -> bytes:
    """The first bytes of a file, decompressed if possible."""
    fs, path = locate(file.url)
    with open_in(fs, path) as stream:
        head = bytes(stream.read(HEAD_BYTES))
    codecs = split_codecs(path)[1] or codec_of(head)
    if not codecs:
        return head
    try:
        with open_in(fs, path) as stream:
            blocks = decompress(blocks_of(stream, file.locator), codecs[0], file.locator)
            return next((bytes(block) for block in blocks if isinstance(block, (bytes, memoryview))), head)
    except (BrokenStream, OSError, FinpileError):
        return head
