"""Frame decoders, a module for each compressed format: one frame (gzip: member; bz2, xz: stream) of a stream at a time.

A module has `MARKS`, with which its frames (those with content) begin; `MAY_BE_PADDED`, whether zero bytes may follow a
frame; and `frame(source, limits)`, which yields what one frame holds, in pieces of bounded size, and leaves the source
behind it. Everything before a defect is yielded; then `frame` raises one of the exceptions here, with the source at the
defect.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from finpile.config.limits import LimitsConfig
from finpile.sources.bytes.streams import ByteStream

#: The most bytes that a decoder returns at once.
PIECE_BYTES = 1 << 18


class Damaged(Exception):
    """The bytes at the source's position are not of the format."""


class Truncated(Exception):
    """The source ends inside a frame."""


class WrongChecksum(Exception):
    """The frame was decoded to its end, and differs from what was compressed."""


class WindowTooLarge(Exception):
    """The frame needs more memory than `limits.window`."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A block inside a frame that could not be decoded; the next item is what follows it."""

    num_bytes: int
    """Compressed."""
    detail: str


class Codec(Protocol):
    """A module of this package."""

    MARKS: tuple[bytes, ...]
    MAY_BE_PADDED: bool

    def frame(self, source: ByteStream, limits: LimitsConfig) -> Iterator[bytes | Lost]:
        """The content of the frame at the source's position."""
        ...


def take(source: ByteStream, size: int) -> bytes:
    """The next `size` bytes.

    Raises: Truncated if there are fewer; the source is then at its earlier position.
    """
    data = source.read(size)
    while len(data) < size:
        more = source.read(size - len(data))
        if not more:
            source.unread(data)
            raise Truncated
        data += more
    return data


def window_too_large(size: int, limits: LimitsConfig) -> WindowTooLarge:
    """The exception for a frame that declares `size`."""
    return WindowTooLarge(f"needs a window of {size} bytes, more than limits.window ({limits.window_bytes})")
