"""Small files that ask for much time or memory: each is refused by a count, with a row that says why."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finpile.config import SourceConfig
from finpile.config.limits import RATIO_FREE_BYTES, LimitsConfig
from finpile.sources.archives import zip_members
from finpile.sources.bytes.frames.gzip import inflate
from finpile.sources.bytes.streams import ByteStream
from tests.support.reading import Items, read_folder

ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
DECLARED = f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e0 "laugh at this">{ENTITIES}]>'


def read(folder: Path, format_name: str, name: str, data: bytes, **settings: Any) -> Items:
    """The documents and rows of a file, whose bytes are accounted for."""
    (folder / name).write_bytes(data)
    source = SourceConfig(name="N", dataset="D", format=format_name, paths=(name,), **settings)
    return read_folder(source, folder)[:2]


def test_parquet_of_one_value_is_a_bomb(tmp_path: Path) -> None:
    """100 MB of rows that a few hundred bytes stand for."""
    text, num_rows = "Oil rose. " * 1000, 10_000
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(num_rows, np.int32)), pa.array([text]))
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": column}), sink, row_group_size=num_rows)
    documents, [row] = read(tmp_path, "parquet", "a.parquet", sink.getvalue())
    assert row.reason == "decompression_bomb" and "limits.ratio is 1000" in row.detail
    assert 0 < len(documents) * len(text) <= RATIO_FREE_BYTES
    documents, rows = read(tmp_path, "parquet", "a.parquet", sink.getvalue(), limits=LimitsConfig(ratio=1 << 20))
    assert (len(documents), rows) == (num_rows, [])


def test_zip_whose_members_overlap_is_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many entries of the directory lead to one member (Fifield, A better zip bomb, 2019).

    Their names are not that of its header, so that the member is decoded to find which of the two is right.
    """
    sizes: list[int] = []

    def counted(source: ByteStream) -> Iterator[bytes]:
        for piece in inflate(source):
            sizes.append(len(piece))
            yield piece

    monkeypatch.setattr(zip_members, "inflate", counted)
    plain = b"Oil rose again today.\n" * 100_000
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = deflate.compress(plain) + deflate.flush()
    facts = (0, 8, 0, 0x21, zlib.crc32(plain), len(packed), len(plain))
    names = [b"%05d.txt" % number for number in range(500)]
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, *facts, 5, 0) + b"a.txt" + packed
    entries = [
        struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, *facts, len(name), 0, 0, 0, 0, 0, 0) + name for name in names
    ]
    directory = b"".join(entries)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(names), len(names), len(directory), len(local), 0)
    documents, rows = read(tmp_path, "text", "a.zip", local + directory + end)
    assert {row.reason for row in rows} == {"decompression_bomb"}
    assert len(documents) + len(rows) == len(names)
    assert sum(len(document.text) for document in documents) < 3 * RATIO_FREE_BYTES  # 1.1 GB
    assert sum(sizes) < 10 * RATIO_FREE_BYTES


@pytest.mark.parametrize(
    ("format_name", "data"),
    [
        (
            "wikipedia",
            "<mediawiki><page><title>a</title><ns>0</ns><revision><text>&e9;</text></revision></page></mediawiki>",
        ),
        ("stackexchange", '<posts>\n<row Id="1" PostTypeId="1" Title="a" Body="&e9;" />\n</posts>'),
        ("jats", "<article><body><p>&e9;</p></body></article>"),
        ("tei", "<TEI><text><body><u>&e9;</u></body></text></TEI>"),
        ("uspto", "<us-patent-grant><abstract><p>&e9;</p></abstract></us-patent-grant>"),
    ],
)
def test_entities_that_multiply_are_not_expanded(tmp_path: Path, format_name: str, data: str) -> None:
    documents, rows = read(tmp_path, format_name, "a.xml", (DECLARED + data).encode())
    assert rows
    assert sum(len(document.text) for document in documents) < 1000


@pytest.mark.slow
def test_pdf_stream_that_expands_to_a_gigabyte_costs_itself_alone(tmp_path: Path) -> None:
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(1 << 10)) + packer.flush()
    packed = zlib.compress(packed, 9)
    head = b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n" % len(packed)
    body = (
        b"1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
        b"2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n"
        b"3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>\nendobj\n4 0 obj\n"
    )
    data = b"%PDF-1.4\n" + body + head + packed + b"\nendstream\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"
    assert len(data) < 8192
    documents, rows = read(tmp_path, "pdf", "a.pdf", data)
    assert documents == []
    assert [row.reason for row in rows] == ["too_costly"]


def nested_mail(depth: int, num_lines: int) -> bytes:
    parts = (f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n'.encode() for n in range(depth))
    return b"From: a@b.c\n" + b"".join(parts) + b"Content-Type: text/plain\n\n" + b"x\n" * num_lines


def test_mail_of_many_lines_in_deep_parts_is_refused(tmp_path: Path) -> None:
    [document], _ = read(tmp_path, "mail", "a.eml", nested_mail(100, 1000))
    assert document.text.count("x") == 1000
    documents, [row] = read(tmp_path, "mail", "a.eml", nested_mail(280, 600_000))
    assert (documents, row.reason) == ([], "too_costly")
    documents, [row] = read(tmp_path, "mail", "a.eml", nested_mail(5000, 10))
    assert (documents, row.reason) == ([], "unreadable_record")


def test_mail_with_endless_headers_costs_their_beginning(tmp_path: Path) -> None:
    data = b"From: a@b.c\nSubject: " + b"=?utf-8?q?x?= " * 200_000 + b"\n\nOil rose.\n"
    [document], _ = read(tmp_path, "mail", "a.eml", data)
    assert len(document.title or "") < 1 << 14
    assert document.text.endswith("Oil rose.")
