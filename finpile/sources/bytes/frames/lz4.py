"""LZ4 frames: version 1.6.4 of the LZ4 Frame Format; also skippable frames, and legacy ones (`lz4 -l`).

The blocks of a frame are found here and decoded one at a time, so that a damaged block costs no other one if blocks
are independent, as `lz4` writes them by default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lz4.block
import lz4.frame

from finpile.config.limits import LimitsConfig
from finpile.sources.bytes.frames import Damaged, Lost, Truncated, WrongChecksum, take
from finpile.sources.bytes.frames.zstd import skip
from finpile.sources.bytes.streams import ByteStream

_MARK = b"\x04\x22\x4d\x18"
_LEGACY_MARK = b"\x02\x21\x4c\x18"
_SKIPPABLE = tuple(bytes([0x50 + number]) + b"\x2a\x4d\x18" for number in range(16))
MARKS: tuple[bytes, ...] = (_MARK, _LEGACY_MARK)
MAY_BE_PADDED = False

_INDEPENDENT, _BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM, _DICTIONARY = 0x20, 0x10, 8, 4, 1
_STORED_BIT = 1 << 31
_SMALLEST_BLOCK_BYTES = 64 << 10
_LEGACY_BLOCK_BYTES = 8 << 20
_ERRORS = (RuntimeError, ValueError)
_LEGACY_ERRORS = (lz4.block.LZ4BlockError, ValueError)


def frame(source: ByteStream, limits: LimitsConfig) -> Iterator[bytes | Lost]:
    """The content of one frame; none of a skippable one."""
    mark = take(source, len(_MARK))
    if mark in _SKIPPABLE:
        skip(source, int.from_bytes(take(source, 4), "little"))
    elif mark == _LEGACY_MARK:
        yield from _legacy(source)
    elif mark == _MARK:
        yield from _blocks(source)
    else:
        raise Damaged("no LZ4 frame")


def _blocks(source: ByteStream) -> Iterator[bytes | Lost]:
    descriptor = take(source, 2)
    flags, max_bytes = descriptor[0], _SMALLEST_BLOCK_BYTES << 2 * max((descriptor[1] >> 4 & 7) - 4, 0)
    rest = take(source, 8 * bool(flags & _CONTENT_SIZE) + 4 * bool(flags & _DICTIONARY) + 1)
    decoder = _decoder(_MARK + descriptor + rest)
    is_whole = True
    while True:
        head = take(source, 4)
        size = int.from_bytes(head, "little") & ~_STORED_BIT
        if not size:
            break
        if size > max_bytes:
            raise Damaged("no header of a block")
        body = take(source, size + 4 * bool(flags & _BLOCK_CHECKSUM))
        try:
            piece = decoder.decompress(head + body, max_bytes)  # without a bound it keeps output back
        except _ERRORS as error:
            if not flags & _INDEPENDENT:
                source.unread(body)
                raise Damaged(str(error)) from error
            yield Lost(len(head) + len(body), f"a block cannot be decoded: {error}")
            decoder, is_whole = _decoder(_without_content_checks(descriptor)), False
            continue
        if piece:
            yield piece
    checksum = take(source, 4) if flags & _CONTENT_CHECKSUM else b""
    if is_whole:
        try:
            decoder.decompress(head + checksum)
        except _ERRORS as error:
            raise WrongChecksum(str(error)) from error


def _decoder(header: bytes) -> Any:
    decoder = lz4.frame.LZ4FrameDecompressor()
    try:
        decoder.decompress(header)
    except _ERRORS as error:
        raise Damaged(str(error)) from error
    return decoder


def _without_content_checks(descriptor: bytes) -> bytes:
    """A frame header for blocks of the same kind, of which some may be missing."""
    flags, block_size_id = descriptor[0], descriptor[1] >> 4 & 7
    writer = lz4.frame.LZ4FrameCompressor(
        block_size=block_size_id, block_linked=False, block_checksum=bool(flags & _BLOCK_CHECKSUM)
    )
    return bytes(writer.begin())


def _legacy(source: ByteStream) -> Iterator[bytes | Lost]:
    """Blocks of up to 8 MiB, each on its own, up to the next frame or the end."""
    while True:
        head = source.read(4)
        if not head or head in (*MARKS, *_SKIPPABLE):
            source.unread(head)
            return
        size = int.from_bytes(head, "little")
        if len(head) < 4:
            source.unread(head)
            raise Truncated
        if size > _LEGACY_BLOCK_BYTES + (_LEGACY_BLOCK_BYTES >> 7):  # what does not compress becomes a little longer
            raise Damaged("no header of a block")
        body = take(source, size)
        try:
            yield lz4.block.decompress(body, uncompressed_size=_LEGACY_BLOCK_BYTES)
        except _LEGACY_ERRORS as error:
            yield Lost(len(head) + size, f"a block cannot be decoded: {error}")
