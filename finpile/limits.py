"""Bounds on what one input may cost: the largest record, the largest file once decompressed, and how far it expands.

All of them are counts of bytes, never times, so that a build gives the same result on every machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from finpile.errors import ConfigError

_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,6})?)\s*([KMGT]iB|B)?\s*", re.IGNORECASE)

#: `ratio` applies only above this many decompressed bytes: small files of one repeated line are no attack.
RATIO_FREE_BYTES = 64 << 20
#: Of a record that is too large, the ledger keeps this many bytes.
HEAD_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitsConfig:
    """The most that one input may cost. A size is a number of bytes, or text such as `256 MiB`.

    What exceeds a limit becomes a ledger row with the number of bytes, and the build continues behind it.
    """

    record: int | str = "256 MiB"
    """The largest record held in memory: a line, a story, a web response, a file of one document."""
    member: int | str = "256 GiB"
    """The largest file or archive member, decompressed."""
    ratio: int = 1000
    """Decompressed bytes for each compressed byte, above the first 64 MiB. Text gives up to 20, logs 200 and more."""
    window: int | str = "128 MiB"
    """The longest window of .zst and dictionary of .xz, held in memory. Files of `zstd --long=31` need 2 GiB."""

    def __post_init__(self) -> None:
        for name in ("record", "member", "window"):
            size = size_bytes(f"limits.{name}", getattr(self, name))
            if size < 1 << 10:
                raise ConfigError(f"limits.{name} is {getattr(self, name)}: expected at least 1 KiB, such as 256 MiB")
        if self.ratio < 1:
            raise ConfigError(f"limits.ratio is {self.ratio}: expected at least 1, such as 1000")

    @property
    def record_bytes(self) -> int:
        return size_bytes("limits.record", self.record)

    @property
    def member_bytes(self) -> int:
        return size_bytes("limits.member", self.member)

    @property
    def window_bytes(self) -> int:
        return size_bytes("limits.window", self.window)


def size_bytes(what: str, size: int | str) -> int:
    """A size in bytes: a number of them, or text with a unit (KiB, MiB, GiB, TiB).

    >>> size_bytes("limits.record", "1.5 KiB")
    1536

    Raises: ConfigError, which calls the size `what`.
    """
    if isinstance(size, int):
        return size
    match = _SIZE.fullmatch(size)
    if match is None:
        raise ConfigError(
            f"{what} is {size!r}: expected a number of bytes, or a number and KiB, MiB, GiB or TiB, such as 256 MiB"
        )
    unit = _UNITS[(match[2] or "").upper()]
    return int(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit
