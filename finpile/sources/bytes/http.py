"""HTTP/1.x messages as web archives store them: headers, then a payload that may be chunked and compressed.

Crawlers store what servers sent, so the reader accepts what browsers accept: headers whose lines end in LF alone, names
in any case, a payload that is not encoded although its header says so. Decoding never makes more than `limit` bytes of
a payload.

Source: RFC 9112 §2.2 (line endings), §7.1 (chunks); RFC 9110 §8.4.1 (content codings); RFC 8878 (zstd); RFC 7932 (br).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import brotli
import zstandard
from zlib_ng import zlib_ng

#: Bytes of a payload that are decoded at once.
_STEP_BYTES = 1 << 16
#: A zstd window beyond this is not for HTTP: RFC 9659 §3.
_ZSTD_WINDOW_BYTES = 8 << 20
_STATUS = re.compile(rb"(?:HTTP/\d(?:\.\d)?|ICY)[ \t]+(\d{3})(?!\d)")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_LINE_END = re.compile(rb"\r?\n")
_HEADERS_END = re.compile(rb"\r?\n\r?\n")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';,]+)""", re.IGNORECASE)
_GZIP_MAGIC = b"\x1f\x8b"
#: Headers with codings in the order in which they were applied.
_LISTS = ("content-encoding", "transfer-encoding")


class HttpError(ValueError):
    """The block holds no HTTP message, or a payload that is not encoded as its headers say."""


class PayloadTooLarge(HttpError):
    """The decoded payload would be larger than the limit."""


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    """Lower-case names; of a repeated header the first, of codings all."""
    payload: bytes
    """Decoded."""

    @property
    def content_type(self) -> str:
        """As the server names it; empty if it names none."""
        return self.headers.get("content-type", "")


def media_type_of(content_type: str) -> str:
    """The media type of a Content-Type, in lower case; of several the first."""
    return re.split("[;,]", content_type)[0].strip().lower()


def charset_of(content_type: str) -> str | None:
    """The charset that a Content-Type names, in lower case."""
    found = _CHARSET.search(content_type)
    return found[1].lower() if found else None


def parse_response(block: bytes, limit: int) -> Response:
    """The response in a block.

    Raises: HttpError, and PayloadTooLarge if the payload has more than `limit` bytes.
    """
    status = _STATUS.match(block)
    if status is None:
        raise HttpError("it does not begin with an HTTP status")
    end = _HEADERS_END.search(block)
    head, start = (block, len(block)) if end is None else (block[: end.start()], end.end())
    headers = parse_headers(_LINE_END.split(head)[1:])
    return Response(int(status[1]), headers, _decoded(block[start:], headers, limit))


def parse_headers(lines: list[bytes]) -> dict[str, str]:
    """`Name: value` lines, with lower-case names; a line that begins with a blank continues the value before it.

    Of a repeated header the first counts, but for codings, which are lists; lines that are none are skipped.
    """
    headers: dict[str, list[str]] = {}
    parts: list[str] | None = None
    for line in lines:
        if line[:1] in (b" ", b"\t") and parts:
            parts.append(" " + line.strip().decode("utf-8", "replace"))
            continue
        key, colon, value = line.partition(b":")
        name = key.strip().lower().decode("latin-1") if colon else ""
        parts = headers.setdefault(name, []) if name and (name not in headers or name in _LISTS) else None
        if parts is not None:
            parts.append((", " if parts else "") + value.strip().decode("utf-8", "replace"))
    return {name: "".join(parts) for name, parts in headers.items()}


def _decoded(payload: bytes, headers: dict[str, str], limit: int) -> bytes:
    content, transfer = (headers.get(name, "").lower() for name in _LISTS)
    if "chunked" in transfer:
        payload = _without_chunks(payload)
    codings = [name.strip() for name in f"{content},{transfer}".split(",")]
    for coding in reversed(codings):
        if coding in _DECODERS:
            payload = _content(payload, coding, limit)
    if len(payload) > limit:
        raise PayloadTooLarge(f"{len(payload)} bytes; the limit is {limit}")
    return payload


def _without_chunks(payload: bytes) -> bytes:
    """The payload, joined from its chunks; unchanged if it does not begin with one. A cut payload gives its beginning.

    Raises: HttpError if a chunk is followed by anything but a chunk.
    """
    parts: list[bytes] = []
    position = 0
    while position < len(payload):
        size = _CHUNK_SIZE.match(payload, position)
        length = int(size[1], 16) if size else -1
        end = size.end() + length if size else 0
        line_end = _LINE_END.match(payload, end)
        if size is None or (length and line_end is None and end < len(payload)):
            if not parts:
                return payload
            raise HttpError(f"its chunks break off at byte {position} of {len(payload)}")
        if length == 0:
            break
        parts.append(payload[size.end() : end])
        position = line_end.end() if line_end else end
    return b"".join(parts)


def _content(payload: bytes, coding: str, limit: int) -> bytes:
    """The payload, decoded from one coding; unchanged if a crawler decoded it and kept the header. A cut payload gives
    its beginning.

    Raises: HttpError for bytes that are neither encoded nor text.
    """
    failure: Exception | None = None
    beginning = b""
    for make in _DECODERS[coding]:
        try:
            return _gather(make(payload), limit)
        except PayloadTooLarge:
            raise
        except _Cut as error:
            failure, beginning = failure or error, beginning or error.beginning
        except (zlib_ng.error, brotli.error, zstandard.ZstdError) as error:
            failure = failure or error
    if b"\0" not in payload and not payload.startswith(_GZIP_MAGIC):
        return payload
    if not beginning:
        raise HttpError(f"{coding}: {failure}") from failure
    return beginning


class _Cut(Exception):
    """The payload ends before its data do."""

    def __init__(self, beginning: bytes) -> None:
        super().__init__("ends before its data do")
        self.beginning = beginning


def _gather(pieces: Iterator[bytes], limit: int) -> bytes:
    """Raises: _Cut with what was decoded, if the pieces end with an EOFError; PayloadTooLarge."""
    parts: list[bytes] = []
    size = 0
    try:
        for piece in pieces:
            size += len(piece)
            if size > limit:
                raise PayloadTooLarge(f"decoded, it has more than {limit} bytes")
            parts.append(piece)
    except EOFError as error:
        raise _Cut(b"".join(parts)) from error
    return b"".join(parts)


def _inflate(window: int) -> Callable[[bytes], Iterator[bytes]]:
    def decode(payload: bytes) -> Iterator[bytes]:
        rest = payload
        while rest is payload or rest.startswith(_GZIP_MAGIC):  # a payload can have several gzip members
            decoder = zlib_ng.decompressobj(window)
            while rest and not decoder.eof:
                yield decoder.decompress(rest, _STEP_BYTES)
                rest = decoder.unconsumed_tail
            if not decoder.eof:
                yield decoder.flush(_STEP_BYTES)
                raise EOFError
            rest = decoder.unused_data

    return decode


def _brotli(payload: bytes) -> Iterator[bytes]:
    decoder: Any = brotli.Decompressor()
    rest = payload
    while not decoder.is_finished():
        piece = decoder.process(rest, output_buffer_limit=_STEP_BYTES)
        rest = b""
        if not piece and decoder.can_accept_more_data():
            raise EOFError
        yield piece


def _zstd(payload: bytes) -> Iterator[bytes]:
    decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    if not payload.startswith(zstandard.FRAME_HEADER):
        raise zstandard.ZstdError("no zstd frame")
    with decoder.stream_reader(payload, read_across_frames=True) as reader:
        while piece := reader.read(_STEP_BYTES):
            yield piece


#: Ways to read each coding, in the order in which they are tried: `deflate` is sent with and without zlib's header.
_DECODERS: dict[str, tuple[Callable[[bytes], Iterator[bytes]], ...]] = {
    "gzip": (_inflate(16 + zlib_ng.MAX_WBITS),),
    "x-gzip": (_inflate(16 + zlib_ng.MAX_WBITS),),
    "deflate": (_inflate(zlib_ng.MAX_WBITS), _inflate(-zlib_ng.MAX_WBITS)),
    "br": (_brotli,),
    "zstd": (_zstd,),
}
