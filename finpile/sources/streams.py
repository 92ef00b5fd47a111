"""Byte streams that never let a cut or corrupt file pass for a whole one.

A reader of the standard library answers a cut file with fewer bytes, or drops what it had in hand when it raises. A
`ByteStream` hands out every byte before the defect and only then raises `BrokenStream`.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import zstandard

from finpile.errors import InputError

#: Compressed bytes decoded at once: small, since one block of them may decode to a thousand times as much.
BLOCK_BYTES = 1 << 16
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # zlib's manual: 16 is added for a gzip header and trailer
_ZSTD_MAX_WINDOW_BYTES = 1 << 31  # what `zstd --long=31`, its longest window, needs


class BrokenStream(InputError):
    """The bytes end, or stop making sense, before their format says so.

    `partial` holds the bytes of the record that was being read; `locator` names the file or member with the defect.
    """

    def __init__(self, reason: str, locator: str, detail: str) -> None:
        super().__init__(f"{locator}: {detail}")
        self.reason = reason
        self.locator = locator
        self.detail = detail
        self.partial = b""


class Readable(Protocol):
    """All that is asked of a stream that bytes are drawn from."""

    def read(self, size: int = -1, /) -> bytes: ...


class ByteStream(io.BufferedIOBase):
    """A forward-only binary stream over blocks of bytes.

    Where the blocks end in `BrokenStream`, `read(n)` first returns all that is left; `read()` and `readline()`, whose
    result would be taken for whole, raise it with that rest as its `partial`.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._block = b""
        self._at = 0  # next byte of `_block`
        self._before = 0  # bytes before `_block`
        self._broken: BrokenStream | None = None

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._before + self._at

    def peek(self, size: int = 0, /) -> bytes:
        """Some of the next bytes; none only at the end."""
        return self._block[self._at :] if self._fill() else b""

    def unread(self, data: bytes) -> None:
        """Puts bytes back that were read last."""
        self._before = self.tell() - len(data)
        self._block, self._at = data + self._block[self._at :], 0

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Skips forward; stops at the end."""
        if whence != io.SEEK_SET or offset < self.tell():
            raise io.UnsupportedOperation("this stream only goes forward")
        while self.tell() < offset and self._fill():
            self._at = min(len(self._block), offset - self._before)
        return self.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return self._read_all()
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
        end = self._block.find(b"\n", self._at) + 1
        if end:
            line = self._block[self._at : end]
            self._at = end
            return line
        return self._read_until(b"\n")

    def __iter__(self) -> Iterator[bytes]:
        while line := self.readline():
            yield line

    def _read_all(self) -> bytes:
        return self._read_until(None)

    def _read_until(self, mark: bytes | None) -> bytes:
        parts: list[bytes] = []
        try:
            while self._fill():
                end = self._block.find(mark, self._at) + 1 if mark else 0
                parts.append(self._block[self._at : end or len(self._block)])
                self._at += len(parts[-1])
                if end:
                    break
        except BrokenStream as broken:
            broken.partial = b"".join(parts)
            raise
        return b"".join(parts)

    def _fill(self) -> bool:
        """Whether there is a next byte."""
        while self._at >= len(self._block):
            if self._broken is not None:
                raise self._broken
            self._before, self._at = self.tell(), 0
            try:
                self._block = b""
                self._block = next(self._blocks)
            except StopIteration:
                return False
            except BrokenStream as broken:
                self._broken = broken
                raise
        return True


def blocks_of(stream: Readable, locator: str) -> Iterator[bytes]:
    """The stream's bytes in blocks. A failing read (disk, network) is a `BrokenStream`."""
    try:
        while block := stream.read(BLOCK_BYTES):
            yield block
    except OSError as error:
        raise BrokenStream("unreadable_file", locator, f"reading failed: {error}") from error


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


def decompress(blocks: Iterator[bytes], codec: str, locator: str) -> Iterator[bytes]:
    """The bytes of all frames, one after the other.

    Raises: BrokenStream after the last byte that could be decoded, where a frame is cut or is not of `codec`.
    """
    decoder: Any = None
    num_in = num_out = num_frames = 0
    for block in blocks:
        num_in += len(block)
        while block:
            if decoder is None:
                block = block.lstrip(b"\0") if num_frames and codec in _ZERO_PADDED else block
                if not block:
                    break
                decoder = _DECODERS[codec]()
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
