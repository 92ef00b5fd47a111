"""PDF: text in reading order, pages without text, and files that must cost no more than themselves."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.sources.formats.pdf.format import join_hyphens
from tests.support.reading import damaged_copies, read_as

#: Catalog, pages and font: objects 1 to 3.
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
IMAGE = b"q 600 0 0 700 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \xaa EI Q"


def pdf_of(contents: list[bytes], info: bytes = b"", forms: tuple[bytes, ...] = (), packed: bool = False) -> bytes:
    """A PDF whose pages have these contents; forms are named /X10, /X11, ... by their objects."""
    first = 10 + len(forms)
    names = b" ".join(b"/X%d %d 0 R" % (number, number) for number in range(10, first))
    common = b"/Resources << /Font << /F 3 0 R >> /XObject << %s >> >>" % names
    kids = b" ".join(b"%d 0 R" % (first + 2 * number) for number in range(len(contents)))
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(contents)),
        3: FONT,
        4: b"<< %s >>" % info,
    }
    for number, form in enumerate(forms, start=10):
        entries = b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] " + common
        objects[number] = b"<< %s /Length %d >>\nstream\n%s\nendstream" % (entries, len(form), form)
    for number, content in enumerate(contents):
        page, data = first + 2 * number, zlib.compress(content) if packed else content
        objects[page] = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] %s /Contents %d 0 R >>" % (
            common,
            page + 1,
        )
        filters = b"/Filter /FlateDecode" if packed else b""
        objects[page + 1] = b"<< %s /Length %d >>\nstream\n%s\nendstream" % (filters, len(data), data)
    out, places = b"%PDF-1.4\n", {}
    for number, content in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%d 1\n%010d 00000 n \n" % item for item in places.items())
    return (
        out
        + b"xref\n0 1\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n"
        % (
            table,
            max(objects) + 1,
            len(out),
        )
    )


def lines(*written: tuple[str, int, int]) -> bytes:
    """The content of a page: texts, each at x, y."""
    return b"\n".join(b"BT /F 12 Tf %d %d Td (%s) Tj ET" % (x, y, text.encode("latin-1")) for text, x, y in written)


def read(data: bytes) -> list[RawDocument | Removal]:
    return read_as("pdf", data, "a.pdf")


def text_of(data: bytes) -> str:
    [document] = read(data)
    assert isinstance(document, RawDocument)
    return document.text


def test_lines_paragraphs_pages_and_words_that_lines_divide() -> None:
    first = lines(
        ("The bank is incor-", 72, 700), ("porated in a long-", 72, 686), ("term plan.", 72, 672), ("Second.", 72, 630)
    )
    assert text_of(pdf_of([first, lines(("A long-term view of 3-", 72, 700), ("4 percent.", 72, 686))])) == (
        "The bank is incorporated in a long-term plan.\n\nSecond.\n\nA long-term view of 3-\n4 percent."
    )


def test_two_columns_are_read_one_after_the_other_and_tables_by_row() -> None:
    left, right = ([f"{side} column line {number}" for number in range(5)] for side in ("left", "right"))
    rows = [pair for n in range(5) for pair in ((left[n], 72, 700 - 14 * n), (right[n], 330, 700 - 14 * n))]
    page = lines(("A title above both columns of this page, which is wide", 72, 740), *rows, ("7", 72, 40))
    found = text_of(pdf_of([page])).split("\n\n")
    assert found == ["A title above both columns of this page, which is wide", "\n".join([*left, *right]), "7"]
    table = [cell for n in range(5) for cell in ((f"item {n}", 72, 700 - 14 * n), (f"{n}.5", 330, 700 - 14 * n))]
    assert text_of(pdf_of([lines(*table)])) == "\n".join(f"item {n} {n}.5" for n in range(5))


def test_hyphens() -> None:
    assert join_hyphens("Dela\ufffeware") == "Delaware"
    assert join_hyphens("a long-term plan, long\ufffeterm") == "a long-term plan, long-term"
    assert join_hyphens("Anglo\ufffeSaxon") == "Anglo-Saxon"
    assert join_hyphens("\ufffe") == "-"
    long = "a" * 200_000  # quadratic time would be minutes
    assert join_hyphens(f"{long} long-term, long\ufffeterm") == f"{long} long-term, long-term"


def test_properties_and_date_in_utc() -> None:
    info = rb"/Title (Report) /Author (Ann) /CreationDate (D:20220304050607+02'30')"
    [document] = read(pdf_of([lines(("Text.", 72, 700))], info))
    assert isinstance(document, RawDocument)
    assert (document.title, document.timestamp) == ("Report", datetime(2022, 3, 4, 2, 36, 7, tzinfo=UTC))
    assert (document.timestamp_origin, document.meta) == ("header", {"pages": 1, "author": "Ann"})


@pytest.mark.parametrize("written", ["D:20220230", "D:19700101000000+99", "D:18500101", "long ago"])
def test_a_date_of_creation_that_cannot_be_read_is_noted(written: str) -> None:
    [document] = read(pdf_of([lines(("Text.", 72, 700))], b"/CreationDate (%s)" % written.encode()))
    assert isinstance(document, RawDocument)
    assert (document.timestamp, document.meta["unreadable_timestamp"]) == (None, written)


def test_scans_are_rows_whole_or_by_page() -> None:
    [row] = read(pdf_of([IMAGE, IMAGE], b"/CreationDate (D:20210304050607Z)"))
    assert isinstance(row, Removal) and (row.reason, row.detail) == ("no_text_layer", "2 pages, no text on any")
    assert row.timestamp == datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC)
    document, row = read(pdf_of([lines(("Text.", 72, 700)), IMAGE, b"", IMAGE]))
    assert isinstance(document, RawDocument) and document.text == "Text."
    assert isinstance(row, Removal)
    assert (row.locator, row.reason, row.detail) == ("a.pdf#scanned", "no_text_layer", "2 of 4 pages: 2, 4")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no mark", "no_record"),
        (b"%PDF-1.4\nand no more", "unreadable_record"),
        (pdf_of([b""]), "empty_text"),
        (pdf_of([lines(("Text.", 72, 700))]).replace(b"/Root", b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 "
         b"/O <" + b"ab" * 32 + b"> /U <" + b"cd" * 32 + b"> >> /Root"), "encrypted"),
    ],
)  # fmt: skip
def test_file_without_text_is_a_row_with_its_bytes(data: bytes, reason: str) -> None:
    [row] = read(data)
    assert isinstance(row, Removal) and (row.reason, row.removed_text) == (reason, data)


@pytest.mark.slow
def test_bomb_costs_itself_alone() -> None:
    """Forms that expand by ten at each of nine levels reach the bound of memory or CPU time."""
    nested = tuple(b"/X%d Do " % (number + 1) * 10 for number in range(10, 18))
    forms = pdf_of([b"/X10 Do"], forms=(*nested, lines(("laugh at this", 72, 700))))
    [row] = read(forms)
    assert isinstance(row, Removal) and row.reason == "too_costly" and row.removed_text == forms
    assert text_of(pdf_of([lines(("Still read.", 72, 700))])) == "Still read."


def test_damaged_files_lose_nothing_silently() -> None:
    page = lines(*((f"Line {n} of a page, oil and gas", 72, 700 - 14 * n) for n in range(9)))
    for data in damaged_copies(pdf_of([page] * 3, packed=True), 5):
        for item in read(data):
            assert isinstance(item, RawDocument) or item.reason != "reader_error"


def test_file_of_a_task(real_data: Callable[[str], Path]) -> None:
    """All words of its pages, counted by PDFium's own text of each page."""
    data = real_data("eval_tasks/fiqa_sa/Readme.pdf").read_bytes()
    pdfium: Any = pytest.importorskip("pypdfium2")
    pages = [page.get_textpage().get_text_range() for page in pdfium.PdfDocument(data)]
    assert re.findall(r"\w+", text_of(data)) == re.findall(r"\w+", " ".join(pages))
