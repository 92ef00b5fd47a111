"""The first records of some files of a source: what its files hold by stored byte, before a build reads them.

A file is read to a bound of text. What is left of it is taken to be like what was read, and the other files of the
source to be like the chosen ones. Which files are read, and how much of them, depends on the listed files alone.
"""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import pyarrow.parquet as pq

from finpile.clean import clean_batch
from finpile.config import SourceConfig
from finpile.documents.document import PLAIN, DocumentBuilder, RawDocument, text_views
from finpile.errors import FinpileError
from finpile.sources.bytes.compression import split_codecs
from finpile.sources.readers.finding import InputFile, locate
from finpile.sources.readers.reading import read_file
from finpile.storage.file_systems import open_in

_T = TypeVar("_T")

#: Files of a source that are read at most, and the text at which no further one is.
_MAX_FILES, _TEXT_BYTES = 64, 16 << 20
#: Text at which the reading of one of several files ends: several blocks of stored bytes, even of compressed files.
_FILE_TEXT_BYTES = 8 << 20
#: Text of the documents of a source that are cleaned, and so are its excerpt.
_CLEANED_BYTES = 2 << 20
#: The golden ratio: its multiples spread evenly over a range, however many there are.
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """What was read, extrapolated to all files of a source."""

    documents: float
    text_bytes: float
    """As `ingest` reads it."""
    clean_per_text: float | None
    """Text that cleaning leaves; None if the source has neither markup nor filters."""
    excerpt: list[bytes]
    """The text of some documents as cleaning leaves it."""


def read_sample(source: SourceConfig, files: Sequence[InputFile], *, drop_undated: bool) -> Sample | None:
    """Reads a sample of a source; None if it has no document, or its cleaning raises.

    Raises: StoreError if an object store does not answer.
    """
    parts, documents = list[_Part](), list[RawDocument]()
    for file in itertools.islice(_spread(files), _MAX_FILES):
        part = _read(file, source, max(_FILE_TEXT_BYTES, _TEXT_BYTES // len(files)))
        parts.append(part)
        documents += part.documents
        if sum(part.text_bytes for part in parts) >= _TEXT_BYTES:
            break
    read = sum(part.stored_bytes for part in parts)
    if not documents or not read:
        return None
    try:
        size, left = _cleaned(source, documents, drop_undated)
    except FinpileError:  # `finpile check` and the build name what is wrong
        return None
    stored = sum(file.span_bytes for file in files)
    is_one_each = all(len(part.documents) == 1 and part.is_whole for part in parts)
    num_documents = sum(len(part.documents) * part.factor for part in parts) / read * stored
    return Sample(
        documents=len(files) if is_one_each else num_documents,
        text_bytes=sum(part.text_bytes * part.factor for part in parts) / read * stored,
        clean_per_text=sum(map(len, left)) / max(1, size) if _is_cleaned(source, documents, drop_undated) else None,
        excerpt=left,
    )


@dataclass(slots=True)
class _Part:
    """What was read of one file, and what all of it would give."""

    stored_bytes: int
    """Of the whole file."""
    documents: list[RawDocument] = field(default_factory=list)
    text_bytes: int = 0
    is_whole: bool = True
    factor: float = 1.0
    """The whole file by what was read."""


def _spread(things: Sequence[_T]) -> Iterator[_T]:
    """All things once, in an order in which those taken so far are spread evenly."""
    seen: set[int] = set()
    for number in itertools.count():
        if len(seen) == len(things):
            return
        place = int((0.5 + number * _GOLDEN) % 1 * len(things))
        if place not in seen:
            seen.add(place)
            yield things[place]


def _read(file: InputFile, source: SourceConfig, most_bytes: int) -> _Part:
    """Reads a file up to this much text."""
    part, positions, texts = _Part(file.span_bytes), list[int](), list[int]()
    items = read_file(file, source, reached=positions.append, report_every=1)
    try:
        for item in items:
            if isinstance(item, RawDocument):
                part.documents.append(item)
                part.text_bytes += len(_bytes(item))
            texts.append(part.text_bytes)
            if part.text_bytes >= most_bytes:
                part.is_whole = next(items, None) is None
                break
    finally:
        cast(Generator[Any], items).close()
    if not part.is_whole:
        part.factor = max(1.0, _factor(file, positions, texts))
    return part


def _factor(file: InputFile, positions: Sequence[int], texts: Sequence[int]) -> float:
    """A file by the part of it that was read; `positions` and `texts` are those after each item.

    Readers take blocks of stored bytes. The text between the first items of two blocks belongs to the difference of the
    positions then. Parquet is not read in the order of its bytes, and the directory of
    a .zip is behind its files: their numbers of rows, and of bytes of files, are known.
    """
    if not positions:
        return 1.0
    name = split_codecs(file.url)[0]
    if name.endswith((".parquet", ".zip")):
        fs, path = locate(file.url)
        with open_in(fs, path) as stream:
            if name.endswith(".parquet"):
                return float(pq.ParquetFile(stream).metadata.num_rows) / len(texts)
            members = zipfile.ZipFile(stream).infolist()
        read = sum(member.compress_size for member in members if member.header_offset < positions[-1])
        return sum(member.compress_size for member in members) / max(1, read)
    last = positions.index(positions[-1])
    read, text = positions[last] - positions[0], texts[last] - texts[0]
    if read <= 0 or text <= 0:  # one block had all items, or one document all text
        return file.span_bytes / max(1, positions[-1])
    return file.span_bytes * text / read / texts[-1]


def _is_cleaned(source: SourceConfig, documents: Sequence[RawDocument], drop_undated: bool) -> bool:
    """Whether a source has markup or filters, or loses undated documents; cleaning leaves nearly all of other text."""
    html = source.clean.html
    has_markup = html == "always" or (html == "auto" and any(one.media_type != PLAIN for one in documents))
    return has_markup or bool(source.clean.filters) or drop_undated


def _cleaned(source: SourceConfig, documents: Sequence[RawDocument], drop_undated: bool) -> tuple[int, list[bytes]]:
    """The bytes of some of the documents, and what cleaning leaves of each."""
    chosen, size = list[RawDocument](), 0
    for document in _spread(documents):
        chosen.append(document)
        size += len(_bytes(document))
        if size >= _CLEANED_BYTES:
            break
    if not _is_cleaned(source, documents, drop_undated):
        return size, list(map(_bytes, chosen))
    builder = DocumentBuilder(source.dataset, source.label)
    for document in chosen:
        builder.append(document)
    cleaned = clean_batch(builder.flush(), source, drop_undated=drop_undated)
    return size, [bytes(text) for text in text_views(cleaned.batch)]


def _bytes(document: RawDocument) -> bytes:
    return document.text.encode(errors="surrogatepass")
