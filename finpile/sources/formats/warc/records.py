"""Records of web archives: WARC/0.17 to 1.1 (ISO 28500) and ARC version 1 and 2, distinguished by their content.

    WARC/1.0 CRLF, named fields, an empty line, a block of Content-Length bytes, two line ends
    URL IP-address date content-type length LF, a block of that length, one line end          (ARC; version 2 has more)

One damaged record costs that record: reading continues at the next header. A wrong length shows in what follows the
block: neither the line ends that close a record nor the header of the next one. The block is then searched for the next
header, since a length that is too large has swallowed it.

Source: ISO 28500:2017; Internet Archive, Arc File Format, https://archive.org/web/researcher/ArcFileFormat.php
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from finpile.sources.bytes.http import parse_headers
from finpile.sources.bytes.streams import BrokenStream, ByteStream

#: Bytes of a header, at most.
_HEADER_BYTES = 1 << 16
#: Bytes of one read of the search for the next header, and of one skipped piece.
_SEARCH_BYTES = 1 << 20

_WARC_START = rb"WARC/[01]\.\d+\r?\n[A-Za-z][\w\-]*[ \t]*:"
_ARC_START = rb"[a-z][a-z0-9+.\-]*:[^\r\n]{0,4096} [0-9A-Fa-f:.]{3,45} \d{8,17} [^\r\n]{0,512}\d+\r?\n"
_HEADER_START = {"warc": re.compile(_WARC_START), "arc": re.compile(_ARC_START)}
#: A WARC header is recognised even if the line end before it is damaged; an ARC header could be a line of text.
_NEXT_HEADER = {"warc": re.compile(rb"(?=%s)" % _WARC_START), "arc": re.compile(rb"(?<=\n)(?=%s)" % _ARC_START)}
_WARC_MARK = b"WARC/"
_HEADER_END = re.compile(rb"\n\r?\n")
_WARC_HEADER = re.compile(rb"WARC/[01]\.\d+\r?\n(.*?\n)\r?\n", re.DOTALL)
#: A line of a header: a field, or the rest of the one before it.
_FIELD = re.compile(rb"[^\s:]+[ \t]*:|[ \t]")
#: URL, IP address, date, content type; version 2 puts result code, checksum, location, offset and file name before the
#: length.
_ARC_HEADER = re.compile(
    rb"([a-z][a-z0-9+.\-]*:[^\r\n]*?) ([0-9A-Fa-f:.]{3,45}) (\d{8,17}) ([^\r\n ]*)(?: [^\r\n]*)? (\d{1,18})\r?\n"
)
#: What closes a WARC's record, and all that may be between a block and the next header.
_CLOSING = re.compile(rb"\r?\n\r?\n")
_BETWEEN = {"warc": (b"\r\n\r\n", b"\n\n"), "arc": (b"\n",)}
_CLOSING_BYTES = 4
_LINE_ENDS = re.compile(rb"[\r\n]*")
_ONLY_LINE_ENDS = re.compile(rb"[\r\n]*\Z")
#: More digits are not a length of a block.
_LENGTH_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a record."""

    form: str
    """`warc` or `arc`."""
    kind: str
    """WARC-Type in lower case; of an ARC `response`, or `filedesc` for its version block."""
    url: str
    content_type: str
    date: str
    """As the header writes it."""
    length: int
    data: bytes


@dataclass(frozen=True, slots=True)
class WebRecord:
    """A record, with offsets in the decompressed archive."""

    header: Header
    block: bytes
    start: int
    """Of the header."""

    @property
    def block_start(self) -> int:
        return self.start + len(self.header.data)

    @property
    def end(self) -> int:
        return self.block_start + len(self.block)


@dataclass(frozen=True, slots=True)
class Damaged:
    """Bytes that are not a record, or no whole one."""

    reason: str
    detail: str
    data: bytes
    """The first of them."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Separator:
    """The line ends between records."""

    start: int
    end: int


Found = WebRecord | Damaged | Separator


def read_records(stream: ByteStream, max_record_bytes: int) -> Iterator[Found]:
    """The records of the archive and the bytes between them, in order, from the position of the stream.

    A stream that is not at its beginning continues behind a defect; what precedes the next header is then the
    rest of a damaged record.

    Raises: BrokenStream of the stream, with the unfinished record as its `partial`.
    """
    yield from _Reader(stream, max_record_bytes).read()


class _Window:
    """Bytes of the stream that were read and not consumed."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._data = b""
        self._at = 0
        self.position = stream.tell()
        """Offset of the next byte in the decompressed archive."""
        self.broken: BrokenStream | None = None
        """The defect that the bytes end in."""

    def __len__(self) -> int:
        return len(self._data) - self._at

    def fill(self, size: int) -> None:
        """Has `size` bytes here, or all that the stream has before its end or its next defect."""
        while len(self) < size and (piece := self._read(max(size - len(self), _HEADER_BYTES))):
            self._data, self._at = self._data[self._at :] + piece, 0

    def take(self, size: int) -> bytes:
        """Consumes `size` bytes, or all that there are."""
        found = self._data[self._at : self._at + size]
        self._at += len(found)
        parts = [found]
        missing = size - len(found)
        while missing and (piece := self._read(missing)):
            parts.append(piece)
            missing -= len(piece)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self.position += len(data)
        return data

    def give_back(self, data: bytes) -> None:
        """Takes back what was consumed last."""
        self._data, self._at = data + self._data[self._at :], 0
        self.position -= len(data)

    def peek(self, size: int) -> bytes:
        return self._data[self._at : self._at + size]

    def has_header(self, start: re.Pattern[bytes], offset: int) -> bool:
        """Whether the bytes from `offset` begin a header."""
        return start.match(self._data, self._at + offset, self._at + offset + _HEADER_BYTES) is not None

    def match(self, expression: re.Pattern[bytes], size: int) -> re.Match[bytes] | None:
        """At the next byte, within `size` bytes."""
        return expression.match(self._data, self._at, self._at + size)

    def search(self, expression: re.Pattern[bytes], size: int) -> int | None:
        """How many bytes ahead the expression matches, 1 at least, within `size` bytes."""
        found = expression.search(self._data, self._at + 1, self._at + size)
        return found.end() - self._at if found else None

    def _read(self, size: int) -> bytes:
        if self.broken is not None:
            return b""
        try:
            return self._stream.read(size)
        except BrokenStream as broken:
            self.broken = broken
            return b""


class _Reader:
    def __init__(self, stream: ByteStream, max_record_bytes: int) -> None:
        self._window = _Window(stream)
        self._max_record_bytes = max_record_bytes
        self._forms: tuple[str, ...] = ("warc", "arc")  # until the first header

    def read(self) -> Iterator[Found]:
        window = self._window
        while True:
            window.fill(_HEADER_BYTES)
            if line_ends := window.match(_LINE_ENDS, len(window)):
                start = window.position
                if window.take(len(line_ends[0])):
                    yield Separator(start, window.position)
                    continue  # more may follow than were read
            if not len(window):
                break
            yield from self._record()
        if window.broken is not None:
            raise window.broken

    def _record(self) -> Iterator[Found]:
        window, start = self._window, self._window.position
        header = self._header()
        if header is None and self._is_cut_header():
            yield from self._cut("ends inside the header of a record")
            return
        if header is None:
            yield from self._skip("unreadable_record", "no header of a record", self._max_record_bytes)
            return
        self._forms = (header.form,)
        if header.length > self._max_record_bytes:
            window.give_back(header.data)
            detail = f"{header.length} bytes; limits.record is {self._max_record_bytes}"
            yield from self._skip("too_large", detail, _SEARCH_BYTES)
            return
        block = window.take(header.length)
        window.fill(_HEADER_BYTES)
        if len(block) < header.length or not self._is_closed(header.form):
            yield from self._unclosed(header, block)
            return
        yield WebRecord(header, block, start)
        if header.form == "warc" and self._ends_early() and window.broken is None:
            yield self._damaged("the line ends that close its last record are missing", len(window))

    def _header(self) -> Header | None:
        """Consumes and returns the header that begins here; None if none does."""
        found = None
        if "warc" in self._forms and (match := self._window.match(_WARC_HEADER, _HEADER_BYTES)):
            found = _warc_header(match)
        elif "arc" in self._forms and (match := self._window.match(_ARC_HEADER, _HEADER_BYTES)):
            found = _arc_header(match)
        if found is not None:
            self._window.take(len(found.data))
        return found

    def _is_closed(self, form: str) -> bool:
        """Whether what follows a block shows that its length is right.

        One line end follows an ARC's block, as it may any line in it: the next header has to follow, too. Before a
        header one byte of the line ends may be damaged.
        """
        if form == "warc" and self._window.match(_CLOSING, _CLOSING_BYTES):
            return True
        return self._ends_early() or any(self._is_followed(form, line_ends) for line_ends in _BETWEEN[form])

    def _is_followed(self, form: str, line_ends: bytes) -> bool:
        """Whether a header comes behind these line ends, of which one byte may be another."""
        found = self._window.peek(len(line_ends))
        num_wrong = sum(one != other for one, other in zip(found, line_ends, strict=False))
        return num_wrong <= 1 and self._window.has_header(_HEADER_START[form], len(line_ends))

    def _ends_early(self) -> bool:
        """Whether the archive ends here, or within the line ends behind a record."""
        rest = len(self._window)
        return rest < _CLOSING_BYTES and self._window.match(_ONLY_LINE_ENDS, rest) is not None

    def _unclosed(self, header: Header, block: bytes) -> Iterator[Found]:
        """A record whose block does not end after its length: the length is wrong, or the archive is cut."""
        window = self._window
        is_short = len(block) < header.length
        window.give_back(block)
        has_next = window.search(_NEXT_HEADER[header.form], len(window)) is not None
        window.give_back(header.data)
        if has_next or not is_short:
            detail = f"its block does not end after the {header.length} bytes that its header says"
            yield from self._skip("unreadable_record", detail, self._max_record_bytes)
        else:
            yield from self._cut("ends inside this record")

    def _is_cut_header(self) -> bool:
        """Whether the archive ends within a header that begins here."""
        rest = self._window.peek(_HEADER_BYTES)
        if len(rest) == _HEADER_BYTES:
            return False
        begins_warc = "warc" in self._forms and _WARC_MARK.startswith(rest[: len(_WARC_MARK)])
        return (begins_warc and not _HEADER_END.search(rest)) or (self._forms == ("arc",) and b"\n" not in rest)

    def _cut(self, detail: str) -> Iterator[Found]:
        """The rest of an archive that ends inside a record."""
        window = self._window
        if window.broken is not None:
            window.broken.partial = window.take(len(window))
            raise window.broken
        yield self._damaged(detail, len(window))

    def _damaged(self, detail: str, size: int) -> Damaged:
        start = self._window.position
        data = self._window.take(size)
        return Damaged("truncated_file", detail, data, start, self._window.position)

    def _skip(self, reason: str, detail: str, keep_bytes: int) -> Iterator[Damaged]:
        """Consumes all up to the next header. Of a record that is too large the first bytes are kept, of others all."""
        window, start = self._window, self._window.position
        kept: list[bytes] = []
        kept_bytes = 0
        while True:
            window.fill(_SEARCH_BYTES)
            ahead = self._next_header()
            piece = window.take(ahead or max(len(window) - _HEADER_BYTES, 0) or len(window))
            if kept_bytes + len(piece) > keep_bytes and reason != "too_large" and kept:
                yield Damaged(reason, detail, b"".join(kept), start, window.position - len(piece))
                start, kept, kept_bytes = window.position - len(piece), [], 0
            kept.append(piece[: max(keep_bytes - kept_bytes, 0)])
            kept_bytes += len(kept[-1])
            if ahead is not None or not len(window):
                break
        yield Damaged(reason, detail, b"".join(kept), start, window.position)

    def _next_header(self) -> int | None:
        """Bytes up to the next header in the window; the one at its beginning is none."""
        ends = (self._window.search(_NEXT_HEADER[form], len(self._window)) for form in self._forms)
        return min((end for end in ends if end is not None), default=None)


def _warc_header(match: re.Match[bytes]) -> Header | None:
    lines = match[1].splitlines()
    fields = parse_headers(lines)
    length = fields.get("content-length", "")
    is_whole = length.isdecimal() and len(length) <= _LENGTH_DIGITS and "warc-type" in fields
    if not is_whole or not all(_FIELD.match(line) for line in lines):
        return None
    return Header(
        form="warc",
        kind=fields["warc-type"].lower(),
        url=fields.get("warc-target-uri", "").strip("<>"),
        content_type=fields.get("content-type", ""),
        date=fields.get("warc-date", ""),
        length=int(length),
        data=match[0],
    )


def _arc_header(match: re.Match[bytes]) -> Header:
    url, date, content_type, length = (match[group].decode("utf-8", "replace") for group in (1, 3, 4, 5))
    kind = "filedesc" if url.startswith("filedesc:") else "response"
    return Header("arc", kind, url, content_type, date, int(length), match[0])
