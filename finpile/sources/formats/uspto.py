"""Full texts of the United States Patent and Trademark Office: XML documents one after the other, each a patent.

A document is the title, abstract, description and claims of a grant or application since 2005 (`ipg*.xml`, `ipa*.xml`).
Other documents in such a file, as sequence listings, are rows of the ledger.

Source: https://bulkdata.uspto.gov, Red Book, versions 4.0 and later.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.documents.blank import is_blank
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.plugins.format import Format
from finpile.sources.readers.accounting import Claim, Record, Structure
from finpile.sources.readers.base import removal
from finpile.sources.readers.pieces import Piece, lost, pieces
from finpile.sources.readers.xml_text import Rules, XmlError, paragraphs, parse_xml, text_of

_ROOTS = ("us-patent-grant", "us-patent-application")
_PARTS = ("abstract", "description", "claims")
_BLOCKS = "abstract claim claim-text claims description heading li maths ol p row ul"
_RULES = Rules(blocks=_BLOCKS.split(), skipped=("img", "chemistry", "math"), cells=("entry",))


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The patents of a file. Locators end in the byte offset of the XML declaration, decompressed."""
    for piece in pieces(stream, rb"<\?xml[ \t\r\n]", b"</us-patent-grant>"):
        where = f"{locator}#{piece.start}"
        if not piece.is_whole:
            yield lost(source, where, "too_large", f"a document of {piece.end - piece.start} bytes", piece)
        elif piece.is_open:
            parse = partial(_patent, piece.data, where, source)
            yield Record(piece.start, piece.end, where, piece.data, parse)
        elif piece.data.isspace():
            yield Structure(piece.start, piece.end, "white_space")
        else:
            yield _between(piece, where, source)


def _between(piece: Piece, where: str, source: SourceConfig) -> Claim:
    if piece.start == 0 and piece.is_last:
        return lost(source, where, "no_record", "no XML declaration", piece)
    return lost(source, where, "unreadable_record", "bytes between two documents", piece)


def _patent(data: bytes, locator: str, source: SourceConfig) -> RawDocument | Removal:
    try:
        root = parse_xml(data)
    except XmlError as error:
        return removal(source, locator, "unreadable_record", str(error), data)
    if root.tag not in _ROOTS:
        return removal(source, locator, "not_text", f"no patent but <{root.tag}>", data)
    found = [line for name in _PARTS for part in root.findall(name) for line in paragraphs(part, _RULES)]
    title = text_of(root, ".//invention-title")
    text = "\n\n".join([title, *found] if title else found)
    if not found or is_blank(text):
        return removal(source, locator, "empty_text", "neither abstract, description nor claims", data)
    reference = ".//publication-reference/document-id"
    written = text_of(root, f"{reference}/date")
    moment = timestamps.read(written).moment if written else None
    meta = {name: text_of(root, f"{reference}/{key}") for name, key in (("patent", "doc-number"), ("kind", "kind"))}
    return RawDocument(
        locator=locator,
        text=text,
        timestamp=moment,
        timestamp_origin="none" if moment is None else "header",
        title=title or None,
        meta={**meta, **({"unreadable_timestamp": written} if written and moment is None else {})},
    )


FORMAT = Format(name="uspto", read=read, meta={"patent": "the number of the patent", "kind": "its kind code: `B2`"})
