"""bzip2 streams. Their blocks, up to 900 kB of text each, begin at any bit: each is found, and decoded on its own.

A block is passed on only when its checksum is right, and a damaged one costs no other.

Source: the comments of bzip2's decompress.c and bzip2recover.c, which finds blocks in the same way.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterator
from typing import NamedTuple

from zlib_ng import zlib_ng

from finpile.config.limits import LimitsConfig
from finpile.sources.bytes.frames import PIECE_BYTES, Damaged, Lost, Truncated, WrongChecksum, take
from finpile.sources.bytes.streams import ByteStream

MARKS: tuple[bytes, ...] = tuple(b"BZh%d" % level for level in range(1, 10))
MAY_BE_PADDED = False

_BLOCK, _END = 0x314159265359, 0x177245385090
_MARK_BITS, _CRC_BITS = 48, 32
#: No block of 900 kB is compressed to more: codes have 20 bits at most, and tables come before them.
_MAX_BLOCK_BITS = 8 * 2_500_000
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def frame(source: ByteStream, limits: LimitsConfig) -> Iterator[bytes | Lost]:
    """The content of one stream."""
    header = take(source, 4)
    if header not in MARKS:
        raise Damaged("no bzip2 stream")
    bits = _Bits(source)
    combined, is_whole = 0, True
    try:
        while (mark := bits.number(0, _MARK_BITS)) == _BLOCK:
            crc = bits.number(_MARK_BITS, _CRC_BITS)
            combined = (combined << 1 | combined >> 31) & 0xFFFFFFFF ^ crc
            end = bits.next_mark()
            length = bits.length if end is None else end
            content, failure = _decode(header, bits.number(0, length), length, crc)
            yield from content
            if end is None:  # the input ends here
                bits.drop(length if content else 0)
                raise Damaged("no mark of the stream's end") if content else Truncated
            if failure:
                is_whole = False
                yield Lost(max(length // 8, 1), failure)
            bits.drop(length)
        if mark != _END:
            raise Damaged("no mark of a block or of the stream's end")
        stored = bits.number(_MARK_BITS, _CRC_BITS)
        bits.drop(_MARK_BITS + _CRC_BITS)
    finally:
        bits.give_back()
    if is_whole and stored != combined:
        raise WrongChecksum("the stream's checksum differs from that of its blocks")


def _decode(header: bytes, block: int, length: int, crc: int) -> tuple[list[bytes], str]:
    """A block's content if its checksum is right, and the defect of the block, or of the bytes behind it."""
    size = length + _MARK_BITS + _CRC_BITS
    number = (block << _MARK_BITS | _END) << _CRC_BITS | crc
    stream = header + (number << -size % 8).to_bytes((size + 7) // 8, "big")
    content, failure = _decoded(stream, PIECE_BYTES)
    if not failure:
        return content, ""
    # A failed call drops its decoded bytes: if the block itself is whole, ever smaller calls return all of it.
    for size in (1 << 12, 1 << 6, 1):
        content = [*content, *_decoded(stream, size, sum(map(len, content)))[0]]
    if _crc(content) == crc:
        return content, "a block cannot be found: the mark with which it begins is damaged"
    return [], f"a block cannot be decoded: {failure}"


def _decoded(stream: bytes, size: int, start: int = 0) -> tuple[list[bytes], str]:
    """What calls for `size` bytes each give from `start` on, and why the last one fails."""
    decoder = bz2.BZ2Decompressor()
    pieces: list[bytes] = []
    try:
        data = stream
        while start > 0:
            start -= len(decoder.decompress(data, start))
            data = b""
        while not decoder.eof:
            pieces.append(decoder.decompress(data, size))
            data = b""
            if not pieces[-1] and decoder.needs_input:
                return pieces, "it ends too early"
    except (OSError, EOFError, ValueError) as error:
        return pieces, str(error)
    return pieces, ""


def _crc(pieces: list[bytes]) -> int:
    """bzip2's checksum: the CRC-32 of zlib with the bits of each byte, and of the result, in the other order."""
    crc = 0
    for piece in pieces:
        crc = zlib_ng.crc32(piece.translate(_REVERSED), crc)
    return int(f"{crc:032b}"[::-1], 2)


class _Bits:
    """The bits of a stream from a position on, which moves forward."""

    def __init__(self, source: ByteStream) -> None:
        self._source = source
        self._data = bytearray()
        self._first = 0  # the position's bit in the first byte

    @property
    def length(self) -> int:
        """Bits read from the source so far."""
        return 8 * len(self._data) - self._first

    def number(self, start: int, count: int) -> int:
        """The bits from `start` on as a number.

        Raises: Truncated if there are fewer.
        """
        while self.length < start + count:
            if not self._read():
                raise Truncated
        start += self._first
        end = start + count
        chunk = int.from_bytes(self._data[start // 8 : (end + 7) // 8], "big") >> -end % 8
        return chunk & ((1 << count) - 1)

    def drop(self, count: int) -> None:
        """Moves the position."""
        self._first += count
        del self._data[: self._first // 8]
        self._first %= 8

    def next_mark(self) -> int | None:
        """The start of the next mark behind the one at the position; None if the input ends before it.

        Raises: Damaged if no block is that long.
        """
        searched = 0
        while True:
            found = [place for core in _CORES for place in self._places(core, searched)]
            if found:
                return min(found)
            if self.length > _MAX_BLOCK_BITS:
                raise Damaged("no mark of a block where one must be")
            searched = max(len(self._data) - 8, 0)
            if not self._read():
                return None

    def _places(self, core: _Core, start: int) -> Iterator[int]:
        """The first place of a mark from the byte `start` on, if any."""
        at = self._data.find(core.inner, start)
        while at >= 0:
            place = 8 * at - core.bits_before - self._first
            if place > 0 and place + _MARK_BITS <= self.length and self.number(place, _MARK_BITS) == core.mark:
                yield place
                return
            at = self._data.find(core.inner, at + 1)

    def give_back(self) -> None:
        """Puts what is left back into the source, from the next whole byte on."""
        self._source.unread(bytes(self._data[(self._first + 7) // 8 :]))
        self._data.clear()

    def _read(self) -> bool:
        block = self._source.read1()
        self._data += block
        return bool(block)


class _Core(NamedTuple):
    """A mark that begins at a certain bit of a byte."""

    mark: int
    inner: bytes
    """Those of its bytes that are whole."""
    bits_before: int
    """Of the mark, before these."""


def _core(mark: int, bits_before: int) -> _Core:
    whole = (_MARK_BITS - bits_before) // 8
    inner = mark >> (_MARK_BITS - bits_before - 8 * whole) & ((1 << 8 * whole) - 1)
    return _Core(mark, inner.to_bytes(whole, "big"), bits_before)


_CORES = tuple(_core(mark, bits) for mark in (_BLOCK, _END) for bits in range(8))
