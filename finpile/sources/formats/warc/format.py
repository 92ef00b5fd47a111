"""Web archives: WARC (ISO 28500) and ARC files of crawled responses, and extracted texts (WET).

Which of the two a file is shows in its first bytes. A record's locator is its byte offset in the stored file, as in CDX
indexes: for a file compressed record by record (.warc.gz, .warc.zst), that of its member. What becomes of a record:

- `response` with HTTP status 200, and `resource` of an http(s) address: a document if its type is HTML or plain
  text; else a ledger row `http_status`, `not_text` (images, style sheets, DNS answers, ...) or `robots_txt`, with the
  payload;
- `conversion` of type text/plain (WET): a document;
- `warcinfo`, `request`, `metadata`, `revisit` (a pointer to an earlier capture), the crawler's own `resource`s and an
  ARC's version block carry no document and are structure, as headers and line ends between records are.

Bytes that are not a record are a row `unreadable_record`, and reading continues at the next header. A file that ends
before its last record does gives what precedes the cut and one row `truncated_file`, which holds what is there of the
cut record. A cut exactly between two records leaves a whole, shorter archive and cannot be seen.

The date of the crawl is not that of publication; it is `crawl_date` in meta, and the date of rows of the ledger about
records that are no document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import BinaryIO, cast
from urllib.parse import urlsplit

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.documents.blank import is_blank
from finpile.documents.document import HTML, PLAIN
from finpile.plugins.format import Format
from finpile.sources.bytes.decoding import Undecodable, decode, decode_likely
from finpile.sources.bytes.http import HttpError, PayloadTooLarge, charset_of, media_type_of, parse_response
from finpile.sources.bytes.streams import ByteStream
from finpile.sources.formats.warc.records import Damaged, Header, Separator, read_records
from finpile.sources.readers.accounting import Claim, Lost, Record, Structure
from finpile.sources.readers.base import removal
from finpile.sources.readers.converted import Converted, Refused, document_of

_MEDIA_TYPES = {"text/html": HTML, "application/xhtml+xml": HTML, "text/plain": PLAIN}
_NO_DOCUMENT = ("warcinfo", "request", "metadata", "revisit", "filedesc")
_OK = 200
_CONTROL = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f]")
#: The share of control characters above which a payload is binary, whatever its header says.
_MAX_CONTROLS = 0.01
_ARC_DATE_DIGITS = 14


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The records of one archive.

    A record's locator is that of the file, `#`, and its byte offset in the stored file (then `.` and a count, where an
    archive compressed as one piece has several records at one offset).
    """
    archive = cast(ByteStream, stream)
    limit = archive.limits.record_bytes
    places = _Places(archive, locator)
    for found in read_records(archive, limit):
        if isinstance(found, Separator):
            yield Structure(found.start, found.end, "warc_header")
            continue
        where = places.locator(found.start)
        if isinstance(found, Damaged):
            yield Lost(found.start, found.end, removal(source, where, found.reason, found.detail, found.data))
            continue
        yield Structure(found.start, found.block_start, "warc_header")
        if _carries_no_document(found.header):
            yield Structure(found.block_start, found.end, "warc_record")
        else:
            convert = partial(_converted, found.header, source.encoding, limit)
            parse = partial(document_of, found.block, where, source, convert)
            yield Record(found.block_start, found.end, where, found.block, parse)


class _Places:
    """The offsets of records in the stored file."""

    def __init__(self, stream: ByteStream, locator: str) -> None:
        stream.stored_offset(stream.tell())  # from here on it remembers the frames
        self._stream = stream
        self._locator = locator
        self._last = -1
        self._num_same = 0

    def locator(self, start: int) -> str:
        """The locator of the record at an offset of the decompressed archive; called once for each record, in order."""
        place = self._stream.stored_offset(start)
        self._num_same = self._num_same + 1 if place == self._last else 0
        self._last = place
        return f"{self._locator}#{place}.{self._num_same}" if self._num_same else f"{self._locator}#{place}"


def _carries_no_document(record: Header) -> bool:
    is_page = record.url.startswith(("http:", "https:"))
    return record.kind in _NO_DOCUMENT or (record.kind == "resource" and not is_page)


def _converted(record: Header, encodings: Sequence[str], limit: int, block: bytes) -> Converted:
    """Raises: Refused for a record that is not a document, with the date of its crawl."""
    try:
        return _page(record, encodings, limit, block)
    except (Refused, Undecodable) as error:
        reason = error.reason if isinstance(error, Refused) else "undecodable"
        raise Refused(reason, str(error), timestamps.parse(_crawl_date(record.date))) from error


def _page(record: Header, encodings: Sequence[str], limit: int, block: bytes) -> Converted:
    if record.kind in ("conversion", "resource"):
        return _document(block, record.content_type, record, encodings)
    if record.kind != "response":
        raise Refused("not_text", f"a record of type {record.kind}")
    if not _is_http(record):
        raise Refused("not_text", f"{record.content_type}, not HTTP")
    try:
        http = parse_response(block, limit)
    except PayloadTooLarge as error:
        raise Refused("too_large", f"its payload: {error}") from error
    except HttpError as error:
        raise Refused("unreadable_record", f"its HTTP message: {error}") from error
    if http.status != _OK:
        raise Refused("http_status", f"{http.status} {record.url}")
    if urlsplit(record.url).path == "/robots.txt":
        raise Refused("robots_txt", record.url)
    return _document(http.payload, http.content_type, record, encodings)


def _is_http(record: Header) -> bool:
    """An ARC's header names the type of the payload; what it was fetched by shows in the address."""
    if record.form == "arc":
        return record.url.startswith(("http:", "https:"))
    return "application/http" in (record.content_type or "application/http")


def _document(payload: bytes, content_type: str, record: Header, encodings: Sequence[str]) -> Converted:
    named = media_type_of(content_type)
    media_type = _MEDIA_TYPES.get(named)
    if media_type is None:
        raise Refused("not_text", f"{named or 'no type'} {record.url}")
    if encodings:
        text, _ = decode(payload, encodings)
    else:
        text = decode_likely(payload, charset_of(content_type), is_html=media_type == HTML)
    if "\0" in text and len(_CONTROL.findall(text)) > _MAX_CONTROLS * len(text):
        raise Refused("not_text", f"{named}, but its bytes are binary {record.url}")
    if is_blank(text):
        raise Refused("empty_text", record.url)
    crawled = _crawl_date(record.date)
    meta = {"crawl_date": crawled} if crawled else {}
    return Converted(text=text, media_type=media_type, url=record.url or None, meta=meta)


def _crawl_date(date: str) -> str | None:
    """WARC writes ISO 8601, ARC 14 digits."""
    try:
        if date.isdecimal():
            return datetime.strptime(date[:_ARC_DATE_DIGITS], "%Y%m%d%H%M%S").replace(tzinfo=UTC).isoformat()
        return datetime.fromisoformat(date).isoformat()
    except ValueError:
        return None


FORMAT = Format(
    name="warc",
    kind="crawled",
    read=read,
    reasons={"http_status": "a response whose status is not 200", "robots_txt": "a robots.txt"},
    structure={
        "warc_header": "the header of a record, and the line ends behind its block",
        "warc_record": "a record that carries no document (warcinfo, request, metadata, revisit, ...)",
    },
    has_menus=True,
    meta={"crawl_date": "when the page was fetched"},
)
