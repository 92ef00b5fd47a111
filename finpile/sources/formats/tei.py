"""Texts in TEI, such as parliamentary debates (ParlaMint): the paragraphs of `<text>`, one file a document.

Words of annotated files are joined as their `join` attributes say. Descriptions of noises and gestures are left out.
The date is the latest `when` of the source, or else of the setting or the publication, in the header.

Source: https://tei-c.org/guidelines/p5/ and https://clarin-eric.github.io/ParlaMint/.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO
from xml.etree import ElementTree as ET

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.documents.blank import is_blank
from finpile.plugins.format import Format
from finpile.sources.readers.accounting import Claim
from finpile.sources.readers.converted import Converted, Refused, read_bytes
from finpile.sources.readers.xml_text import Rules, paragraphs, parse_xml, text_of

_RULES = Rules(
    blocks=frozenset(
        ("p", "head", "seg", "u", "l", "lg", "ab", "note", "div", "item", "sp", "speaker", "row", "quote")
    ),
    skipped=frozenset(("teiHeader", "vocal", "kinesic", "incident", "gap", "linkGrp", "figure")),
    cells=frozenset(("cell",)),
)
_DATES = (".//sourceDesc//date[@when]", ".//settingDesc//date[@when]", ".//publicationStmt//date[@when]")


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The text of a file; its locator is the file's."""
    return read_bytes(stream, locator, source, _text)


def _text(data: bytes) -> Converted:
    root = parse_xml(data)
    body = root.find("text") if root.tag == "TEI" else None
    if body is None:
        raise Refused("no_record", f"no <TEI> with <text> but <{root.tag}>")
    text = "\n\n".join(paragraphs(body, _RULES))
    written = _written(root)
    if is_blank(text):
        raise Refused("empty_text", "no text in <text>", timestamps.parse(written))
    language = root.get("{http://www.w3.org/XML/1998/namespace}lang")
    return Converted(
        text=text,
        written=written,
        title=text_of(root, ".//titleStmt/title"),
        meta={"language": language} if language else {},
    )


def _written(root: ET.Element) -> str:
    """Of several days, as of a debate of two, the latest: a text is not dated before its end."""
    found = ([date.get("when", "") for date in root.iterfind(path)] for path in _DATES)
    days = next(filter(None, found), [""])
    return max(days, key=lambda day: timestamps.parse(day) or timestamps.EARLIEST)


FORMAT = Format(name="tei", read=read, meta={"language": "the language that the text declares"})
