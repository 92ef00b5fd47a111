"""What a walk over an archive yields, and what both kinds of archive share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from finpile.config.limits import RATIO_FREE_BYTES, LimitsConfig
from finpile.sources.bytes.streams import Block


class Member(NamedTuple):
    """A regular file of an archive; its blocks are to be read, if at all, before the next item is requested."""

    path: str
    locator: str
    blocks: Iterator[Block]


class Gap(NamedTuple):
    """Bytes of an archive that belong to no member that could be read; a row of the ledger."""

    locator: str
    reason: str
    """One of `finpile.sources.REASONS`."""
    detail: str
    num_bytes: int
    head: bytes = b""
    """The first of them, 64 KiB at most."""


class Structure(NamedTuple):
    """Bytes of an archive that its format declares: headers, padding, end marks, links and folders."""

    num_bytes: int
    kind: str


class File(NamedTuple):
    """A member as its archive names it: names may repeat."""

    path: str
    blocks: Iterator[Block]


Item = File | Gap | Structure


class MemberDefect(Exception):
    """One member cannot be read on; the next may."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Expansion:
    """Counts what stored bytes expand to."""

    def __init__(self, limits: LimitsConfig) -> None:
        self._limits = limits
        self.num_out = 0

    def add(self, num_out: int, num_stored: int) -> None:
        """Counts `num_out` more bytes, decoded from `num_stored` stored bytes in all.

        Raises: MemberDefect above a limit.
        """
        self.num_out += num_out
        limits = self._limits
        if self.num_out > max(RATIO_FREE_BYTES, limits.ratio * num_stored):
            detail = f"{num_stored} stored bytes expand to more than {self.num_out}: limits.ratio is {limits.ratio}"
            raise MemberDefect("decompression_bomb", detail)
        if self.num_out > limits.member_bytes:
            detail = f"more than limits.member ({limits.member_bytes}) bytes; {self.num_out} were decoded"
            raise MemberDefect("too_large", detail)


def readable_name(name: str) -> str:
    """The name with its bytes that are not UTF-8 written as `\\xNN`, so that it can be part of a locator."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
