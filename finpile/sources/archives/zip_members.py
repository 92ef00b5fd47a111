"""One member of a .zip archive: its local header, and its content, decoded within limits and checked.

Source: PKWARE's APPNOTE.TXT, to whose sections comments refer.
"""

from __future__ import annotations

import lzma
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import BinaryIO

from zlib_ng import zlib_ng

from finpile.config.limits import RATIO_FREE_BYTES, LimitsConfig
from finpile.sources.archives.walk import Expansion, MemberDefect
from finpile.sources.bytes.frames import (
    PIECE_BYTES,
    Damaged,
    Lost,
    Truncated,
    WindowTooLarge,
    WrongChecksum,
    bzip2,
    take,
    window_too_large,
    zstd,
)
from finpile.sources.bytes.frames.gzip import inflate
from finpile.sources.bytes.streams import BLOCK_BYTES, ByteStream

LOCAL_MARK, DESCRIPTOR_MARK = b"PK\3\4", b"PK\7\10"
ENCRYPTED, HAS_DESCRIPTOR, UTF8 = 1, 8, 0x800  # flags: 4.4.4

_LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")  # 4.3.7
LOCAL_BYTES = _LOCAL_HEADER.size
_ZIP64_EXTRA, _IN_ZIP64 = 1, 0xFFFFFFFF  # 4.5.3
_STORED, _DEFLATED, _BZIP2, _LZMA, _ZSTD = 0, 8, 12, 14, 93  # 4.4.5
_NEWEST_VERSION = 63  # 4.4.3
_NUM_BOMBS = 16
#: Of stored members, that are looked for: bounds the memory.
_NUM_DESCRIPTORS = 1 << 20
_MAX_NAME_BYTES = 4096
_DAMAGE = (Damaged, Truncated, WrongChecksum, WindowTooLarge, lzma.LZMAError)


@dataclass(frozen=True, slots=True)
class Entry:
    """The facts about a member in a header."""

    name: str
    name_bytes: int
    start: int
    """Of its data, in the archive."""
    method: int
    stored_bytes: int | None
    """Null if only a descriptor behind the data holds it, with the checksum and the size."""
    size: int | None
    crc: int | None
    flags: int
    is_plausible: bool = True
    """Whether the header's own fields are ones that a writer of archives gives."""

    def end(self, size: int) -> int:
        """Of its data, in an archive of `size` bytes."""
        return size if self.stored_bytes is None else self.start + self.stored_bytes


class ClusterMembers:
    """Reads local headers and the data behind them."""

    def __init__(self, file: BinaryIO, limits: LimitsConfig) -> None:
        self._file = file
        self._limits = limits
        self._num_out = 0
        self._num_checked = 0  # bounded as what is given, and apart from it
        self._num_bombs = 0
        self.size = file.seek(0, 2)
        self.decoded_end = 0
        """The end of the data that were decoded last."""

    def bytes_at(self, offset: int, count: int) -> bytes:
        """Fewer at the end."""
        self._file.seek(offset)
        return self._file.read(count)

    def places(self, mark: bytes, start: int, end: int) -> Iterator[int]:
        """The places of `mark` in `start:end`."""
        for position in range(start, end, BLOCK_BYTES):
            block = self.bytes_at(position, min(BLOCK_BYTES + len(mark) - 1, end - position))
            place = block.find(mark)
            while place >= 0:
                yield position + place
                place = block.find(mark, place + 1)

    def find(self, mark: bytes, start: int, end: int) -> int | None:
        """The first place of `mark` in `start:end`."""
        return next(self.places(mark, start, end), None)

    def local(self, offset: int) -> Entry | None:
        """The local header at `offset`; null if it is cut. Its mark is not checked."""
        head = self.bytes_at(offset, LOCAL_BYTES)
        if len(head) < LOCAL_BYTES:
            return None
        _, version, flags, method, _, _, crc, stored, size, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(head)
        rest = self.bytes_at(offset + LOCAL_BYTES, name_bytes + extra_bytes)
        if _IN_ZIP64 in (stored, size):
            size, stored = _zip64_sizes(rest[name_bytes:]) or (size, stored)
        is_known = not flags & HAS_DESCRIPTOR or stored > 0
        entry = Entry(
            name=rest[:name_bytes].decode("utf-8" if flags & UTF8 else "cp437", "surrogateescape"),
            name_bytes=name_bytes,
            start=offset + LOCAL_BYTES + name_bytes + extra_bytes,
            method=method,
            stored_bytes=stored if is_known else None,
            size=size if is_known else None,
            crc=crc if not flags & HAS_DESCRIPTOR or crc else None,
            flags=flags,
            is_plausible=version & 0xFF <= _NEWEST_VERSION
            and method in (_STORED, _DEFLATED, _BZIP2, _LZMA, _ZSTD)
            and 0 < name_bytes <= _MAX_NAME_BYTES
            and len(rest) == name_bytes + extra_bytes
            and b"\0" not in rest[:name_bytes],
        )
        return self._measured(entry) if entry.stored_bytes is None and method == _STORED else entry

    def _measured(self, entry: Entry) -> Entry:
        """A stored member whose length is only in its descriptor: one that holds its own distance from the data."""
        place = self._descriptors.get(entry.start)
        if place is None:
            return replace(entry, is_plausible=False)
        return replace(
            entry, stored_bytes=place - entry.start, size=place - entry.start, crc=self._descriptor_crc(place)
        )

    @cached_property
    def _descriptors(self) -> dict[int, int]:
        """The place of the first descriptor that holds its own distance from an offset, by this offset."""
        found: dict[int, int] = {}
        for place in self.places(DESCRIPTOR_MARK, 0, self.size):
            start = place - int.from_bytes(self.bytes_at(place + len(DESCRIPTOR_MARK), 8)[4:], "little")
            if start > LOCAL_BYTES:
                found.setdefault(start, place)
            if len(found) == _NUM_DESCRIPTORS:
                break
        return found

    def is_whole(self, entry: Entry) -> bool:
        """Whether the entry gives content with its checksum."""
        before, self._num_out = self._num_out, self._num_checked
        try:
            for piece in self.content(entry):
                self._num_checked += len(piece)
        except MemberDefect:
            return False
        finally:
            self._num_out = before
        return True

    def content(self, entry: Entry) -> Iterator[bytes]:
        """What a member holds, up to the first defect.

        Raises: MemberDefect
        """
        expansion = Expansion(self._limits)
        crc = num_out = 0
        source = ByteStream(self._section(entry.start, entry.end(self.size)))
        try:
            for piece in self._decoded(entry, source):
                crc, num_out = zlib_ng.crc32(piece, crc), num_out + len(piece)
                self._bound(expansion, len(piece), source.tell(), num_out)
                yield piece
        except _DAMAGE as error:
            problem = str(error) or "it is cut"
            raise MemberDefect("corrupt_archive", problem + self._delivered(entry, num_out)) from error
        self._num_out += num_out
        self.decoded_end = entry.start + source.tell()
        expected = self._descriptor_crc(self.decoded_end) if entry.crc is None else entry.crc
        if expected not in (None, crc) or entry.size not in (None, num_out):
            problem = f"bad CRC-32 or size: its checksum is {crc:08x}, not {expected or 0:08x}"
            raise MemberDefect("corrupt_archive", problem + self._delivered(entry, num_out))

    def _delivered(self, entry: Entry, num_out: int) -> str:
        if entry.size is None:
            return f"; {num_out} bytes were decoded"
        return f"; {num_out} bytes were decoded, {max(entry.size - num_out, 0)} of its {entry.size} bytes are missing"

    def _bound(self, expansion: Expansion, piece_bytes: int, stored_bytes: int, num_out: int) -> None:
        """Bounds what a member gives, and what all do: overlapping members expand the same bytes many times.

        All together may give twice what one may. A few bombs do not count, so that the members beside them are read.

        Raises: MemberDefect
        """
        try:
            expansion.add(piece_bytes, stored_bytes)
        except MemberDefect:
            self._num_bombs += 1
            self._num_out += num_out if self._num_bombs > _NUM_BOMBS else 0
            raise
        if self._num_out + num_out > 2 * max(RATIO_FREE_BYTES, self._limits.ratio * self.size):
            self._num_out += num_out
            detail = f"the archive of {self.size} bytes expands to more than {self._num_out}: limits.ratio is "
            raise MemberDefect("decompression_bomb", f"{detail}{self._limits.ratio}")

    def _descriptor_crc(self, offset: int) -> int | None:
        """The checksum in a descriptor that has its mark: 4.3.9."""
        found = self.bytes_at(offset, 8)
        return int.from_bytes(found[4:], "little") if found[:4] == DESCRIPTOR_MARK and len(found) == 8 else None

    def _decoded(self, entry: Entry, source: ByteStream) -> Iterator[bytes]:
        if entry.flags & ENCRYPTED:
            raise MemberDefect("corrupt_archive", "it is encrypted")
        if entry.method == _DEFLATED:
            yield from inflate(source)
        elif entry.method == _STORED:
            yield from iter(source.read1, b"")
        elif entry.method in (_BZIP2, _ZSTD):
            for item in (bzip2 if entry.method == _BZIP2 else zstd).frame(source, self._limits):
                if isinstance(item, Lost):
                    raise Damaged(item.detail)
                yield item
        elif entry.method == _LZMA:
            yield from _unlzma(source, self._limits)
        else:
            raise MemberDefect("corrupt_archive", f"compression method {entry.method} is not known")

    def _section(self, start: int, end: int) -> Iterator[bytes]:
        while block := self.bytes_at(start, min(BLOCK_BYTES, end - start)) if start < end else b"":
            start += len(block)
            yield block


def _zip64_sizes(extra: bytes) -> tuple[int, int] | None:
    """Size and stored size in a local header's Zip64 field: 4.5.3."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == _ZIP64_EXTRA and size >= 16 and len(extra) >= 20:
            full, stored = struct.unpack_from("<QQ", extra, 4)
            return full, stored
        extra = extra[4 + size :]
    return None


def _unlzma(source: ByteStream, limits: LimitsConfig) -> Iterator[bytes]:
    """5.8.8: version, size of the properties, properties, LZMA data with or without an end mark."""
    take(source, 2)
    properties = take(source, int.from_bytes(take(source, 2), "little"))
    if len(properties) != 5 or properties[0] >= 225:
        raise Damaged("no properties of LZMA data")
    dict_size = int.from_bytes(properties[1:], "little")
    if dict_size > limits.window_bytes:
        raise window_too_large(dict_size, limits)
    bits = properties[0]
    filters = [{"id": lzma.FILTER_LZMA1, "lc": bits % 9, "lp": bits // 9 % 5, "pb": bits // 45, "dict_size": dict_size}]
    decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)
    while not decoder.eof:
        data = source.read1() if decoder.needs_input else b""
        if decoder.needs_input and not data:
            return
        if piece := decoder.decompress(data, PIECE_BYTES):
            yield piece
