"""Web archives: the outcome of each record, cuts noticed at every byte, payloads decoded, and the real ones."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator

from finpile.config import SourceConfig
from finpile.config.limits import LimitsConfig
from finpile.documents.document import HTML, PLAIN, RawDocument
from finpile.documents.ledger import Removal
from finpile.sources import list_inputs, read_file
from finpile.sources.readers.accounting import Account
from tests.support.real_data import find

SOURCE = SourceConfig(name="Web", dataset="FinPile", format="warc", paths=("*",))
URL = "http://example.com/a"


def record(kind: str, block: bytes, content_type: str = "application/http; msgtype=response", url: str = URL) -> bytes:
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-18T01:58:10Z\r\n"
        f"WARC-Record-ID: <urn:uuid:35f02b38-eb19-4f0d-86e4-bfe95815069c>\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def response(payload: bytes, headers: str = "Content-Type: text/html", status: str = "200 OK", url: str = URL) -> bytes:
    return record("response", f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n".encode() + payload, url=url)


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[RawDocument | Removal]]:
    """What becomes of a file of these bytes; each of them is accounted for, once."""

    def read(data: bytes, name: str = "a.warc", source: SourceConfig = SOURCE) -> list[RawDocument | Removal]:
        (tmp_path / name).write_bytes(data)
        accounts: list[Account] = []
        (file,) = list_inputs(replace(source, paths=(name,)), str(tmp_path))
        found = list(read_file(file, source, accounts.append))
        assert [account.balance() for account in accounts] == [0]
        assert "unclaimed_bytes" not in [row.reason for row in found if isinstance(row, Removal)]
        return found

    return read


def kinds(found: list[RawDocument | Removal]) -> list[str]:
    return [entry.reason if isinstance(entry, Removal) else entry.media_type for entry in found]


def texts(found: list[RawDocument | Removal]) -> list[str]:
    return [entry.text for entry in found if isinstance(entry, RawDocument)]


Read = Callable[..., list[RawDocument | Removal]]
NAMES = {"plain": "a.warc", "gzip": "a.warc.gz", "zstd": "a.warc.zst"}
RECORDS = [
    record("warcinfo", b"software: x\r\n", "application/warc-fields"),
    record("request", b"GET / HTTP/1.1\r\n\r\n", "application/http; msgtype=request"),
    response(b"<p>one"),
    record("metadata", b"a: b\r\n", "application/warc-fields"),
    response(b"<p>two"),
]


def packed(kind: str, records: list[bytes]) -> list[bytes]:
    """The records as a file of this kind stores them."""
    if kind == "gzip":
        return [gzip.compress(one, mtime=0) for one in records]
    return [zstandard.ZstdCompressor().compress(one) for one in records] if kind == "zstd" else records


@pytest.mark.parametrize("kind", ["plain", "gzip", "zstd"])
def test_a_locator_is_the_offset_of_the_record_in_the_stored_file(read: Read, kind: str) -> None:
    parts = packed(kind, RECORDS)
    found = read(b"".join(parts), NAMES[kind])
    assert texts(found) == ["<p>one", "<p>two"]
    offsets = [sum(map(len, parts[:index])) for index in (2, 4)]
    assert [entry.locator for entry in found] == [f"{NAMES[kind]}#{offset}" for offset in offsets]


@pytest.mark.parametrize("kind", ["plain", "gzip", "zstd"])
def test_a_cut_anywhere_gives_the_preceding_records_and_one_row(read: Read, kind: str) -> None:
    parts = packed(kind, RECORDS)
    data = b"".join(parts)
    boundaries = {sum(map(len, parts[:index])) for index in range(len(parts) + 1)}
    for cut in range(1, len(data)):
        found = read(data[:cut], NAMES[kind])
        rows = kinds(found).count("truncated_file")
        assert rows == (cut not in boundaries), cut
        assert kinds(found).count(HTML) == len(found) - rows
        assert texts(found) == ["<p>one", "<p>two"][: len(texts(found))]
        assert len(texts(found)) >= (cut >= sum(map(len, parts[:3])))


def test_records_of_a_file_compressed_as_one_piece_have_locators_of_their_own(read: Read) -> None:
    found = read(gzip.compress(b"".join(RECORDS)), "a.warc.gz")
    assert texts(found) == ["<p>one", "<p>two"]
    assert len({entry.locator for entry in found}) == 2


@pytest.mark.parametrize(
    ("data", "kind", "held"),
    [
        (response(b"words", "Content-Type: TEXT/Plain; charset=utf-8"), PLAIN, b""),
        (response(b"<p>", "Content-Type: application/xhtml+xml"), HTML, b""),
        (response(b"GIF89a", "Content-Type: image/gif"), "not_text", b"HTTP/1.1 200 OK"),
        (response(b"words", "X: y"), "not_text", b"HTTP/1.1 200 OK"),
        (response(b"words", "Content-Type: text/html, text/html; charset=utf-8"), HTML, b""),
        (response(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "not_text", b"HTTP/1.1 200 OK"),
        (response(gzip.compress(b"<p>x")), "not_text", b"HTTP/1.1 200 OK"),
        (response(b"<p>a page with one zero\0" + b" and words" * 20), HTML, b""),
        (response(b"gone", status="404 Not Found"), "http_status", b"HTTP/1.1 404"),
        (response(b"", "Location: /b", status="301 Moved"), "http_status", b"HTTP/1.1 301"),
        (response(b"Disallow: /", "Content-Type: text/plain", url="http://a.com/robots.txt"), "robots_txt", b"HTTP"),
        (response(b" \n"), "empty_text", b"HTTP/1.1 200 OK"),
        (record("response", b"20080430 127.0.0.1", "text/dns", "dns:a.com"), "not_text", b"20080430"),
        (record("response", b"no status line\r\n\r\nx"), "unreadable_record", b"no status"),
        (record("resource", b"<p>", "text/html"), HTML, b""),
        (record("conversion", b"words", "text/plain"), PLAIN, b""),
        (record("continuation", b"words", "text/html"), "not_text", b"words"),
    ],
)
def test_outcome_of_a_record(read: Read, data: bytes, kind: str, held: bytes) -> None:
    (found,) = read(data)
    assert kinds([found]) == [kind]
    if isinstance(found, Removal):
        assert found.removed_text.startswith(held)
        assert found.timestamp == datetime(2024, 5, 18, 1, 58, 10, tzinfo=UTC)
    else:
        assert found.url == URL
        assert found.timestamp is None
        assert found.meta == {"crawl_date": "2024-05-18T01:58:10+00:00"}


def test_a_page_that_is_in_none_of_its_encodings_has_the_date_of_its_crawl(read: Read) -> None:
    (row,) = read(response(b"<p>caf\xe9"), source=replace(SOURCE, encoding=("utf-8",)))
    assert isinstance(row, Removal) and row.reason == "undecodable"
    assert row.timestamp == datetime(2024, 5, 18, 1, 58, 10, tzinfo=UTC)


@pytest.mark.parametrize("kind", ["warcinfo", "request", "metadata", "revisit"])
def test_records_that_carry_no_document_are_passed_over(read: Read, kind: str) -> None:
    assert read(record(kind, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nx")) == []
    assert read(record("resource", b"log", "text/plain", "metadata://crawler/log")) == []


@pytest.mark.parametrize(
    ("payload", "headers", "text"),
    [
        ("<p>Ω".encode("iso-8859-7"), "Content-Type: text/html; charset=iso-8859-7", "<p>Ω"),
        (
            "<meta charset=koi8-r><p>Привет".encode("koi8-r"),
            "Content-Type: text/html",
            "<meta charset=koi8-r><p>Привет",
        ),
        (b"<p>caf\xe9", "Content-Type: text/html; charset=utf-8", "<p>café"),
        (b"<p>caf\xe9", "Content-Type: text/html; charset=base64", "<p>café"),
        (b"\xef\xbb\xbf<p>x", "Content-Type: text/html", "<p>x"),
        (b"3\r\n<p>\r\n1\r\nx\r\n0\r\n\r\n", "Content-Type: text/html\r\nTransfer-Encoding: chunked", "<p>x"),
        (b"<p>not chunked", "Content-Type: text/html\r\nTransfer-Encoding: chunked", "<p>not chunked"),
        (gzip.compress(b"<p>x", mtime=0), "Content-Type: text/html\r\nContent-Encoding: gzip", "<p>x"),
        (b"<p>not gzip", "Content-Type: text/html\r\nContent-Encoding: gzip", "<p>not gzip"),
    ],
)
def test_payloads_are_decoded(read: Read, payload: bytes, headers: str, text: str) -> None:
    assert texts(read(response(payload, headers))) == [text]


@pytest.mark.parametrize("kind", ["resource", "conversion"])
def test_a_record_without_http_is_decoded_by_the_charset_of_its_header(read: Read, kind: str) -> None:
    data = record(kind, "Ψωμί".encode("iso-8859-7"), "text/plain; charset=iso-8859-7")
    assert texts(read(data)) == ["Ψωμί"]


def test_a_broken_message_does_not_end_the_archive(read: Read) -> None:
    payload = bytearray(gzip.compress(bytes(range(256)), mtime=0))
    payload[20:40] = bytes(20)
    broken = response(bytes(payload), "Content-Type: text/html\r\nContent-Encoding: gzip")
    assert kinds(read(broken + response(b"<p>two"))) == ["unreadable_record", HTML]


def test_a_file_that_is_no_archive_is_a_row(read: Read) -> None:
    assert kinds(read(b"hello " * 100 + b"\r\n\r\n")) == ["unreadable_record"]


def test_real_archives_agree_with_warcio(read: Read) -> None:
    folder = find("webarchive")
    for path in (
        folder / "dolma" / "sample-0000.warc.gz",
        folder / "example.warc.gz",
        folder / "pywb" / "iana.warc.gz",
    ):
        expected: dict[str, bytes] = {}
        with path.open("rb") as stream:
            archive = ArchiveIterator(stream)
            for one in archive:
                http = one.http_headers
                if one.rec_type == "response" and http and http.get_statuscode() == "200":
                    media_type = (http.get_header("Content-Type") or "").split(";")[0].lower()
                    payload = one.content_stream().read()
                    url = one.rec_headers.get_header("WARC-Target-URI")
                    if (
                        media_type in ("text/html", "text/plain")
                        and not url.endswith("/robots.txt")
                        and payload.strip()
                    ):
                        expected[f"a.warc.gz#{archive.get_record_offset()}"] = payload
        found = {
            entry.locator: entry for entry in read(path.read_bytes(), "a.warc.gz") if isinstance(entry, RawDocument)
        }
        assert found.keys() == expected.keys()
        for locator, payload in expected.items():
            ascii_bytes = bytes(byte for byte in payload if byte < 128)
            assert "".join(filter(str.isascii, found[locator].text)).encode() == ascii_bytes


def arc_record(block: bytes, url: str = URL, kind: str = "text/html") -> bytes:
    return f"{url} 127.0.0.1 20080430204825 {kind} {len(block)}\n".encode() + block + b"\n"


def test_an_arc_is_read(read: Read) -> None:
    lines = b"1 1 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n"
    http = b"HTTP/1.1 200 OK\nContent-Type: text/html\n\n<p>one"
    parts = [
        arc_record(lines, "filedesc://a.arc", "text/plain"),
        arc_record(b"20080430 a.com", "dns:a.com", "text/dns"),
        arc_record(http),
        arc_record(http.replace(b"200 OK", b"404 Not Found")),
    ]
    dns, page, missing = read(b"".join(map(gzip.compress, parts)), "a.arc.gz")
    assert kinds([dns, page, missing]) == ["not_text", HTML, "http_status"]
    assert isinstance(page, RawDocument)
    assert (page.text, page.url, page.meta) == ("<p>one", URL, {"crawl_date": "2008-04-30T20:48:25+00:00"})
    assert page.locator == f"a.arc.gz#{sum(len(gzip.compress(part, mtime=0)) for part in parts[:2])}"


def test_a_real_arc_is_read(read: Read, real_data: Callable[[str], Path]) -> None:
    """Its 300 records: counted by `zcat example.arc.gz | grep -ac '^[a-z]*:.* [0-9]\\{14\\} .* [0-9]*$'`."""
    data = real_data("webarchive/example.arc.gz").read_bytes()
    found = read(data, "example.arc.gz")
    texts_found = texts(found)
    assert len(found) == 299  # all but the version block
    assert not [row for row in kinds(found) if row in ("unreadable_record", "truncated_file")]
    assert any("Internet Archive" in text for text in texts_found)
    raw = gzip.decompress(data)
    assert kinds(found).count("http_status") == len(re.findall(rb"\d\nHTTP/1\.[01] (?!200)\d{3}", raw))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_http_headers_may_end_in_line_feeds_alone(read: Read, end: str) -> None:
    block = end.join(["HTTP/1.1 200 OK", "Content-Type: text/html", "", "<p>one"]).encode()
    assert texts(read(record("response", block))) == ["<p>one"]


@pytest.mark.parametrize("kind", ["plain", "gzip", "zstd"])
def test_one_broken_version_line_costs_one_record_of_nineteen(read: Read, kind: str) -> None:
    records = [response(b"<p>%d" % number) for number in range(19)]
    records[4] = records[4].replace(b"WARC/1.0", b"WORC/1.0")
    found = read(b"".join(packed(kind, records)), NAMES[kind])
    assert texts(found) == [f"<p>{number}" for number in range(19) if number != 4]
    (row,) = [entry for entry in found if isinstance(entry, Removal)]
    assert row.reason == "unreadable_record"
    assert row.removed_text.strip() == records[4].strip()


def test_a_payload_that_expands_beyond_the_limit_is_a_row(read: Read) -> None:
    bomb = response(gzip.compress(bytes(5 << 20)), "Content-Type: text/html\r\nContent-Encoding: gzip")
    small = replace(SOURCE, limits=LimitsConfig(record="1 MiB"))
    assert kinds(read(bomb + response(b"<p>two"), source=small)) == ["too_large", HTML]
