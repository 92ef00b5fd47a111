"""Multistream dumps of MediaWiki in ranges, which are read apart.

`pages-articles-multistream.xml.bz2` is a chain of bzip2 streams: the head of the dump, a hundred pages each, its end.
The index beside it has a line `offset:page id:title` for each page, with the offset of the page's stream. A large dump
is cut where a stream of the index begins with a page. An index that names another place is not used.

Source: https://meta.wikimedia.org/wiki/Data_dumps/Dump_format
"""

from __future__ import annotations

import bz2
import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import BinaryIO

from finpile.config import SourceConfig
from finpile.config.limits import LimitsConfig
from finpile.plugins.format import FORMATS
from finpile.sources.bytes.compression import decompressed, split_codecs
from finpile.sources.bytes.streams import BLOCK_BYTES, BrokenStream, TooLarge
from finpile.sources.readers.finding import InputFile, describe, locate
from finpile.storage.file_systems import open_in
from finpile.storage.sizes import task_bytes_of

_NAME = re.compile(r"(.*multistream)(\d*)\.xml((?:-p\d+p\d+)?)\.bz2\Z")
_PAGE = re.compile(rb"\s*<page>")
#: Enough of a stream's text for white space and the first tag.
_START_BYTES = 256
#: A block of bzip2 is no larger, and gives no text before it is whole.
_MAX_BLOCK_BYTES = 2_500_000
_MAX_HEAD_BYTES = 1 << 20


class UnusableIndex(Exception):
    """The message says why a dump cannot be cut by its index."""


def index_of(path: str) -> str | None:
    """The path of the index of a multistream dump; None for other names.

    >>> index_of("enwiki-20260901-pages-articles-multistream1.xml-p1p41242.bz2")
    'enwiki-20260901-pages-articles-multistream-index1.txt-p1p41242.bz2'
    """
    name = _NAME.match(path)
    return f"{name[1]}-index{name[2]}.txt{name[3]}.bz2" if name else None


def in_ranges(file: InputFile, source: SourceConfig, range_bytes: int | None = None) -> list[InputFile]:
    """The ranges of a large dump with an index; all other files as they are.

    A range has `range_bytes` or more. The file whose index cannot be used is not cut, and says why.
    """
    size, index = range_bytes or task_bytes_of(file.size_bytes), _index_to_use(file, source)
    if index is None or file.size_bytes < 2 * size:
        return [file]
    try:
        starts = [0, *_starts(describe(index), file.size_bytes, size, source.limits)]
        _check(file, starts[1:])
    except FileNotFoundError:
        return [file]
    except (UnusableIndex, OSError) as error:
        return [replace(file, index_defect=f"{posixpath.basename(index)}: {error}")]
    return [replace(file, span=span) for span in pairwise([*starts, file.size_bytes])]


def expected_ranges(file: InputFile, source: SourceConfig) -> int:
    """About how many `in_ranges` gives, by sizes alone: no file is read."""
    size, index = task_bytes_of(file.size_bytes), _index_to_use(file, source)
    if index is None or file.size_bytes < 2 * size:
        return 1
    try:
        describe(index)
    except OSError:
        return 1
    return file.size_bytes // size


def _index_to_use(file: InputFile, source: SourceConfig) -> str | None:
    """The path that the index of a dump would have; None for other files."""
    return index_of(file.url) if FORMATS.get(source.format).is_multistream else None


def _starts(index: InputFile, dump_bytes: int, range_bytes: int, limits: LimitsConfig | None) -> Iterator[int]:
    """The offsets of the index that are a range's size from each other, and from the dump's start and end."""
    last = before = 0
    for line in _lines(index, limits):
        number, colon, _ = line.partition(b":")
        if not (number.isdigit() and colon and len(number) < 20):
            raise UnusableIndex(f"a line is not `offset:page id:title`: {line[:80]!r}")
        offset = int(number)
        if offset < last or offset >= dump_bytes:
            raise UnusableIndex(f"offset {offset} is behind {last}, in a dump of {dump_bytes} bytes")
        last = offset
        if offset >= before + range_bytes and offset + range_bytes <= dump_bytes:
            before = offset
            yield offset


def _lines(index: InputFile, limits: LimitsConfig | None) -> Iterator[bytes]:
    fs, path = locate(index.url)
    with open_in(fs, path, index.size_bytes) as stored:
        try:
            for line in decompressed(stored, (".bz2",), index.url, limits).lines():
                if isinstance(line, TooLarge):
                    raise UnusableIndex("a line is larger than limits.record")
                yield line
        except BrokenStream as broken:
            raise UnusableIndex(broken.detail) from broken


def _check(file: InputFile, starts: list[int]) -> None:
    """Raises: UnusableIndex for a start at which there is no stream that begins with a page."""
    fs, path = locate(file.url)
    with open_in(fs, path, file.size_bytes) as stored:
        for start in starts:
            stored.seek(start)
            if not _PAGE.match(_first_bytes(stored)):
                raise UnusableIndex(f"no stream of the dump begins with a page at its offset {start}")


def _first_bytes(stored: BinaryIO) -> bytes:
    """The beginning of a stream's text; none of what is not a stream."""
    decoder = bz2.BZ2Decompressor()
    text = b""
    num_read = 0
    try:
        while len(text) < _START_BYTES and num_read < _MAX_BLOCK_BYTES and not decoder.eof:
            block = stored.read(BLOCK_BYTES) if decoder.needs_input else b""
            if decoder.needs_input and not block:
                break
            num_read += len(block)
            text += decoder.decompress(block, _START_BYTES)
    except OSError:
        return b""
    return text


def head_of(stored: BinaryIO, path: str, locator: str, limits: LimitsConfig | None) -> bytes:
    """What a compressed dump has before its first page, read from its start; none if that cannot be found."""
    stream = decompressed(stored, split_codecs(path)[1], locator, limits)
    head = b""
    try:
        while len(head) < _MAX_HEAD_BYTES and (block := stream.read1()):
            head += block
            if (place := head.find(b"<page>")) >= 0:
                return head[:place]
    except BrokenStream:
        pass
    return b""


class Span:
    """The bytes `start:end` of a file, read once from its start; positions are those of the file."""

    def __init__(self, stored: BinaryIO, start: int, end: int) -> None:
        stored.seek(start)
        self._stored = stored
        self._end = end

    def seekable(self) -> bool:
        return False

    def read(self, size: int = -1, /) -> bytes:
        left = self._end - self._stored.tell()
        return self._stored.read(left if size < 0 else min(size, left))
