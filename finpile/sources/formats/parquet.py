"""Parquet: one document a row, read by row groups.

A damaged column costs the rows of its row group behind the damage if a document needs it (its text, date or
licence), and else itself alone; both are rows of the ledger with the column, the rows and the bytes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from finpile.config import SourceConfig
from finpile.config.limits import HEAD_BYTES, RATIO_FREE_BYTES, LimitsConfig
from finpile.config.text_template import input_keys
from finpile.documents.labels import meta_key
from finpile.plugins.format import Format
from finpile.sources.bytes.streams import BLOCK_BYTES, BrokenStream
from finpile.sources.readers.accounting import Claim, Content, Lost, Record, Structure
from finpile.sources.readers.base import removal
from finpile.sources.readers.records import META, RECORD_REASONS, TARGETS, distinct_names, field_keys, to_document
from finpile.storage import checked_parquet

_BATCH_ROWS = 1024
#: What a row costs beside its text.
_ROW_BYTES = 64
#: A file that cannot seek (a member of an archive) is kept in memory up to this size, else in a temporary file.
_SPOOL_BYTES = 1 << 26
#: Fields that a document needs; a damaged title or URL is left out.
_NEEDED = ("text", "timestamp", "license")


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The documents of a file. Locators end in the row's ordinal, from 0.

    Of the columns, those that a field is read from and all others of simple type are read; lists, structs, maps and
    binary columns (embeddings, images) that no field names are not read.

    Raises: BrokenStream of a stream that cannot seek.
    """
    if stream.seekable():
        yield from _read(stream, locator, source)
    elif stream.tell():
        raise ValueError("a Parquet file with a gap in it cannot be read")
    else:
        with tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as spool:
            _copy(stream, spool)
            yield from _read(spool, locator, source)


def _meta_keys(source: SourceConfig) -> list[str]:
    """Columns that rules read, and that of the record's own metadata, which may be nested."""
    rules = [rule for rule in (source.sub_source, source.template_group) if rule is not None]
    fields = [] if isinstance(source.name, str) else [source.name.field]
    return [META, *fields, *(key for key in map(meta_key, rules) if key is not None)]


def _copy(stream: BinaryIO, spool: IO[bytes]) -> None:
    try:
        while block := stream.read(BLOCK_BYTES):
            spool.write(block)
    except BrokenStream as broken:
        spool.seek(0)
        broken.partial = spool.read(HEAD_BYTES)
        raise


def _read(stream: IO[bytes], locator: str, source: SourceConfig) -> Iterator[Claim]:
    size = stream.seek(0, 2)
    try:
        file = checked_parquet(stream)
        leaves = _leaves(file)
        num_rows = file.metadata.num_rows
    except MemoryError:
        raise
    except Exception as error:  # Arrow raises errors of many kinds on a broken footer
        yield Lost(0, size, removal(source, locator, "unreadable_file", str(error), _bytes(stream, 0, size)))
        return
    keys = field_keys(source)
    text_keys = input_keys(keys["text"])
    if not any(leaf.feeds(key) for key in text_keys for leaf in leaves):
        names = ", ".join(file.schema_arrow.names)
        detail = f"no column `{keys['text']}` for {num_rows} rows; columns: {names}"
        yield Lost(0, size, removal(source, locator, "no_text", detail, _bytes(stream, 0, size)))
        return
    needed = [*text_keys, *(keys[name] for name in _NEEDED)]
    read_keys = [*text_keys, *keys.values(), *_meta_keys(source)]
    wanted = [leaf for leaf in leaves if leaf.is_simple or any(leaf.feeds(key) for key in read_keys)]
    damage: dict[tuple[int, str], str] = {}
    limits = source.limits or LimitsConfig()
    most_bytes, num_bytes = max(RATIO_FREE_BYTES, limits.ratio * size), 0
    for ordinal, record in _records(file, wanted, needed, damage):
        where, text = f"{locator}#{ordinal}", record.get(keys["text"])
        raw = text.encode("utf-8", "replace") if isinstance(text, str) else b""
        num_bytes += _ROW_BYTES + len(raw)
        if num_bytes > most_bytes:  # a value that all rows share is stored once
            detail = f"{size} bytes expand to more than {most_bytes}: limits.ratio is {limits.ratio}; at row {ordinal}"
            yield Lost(0, 0, removal(source, f"{where}/rest", "decompression_bomb", detail))
            break
        yield Record(0, 0, where, raw, partial(_document, record, where, source, keys))
    for start, end, found in _spans(file, size, {leaf.path for leaf in wanted}, damage):
        if isinstance(found, tuple):
            detail = f"{found[0]} ({end - start} bytes)"
            where = f"{locator}#row-group-{found[1]}/{found[2]}"
            yield Lost(start, end, removal(source, where, "corrupt_file", detail, _bytes(stream, start, end)))
        else:
            yield Structure(start, end, found) if found else Content(start, end)


def _records(
    file: pq.ParquetFile, wanted: Sequence[_Leaf], needed: Sequence[str], damage: dict[tuple[int, str], str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Ordinals and records of all row groups."""
    first_row = 0
    for group in range(file.num_row_groups):
        yield from _Rows(file, group, first_row, wanted, needed, damage).read()
        first_row += file.metadata.row_group(group).num_rows


def _bytes(stream: IO[bytes], start: int, end: int) -> bytes:
    with suppress(OSError):
        stream.seek(start)
        return stream.read(min(end - start, HEAD_BYTES))
    return b""


# --- columns


class _Leaf(NamedTuple):
    """A column as it is stored: a column of the table, or a value somewhere in a nested one."""

    path: str
    column: str
    is_simple: bool

    def feeds(self, key: str) -> bool:
        return key == self.column or key.startswith(f"{self.column}.")


def _leaves(file: pq.ParquetFile) -> list[_Leaf]:
    owners = [field for field in file.schema_arrow for _ in range(_num_leaves(field.type))]
    paths = [file.schema.column(index).path for index in range(len(file.schema.names))]
    return [_Leaf(path, field.name, _is_simple(field.type)) for path, field in zip(paths, owners, strict=True)]


def _num_leaves(kind: pa.DataType) -> int:
    if pa.types.is_dictionary(kind):
        return _num_leaves(kind.value_type)
    return sum(_num_leaves(kind.field(index).type) for index in range(kind.num_fields)) if kind.num_fields else 1


def _is_simple(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_simple(kind.value_type)
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
                or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind))  # fmt: skip


# --- rows


@dataclass(slots=True)
class _Rows:
    """The rows of one row group; what cannot be read is noted in `damage` by row group and path."""

    file: pq.ParquetFile
    group: int
    first_row: int
    leaves: Sequence[_Leaf]
    needed: Sequence[str]
    damage: dict[tuple[int, str], str]
    num_read: int = 0

    def read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Ordinals and records."""
        while True:
            try:
                yield from self._batches()
                return
            except MemoryError:
                raise
            except Exception as error:  # Arrow raises errors of many kinds on broken pages
                if not self._leave_out(error):
                    return

    def _batches(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Continues behind the rows that were read before a column was left out."""
        paths = [leaf.path for leaf in self.leaves]
        passed = 0
        for batch in self.file.iter_batches(_BATCH_ROWS, row_groups=[self.group], columns=paths, use_threads=False):
            known = min(batch.num_rows, self.num_read - passed)
            passed += batch.num_rows
            if known == batch.num_rows:
                continue
            names: Sequence[str] = batch.schema.names
            if len(set(names)) < len(names):
                names = distinct_names(names)
            values = [_values(column) for column in batch.slice(known).columns]
            for cells in zip(*values, strict=True):
                ordinal = self.first_row + self.num_read
                self.num_read += 1
                yield ordinal, dict(zip(names, cells, strict=True))

    def _leave_out(self, error: Exception) -> bool:
        """Notes the columns that cannot be read; whether rows can be read without them."""
        num_rows = self.file.metadata.row_group(self.group).num_rows
        broken = [leaf for leaf in self.leaves if not self._is_readable(leaf)]
        needed = [leaf for leaf in broken if any(leaf.feeds(key) for key in self.needed)]
        for leaf in broken:
            rows = f"rows {self.first_row} to {self.first_row + num_rows - 1}"
            self.damage[self.group, leaf.path] = f"column {leaf.path} of {rows} cannot be read: {error}"
        if needed or not broken:
            first = self.first_row + self.num_read
            path = (needed or self.leaves)[0].path
            lost_rows = f"rows {first} to {self.first_row + num_rows - 1}"
            self.damage[self.group, path] = (
                f"{lost_rows} ({num_rows - self.num_read}) are lost with column {path}: {error}"
            )
            return False
        self.leaves = [leaf for leaf in self.leaves if leaf not in broken]
        return True

    def _is_readable(self, leaf: _Leaf) -> bool:
        try:
            batches = self.file.iter_batches(
                _BATCH_ROWS, row_groups=[self.group], columns=[leaf.path], use_threads=False
            )
            for _ in batches:
                pass
        except MemoryError:
            raise
        except Exception:
            return False
        return True


class _Unreadable(NamedTuple):
    """Replaces a value that Python cannot hold."""

    error: Exception


def _document(record: dict[str, Any], locator: str, source: SourceConfig, keys: dict[str, str]) -> Any:
    """Raises: what a value of a field raised; one that no field needs is left out."""
    if _Unreadable in map(type, record.values()):
        for name, value in list(record.items()):
            if isinstance(value, _Unreadable):
                if name in (*keys.values(), *input_keys(keys["text"])):
                    raise value.error
                del record[name]
    return to_document(record, locator, source, keys)


def _values(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":  # datetime stops at microseconds
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    with suppress(Exception):
        return list(column.to_pylist())
    # Invalid UTF-8, moments beyond the year 9999, zones that are not known: moments are UTC, whatever their zone.
    if pa.types.is_dictionary(kind):
        return _values(column.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return [_text(cell) for cell in column.cast(pa.large_binary()).to_pylist()]
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))
    return [_value(cell) for cell in column]


def _text(cell: bytes | None) -> str | bytes | None:
    """The text of a cell; its bytes if they are not UTF-8."""
    with suppress(UnicodeDecodeError):
        return cell.decode() if cell is not None else None
    return cell


def _value(cell: pa.Scalar) -> Any:
    try:
        return cell.as_py()
    except MemoryError:
        raise
    except Exception as error:  # the problem of one value
        with suppress(Exception):
            return str(cell.cast(pa.string()).as_py())
        return _Unreadable(error)


# --- bytes

#: None: read; text: a kind of structure; a tuple: what was lost, the row group and the path.
_Found = str | tuple[str, int, str] | None


def _spans(
    file: pq.ParquetFile, size: int, wanted: set[str], damage: dict[tuple[int, str], str]
) -> Iterator[tuple[int, int, _Found]]:
    """All bytes of the file, in order: column chunks, and what lies between and behind them."""
    chunks: list[tuple[int, int, _Found]] = []
    for group in range(file.num_row_groups):
        columns = file.metadata.row_group(group)
        for index in range(columns.num_columns):
            chunk = columns.column(index)
            path = chunk.path_in_schema
            start = min(offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset)
            note = damage.get((group, path))
            found = (note, group, path) if note else None if path in wanted else "parquet_column"
            chunks.append((start, start + chunk.total_compressed_size, found))
    position = 0
    for start, end, found in sorted(chunks, key=lambda chunk: chunk[:2]):
        start, end = min(max(start, position), size), min(max(end, position), size)
        if start > position:
            yield position, start, "parquet_footer"
        if end > start or isinstance(found, tuple):
            yield start, end, found
        position = end
    if position < size:
        yield position, size, "parquet_footer"


def _field_names(stream: BinaryIO, record: bytes) -> list[str]:
    """Names of the columns."""
    del record
    return list(pq.ParquetFile(stream).schema_arrow.names)


FORMAT = Format(
    name="parquet",
    read=read,
    reasons=RECORD_REASONS,
    structure={
        "parquet_footer": "magic numbers, footer, page index and bloom filters",
        "parquet_column": "a column that is not read",
    },
    fields=TARGETS,
    keeps_fields=True,
    field_names=_field_names,
    seeks=True,  # Parquet is read from its end
    suffixes=(".parquet",),
)
