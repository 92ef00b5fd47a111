"""Zstandard frames, and skippable ones: RFC 8878 §3.1; the dictionary in front of a .warc.zst.

The blocks of a frame are found here and decoded one at a time: a block never gives more than 128 KiB, however far it
expands, and what precedes a damaged one is known.
"""

from __future__ import annotations

from collections.abc import Iterator

import zstandard

from finpile.config.limits import LimitsConfig
from finpile.sources.bytes.frames import Damaged, Truncated, WrongChecksum, take, window_too_large
from finpile.sources.bytes.streams import BLOCK_BYTES, ByteStream

_MARK = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = tuple(bytes([0x50 + number]) + b"\x2a\x4d\x18" for number in range(16))
_DICTIONARY_MARK, _DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18", b"\x37\xa4\x30\xec"
_MAX_DICTIONARY_BYTES = 8 << 20
MARKS: tuple[bytes, ...] = (_MARK,)
MAY_BE_PADDED = False

_MAX_BLOCK_BYTES = 128 << 10
_RLE, _RESERVED = 1, 3
_SMALLEST_WINDOW_LOG = 10
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)


def frame(source: ByteStream, limits: LimitsConfig) -> Iterator[bytes]:
    """The content of one frame; none of a skippable one."""
    mark = take(source, len(_MARK))
    if mark in _SKIPPABLE:
        size = int.from_bytes(take(source, 4), "little")
        if mark == _DICTIONARY_MARK and size <= _MAX_DICTIONARY_BYTES:
            source.dictionary = _dictionary(take(source, size)) or source.dictionary
        else:
            skip(source, size)
        return
    if mark != _MARK:
        raise Damaged("no Zstandard frame")
    header, has_checksum = _header(source, limits)
    known = zstandard.ZstdCompressionDict(source.dictionary) if source.dictionary else None
    decoder = zstandard.ZstdDecompressor(dict_data=known, max_window_size=limits.window_bytes).decompressobj()
    try:
        decoder.decompress(mark + header)
    except zstandard.ZstdError as error:
        raise Damaged(str(error)) from error
    is_last = False
    while not is_last:
        head = take(source, 3)
        fields = int.from_bytes(head, "little")
        is_last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
        if kind == _RESERVED or size > _MAX_BLOCK_BYTES:
            raise Damaged("no header of a block")
        body = take(source, 1 if kind == _RLE else size)
        try:
            piece = decoder.decompress(head + body)
        except zstandard.ZstdError as error:
            source.unread(body)
            raise Damaged(str(error)) from error
        if piece:
            yield piece
    if has_checksum:
        try:
            decoder.decompress(take(source, 4))
        except zstandard.ZstdError as error:
            raise WrongChecksum(str(error)) from error


def _dictionary(data: bytes) -> bytes:
    """The dictionary that a skippable frame holds, compressed or not; empty if it holds something else.

    Source: https://iipc.github.io/warc-specifications/specifications/warc-zstd/
    """
    if data.startswith(_MARK):
        try:
            data = zstandard.ZstdDecompressor().decompress(data, max_output_size=_MAX_DICTIONARY_BYTES)
        except zstandard.ZstdError:
            return b""
    return data if data.startswith(_DICTIONARY_MAGIC) else b""


def _header(source: ByteStream, limits: LimitsConfig) -> tuple[bytes, bool]:
    """The frame header, and whether a checksum ends the frame: RFC 8878 §3.1.1.1."""
    descriptor = take(source, 1)
    flags = descriptor[0]
    is_single, has_checksum = bool(flags & 0x20), bool(flags & 4)
    if flags & 8:
        raise Damaged("a reserved bit of the frame header is set")
    size_of_content = _CONTENT_SIZE_BYTES[flags >> 6] or int(is_single)
    rest = take(source, int(not is_single) + _DICTIONARY_ID_BYTES[flags & 3] + size_of_content)
    content_bytes = int.from_bytes(rest[len(rest) - size_of_content :], "little") + 256 * (size_of_content == 2)
    window = content_bytes if is_single else _window_bytes(rest[0])
    if window > limits.window_bytes:
        raise window_too_large(window, limits)
    return descriptor + rest, has_checksum


def _window_bytes(descriptor: int) -> int:
    base = 1 << (_SMALLEST_WINDOW_LOG + (descriptor >> 3))
    return base + (base >> 3) * (descriptor & 7)


def skip(source: ByteStream, size: int) -> None:
    """Passes over the content of a skippable frame.

    Raises: Truncated
    """
    while size:
        block = source.read(min(size, BLOCK_BYTES))
        if not block:
            raise Truncated
        size -= len(block)
