"""Members of .zip archives, whole, cut or damaged: by the directory at the end, and without it by local headers.

If the directory and a member's local header contradict each other, one of them is damaged: whichever gives content
with the right checksum is believed. What no entry of a damaged directory leads to is looked for between its members.

Source: PKWARE's APPNOTE.TXT, to whose sections comments refer.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, BinaryIO, cast

from finpile.config.limits import HEAD_BYTES, LimitsConfig
from finpile.sources.archives.walk import File, Gap, Item, MemberDefect, readable_name
from finpile.sources.archives.zip_members import (
    DESCRIPTOR_MARK,
    ENCRYPTED,
    HAS_DESCRIPTOR,
    LOCAL_BYTES,
    LOCAL_MARK,
    UTF8,
    ClusterMembers,
    Entry,
)
from finpile.sources.bytes.streams import BLOCK_BYTES, BrokenStream, ByteStream

#: An archive that cannot seek (a .zip inside a .tar) is kept in memory up to this size, else in a temporary file.
_SPOOL_BYTES = 1 << 26
_DIRECTORY_MARK, _END_MARK, _END_BYTES = b"PK\1\2", b"PK\5\6", 22  # 4.3.12, 4.3.16
_MARKS = (LOCAL_MARK, _DIRECTORY_MARK, _END_MARK, DESCRIPTOR_MARK)
_MAX_COUNT = 0xFFFF  # of members, and of bytes of the archive's comment
_LONGEST_DESCRIPTOR = 24  # 4.3.9
_NO_DIRECTORY = (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, LookupError)


def zip_items(stream: Any, locator: str, limits: LimitsConfig) -> Iterator[Item]:
    """Files and gaps, in the order of the archive.

    Raises: BrokenStream with `locator` if the archive is cut or none.
    """
    if not isinstance(stream, ByteStream) and stream.seekable():
        yield from _Zip(cast(BinaryIO, stream), locator, limits).items()
        return
    with ExitStack() as stack:
        spool = cast(BinaryIO, stack.enter_context(tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)))
        failure: BrokenStream | None = None
        while True:
            try:
                block = stream.read(BLOCK_BYTES)
            except BrokenStream as broken:
                if not broken.can_resume:
                    failure = broken
                    break
                stream.resume()
                yield Gap(f"{locator}#{spool.tell()}/gap", broken.reason, broken.detail, 0)
                continue
            if not block:
                break
            spool.write(block)
        yield from _Zip(spool, locator, limits).items(failure)


class _Zip:
    """One walk."""

    def __init__(self, file: BinaryIO, locator: str, limits: LimitsConfig) -> None:
        self._file = file
        self._locator = locator
        self._members = ClusterMembers(file, limits)
        self._size = self._members.size
        self._num_members = 0
        self._names: set[str] = set()  # of members found without the directory

    def items(self, failure: BrokenStream | None = None) -> Iterator[Item]:
        """`failure` is why the archive is cut, where that is known: raised after all members."""
        try:
            self._file.seek(0)
            infos = sorted(zipfile.ZipFile(self._file).infolist(), key=lambda info: info.header_offset)
        except _NO_DIRECTORY as error:
            yield from self._without_directory(failure, error)
            return
        found = [(info, self._entry(info)) for info in infos]
        count = self._count_at_end()
        is_damaged = any(entry is None for _, entry in found) or len(infos) & _MAX_COUNT != count
        if len(infos) & _MAX_COUNT != count:
            yield self._gap(self._size, 0, f"the directory lists {len(infos)} members, and its end says {count}")
        position = 0
        for info, entry in found:
            if entry is None:
                continue
            if is_damaged and info.header_offset > position:
                yield from self._between(position, info.header_offset)
            position = max(position, entry.end(self._size))
            if not info.is_dir():
                yield File(readable_name(info.filename), self._members.content(entry))
        if is_damaged:
            yield from self._between(position, self._size)
        for info, entry in found:
            if entry is None and info.orig_filename not in self._names:
                detail = f"{readable_name(info.filename)!r} has no header at byte {info.header_offset}"
                yield self._gap(info.header_offset, info.compress_size, detail)

    def _count_at_end(self) -> int:
        """The number of members in the end record of the directory, modulo 65,536."""
        start = max(0, self._size - _END_BYTES - _MAX_COUNT)
        tail = self._members.bytes_at(start, self._size - start)
        place = tail.rfind(_END_MARK)
        return int.from_bytes(tail[place + 10 : place + 12], "little") if place >= 0 else -1

    def _entry(self, info: zipfile.ZipInfo) -> Entry | None:
        """The header of a member that is used; null if the directory does not lead to the member."""
        local = self._members.local(info.header_offset)
        if local is None:
            return None
        listed = Entry(
            name=info.orig_filename,
            name_bytes=len(info.orig_filename.encode("utf-8" if info.flag_bits & UTF8 else "cp437")),
            start=local.start,
            method=info.compress_type,
            stored_bytes=info.compress_size,
            size=info.file_size,
            crc=info.CRC,
            flags=info.flag_bits,
        )
        has_mark = self._members.bytes_at(info.header_offset, len(LOCAL_MARK)) == LOCAL_MARK
        if has_mark and _agree(listed, local):
            return listed
        behind_name = local.start - local.name_bytes + listed.name_bytes
        behind_extra = info.header_offset + LOCAL_BYTES + listed.name_bytes + len(info.extra)
        candidates = [listed, replace(listed, start=behind_name), replace(listed, start=behind_extra)]
        candidates += [local, replace(local, start=behind_name)] if has_mark else []
        whole = (one for one in candidates if not one.flags & ENCRYPTED and self._members.is_whole(one))
        return next(whole, listed if has_mark else None)

    def _without_directory(self, failure: BrokenStream | None, error: Exception) -> Iterator[Item]:
        if self._members.find(LOCAL_MARK, 0, self._size) is None:
            raise failure or BrokenStream("unreadable_file", self._locator, f"is no .zip file: {error}")
        end = yield from self._between(0, self._size)
        at = self._members.find(_END_MARK, end, self._size)
        if failure:
            raise failure
        if at is None or at + _END_BYTES > self._size:
            raise self._cut("ends without the archive's directory")
        detail = f"the directory cannot be read ({error}); {self._num_members} members were read by their own headers"
        yield self._gap(end, 0, detail)

    def _between(self, start: int, end: int) -> Generator[Item, None, int]:
        """The members of the headers in `start:end`, without the directory. Returns the end of the last one."""
        position = start
        while position < end:
            mark = self._members.bytes_at(position, len(LOCAL_MARK))
            if mark in (_DIRECTORY_MARK, _END_MARK):
                break
            entry = self._members.local(position) if mark == LOCAL_MARK else None
            if entry is not None and entry.is_plausible:
                self._num_members += 1
                self._names.add(entry.name)
                blocks = self._content(entry)
                if not entry.name.endswith("/"):
                    yield File(readable_name(entry.name), blocks)
                try:
                    for _ in blocks:  # what the consumer left unread, or what a folder should not have
                        pass
                except MemberDefect as defect:
                    yield self._gap(position, entry.end(self._size) - position, str(defect))
                position = self._behind(entry, end)
                continue
            place = self._next_header(position + 1, end)
            if place is None:
                break
            if mark == LOCAL_MARK or place - position > _LONGEST_DESCRIPTOR:
                yield self._gap(position, place - position, f"no member can be read at byte {position}")
            position = place
        return position

    def _content(self, entry: Entry) -> Iterator[bytes]:
        """A member's content, where no directory says how long it is.

        Raises: MemberDefect; BrokenStream where the archive is cut inside it.
        """
        self._members.decoded_end = 0
        try:
            yield from self._members.content(entry)
        except MemberDefect as defect:
            if entry.end(self._size) >= self._size and self._next_header(entry.start, self._size) is None:
                raise self._cut("cut inside a member") from defect
            raise

    def _behind(self, entry: Entry, end: int) -> int:
        """The ends of the member's data and of its descriptor: by its length, by its content, or at the next header."""
        if entry.stored_bytes is not None:
            after = entry.end(self._size)
            if after == self._size or self._members.bytes_at(after, len(LOCAL_MARK)) in _MARKS:
                return after if not entry.flags & HAS_DESCRIPTOR else self._behind_descriptor(after)
        if self._members.decoded_end:
            return self._behind_descriptor(self._members.decoded_end)
        place = self._next_header(entry.start, end)
        return end if place is None else place

    def _behind_descriptor(self, position: int) -> int:
        place = self._next_header(position, min(position + _LONGEST_DESCRIPTOR + LOCAL_BYTES, self._size))
        return position if place is None else place

    def _next_header(self, start: int, end: int) -> int | None:
        """The offset of the next local header, or of the directory."""
        local = self._next_local(start, end)
        directory = self._members.find(_DIRECTORY_MARK, start, end if local is None else local)
        return local if directory is None else directory

    def _next_local(self, start: int, end: int) -> int | None:
        for place in self._members.places(LOCAL_MARK, start, end):
            entry = self._members.local(place)
            if entry is not None and entry.is_plausible:
                return place
        return None

    # --- messages

    def _gap(self, start: int, num_bytes: int, detail: str) -> Gap:
        head = self._members.bytes_at(start, min(num_bytes, HEAD_BYTES))
        return Gap(f"{self._locator}#{start}/gap", "corrupt_archive", detail, num_bytes, head)

    def _cut(self, detail: str) -> BrokenStream:
        after = f"after {self._size} bytes and {self._num_members} members"
        return BrokenStream("truncated_file", self._locator, f"{detail}, {after}")


def _agree(listed: Entry, local: Entry) -> bool:
    """Whether the directory and the local header agree."""
    if (listed.name, listed.method, listed.flags & ENCRYPTED) != (local.name, local.method, local.flags & ENCRYPTED):
        return False
    pairs = ((listed.stored_bytes, local.stored_bytes), (listed.size, local.size), (listed.crc, local.crc))
    return all(there is None or here == there for here, there in pairs)
