"""Full texts of the United States Patent and Trademark Office: XML documents one after the other, each a patent.

A document is the title, abstract, description and claims of a grant or application since 2005 (`ipg*.xml`, `ipa*.xml`).
Other documents in such a file, as sequence listings, are rows of the ledger.

Source: https://bulkdata.uspto.gov, Red Book, versions 4.0 and later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.documents.blank import is_blank
from finpile.plugins.format import Format
from finpile.sources.readers.accounting import Claim
from finpile.sources.readers.converted import Converted, Refused, record_of
from finpile.sources.readers.pieces import between, lost, pieces
from finpile.sources.readers.xml_text import Rules, paragraphs, parse_xml, text_of

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
            yield record_of(piece, where, source, _patent)
        else:
            yield between(source, where, piece, "no XML declaration", "bytes between two documents")


def _patent(data: bytes) -> Converted:
    root = parse_xml(data)
    if root.tag not in _ROOTS:
        raise Refused("not_text", f"no patent but <{root.tag}>")
    found = [line for name in _PARTS for part in root.findall(name) for line in paragraphs(part, _RULES)]
    title = text_of(root, ".//invention-title")
    text = "\n\n".join([title, *found] if title else found)
    reference = ".//publication-reference/document-id"
    written = text_of(root, f"{reference}/date")
    if not found or is_blank(text):
        raise Refused("empty_text", "neither abstract, description nor claims", timestamps.parse(written))
    return Converted(
        text=text,
        written=written,
        title=title,
        meta={name: text_of(root, f"{reference}/{key}") for name, key in (("patent", "doc-number"), ("kind", "kind"))},
    )


FORMAT = Format(
    name="uspto",
    kind="public",
    read=read,
    meta={"patent": "the number of the patent", "kind": "its kind code: `B2`"},
)
