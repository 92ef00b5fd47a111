"""Walking .tar and .zip archives, whole, cut or damaged, in the order of their members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finpile.config.limits import LimitsConfig
from finpile.sources.archives.tar import tar_items
from finpile.sources.archives.walk import File, Gap, Member, MemberDefect, Structure, readable_name
from finpile.sources.archives.zip import zip_items
from finpile.sources.bytes.streams import Block, BrokenStream

__all__ = ["Gap", "Member", "Structure", "archive_kind", "readable_name", "walk"]


def archive_kind(path: str) -> str | None:
    """`.tar`, `.zip`, or None for a plain file; `path` without the suffixes of its compression."""
    return next((kind for kind in (".tar", ".zip") if path.lower().endswith(kind)), None)


def walk(
    kind: str, stream: Any, locator: str, limits: LimitsConfig | None = None
) -> Iterator[Member | Gap | Structure]:
    """The regular files of an archive, in its order, and what lies between them.

    Of a .tar, the bytes of members, gaps and structure sum up to those of the archive (a sparse file counts with its
    holes). Of a .zip, the members' bytes are decompressed, and gaps alone are counted beside them.

    Raises: BrokenStream with the archive's locator if it is cut, or no archive, after all members before that point;
        a member's blocks raise it with the member's locator if the member alone is damaged.
    """
    seen: dict[str, int] = {}
    items = tar_items if kind == ".tar" else zip_items
    for item in items(stream, locator, limits or LimitsConfig()):
        if not isinstance(item, File):
            yield item
            continue
        name = path = item.path
        while name in seen:  # a second file of that name is another document
            seen[path] += 1
            name = f"{path}~{seen[path]}"
        seen[name] = 1
        where = f"{locator}!{name}"
        yield Member(name, where, _named(item.blocks, where))


def _named(blocks: Iterator[Block], locator: str) -> Iterator[Block]:
    try:
        yield from blocks
    except MemberDefect as defect:
        raise BrokenStream(defect.reason, locator, str(defect)) from defect
