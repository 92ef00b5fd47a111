"""Byte streams that never let a cut or corrupt file pass for a whole one.

A reader of the standard library answers a cut file with fewer bytes, or drops what it had in hand when it raises. A
`ByteStream` returns every byte before the defect, raises `BrokenStream`, and continues behind the gap if its format
can be entered again.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

from finpile.config.limits import HEAD_BYTES, LimitsConfig
from finpile.errors import InputError

#: Bytes that are read, or decoded, at once.
BLOCK_BYTES = 1 << 16
#: Of the bytes that were read last, a stream can return this many once more.
RECALLED_BYTES = 1 << 20


#: Reasons of what exceeds a limit: of its bytes only the head is kept.
LIMIT_REASONS = ("too_large", "decompression_bomb")


class BrokenStream(InputError):
    """The bytes end or become undecodable before the end of their format, or they exceed a limit.

    `partial` holds the bytes of the record that was being read, of a decompression bomb its first 64 KiB; `locator`
    names the file or member with the defect.
    """

    def __init__(
        self, reason: str, locator: str, detail: str, *, can_resume: bool = False, skipped_bytes: int = 0
    ) -> None:
        super().__init__(f"{locator}: {detail}")
        self.reason = reason
        self.locator = locator
        self.detail = detail
        self.partial = b""
        self.can_resume = can_resume
        """Whether bytes follow behind the gap: `ByteStream.resume` continues with them."""
        self.skipped_bytes = skipped_bytes
        """Bytes of the outer level (compressed file, archive) that were lost. 0: a checksum is wrong, and none is."""


@dataclass(frozen=True, slots=True)
class FrameStart:
    """The next byte is the first of a compressed frame (gzip member, zstd frame, xz or bz2 stream)."""

    stored_offset: int
    """Where the frame begins in the compressed file."""


#: An item of a stream: bytes, a gap between them, or the start of a compressed frame.
Block = bytes | BrokenStream | FrameStart


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A record above `limits.record`, which the stream has passed over."""

    head: bytes
    """Its first 64 KiB."""
    num_bytes: int
    """All of it."""

    def detail(self, limits: LimitsConfig) -> str:
        """For the ledger."""
        return f"a record of {self.num_bytes} bytes, more than limits.record ({limits.record_bytes}); its head is kept"


class Readable(Protocol):
    """The interface of a stream that blocks are read from."""

    def read(self, size: int = -1, /) -> bytes: ...


class ByteStream(io.BufferedIOBase):
    """A forward-only binary stream over blocks of bytes.

    At a `BrokenStream`, raised by `blocks` or among them, `read(n)` first returns all that is left; `read()` and
    `readline()`, whose result would be taken for whole, raise it with that rest as its `partial`. It is raised again
    by each further read, until `resume()`. `tell()` counts the bytes returned, over gaps too.

    No result of `read()`, `readline()` or `lines()` is larger than `limits.record`.
    """

    def __init__(
        self, blocks: Iterator[Block], locator: str = "", limits: LimitsConfig | None = None, start: int = 0
    ) -> None:
        self.limits = limits or LimitsConfig()
        self.head = b""
        """What a dump has before its records, and readers need for each of them; who opens a range of it sets it."""
        self.dictionary = b""
        """What the compressed frames of this stream share; a codec sets it."""
        self._locator = locator
        self._record_bytes = self.limits.record_bytes
        self._blocks = blocks
        self._block = b""
        self._at = 0  # next byte of `_block`
        self._before = start  # bytes before `_block`
        self._broken: BrokenStream | None = None
        self._recent: deque[tuple[int, bytes]] = deque()  # (offset of the first byte, block)
        self._frames: list[tuple[int, int]] = []  # (offset of the first byte, stored offset)
        self._keeps_frames = False

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._before + self._at

    def peek(self, size: int = 0, /) -> bytes:
        """Some of the next bytes, at most `size` if that is not 0; none only at the end."""
        return self._block[self._at : self._at + size if size else None] if self._fill() else b""

    def unread(self, data: bytes) -> None:
        """Puts bytes back that were read last."""
        start = self._at - len(data)
        if start >= 0 and self._block.startswith(data, start):  # spares a copy of the block
            self._at = start
            return
        self._before = self.tell() - len(data)
        self._block, self._at = data + self._block[self._at :], 0

    def stored_offset(self, position: int) -> int:
        """Where the frame of a byte that was read begins in the compressed file; `position` itself in a plain file.

        Positions must ascend, beginning with byte 0 before the first read: frames before an answer are forgotten,
        and all but the last frame until the first call.
        """
        self._keeps_frames = True
        passed = bisect_right(self._frames, position, key=itemgetter(0))
        del self._frames[: max(passed - 1, 0)]
        return self._frames[0][1] if passed else position

    def place(self, position: int) -> str:
        """A position for a locator: its offset in a plain file and in the first frame of a compressed one.

        In another frame it is `stored+offset`: where the frame begins in the compressed file, and the offset in it, so
        that it does not depend on how many frames are read. Positions must ascend, as those of `stored_offset`.
        """
        stored = self.stored_offset(position)
        if not self._frames or not stored or position < self._frames[0][0]:
            return str(position)
        return f"{stored}+{position - self._frames[0][0]}"

    def recall(self, start: int, end: int) -> bytes:
        """The bytes `start:end`, which were read before; empty if the first of them is no longer held."""
        if not self._recent or start < self._recent[0][0]:
            return b""
        parts = (block[max(0, start - first) : max(0, end - first)] for first, block in self._recent)
        return b"".join(parts)

    def resume(self) -> None:
        """Lets reads continue behind the gap that was raised last.

        Raises: BrokenStream again if nothing follows it (`can_resume` is false).
        """
        if self._broken is not None and not self._broken.can_resume:
            raise self._broken
        self._broken = None

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Skips forward; stops at the end."""
        if whence != io.SEEK_SET or offset < self.tell():
            raise io.UnsupportedOperation("this stream only moves forward")
        while self.tell() < offset and self._fill():
            self._at = min(len(self._block), offset - self._before)
        return self.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return self._whole(self.read_all(), can_resume=False)
        parts: list[bytes] = []
        missing = size
        while missing > 0:
            try:
                if not self._fill():
                    break
            except BrokenStream:
                if parts:
                    break  # raised again by the next call
                raise
            piece = self._block[self._at : self._at + missing]
            self._at += len(piece)
            missing -= len(piece)
            parts.append(piece)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read1(self, size: int = -1, /) -> bytes:
        if not self._fill():
            return b""
        return self.read(min(size, len(self._block) - self._at) if size >= 0 else len(self._block) - self._at)

    def readline(self, size: int | None = -1, /) -> bytes:
        if size is not None and size >= 0:
            return super().readline(size)
        return self._whole(self._line(), can_resume=True)

    def __iter__(self) -> Iterator[bytes]:
        while line := self.readline():
            yield line

    def lines(self) -> Iterator[bytes | TooLarge]:
        """The rest by lines, their ends included. A line above `limits.record` is passed over, up to its end."""
        while line := self._line():
            yield line

    def read_all(self) -> bytes | TooLarge:
        """The rest; above `limits.record` it is passed over."""
        return self._read_until(None)

    def _line(self) -> bytes | TooLarge:
        end = self._block.find(b"\n", self._at) + 1
        if end and end - self._at <= self._record_bytes:
            line = self._block[self._at : end]
            self._at = end
            return line
        return self._read_until(b"\n")

    def _read_until(self, mark: bytes | None) -> bytes | TooLarge:
        parts: list[bytes] = []
        size = 0
        is_large = False
        try:
            while self._fill():
                end = self._block.find(mark, self._at) + 1 if mark else 0
                piece = self._block[self._at : end or len(self._block)]
                self._at += len(piece)
                size += len(piece)
                if not is_large:
                    parts.append(piece)
                    if size > self._record_bytes:
                        is_large, parts = True, [_head(parts)]
                if end:
                    break
        except BrokenStream as broken:
            broken.partial = _head(parts) if broken.reason in LIMIT_REASONS else b"".join(parts)
            raise
        return TooLarge(parts[0], size) if is_large else b"".join(parts)

    def _whole(self, found: bytes | TooLarge, can_resume: bool) -> bytes:
        if isinstance(found, bytes):
            return found
        broken = BrokenStream("too_large", self._locator, found.detail(self.limits), can_resume=can_resume)
        broken.partial = found.head
        raise broken

    def _fill(self) -> bool:
        """Whether there is a next byte."""
        while self._at >= len(self._block):
            if self._broken is not None:
                raise self._broken
            self._before, self._at = self.tell(), 0
            self._block = b""
            try:
                item = next(self._blocks, None)
            except BrokenStream as broken:
                item = broken
            if item is None:
                return False
            if isinstance(item, BrokenStream):
                self._broken = item
                raise item
            if isinstance(item, FrameStart):
                if not self._keeps_frames:
                    self._frames.clear()
                self._frames.append((self._before, item.stored_offset))
            else:
                self._block = item
                self._remember(item)
        return True

    def _remember(self, block: bytes) -> None:
        self._recent.append((self._before, block))
        end = self._before + len(block)
        while len(self._recent) > 1 and end - self._recent[1][0] >= RECALLED_BYTES:
            self._recent.popleft()


def _head(parts: list[bytes]) -> bytes:
    head = b""
    for part in parts:
        head += part[: HEAD_BYTES - len(head)]
        if len(head) >= HEAD_BYTES:
            break
    return head


def blocks_of(stream: Readable, locator: str) -> Iterator[Block]:
    """The stream's bytes in blocks, and its gaps. A failing read (disk, network) is a `BrokenStream`."""
    while True:
        try:
            block = stream.read(BLOCK_BYTES)
        except BrokenStream as broken:
            if not isinstance(stream, ByteStream) or not broken.can_resume:
                raise
            stream.resume()
            yield broken
            continue
        except OSError as error:
            raise BrokenStream("unreadable_file", locator, f"reading failed: {error}") from error
        if not block:
            return
        yield block
