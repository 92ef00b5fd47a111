"""xz streams: The .xz File Format."""

from __future__ import annotations

import lzma
from collections.abc import Iterator

from finpile.config.limits import LimitsConfig
from finpile.sources.bytes.frames import PIECE_BYTES, Damaged, Truncated, WindowTooLarge
from finpile.sources.bytes.streams import BrokenStream, ByteStream

MARKS: tuple[bytes, ...] = (b"\xfd7zXZ\x00",)
MAY_BE_PADDED = True  # section 2.2

#: A failed call drops its decoded bytes, so each call is small.
_CALL_BYTES = 1 << 12
#: What liblzma needs beside the dictionary.
_DECODER_BYTES = 1 << 20


def frame(source: ByteStream, limits: LimitsConfig) -> Iterator[bytes]:
    """The content of one stream."""
    decoder = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=limits.window_bytes + _DECODER_BYTES)
    pieces: list[bytes] = []
    size = 0
    failure: Exception | None = None
    while failure is None and not decoder.eof:
        try:
            data = source.read1() if decoder.needs_input else b""
            if decoder.needs_input and not data:
                raise Truncated
            pieces.append(decoder.decompress(data, _CALL_BYTES))
            size += len(pieces[-1])
        except (lzma.LZMAError, BrokenStream, Truncated) as error:
            failure = error
        if pieces and (failure or decoder.eof or size >= PIECE_BYTES):
            if size:
                yield b"".join(pieces)
            pieces, size = [], 0
    if isinstance(failure, lzma.LZMAError):
        raise _defect(failure, limits) from failure
    if failure:
        raise failure
    source.unread(decoder.unused_data)


def _defect(error: lzma.LZMAError, limits: LimitsConfig) -> Exception:
    if "memory usage limit" in str(error).lower():
        return WindowTooLarge(f"needs more memory to be decoded than limits.window ({limits.window_bytes})")
    return Damaged(str(error))
