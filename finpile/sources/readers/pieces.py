"""A stream cut at the marks around its records, for formats whose records have a start tag and an end tag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, cast

from finpile.config import SourceConfig
from finpile.config.limits import HEAD_BYTES
from finpile.sources.bytes.streams import BLOCK_BYTES, BrokenStream, ByteStream
from finpile.sources.readers.accounting import Claim, Lost, Structure
from finpile.sources.readers.base import removal

#: A start mark with what it looks ahead to is no longer than this.
MAX_MARK_BYTES = 256


class Piece(NamedTuple):
    """The bytes `start:end` of a stream: from a start mark to the end mark behind it, or what lies between those."""

    start: int
    end: int
    data: bytes
    """All of the piece; its beginning if it is larger than the limit."""
    is_open: bool
    """Begins with a start mark."""
    is_closed: bool
    """Ends with an end mark."""
    is_last: bool
    """Ends with the stream."""

    @property
    def is_whole(self) -> bool:
        """Whether `data` is all of it."""
        return len(self.data) == self.end - self.start


def pieces(stream: BinaryIO, opening: bytes, closing: bytes | None) -> Iterator[Piece]:
    """Cuts before each match of the pattern `opening`, and behind each `closing` if there is one.

    Pieces follow each other without gap. Of a piece above `limits.record` of the stream, only the head is
    held in memory.

    Raises: BrokenStream of the stream; its `partial` is then the piece that was being read.
    """
    max_bytes = cast(ByteStream, stream).limits.record_bytes
    closes = b"" if closing is None else b"|" + re.escape(closing)
    window = _Window(stream, re.compile(b"(?P<opening>%s)%s" % (opening, closes)), max_bytes)
    is_open = False
    while (mark := window.next_mark(is_open)) is not None:
        opens = mark["opening"] is not None
        cut = mark.start() if opens else mark.end()
        if cut:
            yield window.take(cut, is_open, not opens)
        is_open = opens
    window.raise_defect()
    if window.num_bytes:
        yield window.take(window.num_bytes, is_open, False)._replace(is_last=True)


def lost(source: SourceConfig, locator: str, reason: str, detail: str, piece: Piece) -> Lost:
    """A piece that becomes a ledger row, with its bytes, or their beginning if it is too large."""
    return Lost(piece.start, piece.end, removal(source, locator, reason, detail, piece.data))


def between(source: SourceConfig, locator: str, piece: Piece, nothing: str, foreign: str) -> Claim:
    """A piece between records: white space, a file without a record (`nothing`), or bytes that are `foreign`."""
    if piece.data.isspace():
        return Structure(piece.start, piece.end, "white_space")
    if piece.start == 0 and piece.is_last:
        return lost(source, locator, "no_record", nothing, piece)
    return lost(source, locator, "unreadable_record", foreign, piece)


class _Window:
    """What was read of the stream behind the last cut."""

    def __init__(self, stream: BinaryIO, mark: re.Pattern[bytes], max_bytes: int) -> None:
        self._stream = stream
        self._mark = mark
        self._max_bytes = max_bytes
        self._data = bytearray()
        self._start = stream.tell()
        self._head = b""
        self._num_dropped = 0
        self._searched = 0
        self._is_at_end = False
        self._broken: BrokenStream | None = None

    @property
    def num_bytes(self) -> int:
        return len(self._data)

    def next_mark(self, is_open: bool) -> re.Match[bytes] | None:
        """The next mark, its place counted in the window; None at the end of the stream."""
        self._searched = 1 if is_open else 0
        while True:
            mark = self._mark.search(self._data, self._searched)
            if mark is not None and (self._is_at_end or mark.start() + MAX_MARK_BYTES <= len(self._data)):
                return mark
            if self._is_at_end:
                return None
            last = mark.start() if mark else len(self._data) - MAX_MARK_BYTES
            self._searched = max(self._searched, last)
            self._read()

    def take(self, size: int, is_open: bool, is_closed: bool) -> Piece:
        """Cuts `size` bytes off the front of the window."""
        end = self._start + self._num_dropped + size
        data = self._head or bytes(self._data[:size])
        piece = Piece(self._start, end, data, is_open, is_closed, False)
        del self._data[:size]
        self._start, self._head, self._num_dropped = end, b"", 0
        return piece

    def raise_defect(self) -> None:
        """Raises: BrokenStream if the stream ended in it."""
        if self._broken is not None:
            is_bomb = self._broken.reason == "decompression_bomb"
            self._broken.partial = self._head or bytes(self._data[: HEAD_BYTES if is_bomb else None])
            raise self._broken

    def _read(self) -> None:
        if len(self._data) + self._num_dropped > self._max_bytes:
            self._drop()
        try:
            block = self._stream.read(BLOCK_BYTES)
        except BrokenStream as broken:  # raised once the marks before it are found
            self._broken, block = broken, b""
        self._data += block
        self._is_at_end = not block

    def _drop(self) -> None:
        """Keeps of a piece that is too large its head, and what may be the beginning of a mark."""
        self._head = self._head or bytes(self._data[:HEAD_BYTES])
        num_dropped = max(0, len(self._data) - MAX_MARK_BYTES)
        del self._data[:num_dropped]
        self._num_dropped += num_dropped
        self._searched = 0
