"""gzip members: RFC 1952."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from zlib_ng import zlib_ng

from finpile.config.limits import LimitsConfig
from finpile.sources.bytes.frames import PIECE_BYTES, Damaged, Truncated, WrongChecksum, take
from finpile.sources.bytes.streams import ByteStream

MARKS: tuple[bytes, ...] = (b"\x1f\x8b\x08",)
MAY_BE_PADDED = True  # on tapes

_FIXED = struct.Struct("<3sBIBB")
_TRAILER = struct.Struct("<II")
_CHECKED, _EXTRA, _NAME, _COMMENT, _RESERVED = 2, 4, 8, 16, 0xE0
_MAX_NAME_BYTES = 1 << 16


def frame(source: ByteStream, limits: LimitsConfig) -> Iterator[bytes]:
    """The content of one member."""
    _pass_header(source)
    crc = size = 0
    for piece in inflate(source):
        crc, size = zlib_ng.crc32(piece, crc), size + len(piece)
        yield piece
    if _TRAILER.unpack(take(source, _TRAILER.size)) != (crc, size & 0xFFFFFFFF):
        raise WrongChecksum("incorrect data check: the content differs from what was compressed")


def _pass_header(source: ByteStream) -> None:
    mark, flags, *_ = _FIXED.unpack(take(source, _FIXED.size))
    if mark != MARKS[0] or flags & _RESERVED:
        raise Damaged("no gzip header")
    if flags & _EXTRA:
        take(source, int.from_bytes(take(source, 2), "little"))
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            _pass_name(source)
    if flags & _CHECKED:
        take(source, 2)


def _pass_name(source: ByteStream) -> None:
    """Passes over text that ends in a zero byte."""
    for _ in range(_MAX_NAME_BYTES):
        if take(source, 1) == b"\0":
            return
    raise Damaged(f"a name of more than {_MAX_NAME_BYTES} bytes in the gzip header")


def inflate(source: ByteStream) -> Iterator[bytes]:
    """The content of one deflate stream without header and trailer (RFC 1951), up to the first bit that breaks it.

    Raises: Damaged, Truncated.
    """
    decoder = zlib_ng.decompressobj(-zlib_ng.MAX_WBITS)
    data = b""
    has_more = False
    while not decoder.eof:
        if not data and not has_more:
            data = source.read1()
            if not data:
                raise Truncated
        before = decoder.copy()
        try:
            piece = decoder.decompress(data, PIECE_BYTES)
        except zlib_ng.error as error:
            # zlib drops what the failed call had decoded
            piece, rest = _decodable(before, data)
            if piece:
                yield piece
            source.unread(rest)
            raise Damaged(str(error)) from error
        data, has_more = decoder.unconsumed_tail, len(piece) == PIECE_BYTES
        if piece:
            yield piece
    source.unread(decoder.unused_data)


def _decodable(decoder: Any, data: bytes) -> tuple[bytes, bytes]:
    """What the longest part that can be decoded gives, from the front, and the bytes behind that part."""
    pieces: list[bytes] = []
    step = len(data)
    while step:
        trial = decoder.copy()
        try:
            pieces.append(trial.decompress(data[:step]))
        except zlib_ng.error:
            step //= 2
            continue
        decoder, data = trial, data[step:]
        step = min(step, len(data))
    return b"".join(pieces), data
