"""Web archives (WARC/1.0 and 1.1, ISO 28500): crawled responses, and extracted texts (WET).

The stream is read as it is stored, plain or compressed (.warc, .warc.gz, .warc.zst), so that a record's locator is its
byte offset in the file, as in CDX indexes. What becomes of a record:

- `response` with HTTP status 200, and `resource` of an http(s) address: a document where its type is HTML or plain
  text; else a ledger row `http_status`, `not_text` (images, style sheets, DNS answers, ...) or `robots_txt`, with the
  payload;
- `conversion` of type text/plain (WET): a document;
- `warcinfo`, `request`, `metadata`, `revisit` (a pointer to an earlier capture) and the crawler's own `resource`s
  carry no document and are passed over.

A file that ends before its last record does gives what stands before the cut and one row `truncated_file`, which holds
what is there of the cut record. A file that breaks off in other ways gives one row `unreadable_record`. A cut exactly
between two records leaves a whole, shorter archive and cannot be seen.

The date of the crawl is not that of publication; it goes to meta as `crawl_date`.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, Literal
from urllib.parse import urlsplit

import zstandard
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType
from resiliparse.parse.encoding import detect_encoding

from finpile.config import SourceConfig
from finpile.document import HTML, PLAIN, RawDocument
from finpile.ledger import Removal
from finpile.sources.accounting import Claim, Lost, Record, Structure
from finpile.sources.base import removal
from finpile.sources.decoding import Undecodable, decode
from finpile.sources.streams import BrokenStream

#: Offsets of records are offsets in the compressed file: the reader undoes .gz and .zst itself.
DECOMPRESS = False

_MEDIA_TYPES = {"text/html": HTML, "application/xhtml+xml": HTML, "text/plain": PLAIN}
_NO_DOCUMENT = WarcRecordType.warcinfo | WarcRecordType.request | WarcRecordType.metadata | WarcRecordType.revisit
_GZIP_MAGIC = b"\x1f\x8b"
_WARC_MAGIC = b"WARC/"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_BETWEEN_RECORDS = b"\r\n\r\n"
_HTTP_RECORD = (
    b"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n"
)
_OK = 200
_FALLBACK_ENCODINGS = ("utf-8", "cp1252", "latin-1")


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The documents of one archive, and a ledger row for each response that is none.

    A document's locator is that of the file, `#`, and the byte offset of its record (then `.` and a count, where an
    archive compressed as one piece has several records at one offset).

    Raises: BrokenStream of the stream, after all that stands before its defect.
    """
    tail = _Tail(stream)
    try:
        for record, block, place in _records(tail):
            here = f"{locator}#{place}"
            if _is_short(record, block):
                yield Lost(0, 0, removal(source, here, "truncated_file", "ends inside this record", block))
                yield Structure(0, tail.position, "warc_record")
                return
            if _has_document(record):
                yield Record(0, 0, here, block, partial(_read_record, record, block, here, source))
        problem = tail.problem()
    except OSError as error:
        problem = tail.problem() or ("unreadable_record", str(error))
    if tail.broken:
        raise tail.broken
    if problem:
        yield Lost(0, 0, removal(source, f"{locator}#{tail.position}/end", problem[0], problem[1], b""))
    yield Structure(0, tail.position, "warc_record")


def _records(tail: _Tail) -> Iterator[tuple[WarcRecord, bytes, str]]:
    """Each record with its block, as it is stored, and its place in the file."""
    last, num_same = -1, 0
    # HTTP is parsed later: a block that is still as stored has the length that its header claims.
    for record in ArchiveIterator(tail, parse_http=False, auto_decode="none"):
        offset = record.stream_pos
        block = record.reader.read()
        tail.forget_before(offset, len(block))
        num_same = num_same + 1 if offset == last else 0
        last = offset
        yield record, block, f"{offset}.{num_same}" if num_same else str(offset)


def _is_short(record: WarcRecord, block: bytes) -> bool:
    """Whether the file ends inside this record; a header cut in two may lack its length."""
    length = (record.headers.get("Content-Length") or "").strip()
    return not length.isdecimal() or len(block) < int(length)


def _has_document(record: WarcRecord) -> bool:
    kind = record.record_type
    return not kind & _NO_DOCUMENT and (kind != WarcRecordType.resource or _url(record).startswith(("http:", "https:")))


def _url(record: WarcRecord) -> str:
    return (record.headers.get("WARC-Target-URI") or "").strip("<>")


def _read_record(record: WarcRecord, block: bytes, locator: str, source: SourceConfig) -> RawDocument | Removal:
    kind, url = record.record_type, _url(record)
    if kind == WarcRecordType.response:
        return _read_response(record, block, url, locator, source)
    if kind in (WarcRecordType.conversion, WarcRecordType.resource):
        return _read_payload(block, record.headers.get("Content-Type"), None, url, record, locator, source)
    return removal(source, locator, "not_text", f"a record of type {record.headers.get('WARC-Type')}", block)


def _read_response(
    record: WarcRecord, block: bytes, url: str, locator: str, source: SourceConfig
) -> RawDocument | Removal:
    if "application/http" not in (record.headers.get("Content-Type") or "application/http"):
        return removal(source, locator, "not_text", f"{record.headers.get('Content-Type')}, not HTTP", block)
    try:
        http, payload = _parse_http(block)
    except (OSError, ValueError) as error:
        return removal(source, locator, "unreadable_record", f"its HTTP message cannot be read: {error}", block)
    status = http.http_headers.status_code if http.http_headers else None
    if status is None:
        return removal(source, locator, "unreadable_record", "it does not begin with an HTTP status", block)
    if status != _OK:
        return removal(source, locator, "http_status", f"{status} {url}", payload)
    if urlsplit(url).path == "/robots.txt":
        return removal(source, locator, "robots_txt", url, payload)
    return _read_payload(payload, http.http_content_type, http.http_charset, url, record, locator, source)


def _parse_http(block: bytes) -> tuple[WarcRecord, bytes]:
    """The message's headers and its payload, out of chunks and decompressed.

    Some crawlers store a payload decoded and keep the header that says it is not; it is then taken as it stands.

    Raises: OSError for a payload that is neither encoded as it claims nor plain text.
    """
    try:
        http = _http_record(block, "all")
        return http, http.reader.read()
    except OSError:
        http = _http_record(block, "none")
        payload = http.reader.read()
        if b"\0" in payload:
            raise
        return http, payload


def _http_record(block: bytes, decode: Literal["all", "none"]) -> WarcRecord:
    """A record of its own: parsing the archive iterator's ends the iteration where HTTP is broken."""
    record = WarcRecord.from_bytes(_HTTP_RECORD % len(block) + block + _BETWEEN_RECORDS)
    record.parse_http(auto_decode=decode)
    return record


def _read_payload(
    payload: bytes,
    content_type: str | None,
    charset: str | None,
    url: str,
    record: WarcRecord,
    locator: str,
    source: SourceConfig,
) -> RawDocument | Removal:
    media_type = _MEDIA_TYPES.get((content_type or "").split(";")[0].strip().lower())
    if media_type is None:
        return removal(source, locator, "not_text", f"{content_type or 'no type'} {url}", payload)
    if not payload.strip():
        return removal(source, locator, "empty_text", url, payload)
    try:
        text, _ = decode(payload, source.encoding or _encodings(payload, charset, media_type))
    except Undecodable as error:
        return removal(source, locator, "undecodable", str(error), payload)
    crawled = record.record_date
    meta = {"crawl_date": crawled.isoformat()} if crawled else {}
    return RawDocument(locator=locator, text=text, media_type=media_type, url=url or None, meta=meta)


def _encodings(payload: bytes, charset: str | None, media_type: str) -> tuple[str, ...]:
    """What the server, the page, or its bytes say, best evidence first; the last one reads any byte."""
    detected = detect_encoding(payload, from_html_meta=media_type == HTML)
    return tuple(name for name in (charset, detected, *_FALLBACK_ENCODINGS) if name and _is_known(name))


def _is_known(encoding: str) -> bool:
    try:
        b"a".decode(encoding)
    except UnicodeError:
        return True
    except (LookupError, ValueError):
        return False
    return True


class _Tail(io.BufferedIOBase):
    """A stream that remembers what was read of it since a record began, to tell a cut file from a whole one."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._kept = bytearray()
        self._start = 0
        self._magic = b""
        self._block_bytes: int | None = None
        self.broken: BrokenStream | None = None

    @property
    def position(self) -> int:
        return self._start + len(self._kept)

    def read(self, size: int | None = -1, /) -> bytes:
        try:
            data = self._stream.read(-1 if size is None else size)
        except BrokenStream as broken:
            self.broken, data = broken, b""
        self._magic = self._magic or data[: len(_ZSTD_MAGIC)]
        self._kept += data
        return data

    def tell(self) -> int:
        return self.position

    def forget_before(self, offset: int, block_bytes: int) -> None:
        """The last record begins at `offset` of the file; its block has `block_bytes`, once decompressed."""
        del self._kept[: offset - self._start]
        self._start = max(self._start, offset)
        self._block_bytes = block_bytes

    def problem(self) -> tuple[str, str] | None:
        """Reason and detail where the file ends behind the last whole block, yet inside a record."""
        if self._is_whole(bytes(self._kept)):
            return None
        return "truncated_file", f"{self.position} bytes that end inside a record"

    def _is_whole(self, data: bytes) -> bool:
        """Whether the bytes since the last record began are that record, or do not look like a cut one."""
        if _begins(self._magic, _GZIP_MAGIC):
            return not _begins(data, _GZIP_MAGIC) or _ends(lambda: zlib.decompressobj(_GZIP_WINDOW), data)
        if _begins(self._magic, _ZSTD_MAGIC):
            return not _begins(data, _ZSTD_MAGIC) or _ends(lambda: zstandard.ZstdDecompressor().decompressobj(), data)
        if self._block_bytes is None:
            return not _begins(data, _WARC_MAGIC)
        end = data.find(_BETWEEN_RECORDS) + self._block_bytes + 2 * len(_BETWEEN_RECORDS)
        return len(data) >= end and not _begins(data[end:], _WARC_MAGIC)


def _begins(data: bytes, mark: bytes) -> bool:
    """Whether the data begin with the mark, or are the beginning of it."""
    return bool(data) and mark.startswith(data[: len(mark)])


def _ends(decoder: Callable[[], Any], data: bytes) -> bool:
    """Whether compressed data end where their own format says."""
    while data:
        piece = decoder()
        try:
            piece.decompress(data)
        except (zlib.error, zstandard.ZstdError):
            return True  # corrupt, not cut: the archive's reader has said so
        if not piece.eof:
            return False
        data = piece.unused_data
    return True
