"""Reading one input file: opened, decompressed, walked, handed to its format's reader, and accounted for.

No error of a reader on one record ends the run: it becomes a ledger row with the record's bytes, and so do bytes that
the reader leaves out. Only a lack of memory ends the run, with an error that names the file.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from finpile.config import SourceConfig
from finpile.config.rows import RowsConfig
from finpile.documents.document import UNREADABLE_TIMESTAMP, RawDocument, check_storable
from finpile.documents.fields import find_value
from finpile.documents.ledger import Removal
from finpile.errors import RunError
from finpile.plugins.format import COMMON_META, FORMATS, Format
from finpile.sources.archives import archive as archives
from finpile.sources.archives.archive import Gap, Member, archive_kind, walk
from finpile.sources.bytes.compression import codec_of, decompressed, split_codecs
from finpile.sources.bytes.streams import BLOCK_BYTES, RECALLED_BYTES, Block, BrokenStream, ByteStream
from finpile.sources.readers.accounting import STRUCTURE, Account, Books, Claim, Content, Record, Structure
from finpile.sources.readers.base import removal, structure_of
from finpile.sources.readers.finding import InputFile, locate
from finpile.sources.readers.license_files import License, LicenseFiles, find_license_files
from finpile.sources.readers.multistream import Span, head_of
from finpile.sources.readers.records import META, moment_of
from finpile.storage.file_systems import StoreFile, open_in

_NUM_NAMES_SHOWN = 5
_REPORT_EVERY = 32
#: Of a file, to find out how it is compressed.
_MAGIC_BYTES = 16

Item = RawDocument | Removal


def read_file(
    file: InputFile,
    source: SourceConfig,
    keep: Callable[[Account], None] = lambda account: None,
    reached: Callable[[int], None] = lambda position: None,
    report_every: int = _REPORT_EVERY,
) -> Iterator[Item]:
    """The documents of one file, and a ledger row for each input that became none.

    Locators: `path` for a file that is one document, `path#offset` or `path#ordinal` for a record of it,
    `path!member` for a file in an archive. `keep` is given the account of the file, and of each file in an archive.
    Every `report_every` items `reached` is given the position in the file, in bytes as it is stored (compressed). Of a
    file that is cut into ranges, documents, account and positions are those of its span.

    Files are decompressed and archives walked by their suffixes.

    Raises: RunError if memory does not suffice; StoreError if an object store does not answer.
    """
    fs, path = locate(file.url)
    kinds = structure_of(source.format)
    books = Books(source.dataset, source.label, file.locator, stored_bytes=file.span_bytes, kinds=kinds)
    start = file.span[0] if file.span else 0
    where = _in_range(file.locator, start)
    try:
        licenses, head = None, b""
        if start:
            with open_in(fs, path, file.size_bytes) as stream:
                head = head_of(stream, path, file.locator, source.limits)
        if FORMATS.get(source.format).has_license_files and archive_kind(split_codecs(path)[0]):
            with open_in(fs, path, file.size_bytes) as stream:
                licenses = find_license_files(stream, path, file.locator, source.limits)
        with open_in(fs, path, file.size_bytes) as stream:
            span = stream if file.span is None else Span(stream, *file.span)
            entry = _Input(path, books, source, keep, licenses, start=start, head=head)
            for number, item in enumerate(entry.read(span)):
                _raise_failure(stream)
                yield item
                if number % report_every == 0 and not stream.closed:
                    reached(stream.tell() - start)
            _raise_failure(stream)
        if file.index_defect:
            row = removal(source, f"{file.locator}#index", "unusable_index", file.index_defect)
            books.count(row)
            yield row
    except OSError as error:
        row = removal(source, where, "unreadable_file", f"cannot be opened: {error.strerror or error}")
        books.count(row)
        yield row
    except MemoryError as error:
        raise RunError(f"memory ran out while {file.locator} was read (source {source.label!r}): {error}") from error
    keep(books.close())


def _in_range(locator: str, start: int) -> str:
    """The locator of a row about the rest of a file, or of the range that begins at `start`."""
    return f"{locator}#{start}/range" if start else locator


def _raise_failure(stream: Any) -> None:
    """Raises the error of an object store, which a reader may have taken for damage of the file."""
    if isinstance(stream, StoreFile) and stream.failure is not None:
        raise stream.failure


def read_stream(
    form: Format,
    stream: BinaryIO,
    locator: str,
    source: SourceConfig,
    keep: Callable[[Account], None] = lambda account: None,
) -> Iterator[Item]:
    """The documents and rows of one decompressed stream of the format `form`.

    Raises: BrokenStream of the stream if nothing more can be read from it.
    """
    books = Books(source.dataset, source.label, locator, kinds={**STRUCTURE, **form.structure})
    is_ready = form.seeks or isinstance(stream, ByteStream)
    ready = stream if is_ready else decompressed(stream, (), locator, source.limits)
    try:
        yield from _Records(ready, books, source).read(form)
    finally:
        books.decompressed_bytes = _size(ready) if ready.seekable() else ready.tell()
        keep(books.close())


# --- a file, and the files in it


@dataclass(frozen=True, slots=True)
class _Input:
    """A file, or a file in an archive."""

    path: str
    books: Books
    source: SourceConfig
    keep: Callable[[Account], None]
    licenses: LicenseFiles | None = None
    """Of an archive."""
    license: License | None = None
    """Of a file in one."""
    start: int = 0
    """Where its stored bytes begin in the file, of a range of one."""
    head: bytes = b""
    """What the file has before its records, of a range behind it."""

    def read(self, stream: Any) -> Iterator[Item]:
        """Raises: BrokenStream of an archive that this is a file of."""
        books = self.books
        form = FORMATS.get(self.source.format)
        stem, codecs = split_codecs(self.path)
        kind = archive_kind(stem)
        must_seek = kind == ".zip" or (kind is None and form.seeks)
        if not must_seek and not isinstance(stream, ByteStream):
            stream = decompressed(stream, (), books.locator, self.source.limits)
            codecs = codecs or _codecs_of(stream)
        if codecs:
            stream = decompressed(stream, codecs, books.locator, self.source.limits, self.start)
            stream.head = self.head
        records = _Records(stream, books, self.source, self.license)
        size = _size(stream) if stream.seekable() else None  # an archive's walk may close the stream
        try:
            if _is_empty(stream):
                row = removal(self.source, books.locator, "empty_file")
                books.take(0, row)
                yield row
            elif kind:
                yield from self._archive(kind, stream, size)
            else:
                yield from records.read(form)
        except BrokenStream as broken:
            if broken.locator != books.locator:
                books.leave(stream.tell())
                raise
            yield records.broken(broken, _in_range(broken.locator, self.start))
        except (MemoryError, OSError):
            raise
        except Exception as error:  # whatever the walk of an archive raises
            yield records.broken(BrokenStream("corrupt_archive", books.locator, _named(error)))
        finally:
            books.decompressed_bytes = stream.tell() if size is None else size

    def _archive(self, kind: str, stream: Any, size: int | None) -> Iterator[Item]:
        """A .tar's bytes are those of its members, gaps and structure; a .zip's own are all structure."""
        books = self.books
        num_matching = 0
        passed_over: list[str] = []
        if size is not None:  # a .zip
            books.take(size, "archive")
        for item in walk(kind, stream, books.locator, self.source.limits):
            if isinstance(item, archives.Structure):
                books.add(item.num_bytes, "archive")
            elif isinstance(item, Gap):
                where = books.place_gap(item.locator)
                row = removal(self.source, where, item.reason, item.detail, item.head)
                if kind == ".zip":
                    books.count(row)
                    books.skipped_bytes += item.num_bytes
                else:
                    books.add(item.num_bytes, row)
                yield row
            elif not _matches(item.path, self.source.members):
                passed_over += [item.path] if len(passed_over) < _NUM_NAMES_SHOWN else []
                if kind == ".tar":
                    blocks = _Counted(item.blocks)
                    yield from self._finish(blocks, item.locator, books)
                    books.add(blocks.num_bytes, "unwanted_member")
            else:
                num_matching += 1
                yield from self._member(item, kind == ".tar")
        if not num_matching:
            wanted = ", ".join(self.source.members) or "any"
            detail = f"wanted {wanted}; there is: {', '.join(passed_over) or 'no file'}"
            row = removal(self.source, books.locator, "no_members", detail)
            books.count(row)
            yield row
        if size is None and kind == ".zip":
            books.take(_size(stream), "archive")
        elif size is None:
            yield from _Records(stream, books, self.source).rest(detail="behind the last member")

    def _member(self, member: Member, is_counted: bool) -> Iterator[Item]:
        books = Books(self.books.dataset, self.books.source, member.locator, self.books.locator, kinds=self.books.kinds)
        blocks = _Counted(member.blocks)
        stream = ByteStream(blocks, member.locator, self.source.limits)
        try:
            known = self.licenses.nearest(member.path) if self.licenses else None
            yield from _Input(member.path, books, self.source, self.keep, license=known).read(stream)
            yield from self._finish(blocks, member.locator, books)
        except BrokenStream as broken:  # the archive itself is broken: there is no next member
            broken.detail += f", in {member.path}"
            raise
        finally:
            books.stored_bytes = blocks.num_bytes
            if is_counted:
                self.books.pass_on(blocks.num_bytes)
            self.keep(books.close())

    def _finish(self, blocks: _Counted, locator: str, books: Books) -> Iterator[Removal]:
        """Reads the unread bytes of a member: all of one that is passed over, or those behind its compressed data.

        Gaps in it are rows.
        """
        for block in blocks:
            if isinstance(block, BrokenStream):
                where = books.place_gap(f"{locator}#{blocks.num_bytes}/gap")
                row = removal(self.source, where, block.reason, block.detail)
                books.count(row)
                books.skipped_bytes += block.skipped_bytes
                yield row


class _Counted:
    """Blocks of an archive's member, with the number of bytes that they had so far."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self.num_bytes = 0

    def __iter__(self) -> Iterator[Block]:
        return self

    def __next__(self) -> Block:
        block = next(self._blocks)
        if isinstance(block, bytes):
            self.num_bytes += len(block)
        return block


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    names = (path, posixpath.basename(path))
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names)


def _codecs_of(stream: ByteStream) -> list[str]:
    """The compression of a file whose name has no suffix of one."""
    try:
        return codec_of(stream.peek(_MAGIC_BYTES))
    except BrokenStream:
        return []  # raised again by the next read


def _is_empty(stream: Any) -> bool:
    if isinstance(stream, ByteStream):
        try:
            return not stream.peek(1)
        except BrokenStream:
            return False  # the reader's first read raises it again
    is_empty = not stream.read(1)
    stream.seek(0)
    return is_empty


# --- the records of a stream


class _Records:
    """The records that a reader finds in one stream, with every byte of it in the books."""

    def __init__(self, stream: Any, books: Books, source: SourceConfig, known: License | None = None) -> None:
        self._stream = stream
        self._books = books
        self._source = source
        self._license = known

    def read(self, form: Format) -> Iterator[Item]:
        """Raises: BrokenStream of the stream if nothing more can be read from it."""
        while True:
            start = self._stream.tell()
            try:
                for claim in form.read(self._stream, self._books.locator, self._source):
                    if self._books.gap(claim.start, claim.end):
                        yield self._lost(claim.start, "unclaimed_bytes", "between two records")
                    if (item := self._settled(claim)) is not None:
                        yield item
                yield from self.rest()
                return
            except BrokenStream as broken:
                if not broken.can_resume:
                    raise
                where = f"{self._books.locator}#{self._place(self._stream.tell())}/gap"
                yield self.broken(broken, self._books.place_gap(where))
                self._stream.resume()
            except MemoryError:
                raise
            except Exception as error:  # whatever a reader raises costs what it was reading
                if isinstance(self._stream, ByteStream) and self._stream.tell() > start:
                    yield self._lost(self._stream.tell(), "reader_error", _named(error))
                    continue  # the reader finds the next record from there
                yield from self.rest("reader_error", _named(error))
                return

    def broken(self, broken: BrokenStream, locator: str | None = None) -> Removal:
        """The row of a stream that breaks off, for all that was read and not claimed."""
        unfinished = f"; {len(broken.partial)} bytes of an unfinished record" if broken.partial else ""
        skipped = f"; {broken.skipped_bytes} bytes skipped" if broken.skipped_bytes else ""
        detail = broken.detail + unfinished + skipped
        held = broken.partial or self._recall(self._books.claimed, self._position())
        row = removal(self._source, locator or broken.locator, broken.reason, detail, held)
        self._books.skipped_bytes += broken.skipped_bytes
        self._books.take(self._position(), row)
        return row

    def _settled(self, claim: Claim) -> Item | None:
        """Counts the bytes of a claim; returns the document or row that they become."""
        if isinstance(claim, Structure):
            self._books.take(claim.end, claim.kind)
            return None
        if isinstance(claim, Content):
            self._books.take(claim.end, None)
            return None
        item = self._parsed(claim) if isinstance(claim, Record) else claim.row
        self._books.take(claim.end, item)
        return item

    def _parsed(self, record: Record) -> Item:
        source = self._source
        try:
            item = record.parse()
            if isinstance(item, RawDocument):
                if item.license is None and self._license is not None:
                    meta = {**item.meta, "license_file": self._license.path}
                    item = replace(item, license=self._license.identifier, meta=meta)
                if item.license is None and source.license is not None:
                    item = replace(item, license=source.license)
                _check_declared(item, FORMATS.get(source.format))
                check_storable(item)
                item = item if isinstance(source.name, str) else _in_row(item, source, source.name, record.raw)
        except MemoryError:
            raise
        except Exception as error:  # one record's problem
            item = removal(source, record.locator, "reader_error", _named(error), record.raw)
        if isinstance(item, Removal) and record.start < record.end:
            item = replace(item, removed_text=record.raw)
        return item

    def rest(self, reason: str = "unclaimed_bytes", detail: str = "behind the last record") -> Iterator[Item]:
        """A row for the bytes behind the last claim, if there are any; the stream is then at its end."""
        size = _size(self._stream)
        if self._books.claimed < size or reason != "unclaimed_bytes":
            yield self._lost(size, reason, detail)

    def _lost(self, end: int, reason: str, detail: str) -> Removal:
        start = self._books.claimed
        locator = f"{self._books.locator}#{self._place(start)}/{reason}"
        row = removal(self._source, locator, reason, f"{detail}: {end - start} bytes", self._recall(start, end))
        self._books.take(end, row)
        return row

    def _place(self, position: int) -> str:
        """A position in a row's locator."""
        counts_by_frame = FORMATS.get(self._source.format).is_multistream and isinstance(self._stream, ByteStream)
        return self._stream.place(position) if counts_by_frame else str(position)

    def _position(self) -> int:
        return self._books.claimed if self._stream.closed else self._stream.tell()

    def _recall(self, start: int, end: int) -> bytes:
        """The bytes `start:end`, or their beginning; empty if they can no longer be read."""
        end = min(end, start + RECALLED_BYTES)
        if isinstance(self._stream, ByteStream):
            return self._stream.recall(start, end)
        if end <= start or self._stream.closed or not self._stream.seekable():
            return b""
        position = self._stream.tell()
        self._stream.seek(start)
        data: bytes = self._stream.read(end - start)
        self._stream.seek(position)
        return data


def _check_declared(document: RawDocument, form: Format) -> None:
    """Raises: ValueError for a key of `meta` that the format does not declare."""
    if form.keeps_fields or document.meta.keys() <= form.meta.keys():
        return
    unknown = sorted(document.meta.keys() - {*form.meta, *COMMON_META, UNREADABLE_TIMESTAMP})
    if unknown:
        raise ValueError(f"{unknown[0]!r} in meta is not declared by format {form.name}")


def _in_row(document: RawDocument, source: SourceConfig, rows: RowsConfig, raw: bytes) -> Item:
    """The document with its row; a ledger row where the record names none."""
    value = find_value(document.meta, rows.field)
    if value is None:  # `meta.KEY` of a record is `KEY` of the document's metadata
        value = find_value({META: document.meta}, rows.field)
    row = rows.row_of(value)
    if row is not None:
        return replace(document, row=row)
    detail = f"`{rows.field}` is missing or null" if value is None else f"`{rows.field}` is {value!r}"
    unknown = removal(source, document.locator, "unknown_source", detail, raw or document.text.encode())
    return replace(unknown, timestamp=moment_of(document, source) or unknown.timestamp)


def _size(stream: Any) -> int:
    """Reads or seeks to the end."""
    if stream.seekable():
        size = int(stream.seek(0, 2))
        stream.seek(0)
        return size
    while stream.read(BLOCK_BYTES):
        pass
    return int(stream.tell())


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
