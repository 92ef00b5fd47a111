"""Decompression of .gz, .zst, .bz2 and .xz, frame by frame, up to the first byte that cannot be decoded."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import zstandard

from finpile.sources.streams import Block, BrokenStream, FrameStart

_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # zlib's manual: 16 is added for a gzip header and trailer
_ZSTD_MAX_WINDOW_BYTES = 1 << 31  # what `zstd --long=31`, its longest window, needs


def _zstd_frame() -> Any:
    """A decoder of its own: those of one `ZstdDecompressor` share its state, so only one of them could be in use."""
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES).decompressobj()


#: Objects with `decompress`, `eof` and `unused_data`, each for one frame (gzip: member; bz2, xz: stream).
_DECODERS: dict[str, Callable[[], Any]] = {
    ".gz": lambda: zlib.decompressobj(_GZIP_WINDOW),
    ".zst": _zstd_frame,
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
}
_DECODE_ERRORS = (zlib.error, zstandard.ZstdError, lzma.LZMAError, OSError, EOFError, ValueError)
#: Formats whose frames may be followed by zero bytes (gzip on tapes; xz: The .xz File Format §2.2).
_ZERO_PADDED = (".gz", ".xz")
_SHORT_SUFFIXES = {".tgz": ".tar.gz", ".tbz2": ".tar.bz2", ".txz": ".tar.xz", ".tzst": ".tar.zst"}


def split_codecs(path: str) -> tuple[str, list[str]]:
    """The path without the suffixes of its compression, and these, outermost first.

    >>> split_codecs("a/news.jsonl.zst")
    ('a/news.jsonl', ['.zst'])
    """
    codecs: list[str] = []
    while True:
        stem, dot, suffix = path.rpartition(".")
        suffix = (dot + suffix).lower()
        if suffix in _DECODERS:
            codecs.append(suffix)
            path = stem
        elif suffix in _SHORT_SUFFIXES:
            path = stem + _SHORT_SUFFIXES[suffix]
        else:
            return path, codecs


def decompress(blocks: Iterator[Block], codec: str, locator: str) -> Iterator[Block]:
    """The bytes of all frames, one after the other.

    Raises: BrokenStream after the last byte that could be decoded, where a frame is cut or is not of `codec`.
    """
    decoder: Any = None
    num_in = num_out = num_frames = 0
    for block in blocks:
        if isinstance(block, BrokenStream):
            raise block
        if isinstance(block, FrameStart):  # of another compression within this one
            continue
        num_in += len(block)
        while block:
            if decoder is None:
                block = block.lstrip(b"\0") if num_frames and codec in _ZERO_PADDED else block
                if not block:
                    break
                decoder = _DECODERS[codec]()
                yield FrameStart(num_in - len(block))
            try:
                piece = decoder.decompress(block)
            except _DECODE_ERRORS as error:
                raise _undecoded(codec, locator, error, num_frames, num_in, num_out) from error
            num_out += len(piece)
            if piece:
                yield piece
            if not decoder.eof:
                break
            block, decoder = decoder.unused_data, None
            num_frames += 1
    if decoder is not None:
        raise BrokenStream(
            "truncated_file", locator, f"cut after {num_in} bytes ({num_out} decoded) inside a {codec} frame"
        )


def _undecoded(codec: str, locator: str, error: Exception, frames: int, num_in: int, num_out: int) -> BrokenStream:
    if not frames and not num_out:
        return BrokenStream("unreadable_file", locator, f"is no {codec} file: {error}")
    return BrokenStream(
        "corrupt_file", locator, f"{codec} data broken within its first {num_in} bytes ({num_out} decoded): {error}"
    )
