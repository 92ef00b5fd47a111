"""Parquet: one document a row, read by row groups."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from finpile.config import SourceConfig
from finpile.document import RawDocument
from finpile.ledger import Removal
from finpile.sources.base import removal
from finpile.sources.records import field_keys, to_document

#: Parquet is read from its end: the opened file itself is wanted, not a forward stream.
SEEKS = True

_BATCH_ROWS = 1024


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[RawDocument | Removal]:
    """The documents of a file. Locators end in the row's ordinal, from 0.

    Of the columns, those that a field is read from and all others of simple type are read; lists, structs, maps and
    binary columns (embeddings, images) that no field names are left where they are.
    """
    keys = field_keys(source)
    row = 0
    try:
        file = pq.ParquetFile(stream if stream.seekable() else io.BytesIO(stream.read()))
        columns = _columns(file.schema_arrow, keys)
        if not any(_feeds(name, keys["text"]) for name in columns):
            names = ", ".join(file.schema_arrow.names)
            detail = f"no column `{keys['text']}` for {file.metadata.num_rows} rows; columns: {names}"
            yield removal(source, locator, "no_text", detail)
            return
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns, use_threads=False):
            values = [_values(column) for column in batch.columns]
            for ordinal, cells in enumerate(zip(*values, strict=True), start=row):
                record = dict(zip(batch.schema.names, cells, strict=True))
                yield to_document(record, f"{locator}#{ordinal}", source, keys)
            row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        reason = "corrupt_file" if row else "unreadable_file"
        yield removal(source, locator, reason, f"after {row} rows: {error}" if row else str(error))


def _columns(schema: pa.Schema, keys: dict[str, str]) -> list[str]:
    wanted = set(keys.values())
    return [field.name for field in schema if _is_simple(field.type) or any(_feeds(field.name, key) for key in wanted)]


def _feeds(column: str, key: str) -> bool:
    return key == column or key.startswith(f"{column}.")


def _is_simple(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_simple(kind.value_type)
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
                or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind))  # fmt: skip


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":  # datetime stops at microseconds
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):  # invalid UTF-8; moments beyond the year 9999
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            return list(column.cast(pa.large_binary()).to_pylist())
        return list(column.cast(pa.string()).to_pylist())
