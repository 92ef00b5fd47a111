"""The native formats, byte by byte. Nothing here depends on the clock, on a user or on a path."""

from __future__ import annotations

import binascii
import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from writing.stories import ascii_only

_LEVEL = 9
_CRAWLED = "2023-01-15T00:00:00Z"
_UU_BYTES_PER_LINE = 45


def json_lines(rows: Iterable[Mapping[str, Any]]) -> list[bytes]:
    return [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]


def zstd(*frames: bytes) -> bytes:
    """One frame after the other: a reader that stops after the first loses the rest."""
    return b"".join(zstandard.ZstdCompressor(level=_LEVEL).compress(frame) for frame in frames)


def zstd_cut(lines: Sequence[bytes]) -> bytes:
    """All lines but the last whole, each ending a block; the last one's block cut in the middle."""
    out = io.BytesIO()
    end_of_whole = 0
    with zstandard.ZstdCompressor(level=_LEVEL).stream_writer(out, closefd=False) as stream:
        for line in lines:
            end_of_whole = out.tell()
            stream.write(line)
            stream.flush(zstandard.FLUSH_BLOCK)
        size = out.tell()
    return out.getvalue()[: (end_of_whole + size) // 2]


def gz(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=_LEVEL, mtime=0)


def gz_cut(lines: Sequence[bytes]) -> bytes:
    """As `zstd_cut`: a full flush after each line, the cut in the middle of the last one."""
    encoder = zlib.compressobj(_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    parts = [encoder.compress(line) + encoder.flush(zlib.Z_FULL_FLUSH) for line in lines]
    return b"".join(parts[:-1]) + parts[-1][: len(parts[-1]) // 2]


def parquet(columns: Mapping[str, Sequence[Any]], schema: pa.Schema) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pydict(dict(columns), schema=schema), out, compression="zstd", row_group_size=8)
    return out.getvalue()


def tar_zst(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return zstd(out.getvalue())


def warc_response(url: str, body: bytes, media_type: str = "text/html; charset=utf-8", status: str = "200 OK") -> bytes:
    """A response record, gzipped on its own."""
    http = f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    return gz(_warc("response", http, url, "application/http; msgtype=response"))


def warc_request(url: str) -> bytes:
    host, _, path = url.removeprefix("https://").partition("/")
    http = f"GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    return gz(_warc("request", http, url, "application/http; msgtype=request"))


def warc_info() -> bytes:
    return gz(
        _warc(
            "warcinfo",
            b"software: make_samples.py\r\nformat: WARC File Format 1.0\r\n",
            None,
            "application/warc-fields",
        )
    )


def _warc(kind: str, block: bytes, url: str | None, media_type: str) -> bytes:
    name = zlib.crc32(f"{kind} {url}".encode())
    target = f"WARC-Target-URI: {url}\r\n" if url else ""
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{name:012x}>\r\n"
        f"WARC-Date: {_CRAWLED}\r\n{target}Content-Type: {media_type}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def uuencoded(name: str, data: bytes) -> str:
    lines = (
        binascii.b2a_uu(data[start : start + _UU_BYTES_PER_LINE]).decode().rstrip("\n")
        for start in range(0, len(data), _UU_BYTES_PER_LINE)
    )
    return "\n".join([f"begin 644 {name}", *lines, "`", "end"])


def filing_document(kind: str, sequence: int, file_name: str, text: str) -> str:
    return (
        f"<DOCUMENT>\n<TYPE>{kind}\n<SEQUENCE>{sequence}\n<FILENAME>{file_name}\n<DESCRIPTION>{kind}\n"
        f"<TEXT>\n{text}\n</TEXT>\n</DOCUMENT>\n"
    )


def full_submission(number: str, form: str, company: str, filed: datetime, documents: Sequence[str]) -> bytes:
    """A complete submission as EDGAR has disseminated it since 2001."""
    day = f"{filed:%Y%m%d}"
    head = (
        f"<SEC-DOCUMENT>{number}.txt : {day}\n<SEC-HEADER>{number}.hdr.sgml : {day}\n"
        f"<ACCEPTANCE-DATETIME>{filed:%Y%m%d%H%M%S}\nACCESSION NUMBER:\t\t{number}\n"
        f"CONFORMED SUBMISSION TYPE:\t{form}\nPUBLIC DOCUMENT COUNT:\t\t{len(documents)}\n"
        f"FILED AS OF DATE:\t\t{day}\n\nFILER:\n\n\tCOMPANY DATA:\t\n"
        f"\t\tCOMPANY CONFORMED NAME:\t\t\t{company.upper()}\n\t\tCENTRAL INDEX KEY:\t\t\t{number[:10]}\n"
        f"\t\tFISCAL YEAR END:\t\t\t1231\n</SEC-HEADER>\n"
    )
    return (head + "".join(documents) + "</SEC-DOCUMENT>\n").encode()


def submission_nc(number: str, form: str, company: str, filed: datetime, documents: Sequence[str]) -> bytes:
    """The same submission as the feed's .nc file: tags instead of a header."""
    head = (
        f"<SUBMISSION>\n<ACCESSION-NUMBER>{number}\n<TYPE>{form}\n<PUBLIC-DOCUMENT-COUNT>{len(documents)}\n"
        f"<FILING-DATE>{filed:%Y%m%d}\n<FILER>\n<COMPANY-DATA>\n<CONFORMED-NAME>{company.upper()}\n"
        f"<CIK>{number[:10]}\n</COMPANY-DATA>\n</FILER>\n"
    )
    return (head + "".join(documents) + "</SUBMISSION>\n").encode()


def sgml(stories: Sequence[tuple[datetime, str, str, str]]) -> bytes:
    """News items (moment, city, title, body) in the SGML of the Reuters-21578 collection."""
    parts = ['<!DOCTYPE lewis SYSTEM "lewis.dtd">\n']
    for number, (moment, city, title, body) in enumerate(stories, start=1):
        text = "\n    ".join(body.split("\n\n"))
        parts.append(
            f'<REUTERS TOPICS="NO" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="{number}" NEWID="{number}">\n'
            f"<DATE>{f'{moment.astimezone(UTC):%d-%b-%Y %H:%M:%S.00}'.upper()}</DATE>\n"
            f"<TOPICS></TOPICS>\n<PLACES></PLACES>\n"
            f"<UNKNOWN>&#5;&#5;&#5;F</UNKNOWN>\n<TEXT>&#2;\n<TITLE>{_sgml_text(title.upper())}</TITLE>\n"
            f"<DATELINE>    {_sgml_text(city.upper())}, {moment:%b} {moment.day} - </DATELINE>"
            f"<BODY>{_sgml_text(text)}\n&#3;</BODY></TEXT>\n</REUTERS>\n"
        )
    return "".join(parts).encode("ascii")


def _sgml_text(text: str) -> str:
    return ascii_only(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def noise(size: int) -> bytes:
    """Bytes that are not text, by a linear congruential generator."""
    state, out = 12345, bytearray()
    for _ in range(size):
        state = (state * 1103515245 + 12345) % 2**31
        out.append(state >> 16 & 255)
    return bytes(out)
