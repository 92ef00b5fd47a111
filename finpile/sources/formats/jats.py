"""Journal articles in JATS (PubMed Central, PLOS): title, abstract and body; one file a document.

The date is the earliest publication date of the article itself. References, files of figures and back matter are left
out; a row of a table is a line.

Source: https://jats.nlm.nih.gov/publishing/1.3/, and https://www.ncbi.nlm.nih.gov/pmc/pmcdoc/tagging-guidelines/.
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

_BLOCKS = (
    "abstract boxed-text caption def-item disp-formula disp-quote fig label list-item p preformat sec table-wrap title "
    "tr trans-abstract verse-line"
)
_SKIPPED = "ref-list graphic inline-graphic media tex-math supplementary-material object-id"
#: Kinds of `<pub-date>` before the article: of its manuscript, which NIHMS had, and of its preprint.
_BEFORE = frozenset(("nihms-submitted", "preprint", "epreprint", "ppreprint"))
_RULES = Rules(blocks=_BLOCKS.split(), skipped=_SKIPPED.split(), cells=("td", "th"))


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The article of a file; its locator is the file's."""
    return read_bytes(stream, locator, source, _article)


def _article(data: bytes) -> Converted:
    root = parse_xml(data)
    article = root if root.tag == "article" else root.find(".//article")
    if article is None:
        raise Refused("no_record", f"no <article> but <{root.tag}>")
    parts = [*article.findall("front/article-meta/abstract"), *article.findall("body")]
    text = "\n\n".join(line for part in parts for line in paragraphs(part, _RULES))
    meta = article.find("front/article-meta")
    front = ET.Element("article-meta") if meta is None else meta
    title = text_of(front, "title-group/article-title")
    doi = text_of(front, "article-id[@pub-id-type='doi']")
    dates = [date for date in front.findall("pub-date") if _BEFORE.isdisjoint(date.attrib.values())]
    written = [day for day in map(_written, dates) if day]
    reading = min((one for one in map(timestamps.read, written) if one.moment), key=_moment, default=None)
    if is_blank(text):
        raise Refused("empty_text", "neither <abstract> nor <body> has text", reading.moment if reading else None)
    facts = {
        "type": article.get("article-type"),
        "journal": text_of(article, "front/journal-meta//journal-title"),
        "pmc": text_of(front, "article-id[@pub-id-type='pmc']"),
        "license": next((value for one in front.iter("license") for key, value in one.items() if "href" in key), None),
        "timestamp_precision": reading.precision if reading and reading.precision != "second" else None,
        "unreadable_timestamp": written[0] if written and not reading else None,
    }
    return Converted(
        text=f"{title}\n\n{text}" if title else text,
        timestamp=reading.moment if reading else None,
        url=f"https://doi.org/{doi}" if doi else None,
        title=title,
        meta={name: value for name, value in facts.items() if value},
    )


def _written(date: ET.Element) -> str:
    """The date of a `<pub-date>`: a day, or a month or year, whose last second it is then; empty without a year."""
    parts = [text_of(date, name) for name in ("year", "month", "day")]
    return "-".join(part.zfill(2) for part in parts[: next((n for n, part in enumerate(parts) if not part), 3)])


def _moment(reading: timestamps.Reading) -> float:
    return reading.moment.timestamp() if reading.moment else 0.0


FORMAT = Format(
    name="jats",
    read=read,
    meta={
        "type": "the type of the article: `research-article`",
        "journal": "the title of the journal",
        "pmc": "the article's number in PubMed Central",
        "license": "the address of the licence",
    },
)
