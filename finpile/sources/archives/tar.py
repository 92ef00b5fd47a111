"""Members of .tar archives, whole, cut or damaged.

Behind a damaged header the walk continues with the next block of 512 bytes whose checksum is that of a header.
Behind a gap in the compressed bytes that the archive is read from, blocks begin anywhere, and the next header is found
by its magic.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from typing import IO, Any, cast

from finpile.config.limits import HEAD_BYTES, LimitsConfig
from finpile.sources.archives.walk import Expansion, File, Gap, Item, Structure, readable_name
from finpile.sources.bytes.streams import BLOCK_BYTES, Block, BrokenStream, ByteStream

_BLOCK = 512
_ZEROS = bytes(_BLOCK)
_MAGIC, _MAGIC_AT = b"ustar", 257
_CHECKSUM = slice(148, 156)
#: Long names and pax records; none that is in use comes near it.
_MAX_EXTENSION_BYTES = 1 << 20
#: `tarfile` looks for numbers in pax records in time quadratic in the digits that follow each other.
_MANY_DIGITS = re.compile(rb"\d{256}")
#: GNU's volume labels, folder listings and long file lists: none is a file.
_NO_FILES = (b"V", b"D", b"N")
_HEADER_ERRORS = (tarfile.TarError, ValueError, OverflowError, LookupError, RecursionError)


def tar_items(stream: ByteStream, locator: str, limits: LimitsConfig) -> Iterator[Item]:
    """Files, gaps and structure, in the order of the archive.

    Raises: BrokenStream with `locator` if the archive is cut or none.
    """
    return _Tar(stream, locator, limits).items()


class _Shifted(Exception):
    """Bytes are missing in the stream: what follows need not begin at a block."""


class _Tar:
    """One walk."""

    def __init__(self, stream: ByteStream, locator: str, limits: LimitsConfig) -> None:
        self._stream = stream
        self._locator = locator
        self._limits = limits
        self._headers = _Headers(stream)
        self._num_members = 0
        self._has_end = False
        self._has_found_header = False  # behind a gap inside of a member
        self._gaps: list[Gap] = []  # of the stream, yet to be reported

    def items(self) -> Iterator[Item]:
        is_over = False
        while not is_over:
            start = self._stream.tell()
            try:
                block = self._take(_BLOCK)
                if len(block) < _BLOCK:
                    if block.strip(b"\0") or not self._has_end:
                        raise self._cut("ends without the archive's end mark")
                    yield Structure(len(block), "end mark")
                    is_over = True
                elif block == _ZEROS:
                    self._has_end = True
                    yield Structure(_BLOCK, "end mark")
                else:
                    self._stream.unread(block)
                    yield from self._entry(start)
            except tarfile.HeaderError as error:
                yield from self._lost(start, self._blocks_before_header(), f"no tar header: {error}")
            except _Shifted:
                yield from self._lost(start, self._bytes_before_header(), "bytes are missing before it")
            yield from self._gaps
            self._gaps.clear()

    def _entry(self, start: int) -> Iterator[Item]:
        """The file that begins here.

        Raises: HeaderError, _Shifted.
        """
        try:
            info = self._headers.next()
        except BrokenStream as broken:
            self._note(broken)
            raise _Shifted from broken
        self._num_members += 1
        self._has_end = False
        begin, end = self._stream.tell(), self._headers.end
        yield Structure(begin - start, "header")
        if info.isreg() or info.type not in (*tarfile.SUPPORTED_TYPES, *_NO_FILES):
            blocks = self._sparse(info, end) if info.issparse() else self._content(info.size)
            yield File(readable_name(info.name), blocks)
            for left in blocks:  # what the consumer left unread
                if isinstance(left, BrokenStream):
                    self._gaps.append(self._gap(left))
        if self._has_found_header:
            self._has_found_header = False
            return
        passed = 0
        while more := self._take(min(end - self._stream.tell(), BLOCK_BYTES)):
            passed += len(more)
        if info.issparse():
            passed = end - begin - info.size  # negative: the archive does not store the holes
        yield Structure(passed, "padding" if info.isreg() else "no file")

    def _content(self, size: int) -> Iterator[Block]:
        """A file's blocks. Behind a gap they end at the next header, wherever it begins."""
        while size > 0:
            try:
                block = self._stream.read(min(BLOCK_BYTES, size))
            except BrokenStream as broken:
                if not broken.can_resume:
                    raise
                self._stream.resume()
                yield broken
                if broken.skipped_bytes:
                    yield from self._bytes_before_header()
                    self._has_found_header = True
                    return
                continue
            if not block:
                raise self._cut(f"cut {size} bytes before a member's end")
            size -= len(block)
            yield block

    def _sparse(self, info: tarfile.TarInfo, end: int) -> Iterator[Block]:
        """A sparse file's blocks, holes included."""
        data = cast(IO[bytes], self._headers.archive.extractfile(info))
        expansion = Expansion(self._limits)
        stored = end - self._stream.tell()
        missing = info.size
        while missing > 0:
            try:
                block = data.read(min(BLOCK_BYTES, missing))
            except tarfile.ReadError as error:
                raise self._cut(str(error)) from error
            if not block:
                raise self._cut(f"cut {missing} bytes before a member's end")
            expansion.add(len(block), stored)
            missing -= len(block)
            yield block

    # --- behind damage

    def _lost(self, start: int, passed: Iterator[bytes], detail: str) -> Iterator[Item]:
        """The gap from `start` up to the next header, or to the zeros at the archive's end."""
        head = b""
        zeros = 0
        for data in passed:
            head += data[: HEAD_BYTES - len(head)]
            zeros = zeros + len(data) if not data.strip(b"\0") else 0
        is_end = self._is_at_end()
        if is_end and not self._num_members:
            raise BrokenStream("unreadable_file", self._locator, f"is no .tar file: {detail}")
        self._has_end = is_end and zeros >= _BLOCK
        num_bytes = self._stream.tell() - start - (zeros if self._has_end else 0)
        if num_bytes:
            cause = self._gaps.pop() if self._gaps else None
            where = f"{num_bytes} bytes from byte {start} on are in no member that can be read"
            detail = f"{cause.detail}; {where}" if cause else f"{detail}; {where}"
            yield Gap(self._place(start), cause.reason if cause else "corrupt_archive", detail, num_bytes, head)
        if self._has_end:
            yield Structure(zeros, "end mark")
        elif is_end:
            self._has_end = True  # the gap's row has the reason

    def _blocks_before_header(self) -> Iterator[bytes]:
        """The blocks up to the next header, or to the end."""
        while True:
            try:
                block = self._take(_BLOCK)
            except _Shifted:
                yield from self._bytes_before_header()
                return
            if _is_header(block):
                self._stream.unread(block)
                return
            if block:
                yield block
            if len(block) < _BLOCK:
                return

    def _bytes_before_header(self) -> Iterator[bytes]:
        """The bytes up to the next header, wherever it begins, or to the end."""
        data = b""
        while True:
            try:
                more = self._take(_BLOCK)
            except _Shifted:
                continue
            data += more
            place = _place_of_header(data)
            if place is not None:
                self._stream.unread(data[place:])
                data = data[:place]
            if place is not None or not more:
                if data:
                    yield data
                return
            if len(data) > _BLOCK:
                yield data[:-_BLOCK]
                data = data[-_BLOCK:]

    # --- the stream, and messages

    def _take(self, size: int) -> bytes:
        """The next bytes; fewer only at the end.

        Raises: _Shifted where bytes are missing.
        """
        data = b""
        while len(data) < size:
            try:
                more = self._stream.read(size - len(data))
            except BrokenStream as broken:
                self._note(broken)
                if broken.skipped_bytes:
                    self._stream.unread(data)
                    raise _Shifted from broken
                continue
            if not more:
                break
            data += more
        return data

    def _is_at_end(self) -> bool:
        while True:
            try:
                return not self._stream.peek(1)
            except BrokenStream as broken:
                self._note(broken)

    def _note(self, broken: BrokenStream) -> None:
        """Passes over a gap of the stream, to be reported.

        Raises: BrokenStream again if nothing follows it.
        """
        if not broken.can_resume:
            raise broken
        self._stream.resume()
        self._gaps.append(self._gap(broken))

    def _gap(self, broken: BrokenStream) -> Gap:
        return Gap(self._place(self._stream.tell()), broken.reason, broken.detail, 0)

    def _place(self, offset: int) -> str:
        return f"{self._locator}#{offset}/gap"

    def _cut(self, detail: str) -> BrokenStream:
        after = f"after {self._stream.tell()} bytes and {self._num_members} members"
        return BrokenStream("truncated_file", self._locator, f"{detail}, {after}")


class _Headers:
    """Reads headers, with all that belongs to them (long names, pax records, maps of sparse files), by `tarfile`."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.archive = tarfile.TarFile(fileobj=io.BytesIO(2 * _ZEROS), encoding="utf-8", errors="surrogateescape")
        self.archive.fileobj = cast(Any, self)

    def next(self) -> tarfile.TarInfo:
        """The header at the stream's position, which must be one.

        Raises: HeaderError if it is none; BrokenStream.
        """
        try:
            info = tarfile.TarInfo.fromtarfile(self.archive)
        except BrokenStream:
            raise
        except _HEADER_ERRORS as error:
            raise tarfile.HeaderError(str(error)) from error
        if info.size < 0 or self.end < self._stream.tell():
            raise tarfile.HeaderError(f"a size of {info.size}")
        return info

    @property
    def end(self) -> int:
        """Where the next header begins."""
        return int(self.archive.offset)

    # --- the file that `tarfile` reads from

    def read(self, size: int) -> bytes:
        if size > _MAX_EXTENSION_BYTES:
            raise tarfile.HeaderError(f"an extension of {size} bytes")
        data = self._stream.read(size)
        if size > _BLOCK and _MANY_DIGITS.search(data):
            raise tarfile.HeaderError("an extension of too many digits")
        return data

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, offset: int) -> int:
        return self._stream.seek(offset)


def _is_header(block: bytes) -> bool:
    """Whether a block is a header, by its checksum and its sizes."""
    if len(block) < _BLOCK or not block[_CHECKSUM].strip(b" \0").isdigit():
        return False
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except _HEADER_ERRORS:
        return False
    return info.size >= 0 and bool(info.name)


def _place_of_header(data: bytes) -> int | None:
    """Where the first header with a magic begins that is there as a whole."""
    at = data.find(_MAGIC, _MAGIC_AT)
    while at >= 0:
        if _is_header(data[at - _MAGIC_AT : at - _MAGIC_AT + _BLOCK]):
            return at - _MAGIC_AT
        at = data.find(_MAGIC, at + 1)
    return None
