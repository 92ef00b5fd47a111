"""EDGAR full-submission text files: what the SEC keeps of one filing, all its documents in one file.

Two dialects of one SGML are read: `.txt` with `<SEC-DOCUMENT>` and a header of `NAME: value` lines (the oldest ones
inside a PEM envelope), and `.nc` with `<SUBMISSION>` and a header of tags. Each `<DOCUMENT>` becomes one record:

- a document, if its `<TEXT>` is HTML (XBRL inside HTML included) or plain text;
- a ledger row `not_text`, if it is not for reading: uuencoded files (images, PDF, ZIP, workbooks); JSON and XML,
  which are data for machines, among them ownership forms, 13F tables, XBRL schemas and linkbases; the `R1.htm ...`
  pages that EDGAR renders from XBRL (`<TYPE>XML`), which repeat the filing's own tables; and the tagged schedules of
  1993-2001 (EX-27);
- a ledger row `empty_text`, if it is empty.

A file without `<DOCUMENT>` gives one row: `empty_text` for a header alone, else `not_a_submission`. A submission
whose end is missing gives what can be read, the open last document included, and one row `truncated_file`.

The timestamp is the moment at which the filing became public (`finpile.sources.formats.edgar.header`). Between
documents there are the header, the end tags of the submission and white space; anything else, such as a document whose
start tag is damaged, is a ledger row `unreadable_record`.

Source: EDGAR Public Dissemination Service (PDS) Technical Specification, https://www.sec.gov/oit/announcement/pds
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.documents.blank import is_blank
from finpile.documents.document import HTML, PLAIN
from finpile.filings import find_items
from finpile.filings.item_titles import declared_number
from finpile.plugins.format import Format
from finpile.plugins.section import Section
from finpile.sources.bytes.decoding import Undecodable, decode, decode_likely
from finpile.sources.bytes.streams import BrokenStream
from finpile.sources.formats.edgar.header import META, Header, read_header
from finpile.sources.formats.edgar.header import tags as read_tags
from finpile.sources.readers.accounting import Claim, Lost, Record, Structure
from finpile.sources.readers.base import removal
from finpile.sources.readers.converted import Converted, Refused, document_of
from finpile.sources.readers.pieces import Piece, lost, pieces

_OPEN = rb"<DOCUMENT>(?=\s{0,64}<TYPE>)"
_CLOSE = b"</DOCUMENT>"
_TEXT_OPEN, _TEXT_CLOSE = b"<TEXT>", b"</TEXT>"
_HEADER_MARKS = (b"<SEC-DOCUMENT>", b"<SEC-HEADER>", b"<IMS-HEADER>", b"<SUBMISSION>", b"ACCESSION NUMBER:")
_HEADER_ENDS = (b"</SEC-HEADER>", b"</IMS-HEADER>")
#: What the last line of a whole file holds, by what its first lines hold.
_TRAILERS = {b"<SEC-DOCUMENT>": b"</SEC-DOCUMENT>", b"<SUBMISSION>": b"</SUBMISSION>"}
_TRAILER = re.compile(
    rb"(?:\s*(?:</SEC-DOCUMENT>|</IMS-DOCUMENT>|</SUBMISSION>|-----END PRIVACY-ENHANCED MESSAGE-----))+\s*"
)
#: The tags that every document begins with; the line before them is its start tag, whatever is left of it.
_HEAD = re.compile(rb"[^\r\n]{0,64}[\r\n]{1,4}<TYPE>[^\r\n<]{1,64}[\r\n]{1,4}\Z")
_SEQUENCE = b"<SEQUENCE>"
_MAX_HEAD_BYTES = 200
_NO_START = "no document's start tag, although it is not a header, trailer or white space"

_WRAPPER = re.compile(rb"\s*<(XBRL|XML|PDF|JSON)>", re.IGNORECASE)
_WRAPPER_END = re.compile(rb"</(?:XBRL|XML|PDF|JSON)>\s*\Z", re.IGNORECASE)
#: Declarations, comments and doctypes other than HTML's, which may precede the root element.
_PROLOG = re.compile(rb"(?:\s*(?:<\?[^>]*>|<!--.*?-->|<!DOCTYPE(?!\s+html)[^>]*>))*\s*", re.IGNORECASE | re.DOTALL)
_PROLOG_MAX_BYTES = 4096
_UUENCODED = re.compile(rb"\s*begin [0-7]{3,4} \S")
_HTML_START = re.compile(rb"<!DOCTYPE\s+html|<html\b", re.IGNORECASE)
_XML_START = re.compile(rb"\s*<\?xml\b", re.IGNORECASE)
_JSON_START = re.compile(rb'\s*[\[{]\s*["\[{\]}]')
_HTML_SUFFIXES = (".htm", ".html")
#: <TYPE> of what is data, or a rendering of data, however it is written down.
_DATA_TYPES = re.compile(r"(?:XML|JSON|ZIP|EXCEL|GRAPHIC|PDF)$|EX-101\b|EX-27\b", re.IGNORECASE)

#: The filing date from which items of Form 8-K have numbers such as 5.02. Source: SEC Release 33-8400.
_NEW_8K = "20040823"
#: Tags of a <DOCUMENT> -> keys of its meta.
_DOCUMENT_FIELDS = {"TYPE": "document_type", "SEQUENCE": "sequence", "FILENAME": "filename"}


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The documents of one full submission, and a ledger row for each that is not text.

    A document's locator is that of the file, `#`, and the byte offset of its `<DOCUMENT>`.

    Raises: BrokenStream of the stream, after the documents before its defect.
    """
    submission = _Submission(locator, source, read_header("", locator))
    position = stream.tell()
    try:
        for piece in pieces(stream, _OPEN, _CLOSE):
            claims = submission.document(piece) if piece.is_open else submission.between(piece)
            yield from map(submission.dated, claims)
            position = piece.end
        yield from map(submission.dated, submission.end(position))
    except BrokenStream as broken:
        if re.match(_OPEN, broken.partial):
            yield submission.record(position, position + len(broken.partial), broken.partial)
            broken.partial = b""
        raise


class _Submission:
    """What has been read of one submission."""

    def __init__(self, locator: str, source: SourceConfig, header: Header) -> None:
        self._locator = locator
        self._source = source
        self._header = header
        self._trailer: bytes | None = None
        self._num_documents = 0

    def dated(self, claim: Claim) -> Claim:
        """The claim; the row of what is lost has the date of the filing."""
        if not isinstance(claim, Lost):
            return claim
        return claim._replace(row=replace(claim.row, timestamp=timestamps.plausible(self._header.published())))

    def document(self, piece: Piece) -> Iterator[Claim]:
        """One `<DOCUMENT>`; a second one inside it, whose start tag is damaged, is lost."""
        start, data = piece.start, piece.data
        self._num_documents += 1
        if not piece.is_whole:
            detail = f"a document of {piece.end - start} bytes, more than limits.record; its head is kept"
            yield lost(self._source, self._place(start), "too_large", detail, piece)
            return
        cut = _second_head(data) or len(data)
        is_closed = piece.is_closed and cut == len(data)
        yield self.record(start, start + cut, data[:cut])
        if not is_closed:
            row = removal(self._source, f"{self._place(start)}/end", "truncated_file", "<DOCUMENT> is never closed")
            yield Lost(start + cut, start + cut, row)
            self._trailer = None if piece.is_last else self._trailer
        if cut < len(data):
            rest = piece._replace(start=start + cut, data=data[cut:])
            yield lost(self._source, self._place(rest.start), "unreadable_record", _NO_START, rest)

    def record(self, start: int, end: int, data: bytes) -> Record:
        """`data`: from the document's start tag."""
        where = self._place(start)
        convert = partial(_document, self._header, self._source.encoding)
        return Record(start, end, where, data, partial(document_of, data, where, self._source, convert))

    def between(self, piece: Piece) -> Iterator[Claim]:
        """The submission's header and trailer, white space, and what is none of these."""
        if piece.is_last and not piece.start:
            yield lost(self._source, self._locator, *_without_documents(piece.data), piece)
            return
        data = piece.data
        trailer = _TRAILER.match(data)
        after = trailer.end() if trailer and self._num_documents else 0
        if self._trailer and self._trailer in data[:after]:
            self._trailer = None
        header = data[after : after + _header_end(data[after:])]
        if header:
            self._header = read_header(_header_text(header), self._locator)
            self._trailer = next((_TRAILERS[mark] for mark in _TRAILERS if mark in header), None)
        known = after + len(header)
        if known:
            yield Structure(piece.start, piece.start + known, "edgar_header")
        if known < piece.end - piece.start:
            yield self._foreign(piece._replace(start=piece.start + known, data=data[known:]))

    def _foreign(self, piece: Piece) -> Claim:
        content = piece.data.strip()
        if piece.is_whole and not content:
            return Structure(piece.start, piece.end, "white_space")
        if piece.is_last and self._trailer and self._trailer.startswith(content):
            detail = f"ends inside {self._trailer.decode()}"
            self._trailer = None
            return lost(self._source, self._place(piece.start), "truncated_file", detail, piece)
        return lost(self._source, self._place(piece.start), "unreadable_record", _NO_START, piece)

    def end(self, position: int) -> Iterator[Claim]:
        """A row if the submission's end tag is missing."""
        if self._trailer:
            detail = f"{position} bytes that do not end in {self._trailer.decode()}"
            yield Lost(position, position, removal(self._source, f"{self._locator}#end", "truncated_file", detail))

    def _place(self, offset: int) -> str:
        return f"{self._locator}#{offset}"


def _without_documents(data: bytes) -> tuple[str, str]:
    if not data.strip():
        return "empty_text", "white space alone"
    if any(mark in data for mark in _HEADER_MARKS):
        return "empty_text", "a submission header without documents"
    return "not_a_submission", "no <DOCUMENT> followed by <TYPE>"


def _header_end(data: bytes) -> int:
    """Bytes of the submission's header at the start of the data; 0 if there is none."""
    if not any(mark in data for mark in _HEADER_MARKS):
        return 0
    ends = [data.find(tag) + len(tag) for tag in _HEADER_ENDS if tag in data]
    foreign = [place for place in (_second_head(data, 0), data.find(_TEXT_OPEN)) if place is not None and place >= 0]
    return min([*ends, *foreign, len(data)])


def _second_head(data: bytes, first: int | None = None) -> int | None:
    """The start of a document behind the first one's tags, if its `<DOCUMENT>` is damaged; None if there is none."""
    place = data.find(_SEQUENCE) + 1 if first is None else first
    while (place := data.find(_SEQUENCE, place)) >= 0:
        before = max(0, place - _MAX_HEAD_BYTES)
        if found := _HEAD.search(data[before:place]):
            return before + found.start()
        place += 1
    return None


def _document(header: Header, encodings: Sequence[str], record: bytes) -> Converted:
    """One `<DOCUMENT>`, given from its start tag."""
    record = record.removesuffix(_CLOSE)
    begin = record.find(_TEXT_OPEN)
    head = record if begin < 0 else record[:begin]
    tags = {name: value for name, value in read_tags(_header_text(head)) if value}
    document_type = tags.get("TYPE", "")
    content = b"" if begin < 0 else _content(record[begin + len(_TEXT_OPEN) :])
    if not content.strip():
        raise Refused("empty_text", f"<TYPE>{document_type}", header.published())
    kind = _kind(content, document_type, tags.get("FILENAME", ""))
    if kind not in (HTML, PLAIN):
        raise Refused("not_text", f"<TYPE>{document_type}: {kind}", header.published())
    inner = _unwrap(content)
    try:
        text = decode(inner, encodings)[0] if encodings else decode_likely(inner, "cp1252", is_html=False)
    except Undecodable as error:
        raise Refused("undecodable", str(error), header.published()) from error
    if is_blank(text):
        raise Refused("empty_text", f"<TYPE>{document_type}", header.published())
    form_type = header.fields.get("form_type") or document_type
    company = header.subject().get("company")
    return Converted(
        text=text,
        media_type=kind,
        timestamp=header.published(),
        title=" ".join(dict.fromkeys(filter(None, (company, form_type, tags.get("DESCRIPTION"))))),
        meta=header.meta() | {name: tags[tag] for tag, name in _DOCUMENT_FIELDS.items() if tag in tags},
    )


def _content(text: bytes) -> bytes:
    """The bytes between <TEXT> and the last </TEXT>, or the end of a cut document."""
    end = text.rfind(_TEXT_CLOSE)
    return text if end < 0 else text[:end]


def _unwrap(content: bytes) -> bytes:
    """The content without the <XBRL> or <XML> that EDGAR puts around a text, if there is one."""
    wrapper = _WRAPPER.match(content)
    return _WRAPPER_END.sub(b"", content[wrapper.end() :]) if wrapper else content


def _kind(content: bytes, document_type: str, filename: str) -> str:
    """The media type of a text; or, in words, what it is that is not text."""
    inner = _unwrap(content)
    root = _PROLOG.sub(b"", inner[:_PROLOG_MAX_BYTES], count=1)
    if _UUENCODED.match(inner):
        return "uuencoded"
    if _DATA_TYPES.match(document_type):
        return "data by its type"
    if _HTML_START.match(root):
        return HTML
    if _XML_START.match(inner) or inner is not content:
        return "XML data"
    if _JSON_START.match(inner):
        return "JSON data"
    return HTML if filename.lower().endswith(_HTML_SUFFIXES) else PLAIN


def _header_text(data: bytes) -> str:
    return decode_likely(data, "cp1252", is_html=False)


def describe(text: str, meta: Mapping[str, Any]) -> dict[str, Any]:
    """The items of a main document that its text shows: `items`, and `items_unsure` for those without a sure place."""
    form = str(meta.get("document_type", ""))
    found = find_items(text, form)
    numbers = [item.number for item in found.found]
    unsure = [*found.unsure, *_declared(form, meta, {*numbers, *found.unsure})]
    return {name: values for name, values in (("items", numbers), ("items_unsure", unsure)) if values}


def sections(text: str, meta: Mapping[str, Any]) -> list[Section]:
    """The items of a main document whose sections are certain."""
    found = find_items(text, str(meta.get("document_type", ""))).found
    return [Section(item.number, item.start, item.end) for item in found]


def _declared(form: str, meta: Mapping[str, Any], known: set[str]) -> list[str]:
    """Items that the header of an 8-K of the form since August 2004 declares, and no heading names."""
    if not form.upper().startswith("8-K") or str(meta.get("filed", "")) < _NEW_8K:
        return []
    names = (declared_number(str(name)) for name in meta.get("declared_items", ()))
    return [name for name in names if name is not None and name not in known]


FORMAT = Format(
    name="edgar",
    kind="public",
    read=read,
    describe=describe,
    sections=sections,
    has_text_tables=True,
    meta={
        **META,
        "document_type": "the type of the document: `10-K`, `EX-99.1`; of an item that is a document, with its number",
        "sequence": "the number of the document in the filing",
        "filename": "the name of the document's file",
        "items": "numbers of the items of a main document of 10-K, 10-Q and 8-K",
        "items_unsure": "numbers of items that are named, but without a certain place",
        "item": "the number of the item that the document is, under `clean: {items: documents}`",
    },
    reasons={"not_a_submission": "a file without a document of a submission"},
    structure={"edgar_header": "the submission's header and its end tag"},
)
