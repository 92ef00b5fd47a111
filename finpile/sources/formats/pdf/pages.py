"""The text of PDF pages by PDFium, in a process of its own, which runs this file.

PDFium runs one file at a time, may fail in native code, and expands forms without a bound: a file of 2 KB can request
hours and all memory. The process has bounds of memory and of CPU time for each file; one that exceeds them ends the
process, costs that file alone, and the next file starts another process. Nothing of FinPile is imported here.

Standard input has files, standard output answers, each as its length in 8 bytes and the bytes. The first answer is
empty: the process is ready. A further one is the JSON object that `extract` returns.

Source: https://pdfium.googlesource.com/pdfium/+/refs/heads/main/public/fpdf_text.h
"""

from __future__ import annotations

import ctypes
import json
import resource
import struct
import sys
from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw

#: Bounds of the process, and of a file.
MEMORY_BYTES = 2 << 30
CPU_SECONDS = 60
MAX_PAGES = 20_000
MAX_CHARACTERS = 1 << 26
_MAX_OBJECTS = 1000

#: Above this many heights of a line, a gap between two lines begins a paragraph, and one in a line separates cells.
_PARAGRAPH_GAP = 1.6
_CELL_GAP = 1.5
#: Above this many heights, a gap between two rows ends their columns.
_COLUMN_GAP = 3
#: Two columns are at least this many rows of two cells, whose cells have at least this many characters each.
_MIN_ROWS, _MIN_CELL = 4, 15

#: `FPDFText_GetLooseCharBox` by addresses: a page has hundreds of spaces, and its typed pointers take half of the time.
_BOX_OF = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
    ctypes.cast(raw.FPDFText_GetLooseCharBox, ctypes.c_void_p).value or 0
)


class _Cell(NamedTuple):
    """A line, or one of its parts where wide gaps separate them; with its box, in points."""

    text: str
    left: float
    right: float
    bottom: float
    height: float
    foot: float
    """The bottom of its last character, which is on the next line where a hyphen joins two."""


def extract(data: bytes) -> dict[str, Any]:
    """`{"pages": [...], "images": [...], "info": {...}}`: texts of all pages, pages with images and no text, and
    the document's properties; or `{"reason": ..., "detail": ...}` for a file that cannot be read."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        is_encrypted = raw.FPDF_GetLastError() == raw.FPDF_ERR_PASSWORD or "password" in str(error).lower()
        return {"reason": "encrypted" if is_encrypted else "unreadable_record", "detail": str(error)}
    if len(document) > MAX_PAGES:
        return {"reason": "too_large", "detail": f"{len(document)} pages; at most {MAX_PAGES} are read"}
    pages: list[str] = []
    images, broken, num_characters = [], [], 0
    for number in range(len(document)):
        try:
            page = document[number]
        except pypdfium2.PdfiumError:
            broken.append(number + 1)
            continue
        text = _text(page)
        pages.append(text)
        num_characters += len(text)
        if not text and _has_image(page):
            images.append(number + 1)
        page.close()
        if num_characters > MAX_CHARACTERS:
            return {"reason": "too_large", "detail": f"more than {MAX_CHARACTERS} characters, on {number + 1} pages"}
    info = {name.lower(): value for name, value in document.get_metadata_dict(skip_empty=True).items()}
    return {"pages": pages, "num_pages": len(document), "images": images, "broken": broken, "info": info}


def _has_image(page: pypdfium2.PdfPage) -> bool:
    """Whether an image is among the first objects of a page, or a form, which may have one."""
    objects = (raw.FPDFPage_GetObject(page, at) for at in range(min(raw.FPDFPage_CountObjects(page), _MAX_OBJECTS)))
    kinds = (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_FORM)
    return any(raw.FPDFPageObj_GetType(one) in kinds for one in objects)


def _text(page: pypdfium2.PdfPage) -> str:
    """The lines of a page in the order of its content, two columns one after the other; paragraphs have gaps."""
    found = page.get_textpage()
    rows = _in_columns(list(_rows(found)))
    found.close()
    lines: list[str] = []
    for at, row in enumerate(rows):
        before = rows[at - 1]
        if at and before[-1].foot - row[0].bottom > _PARAGRAPH_GAP * max(before[-1].height, row[0].height):
            lines.append("")
        lines.append(" ".join(cell.text for cell in row))
    return "\n".join(lines).strip()


def _rows(found: pypdfium2.PdfTextPage) -> Iterator[list[_Cell]]:
    """The lines of a page as cells; characters that PDFium leaves out of the text are counted in."""
    text = found.get_text_range()
    is_plain = len(text) == found.count_chars()
    box, start = raw.FS_RECTF(), 0
    page, place = ctypes.cast(found.raw, ctypes.c_void_p).value, ctypes.addressof(box)

    def look(at: int) -> bool:
        """Puts the box of a character into `box`; false if it has none."""
        index = at if is_plain else raw.FPDFText_GetCharIndexFromTextIndex(found, at)
        return bool(_BOX_OF(page, index, place))

    for line in text.split("\r\n"):
        cells: list[_Cell] = []
        left, bottom, top = (box.left, box.bottom, box.top) if line.strip() and look(start) else (0.0, 0.0, 0.0)
        wide, begin, space, last_space = _CELL_GAP * (top - bottom), 0, line.find(" ", 1), len(line) - 1
        word = left
        while 0 < space < last_space and wide > 0:
            after = box.left if look(start + space + 1) else 0.0
            if after - word > wide:  # otherwise not even a word without width would leave a gap
                end = box.right if look(start + space - 1) else 0.0
                if after - end > wide:
                    cells.append(_Cell(line[begin:space].strip(), left, end, bottom, top - bottom, bottom))
                    begin, left = space + 1, after
            word, space = after, line.find(" ", space + 1)
        if last := line[begin:].strip():
            right, foot = (box.right, box.bottom) if look(start + len(line.rstrip()) - 1) else (0.0, 0.0)
            cells.append(_Cell(last, left, right, bottom, top - bottom, foot))
        if cells := [cell for cell in cells if cell.text]:
            yield cells
        start += len(line) + 2


def _in_columns(rows: list[list[_Cell]]) -> list[list[_Cell]]:
    """The rows, of runs of rows in two columns first the left ones. Tables have shorter cells, and remain rows."""
    wide = [row for row in rows if len(row) == 2 and min(len(cell.text) for cell in row) >= _MIN_CELL]
    if len(wide) < _MIN_ROWS:
        return rows
    gutter = median((left.right + right.left) / 2 for left, right in wide)
    ordered: list[list[_Cell]] = []
    run: list[list[_Cell]] = []
    for row in rows:
        is_beside = all(cell.right <= gutter or cell.left >= gutter for cell in row)
        if run and not (is_beside and run[-1][0].bottom - row[0].bottom < _COLUMN_GAP * row[0].height):
            ordered += _left_first(run, gutter)
            run = []
        if is_beside:
            run.append(row)
        else:
            ordered.append(row)
    return ordered + _left_first(run, gutter)


def _left_first(run: list[list[_Cell]], gutter: float) -> list[list[_Cell]]:
    if sum(len(row) == 2 for row in run) < _MIN_ROWS:
        return run
    sides = ([[cell] for row in run for cell in row if (cell.right <= gutter) == is_left] for is_left in (True, False))
    return [row for side in sides for row in side]


def main() -> None:
    """Answers until the input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _answer(b"")
    while header := sys.stdin.buffer.read(8):
        data = sys.stdin.buffer.read(*struct.unpack("<q", header))
        usage = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(usage.ru_utime + usage.ru_stime) + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        _answer(json.dumps(extract(data)).encode())


def _answer(data: bytes) -> None:
    sys.stdout.buffer.write(struct.pack("<q", len(data)) + data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
