"""Walking .tar and .zip archives, whole or cut, in the order in which their members stand."""

from __future__ import annotations

import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, BinaryIO, NamedTuple, cast

from finpile.sources.streams import BLOCK_BYTES, Block, BrokenStream, ByteStream, Readable

#: An archive that cannot seek (a .zip inside a .tar) is kept in memory up to this size, else in a temporary file.
_SPOOL_BYTES = 1 << 26


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
    """Negative for the holes of a sparse file, which its member has and the archive does not."""
    kind: str


def archive_kind(path: str) -> str | None:
    """`.tar`, `.zip`, or None for a plain file; `path` without the suffixes of its compression."""
    return next((kind for kind in (".tar", ".zip") if path.lower().endswith(kind)), None)


def walk(kind: str, stream: Any, locator: str) -> Iterator[Member | Gap | Structure]:
    """The regular files of an archive, in its order, and what lies between them.

    Of a .tar, the bytes of members, gaps and structure sum up to those of the archive. Of a .zip, the members' bytes
    are decompressed, and gaps alone are counted beside them.

    Raises: BrokenStream with the archive's locator where it is cut or corrupt, after all members before that point;
        a member's blocks raise it with the member's locator where the member alone is.
    """
    seen: dict[str, int] = {}
    for path, blocks in (_tar if kind == ".tar" else _zip)(stream, locator):
        seen[path] = seen.get(path, 0) + 1
        name = (
            path if seen[path] == 1 else f"{path}~{seen[path]}"
        )  # a second file of that name is a document of its own
        where = f"{locator}!{name}"
        yield Member(name, where, _named(blocks, where))


def readable_name(name: str) -> str:
    """The name with its bytes that are no UTF-8 written as `\\xNN`, so that it can stand in a locator."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _named(blocks: Iterator[bytes], locator: str) -> Iterator[bytes]:
    try:
        yield from blocks
    except _MemberDefect as defect:
        raise BrokenStream("corrupt_archive", locator, str(defect)) from defect


class _MemberDefect(Exception):
    """One member cannot be read; the next may."""


class _Header(tarfile.TarInfo):
    """A tar header that does not take a broken header for the end of the archive, as `tarfile` does."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        try:
            return super().frombuf(buf, encoding, errors)
        except (tarfile.EmptyHeaderError, tarfile.TruncatedHeaderError) as error:  # type: ignore[attr-defined]
            raise _TarDefect("truncated_file", "ends without the archive's end mark") from error
        except tarfile.InvalidHeaderError as error:  # type: ignore[attr-defined]
            raise _TarDefect("corrupt_archive", f"no tar header: {error}") from error


class _TarDefect(Exception):
    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def _tar(stream: Readable, locator: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    source = cast(ByteStream, stream)
    num_members = 0
    try:
        archive = tarfile.TarFile(
            fileobj=cast(IO[bytes], source), tarinfo=_Header, encoding="utf-8", errors="surrogateescape"
        )
        while (info := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # else all headers stay in memory
            num_members += 1
            if info.isreg():
                yield readable_name(info.name), _tar_blocks(archive, info, source, locator)
        _require_end(source, locator, num_members)
    except _TarDefect as defect:
        reason = defect.reason if num_members or defect.reason == "truncated_file" else "unreadable_file"
        raise _cut(reason, locator, str(defect), source.tell(), num_members) from defect
    except (tarfile.TarError, ValueError, OverflowError) as error:
        if isinstance(error, BrokenStream):
            raise
        reason = "truncated_file" if "unexpected end" in str(error) else "corrupt_archive"
        raise _cut(reason, locator, str(error), source.tell(), num_members) from error


def _require_end(stream: ByteStream, locator: str, num_members: int) -> None:
    """Reads on to the very end, where a cut or a wrong checksum of the compression shows."""
    position = stream.tell()
    for block in iter(lambda: stream.read(BLOCK_BYTES), b""):
        if block.strip(b"\0"):
            detail = (
                f"more data behind the end mark at byte {position} (join archives by `tar --concatenate`, not by cat)"
            )
            raise _cut("corrupt_archive", locator, detail, stream.tell(), num_members)


def _tar_blocks(archive: tarfile.TarFile, info: tarfile.TarInfo, stream: ByteStream, locator: str) -> Iterator[bytes]:
    data = archive.extractfile(info) if info.issparse() else None
    missing = info.size
    while missing > 0:
        block = (data or stream).read(min(BLOCK_BYTES, missing))
        if not block:
            raise BrokenStream(
                "truncated_file", locator, f"cut after {stream.tell()} bytes, {missing} bytes before the member's end"
            )
        missing -= len(block)
        yield block


def _cut(reason: str, locator: str, detail: str, num_bytes: int, num_members: int) -> BrokenStream:
    return BrokenStream(reason, locator, f"{detail}, after {num_bytes} bytes and {num_members} members")


def _zip(stream: Readable, locator: str) -> Iterator[tuple[str, Iterator[bytes]]]:
    with _seekable(stream) as source:
        try:
            archive = zipfile.ZipFile(source)
        except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError) as error:
            source.seek(0)
            yield from _zip_from_front(ByteStream(_blocks(source)), locator, error)
            return
        for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
            if not info.is_dir():
                yield readable_name(info.filename), _zip_blocks(archive, info)


def _zip_blocks(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    try:
        with archive.open(info) as stream:
            yield from _blocks(cast(BinaryIO, stream))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        raise _MemberDefect(str(error)) from error  # RuntimeError: encrypted, or a method zipfile does not know


def _blocks(stream: Readable) -> Iterator[bytes]:
    while block := stream.read(BLOCK_BYTES):
        yield block


def _seekable(stream: Any) -> BinaryIO:
    if not isinstance(stream, ByteStream) and stream.seekable():
        return cast(BinaryIO, stream)
    spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115 (the caller closes it)
    for block in _blocks(stream):
        spool.write(block)
    spool.seek(0)
    return cast(BinaryIO, spool)


# A cut .zip has lost its directory, which stands at the end. Its members still stand one after the other, each behind
# a local header: APPNOTE.TXT §4.3.7.
_LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")
_LOCAL_MARK = b"PK\x03\x04"
_DESCRIPTOR_MARK = b"PK\x07\x08"
_ZIP64_EXTRA = 1
_FLAG_ENCRYPTED, _FLAG_DESCRIPTOR, _FLAG_UTF8 = 1, 8, 0x800
_STORED, _DEFLATED = 0, 8
_IN_ZIP64 = 0xFFFFFFFF


def _zip_from_front(stream: ByteStream, locator: str, error: Exception) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The members of an archive without a directory, up to the cut; then BrokenStream."""
    if not stream.peek().startswith(_LOCAL_MARK):
        raise BrokenStream("unreadable_file", locator, f"is no .zip file: {error}")
    num_members = 0
    while (header := _local_header(stream)) is not None:
        num_members += 1
        if not header.can_be_walked:
            detail = f"the directory is missing, and {header.name!r} cannot be read without it"
            raise _cut("truncated_file", locator, detail, stream.tell(), num_members - 1)
        blocks = _inflated(stream, locator) if header.method == _DEFLATED else _stored(stream, header.size, locator)
        if not header.name.endswith("/"):
            yield header.name, blocks
        for _ in blocks:  # what the consumer left unread
            pass
        if header.has_descriptor:
            _skip_descriptor(stream, header.is_zip64)
    raise _cut("truncated_file", locator, "ends without the archive's directory", stream.tell(), num_members)


class _LocalHeader(NamedTuple):
    name: str
    method: int
    size: int
    """Compressed bytes; unknown (0) where a descriptor follows them."""
    is_encrypted: bool
    has_descriptor: bool
    is_zip64: bool

    @property
    def can_be_walked(self) -> bool:
        """Deflated data know their end; stored data must have their size in the header."""
        return not self.is_encrypted and (
            self.method == _DEFLATED or (self.method == _STORED and not self.has_descriptor)
        )


def _local_header(stream: ByteStream) -> _LocalHeader | None:
    head = stream.read(_LOCAL_HEADER.size)
    if len(head) < _LOCAL_HEADER.size or not head.startswith(_LOCAL_MARK):
        return None
    flags, method, size, name_size, extra_size = (_LOCAL_HEADER.unpack(head)[index] for index in (2, 3, 7, 9, 10))
    name, extra = stream.read(name_size), stream.read(extra_size)
    if len(name) < name_size or len(extra) < extra_size:
        return None
    size64 = _zip64_size(extra)
    return _LocalHeader(
        name=readable_name(name.decode("utf-8" if flags & _FLAG_UTF8 else "cp437", "surrogateescape")),
        method=method,
        size=size if size64 is None or size != _IN_ZIP64 else size64,
        is_encrypted=bool(flags & _FLAG_ENCRYPTED),
        has_descriptor=bool(flags & _FLAG_DESCRIPTOR),
        is_zip64=size64 is not None,
    )


def _zip64_size(extra: bytes) -> int | None:
    """The compressed size in a local header's Zip64 field, behind the full size: APPNOTE.TXT §4.5.3."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == _ZIP64_EXTRA and size >= 16:
            return int(struct.unpack_from("<Q", extra, 12)[0])
        extra = extra[4 + size :]
    return None


def _stored(stream: ByteStream, size: int, locator: str) -> Iterator[bytes]:
    while size > 0:
        if not (block := stream.read(min(BLOCK_BYTES, size))):
            raise _cut_in_member(stream, locator)
        size -= len(block)
        yield block


def _inflated(stream: ByteStream, locator: str) -> Iterator[bytes]:
    decoder = zlib.decompressobj(-zlib.MAX_WBITS)  # no header: APPNOTE.TXT §4.4.5
    while not decoder.eof:
        if not (block := stream.read(BLOCK_BYTES)):
            raise _cut_in_member(stream, locator)
        try:
            piece = decoder.decompress(block)
        except zlib.error as error:
            raise BrokenStream("corrupt_archive", locator, f"{error}, within {stream.tell()} bytes") from error
        stream.unread(decoder.unused_data)
        if piece:
            yield piece


def _cut_in_member(stream: ByteStream, locator: str) -> BrokenStream:
    return BrokenStream("truncated_file", locator, f"cut after {stream.tell()} bytes inside a member")


def _skip_descriptor(stream: ByteStream, is_zip64: bool) -> None:
    """Passes over CRC and sizes behind a member, with or without their mark: APPNOTE.TXT §4.3.9."""
    sizes = 16 if is_zip64 else 8
    first = stream.read(4)
    stream.read(sizes + 4 if first == _DESCRIPTOR_MARK else sizes)
