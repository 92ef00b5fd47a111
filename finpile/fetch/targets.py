"""A file to download, and what is known about it before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from finpile.errors import InputError

#: Bytes of a file whose size is not known before: more than any file of the three publishers.
_LONGEST_FILE_BYTES = 256 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A file to download."""

    url: str
    path: str
    """Of the file below the output folder; `/` separates folders."""
    size_bytes: int | None = None
    """As the publisher states it; None if it does not."""
    sha1: str | None = None
    """As the publisher states it, in hexadecimal digits."""
    endings: tuple[bytes, ...] = ()
    """A file ends with one of these, and white space, or comes twice with the same bytes; empty for any end."""
    changes: bool = False
    """Whether the publisher replaces the file: a file that is already here is compared with the server's."""
    limit_bytes: int = _LONGEST_FILE_BYTES
    """A file with more bytes is refused."""

    def __post_init__(self) -> None:
        parts = PurePosixPath(self.path).parts
        if not parts or parts[0] == "/" or ".." in parts:
            raise InputError(f"{self.url}: its path {self.path!r} leaves the output folder")
