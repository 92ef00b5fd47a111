"""The columns of documents that deduplication reads, with a default for each column that a table may leave out."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.dedup.exact import document_digests
from finpile.dedup.near.clusters import document_numbers
from finpile.documents.document import DIGEST_BYTES
from finpile.errors import InputError, count_of

Scope = Literal["dataset", "corpus"]
_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)
_TIMESTAMP = pa.timestamp("s", tz="UTC")

#: A document with the columns that deduplication reads. `digest` is the digest of the text before the first step,
#: `number` a 63-bit hash of scope and digest. Documents of different `scope` are never compared.
COMPARED_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("locator", pa.string(), nullable=False),
        pa.field("priority", pa.int32(), nullable=False),
        pa.field("timestamp", _TIMESTAMP),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("digest", pa.binary(DIGEST_BYTES), nullable=False),
        pa.field("scope", pa.string(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("row", pa.int32(), nullable=False),
    ]
)


def compared(documents: pa.Table | pa.RecordBatch, scope: Scope) -> pa.Table:
    """Returns documents as `COMPARED_SCHEMA`, in one chunk; `row` is the position in the table, `shard` is 0.

    `text` is required. Defaults: `id`, the row number; `dataset`, `source` and `locator`, empty; `priority`, 0;
    `timestamp`, null. Further columns are ignored.

    Raises: InputError for a missing column `text`, a null text, a column of another type, or ids that are not unique.
    """
    size = documents.num_rows
    text = _strings(documents, "text", pa.large_string())
    if text is None:
        raise InputError(f"the documents have no column `text`; they have {', '.join(documents.schema.names)}")
    columns = {
        "id": _ids(documents),
        **{name: _strings(documents, name) for name in ("dataset", "source", "locator")},
        "priority": _complete(_cast(documents, "priority", pa.int32()), "priority"),
        "timestamp": _timestamps(documents),
        "text": text,
    }
    empty, zeros = pa.array([""] * size, pa.string()), pa.array(np.zeros(size, np.int32))
    defaults = {"priority": zeros, "timestamp": pa.nulls(size, _TIMESTAMP)}
    columns = {name: defaults.get(name, empty) if value is None else value for name, value in columns.items()}
    columns["digest"] = document_digests(pa.table({"text": text}))
    columns["scope"] = columns["dataset"] if scope == "dataset" else empty
    columns["number"] = _numbers(columns["scope"], columns["digest"])
    columns["shard"], columns["row"] = zeros, pa.array(np.arange(size, dtype=np.int32))
    return pa.table(columns, schema=COMPARED_SCHEMA)


def selectable(documents: _Rows) -> _Rows:
    """Returns documents of which Arrow can select rows: string and binary views, at any depth of lists, structs, maps
    and dictionaries, become large strings and large binary. Values, names and all other types stay.

    Raises: InputError for a column of which Arrow cannot select rows.
    """
    schema = pa.schema([_selectable_field(field) for field in documents.schema], documents.schema.metadata)
    found = documents if schema == documents.schema else documents.cast(schema)
    for field in schema:
        try:
            found.slice(0, 0).column(field.name).filter(pa.array([], pa.bool_()))
        except pa.ArrowNotImplementedError as error:
            raise InputError(
                f"column `{field.name}` is {field.type}: Arrow cannot select rows of it; cast it, or leave it out"
            ) from error
    return found


def _selectable_field(field: pa.Field) -> pa.Field:
    return field.with_type(_selectable_type(field.type))


def _selectable_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        storage = _selectable_type(kind.storage_type)
        return kind if storage == kind.storage_type else storage
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _selectable_type(kind.value_type), kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([_selectable_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_selectable_field(kind.key_field), _selectable_field(kind.item_field), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_selectable_field(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_selectable_field(kind.value_field))
    return pa.list_(_selectable_field(kind.value_field)) if pa.types.is_list(kind) else kind


def rows_by_scope(documents: pa.Table) -> list[tuple[str, pa.Table]]:
    """Returns the documents of each scope, in the order of the scopes' names."""
    names = sorted(pc.unique(documents["scope"]).to_pylist())
    return [(name, documents.filter(pc.equal(documents["scope"], name)).combine_chunks()) for name in names]


def _numbers(scopes: pa.Array, digests: pa.FixedSizeBinaryArray) -> pa.Array:
    numbers = np.empty(len(scopes), np.int64)
    for name in pc.unique(scopes).to_pylist():
        mine = np.asarray(pc.equal(scopes, name))
        numbers[mine] = document_numbers(name, digests.filter(pa.array(mine))).to_numpy()
    return pa.array(numbers)


def _ids(documents: pa.Table | pa.RecordBatch) -> pa.Array:
    column = _column(documents, "id")
    is_number = column is not None and pa.types.is_integer(column.type)
    ids = _complete(column.cast(pa.string()) if is_number else _cast(documents, "id", pa.string()), "id")
    if ids is None:
        return pa.array([str(row) for row in range(documents.num_rows)], pa.string())
    if pc.count_distinct(ids).as_py() != len(ids):
        raise InputError("column `id`: two documents have the same id")
    return ids


def _strings(documents: pa.Table | pa.RecordBatch, name: str, kind: pa.DataType | None = None) -> pa.Array | None:
    return _complete(_cast(documents, name, kind or pa.string()), name)


def _complete(column: pa.Array | None, name: str) -> pa.Array | None:
    """Raises: InputError for a column with nulls."""
    if column is not None and column.null_count:
        raise InputError(f"column `{name}` is null in {count_of(column.null_count, 'row')}")
    return column


def _timestamps(documents: pa.Table | pa.RecordBatch) -> pa.Array | None:
    column = _column(documents, "timestamp")
    if column is None or pa.types.is_null(column.type):
        return None
    if not (pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)):
        raise InputError(f"column `timestamp` is {column.type}: expected timestamps or dates")
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    return column.cast(_TIMESTAMP, safe=False)


def _cast(documents: pa.Table | pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array | None:
    column = _column(documents, name)
    if column is None or column.type == kind:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or column.type == _STRING_VIEW
    if (is_text or pa.types.is_null(column.type)) if kind in _STRINGS else pa.types.is_integer(column.type):
        return column.cast(kind) if kind in _STRINGS else cast_integers(column, name, kind)
    raise InputError(f"column `{name}` is {column.type}: expected {kind}")


def cast_integers(column: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    """Raises: InputError for a number that the type cannot have."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise InputError(f"column `{name}`: {error}") from error


_STRING_VIEW = pa.string_view()
_PLAIN = {_STRING_VIEW: pa.large_string(), pa.binary_view(): pa.large_binary()}
_STRINGS = (pa.string(), pa.large_string())


def _column(documents: pa.Table | pa.RecordBatch, name: str) -> Any:
    if name not in documents.schema.names:
        return None
    column = documents.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
