"""Source formats. The built-in ones are the modules of `finpile.sources.formats`, each with its `FORMAT`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from finpile.plugins.registry import Registry
from finpile.plugins.section import Section

#: Keys that `meta` may have in every format, and their meanings.
COMMON_META: Mapping[str, str] = {
    "timestamp_precision": "`month`, `quarter`, `half` or `year` of a document that is dated by such a period",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """A source format: the name that a corpus file gives, a reader, and the facts that others need about it."""

    name: str
    read: Callable[[BinaryIO, str, Any], Iterator[Any]]
    """Reads one input: `read(stream, locator, source)` claims all bytes in order
    (`finpile.sources.readers.base.Reader`)."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Ledger reasons of its own, beside `finpile.sources.REASONS`, and their meanings."""
    meta: Mapping[str, str] = field(default_factory=dict)
    """Keys of its own in `meta` of documents, beside `COMMON_META`, and their meanings. A document with another key
    becomes a row `reader_error`."""
    keeps_fields: bool = False
    """Whether `meta` also has the fields of records that no setting uses, under their names."""
    has_ascii_marks: bool = False
    """Whether records are found by bytes of ASCII, so that encodings must have ASCII as a part: not UTF-16."""
    structure: Mapping[str, str] = field(default_factory=dict)
    """Kinds of structure of its own, beside `finpile.sources.STRUCTURE`, and their meanings."""
    fields: tuple[str, ...] = ()
    """Fields of a document that a record may have; the source's `fields` and `date_format` are about these."""
    field_names: Callable[[BinaryIO, bytes], list[str]] | None = None
    """Names of the fields of a record without text, from the opened file and the record's bytes; for messages."""
    seeks: bool = False
    """Whether it reads the opened file itself, by seeking, and not a forward stream."""
    suffixes: tuple[str, ...] = ()
    """Ends of file names that `finpile dedup` reads by this format."""
    describe: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Facts for `meta` that only a cleaned text shows: `describe(text, meta)`, in time linear in the text."""
    sections: Callable[[str, Mapping[str, Any]], Sequence[Section]] | None = None
    """Sections of a cleaned text that can be documents of their own (`clean: {items: documents}`):
    `sections(text, meta)`, ascending and without overlap, in time linear in the text."""
    has_licenses: bool = False
    """Whether its records may have licences of their own that are no field of `fields`."""
    has_license_files: bool = False
    """Whether a document of an archive has the licence of the nearest `LICENSE` or `COPYING` above it."""
    is_multistream: bool = False
    """Whether its files can be dumps of MediaWiki in several bzip2 streams: large ones with an index are read in
    ranges, and locators count from the start of a record's stream (`finpile.sources.readers.multistream`)."""
    has_text_tables: bool = False
    """Whether its plain texts can have tables by the position of characters (`finpile.clean.text_tables`)."""
    kind: str | None = None
    """The kind (`finpile.config.sources.Kind`) of sources that do not state theirs; None: it does not follow from the
    format."""
    has_menus: bool = False
    """Whether its HTML documents are pages of a web crawl, with menus around the main content."""


FORMATS: Registry[Format] = Registry(
    "format", package="finpile.sources.formats", attribute="FORMAT", group="finpile.formats"
)
