"""HTTP messages out of web archives: as FastWARC reads them, and never more than the limit."""

from __future__ import annotations

import gzip
import io
import zlib

import brotli
import pytest
import zstandard
from fastwarc.warc import ArchiveIterator, WarcRecord

from finpile.sources.bytes.http import (
    HttpError,
    PayloadTooLarge,
    charset_of,
    media_type_of,
    parse_headers,
    parse_response,
)
from tests.support.real_data import find

LIMIT = 1 << 26
TEXT = b"<p>" + b"Oil rose. " * 1000


def deflated(data: bytes, window: int) -> bytes:
    encoder = zlib.compressobj(wbits=window)
    return encoder.compress(data) + encoder.flush()


CODINGS = {
    "gzip": gzip.compress(TEXT, mtime=0),
    "x-gzip": gzip.compress(TEXT, mtime=0),
    "deflate": zlib.compress(TEXT),
    "Deflate": deflated(TEXT, -15),
    "br": brotli.compress(TEXT),
    "zstd": zstandard.ZstdCompressor().compress(TEXT),
    "identity": TEXT,
    "unknown": TEXT,
}


def message(payload: bytes, headers: str = "", end: str = "\r\n", status: str = "HTTP/1.1 200 OK") -> bytes:
    lines = [status, "Content-Type: text/html; charset=UTF-8", *headers.split("\n")] if headers else [status]
    return (end.join(lines) + end * 2).encode() + payload


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_a_payload_is_decoded(coding: str, end: str) -> None:
    found = parse_response(message(CODINGS[coding], f"Content-Encoding: {coding}", end), LIMIT)
    assert (media_type_of(found.content_type), charset_of(found.content_type)) == ("text/html", "utf-8")
    assert (found.status, found.payload) == (200, TEXT)


def test_chunks_within_a_coding() -> None:
    data = CODINGS["gzip"]
    parts = [data[start : start + 10] for start in range(0, len(data), 10)]
    chunked = b"".join(b"%x;name=value\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    headers = "Content-Encoding: gzip\nTransfer-Encoding: chunked"
    assert parse_response(message(chunked, headers), LIMIT).payload == TEXT


@pytest.mark.parametrize(
    ("payload", "headers"),
    [
        (gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:]), "Content-Encoding: gzip"),
        (gzip.compress(CODINGS["gzip"]), "Content-Encoding: gzip\nContent-Encoding: gzip"),
        (CODINGS["gzip"], "Content-Encoding: identity\nContent-Encoding: gzip"),
        (CODINGS["gzip"], "Content-Encoding: gzip\nContent-Encoding: gzip"),
        (b"%x\r\n%s\r\n0\r\n\r\n" % (len(CODINGS["gzip"]), CODINGS["gzip"]), "Transfer-Encoding: gzip, chunked"),
    ],
)
def test_every_member_and_coding_is_decoded(payload: bytes, headers: str) -> None:
    assert parse_response(message(payload, headers), LIMIT).payload == TEXT


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_no_more_than_the_limit_is_decoded(coding: str) -> None:
    size = 64 << 20
    bomb = {
        "gzip": lambda: gzip.compress(bytes(size), 1),
        "deflate": lambda: zlib.compress(bytes(size), 1),
        "br": lambda: brotli.compress(bytes(size), quality=1),
        "zstd": lambda: zstandard.ZstdCompressor().compress(bytes(size)),
    }[coding]()
    block = message(bomb, f"Content-Encoding: {coding}")
    with pytest.raises(PayloadTooLarge):
        parse_response(block, size - 1)
    assert len(parse_response(block, size).payload) == size


@pytest.mark.parametrize("coding", ["gzip", "deflate", "Deflate", "br", "zstd"])
def test_a_cut_payload_gives_its_beginning(coding: str) -> None:
    text = b"".join(b"<p>Line %d of %s.\n" % (number, b"%x" % 7**number) for number in range(1500))
    data = {
        "gzip": gzip.compress(text, mtime=0),
        "deflate": zlib.compress(text),
        "Deflate": deflated(text, -15),
        "br": brotli.compress(text, quality=5),
        "zstd": zstandard.ZstdCompressor().compress(text),
    }[coding]
    for cut in (len(data) // 2, len(data) - 1):
        found = parse_response(message(data[:cut], f"Content-Encoding: {coding}"), LIMIT).payload
        assert len(found) > 10_000 and text.startswith(found)
    size = b"%x\r\n" % len(data)
    chunked = message(size + data[: len(data) // 2], f"Content-Encoding: {coding}\nTransfer-Encoding: chunked")
    assert len(text) > len(found := parse_response(chunked, LIMIT).payload) > 10_000 and text.startswith(found)


@pytest.mark.parametrize(
    ("payload", "headers"),
    [
        (CODINGS["gzip"][:12], "Content-Encoding: gzip"),
        (CODINGS["gzip"][:30] + b"\0" * 30, "Content-Encoding: gzip"),
        (b"\0\1\2", "Content-Encoding: br"),
        (b"3\r\nabc\r\nno chunk", "Transfer-Encoding: chunked"),
    ],
)
def test_a_body_that_is_neither_encoded_nor_text_is_refused(payload: bytes, headers: str) -> None:
    with pytest.raises(HttpError):
        parse_response(message(payload, headers), LIMIT)


@pytest.mark.parametrize("block", [b"", b"\r\n", b"<html>", b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 20\r\n\r\n"])
def test_a_record_that_is_no_response_is_refused(block: bytes) -> None:
    with pytest.raises(HttpError):
        parse_response(block, LIMIT)


def test_a_header_of_many_lines_is_read_in_linear_time() -> None:
    """Joined line by line, a million of them would take minutes."""
    headers = parse_headers([b"a: 1", *[b" x"] * 1_000_000, b"Transfer-Encoding: a", b"transfer-encoding: b", b"a: 2"])
    assert headers == {"a": "1" + " x" * 1_000_000, "transfer-encoding": "a, b"}


def test_real_responses_are_those_that_fastwarc_reads() -> None:
    folder = find("webarchive")
    num_compared = 0
    for path in sorted(folder.rglob("*.warc.gz")):
        archive = ArchiveIterator(io.BytesIO(path.read_bytes()), parse_http=False, auto_decode="none")
        for record in archive:
            if record.headers.get("WARC-Type") != "response" or "http" not in record.headers.get("Content-Type"):
                continue
            block = record.reader.read()
            ours = parse_response(block, LIMIT)
            media_type, charset = media_type_of(ours.content_type), charset_of(ours.content_type)
            assert (ours.status, media_type or None, charset, ours.payload) == _by_fastwarc(block)
            num_compared += 1
    assert num_compared > 300


def _by_fastwarc(block: bytes) -> tuple[int, str | None, str | None, bytes]:
    """Payloads that crawlers stored decoded, which FastWARC refuses, as they are."""
    head = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\nContent-Length: %d\r\n\r\n" % len(
        block
    )
    for decode in ("all", "none"):
        record = WarcRecord.from_bytes(head + block + b"\r\n\r\n")
        try:
            record.parse_http(auto_decode=decode, quirks_mode=True)
            headers = record.http_headers
            return headers.status_code, record.http_content_type, record.http_charset, record.reader.read()
        except OSError:
            continue
    raise AssertionError("FastWARC reads it in no way")
