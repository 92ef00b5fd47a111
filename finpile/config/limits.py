"""Limits of one input: the largest record, the largest decompressed file, and the largest compression ratio.

All limits are counts of bytes, never times, so that a build gives the same result on every machine.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from finpile.errors import ConfigError

_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
_UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,6})?)\s*([KMGT]i?B|B)?\s*", re.IGNORECASE)

#: `ratio` applies only above this number of decompressed bytes: small files of one repeated line are harmless.
RATIO_FREE_BYTES = 64 << 20
#: Bytes of a record above the limit that the ledger keeps.
HEAD_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitsConfig:
    """Limits of one input. A size is a number of bytes, or text such as `256 MiB`.

    An input above a limit becomes a ledger row with the number of bytes, and reading continues after it.
    """

    record: int | str = "256 MiB"
    """The largest record (line, story, web response, or file with one document), which is kept in memory."""
    member: int | str = "256 GiB"
    """The largest decompressed file or archive member."""
    ratio: int = 1000
    """Decompressed bytes per compressed byte, above the first 64 MiB. Text has up to 20, logs 200 and more."""
    window: int | str = "128 MiB"
    """The largest window of .zst and dictionary of .xz, kept in memory. Files of `zstd --long=31` need 2 GiB."""

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


@functools.lru_cache(maxsize=256)
def size_bytes(what: str, size: int | str) -> int:
    """A size in bytes, from a number or from text with a unit (KiB, MiB, GiB, TiB; KB, MB, GB, TB).

    >>> size_bytes("limits.record", "1.5 KiB")
    1536
    >>> size_bytes("tokenizer.sample", "20 GB")
    20000000000

    Raises: ConfigError with the name `what`.
    """
    if isinstance(size, int):
        return size
    match = _SIZE.fullmatch(size)
    if match is None:
        raise ConfigError(
            f"{what} is {size!r}: expected a number of bytes, or a number and KiB, MiB, GiB or TiB, or KB, MB, GB or "
            "TB, such as 256 MiB"
        )
    unit = _UNITS[(match[2] or "").upper()]
    return int(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit
