"""Tables as text (CSV, TSV): the first line names the columns, each further row is a document.

The separator (comma, tab, semicolon or bar) is the most frequent one of the first line, outside of quotes. Quoted cells
may have line breaks; a quote inside of a cell without quotes around it is a character. A row with another number of
cells than there are names is a row of the ledger, and reading continues at the next line, so that a lost quote costs
one row and not the rest of the file. Rows end as the first line does: in a line feed, or in a carriage return alone.

Source: RFC 4180.
"""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import BinaryIO, NamedTuple, cast

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.plugins.format import Format
from finpile.sources.bytes.decoding import UTF8, Undecodable, decode
from finpile.sources.bytes.streams import BrokenStream, ByteStream, TooLarge, blocks_of
from finpile.sources.readers.accounting import Claim, Lost, Record, Structure
from finpile.sources.readers.base import removal
from finpile.sources.readers.records import RECORD_REASONS, TARGETS, distinct_names, field_keys, to_document

_SEPARATORS = ",\t;|"
_QUOTED = re.compile('"[^"]*"')
#: Lines and bytes of the longest row; a quote that is not closed within them is taken for damage.
_MAX_LINES = 1000
_MAX_BYTES = 4 << 20
csv.field_size_limit(1 << 30)  # the library's bound is 128 KiB; here `_MAX_BYTES` and `limits.record` bound a row


class _Columns(NamedTuple):
    separator: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, header: str, *, strict: bool = False) -> _Columns:
        """Raises: csv.Error if the header is to be `strict` and a quote in it is not closed at the end of a cell."""
        separator = max(_SEPARATORS, key=_QUOTED.sub("", header).count)
        cells = next(csv.reader(io.StringIO(header, newline=""), delimiter=separator, strict=strict), [])
        return cls(separator, distinct_names([cell.strip() for cell in cells]))

    def cells(self, row: str) -> list[str] | None:
        """The cells of a row; None if they are not as many as the names, or a quote is not closed.

        In a row of several lines, the quote that closes a cell is at its end: that of another cell closes none.
        """
        is_open = row.count('"') % 2 == 1
        is_joined = any(end in row.rstrip("\r\n") for end in "\r\n")
        try:
            lines = io.StringIO(row, newline="")
            rows = list(csv.reader(lines, delimiter=self.separator, strict=is_open or is_joined))
        except csv.Error:
            return None
        return rows[0] if len(rows) == 1 and len(rows[0]) == len(self.names) else None


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The rows of a file. Locators end in the byte offset of the row, decompressed."""
    if stream.tell():
        yield from _unnamed(stream, locator, source)
        return
    rows = _Rows(cast(ByteStream, stream))
    columns = None
    for start, row in rows.read():
        where = f"{locator}#{start}"
        if isinstance(row, TooLarge):
            detail = row.detail(rows.stream.limits)
            yield Lost(start, start + row.num_bytes, removal(source, where, "too_large", detail, row.head))
            if columns is None:
                yield from _unnamed(stream, locator, source)
                return
        elif row.isspace():
            yield Structure(start, start + len(row), "white_space")
        elif columns is None:
            row, columns = rows.header(row, source.encoding or UTF8)
            yield Structure(start, start + len(row), "csv_header")
        else:
            cells = columns.cells(_decoded(row, source.encoding or UTF8))
            if cells is None:  # its first line can be a row: a quote inside of a cell, as of `5" pipe`, opens none
                row = rows.first_line()
                cells = columns.cells(_decoded(row, source.encoding or UTF8))
            yield Record(start, start + len(row), where, row, partial(_record, row, cells, where, source, columns))


def _unnamed(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Lost]:
    """The rest of a file whose first line cannot be read."""
    start = stream.tell()
    if data := stream.read():
        detail = f"{len(data)} bytes behind damage, without the names of columns"
        yield Lost(start, start + len(data), removal(source, f"{locator}#{start}", "corrupt_file", detail, data))


def _decoded(row: bytes, encodings: Sequence[str]) -> str:
    """The row for counting its cells; `_record` refuses what cannot be decoded."""
    try:
        return decode(row, encodings)[0]
    except Undecodable:
        return row.decode("latin-1")


def _record(
    row: bytes, cells: list[str] | None, locator: str, source: SourceConfig, columns: _Columns
) -> RawDocument | Removal:
    try:
        decode(row, source.encoding or UTF8)
    except Undecodable as error:
        return removal(source, locator, "undecodable", str(error), row)
    if cells is None:
        detail = f"not {len(columns.names)} cells, or a quote that is not closed"
        return removal(source, locator, "wrong_columns", detail, row)
    record = {name: cell for name, cell in zip(columns.names, cells, strict=True) if cell}
    return to_document(record, locator, source, field_keys(source), row)


class _Rows:
    """The rows of a stream: lines, joined while a quote is open."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._lines = stream.lines()
        self._ahead: deque[bytes | TooLarge] = deque()
        self._parts: list[bytes] = []
        self._broken: BrokenStream | None = None
        self._has_returns = True  # lines can end in carriage returns alone: not yet known before the header
        self._position = stream.tell()

    def read(self) -> Iterator[tuple[int, bytes | TooLarge]]:
        """Offsets and rows. Raises: BrokenStream of the stream, behind the rows before the defect."""
        while (line := self._next()) is not None:
            start = self._position
            row = line if isinstance(line, TooLarge) else self._joined(line)
            self._position += row.num_bytes if isinstance(row, TooLarge) else len(row)
            yield start, row
        if self._broken is not None:
            raise self._broken

    def header(self, row: bytes, encodings: Sequence[str]) -> tuple[bytes, _Columns]:
        """The first row, or its first line if a quote is lost in it, and the columns. Further lines end as it does."""
        try:
            columns = _Columns.of(_decoded(row, encodings), strict=True)
        except csv.Error:
            row = self.first_line()
            columns = _Columns.of(_decoded(row, encodings))
        self._has_returns = row.endswith(b"\r")
        return row, columns

    def first_line(self) -> bytes:
        """The first line of the last row; its other lines are read again, as rows of their own."""
        first, *others = self._parts
        self._ahead.extendleft(reversed(others))
        self._position -= sum(map(len, others))
        return first

    def _joined(self, line: bytes) -> bytes:
        self._parts, num_bytes = [line], len(line)
        is_open = line.count(b'"') % 2 == 1
        while is_open and len(self._parts) < _MAX_LINES and num_bytes < _MAX_BYTES:
            more = self._next()
            if more is None or isinstance(more, TooLarge):
                self._ahead.extendleft([more] if more else [])
                break
            self._parts.append(more)
            num_bytes += len(more)
            is_open ^= more.count(b'"') % 2 == 1
        return b"".join(self._parts)

    def _next(self) -> bytes | TooLarge | None:
        if self._ahead:
            return self._ahead.popleft()
        if self._broken is not None:
            return None
        try:
            line = next(self._lines, None)
        except BrokenStream as broken:  # raised behind the rows before it
            self._broken = broken
            return None
        if self._has_returns and isinstance(line, bytes):
            line, *others = line.splitlines(keepends=True)
            self._ahead.extend(others)
        return line


def _field_names(stream: BinaryIO, record: bytes) -> list[str]:
    """Names of the columns of a file that is not compressed."""
    del record
    rows = _Rows(ByteStream(blocks_of(stream, "")))
    header = next((row for _, row in rows.read() if isinstance(row, TooLarge) or not row.isspace()), b"")
    return list(rows.header(header, UTF8)[1].names) if isinstance(header, bytes) and header else []


FORMAT = Format(
    name="csv",
    read=read,
    reasons={"wrong_columns": "a row with other cells than there are names of columns, or with an open quote",
             **RECORD_REASONS},
    structure={"csv_header": "the first line, with the names of the columns"},
    fields=TARGETS,
    keeps_fields=True,
    has_ascii_marks=True,
    field_names=_field_names,
)  # fmt: skip
