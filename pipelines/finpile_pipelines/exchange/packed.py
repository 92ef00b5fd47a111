"""Rows of one schema as packed bytes: what an exchange sends to a partition.

An Arrow IPC stream has its schema and pads its buffers: with one row it takes 472 bytes and 85 us. The schema of an
exchange is known to both sides, so a *segment* has only rows:

    head       number of rows and of ranges, a bit for each column with nulls, bytes of each column of variable width
    ranges     partition and number of rows, for each partition of which the segment has rows
    rows       side by side, fixed width; of a column of variable width its length, -1 for null
    data       of each column of variable width
    validity   a byte for each row, of each column of fixed width with nulls

All of a sender's segments are cut from one array, and a receiver joins those of all senders before it looks at a
column, so neither does work for each segment and column.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.errors import IntegrityError

_I64 = npt.NDArray[np.int64]
#: Bytes of segments that are decoded at once: Arrow's strings have offsets of 32 bits.
_DECODED_BYTES = 1 << 30
#: The partition of a range, and its number of rows.
RANGE_ENTRY_BYTES = 16


class SplitTable(Mapping[int, pa.Table]):
    """A table whose rows are sorted by partition, as the tables of the partitions."""

    __slots__ = ("bounds", "names", "table")

    def __init__(self, table: pa.Table, names: _I64, bounds: _I64) -> None:
        self.table = table
        self.names = names
        """Partitions that have rows, ascending."""
        self.bounds = bounds
        """The first row of each of them, and the number of rows."""

    def __getitem__(self, name: int) -> pa.Table:
        at = int(np.searchsorted(self.names, name))
        if at == len(self.names) or self.names[at] != name:
            raise KeyError(name)
        return self.table.slice(self.bounds[at], self.bounds[at + 1] - self.bounds[at])

    def __iter__(self) -> Iterator[int]:
        return iter(self.names.tolist())

    def __len__(self) -> int:
        return len(self.names)

    @property
    def ranges(self) -> Ranges:
        """The partitions of the rows."""
        return Ranges(self.names, np.diff(self.bounds))

    @classmethod
    def of(cls, tables: Mapping[int, pa.Table]) -> SplitTable:
        """The tables of some partitions, as one; those without rows are left out."""
        if isinstance(tables, SplitTable):
            return tables
        some = sorted((name, table) for name, table in tables.items() if table.num_rows)
        if not some:
            return cls(pa.table({}), np.empty(0, np.int64), np.zeros(1, np.int64))
        bounds = np.cumsum([0, *(table.num_rows for _, table in some)])
        return cls(pa.concat_tables([table for _, table in some]), np.array([name for name, _ in some]), bounds)


def split_by_partition(table: pa.Table, partition: npt.NDArray[Any]) -> SplitTable:
    """The rows of each partition, in the order of the table."""
    if len(partition) == 0:
        return SplitTable(table, np.empty(0, np.int64), np.zeros(1, np.int64))
    if not (partition[1:] >= partition[:-1]).all():
        is_small = partition.min() >= 0 and partition.max() < 1 << 16
        order = np.argsort(partition.astype(np.uint16) if is_small else partition, kind="stable")  # 16 bits: by radix
        table, partition = table.take(pa.array(order)), partition[order]
    starts = np.flatnonzero(np.r_[True, partition[1:] != partition[:-1]])
    return SplitTable(table, partition[starts].astype(np.int64), np.append(starts, len(partition)))


class Ranges(NamedTuple):
    """The partitions of consecutive rows."""

    names: _I64
    sizes: _I64

    def to_bytes(self) -> bytes:
        """Each as `RANGE_ENTRY_BYTES`: its partition and its number of rows."""
        return np.stack([self.names, self.sizes], axis=1).astype("<i8").tobytes()

    def split(self, table: pa.Table) -> SplitTable:
        """The rows by partition."""
        if (self.names == self.names[:1]).all():
            return SplitTable(table, self.names[:1], np.array([0, table.num_rows])[: len(self.names) + 1])
        return split_by_partition(table, np.repeat(self.names, self.sizes))


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: pa.DataType
    dtype: str
    """Of numpy: of the value, or of its length."""
    is_variable: bool = False


class PackedRows:
    """Segments of rows of one schema."""

    def __init__(self, schema: pa.Schema) -> None:
        """Raises: TypeError for a schema with a column that has no packed form (`can_pack`)."""
        columns = [_column(field) for field in schema]
        if None in columns:
            raise TypeError(f"no packed form of the columns of {schema}")
        self._schema = schema
        self._columns = [column for column in columns if column is not None]
        self._variable = [column for column in self._columns if column.is_variable]
        self._fixed = [column for column in self._columns if not column.is_variable]
        self._row = np.dtype([(f"f{at}", column.dtype) for at, column in enumerate(self._columns)])
        self._head = struct.Struct(f"<qqQ{len(self._variable)}q")

    def encode(self, rows: SplitTable, cuts: _I64) -> Iterator[bytes]:
        """The segments of `rows`: the ranges from `cuts[i]` to `cuts[i + 1]` are in segment i."""
        packed = self._pack(rows.table)
        range_bytes, row_bytes = memoryview(rows.ranges.to_bytes()), memoryview(packed.rows.tobytes())
        width, bounds = self._row.itemsize, rows.bounds[cuts]
        ends = [offsets[bounds].tolist() for offsets, _ in packed.data]
        places, firsts = bounds.tolist(), cuts.tolist()
        for at, (first, last) in enumerate(pairwise(places)):
            sizes = [column[at + 1] - column[at] for column in ends]
            low, high = firsts[at], firsts[at + 1]
            yield b"".join(
                (
                    self._head.pack(last - first, high - low, packed.nulls, *sizes),
                    range_bytes[low * RANGE_ENTRY_BYTES : high * RANGE_ENTRY_BYTES],
                    row_bytes[first * width : last * width],
                    *(data[column[at] : column[at + 1]] for (_, data), column in zip(packed.data, ends, strict=True)),
                    *(validity[first:last] for validity in packed.validity),
                )
            )

    def decode(self, segments: Sequence[bytes | memoryview]) -> tuple[pa.Table, Ranges]:
        """All rows of some segments, in their order, and their partitions.

        Raises: IntegrityError for bytes that no segment of this schema has.
        """
        parts, begin, size = [], 0, 0
        for at, segment in enumerate(segments):
            size += len(segment)
            if size > _DECODED_BYTES and at > begin:
                parts.append(self._joined(segments[begin:at]))
                begin, size = at, len(segment)
        parts.append(self._joined(segments[begin:]))
        if len(parts) == 1:
            return parts[0]
        ranges = Ranges(*(np.concatenate(column) for column in zip(*(ranges for _, ranges in parts), strict=True)))
        return pa.concat_tables([table for table, _ in parts]), ranges

    def _pack(self, table: pa.Table) -> _Packed:
        rows = np.empty(table.num_rows, self._row)
        data: list[tuple[_I64, memoryview]] = []
        validity: list[memoryview] = []
        nulls = at_fixed = 0
        for at, column in enumerate(self._columns):
            values = _one_chunk(table.column(at))
            if column.is_variable:
                lengths, offsets, content = _lengths(values)
                rows[f"f{at}"] = lengths
                data.append((offsets, content))
                continue
            rows[f"f{at}"] = _numbers(values, column.dtype)
            if values.null_count:
                nulls |= 1 << at_fixed
                validity.append(memoryview(_numbers(values.is_valid(), "u1").tobytes()))
            at_fixed += 1
        return _Packed(rows, data, validity, nulls)

    def _joined(self, segments: Sequence[bytes | memoryview]) -> tuple[pa.Table, Ranges]:
        width, head = self._row.itemsize, self._head
        rows: list[bytes | memoryview] = []
        ranges: list[bytes | memoryview] = []
        data: list[list[bytes | memoryview]] = [[] for _ in self._variable]
        valid: list[list[bytes | memoryview]] = [[] for _ in self._fixed]
        all_nulls = 0
        sizes: list[tuple[int, int, int]] = []
        for segment in segments:
            view = memoryview(segment)
            if len(view) < head.size:
                raise IntegrityError("a segment of an exchange is cut off")
            num_rows, num_ranges, nulls, *lengths = head.unpack_from(view)
            at = head.size + num_ranges * RANGE_ENTRY_BYTES
            ranges.append(view[head.size : at])
            rows.append(view[at : at + num_rows * width])
            at += num_rows * width
            for column, length in zip(data, lengths, strict=True):
                column.append(view[at : at + length])
                at += length
            sizes.append((num_rows, nulls, at))
            all_nulls |= nulls
            if min(num_rows, num_ranges, *lengths, 0) < 0 or at + nulls.bit_count() * num_rows != len(view):
                raise IntegrityError("a segment of an exchange has another size than it says")
        if all_nulls:
            for segment, (num_rows, nulls, at) in zip(segments, sizes, strict=True):
                for place, column in enumerate(valid):
                    if nulls >> place & 1:
                        column.append(memoryview(segment)[at : at + num_rows])
                        at += num_rows
                    else:
                        column.append(b"\1" * num_rows)
        array = np.frombuffer(b"".join(rows), self._row)
        found = np.frombuffer(b"".join(ranges), "<i8").reshape(-1, 2)
        columns = self._arrays(array, [b"".join(column) for column in data], [b"".join(column) for column in valid])
        if int(found[:, 1].sum()) != len(array):
            raise IntegrityError("the ranges of a segment of an exchange have another number of rows than it has")
        return pa.Table.from_arrays(columns, schema=self._schema), Ranges(found[:, 0], found[:, 1])

    def _arrays(self, rows: npt.NDArray[Any], data: list[bytes], valid: list[bytes]) -> list[pa.Array]:
        arrays, contents, validity = [], iter(data), iter(valid)
        for at, column in enumerate(self._columns):
            values = np.ascontiguousarray(rows[f"f{at}"])
            if column.is_variable:
                arrays.append(_of_lengths(values, next(contents), column.type))
            else:
                arrays.append(_of_numbers(values, next(validity), column.type))
        return arrays


class _Packed(NamedTuple):
    rows: npt.NDArray[Any]
    data: list[tuple[_I64, memoryview]]
    """Of each column of variable width: offsets, beginning with 0, and all values."""
    validity: list[memoryview]
    nulls: int
    """A bit for each column of fixed width that has nulls."""


def can_pack(schema: pa.Schema) -> bool:
    """Whether the columns are numbers, times, booleans and bytes or strings of any width."""
    return all(_column(field) is not None for field in schema)


def packed_bytes(table: pa.Table) -> int:
    """The bytes of a table's rows, whatever its chunks: what stages count as exchanged."""
    return sum(_column_bytes(column) for column in table.columns)


def _column_bytes(column: pa.ChunkedArray) -> int:
    if _is_variable(column.type):
        return 4 * len(column) + (pc.sum(pc.binary_length(column)).as_py() or 0)
    return len(column) * -(-column.type.bit_width // 8) if _is_fixed(column.type) else int(column.nbytes)


def _column(field: pa.Field) -> _Column | None:
    kind = field.type
    if _is_variable(kind):
        return _Column(field.name, kind, "<i8", is_variable=True)
    if pa.types.is_fixed_size_binary(kind):
        return _Column(field.name, kind, f"V{kind.byte_width}")
    if pa.types.is_boolean(kind):
        return _Column(field.name, kind, "u1")
    return _Column(field.name, kind, f"u{kind.bit_width // 8}") if _is_fixed(kind) else None


def _is_variable(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind)
    )


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or (pa.types.is_fixed_size_binary(kind) and kind.byte_width))


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _numbers(values: pa.Array, dtype: str) -> npt.NDArray[Any]:
    """The values as they are in memory, those of nulls included."""
    if pa.types.is_boolean(values.type):
        bits = np.frombuffer(values.buffers()[1] or b"", np.uint8)
        return np.unpackbits(bits, count=values.offset + len(values), bitorder="little")[values.offset :]
    buffer = values.buffers()[1]
    return np.frombuffer(buffer or b"", dtype, count=values.offset + len(values))[values.offset :]


def _lengths(values: pa.Array) -> tuple[_I64, _I64, memoryview]:
    """The length of each value, -1 for null; the offsets of values from the first one on; the bytes of all."""
    is_large = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    _, places, content = values.buffers()
    if len(values) == 0 or places is None:
        return np.empty(0, np.int64), np.zeros(1, np.int64), memoryview(b"")
    kind = np.int64 if is_large else np.int32
    offsets = np.frombuffer(places, kind, count=values.offset + len(values) + 1)[values.offset :].astype(np.int64)
    first, lengths = int(offsets[0]), np.diff(offsets)
    if values.null_count:
        is_null = values.is_null().to_numpy(zero_copy_only=False)
        if lengths[is_null].any():  # Arrow allows bytes under nulls
            return _lengths(values.take(pa.array(np.arange(len(values)))))
        lengths[is_null] = -1
    return lengths, offsets - first, memoryview(content or b"")[first : int(offsets[-1])]


def _of_lengths(lengths: _I64, content: bytes, kind: pa.DataType) -> pa.Array:
    is_null = lengths < 0
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
    if int(offsets[-1]) != len(content):
        raise IntegrityError("values of a segment of an exchange have another size than it says")
    places = offsets if is_large else offsets.astype(np.int32)
    buffers = [_bitmap(~is_null), pa.py_buffer(places), pa.py_buffer(content)]
    return pa.Array.from_buffers(kind, len(lengths), buffers)


def _of_numbers(values: npt.NDArray[Any], validity: bytes, kind: pa.DataType) -> pa.Array:
    size = len(values)
    if pa.types.is_boolean(kind):
        values = np.packbits(values, bitorder="little")
    is_valid = np.frombuffer(validity, np.uint8) if validity else None
    bitmap = None if is_valid is None else _bitmap(is_valid)
    return pa.Array.from_buffers(kind, size, [bitmap, pa.py_buffer(values)])


def _bitmap(is_valid: npt.NDArray[Any]) -> pa.Buffer | None:
    if is_valid.all():
        return None
    return pa.py_buffer(np.packbits(is_valid.astype(np.uint8), bitorder="little"))
