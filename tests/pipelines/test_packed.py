"""Packed rows: what an exchange sends comes back, for every kind of column, and damage does not go unnoticed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from finpile_pipelines.exchange.arrow_bytes import Compression
from finpile_pipelines.exchange.packed import (
    PackedRows,
    Ranges,
    SplitTable,
    can_pack,
    packed_bytes,
    split_by_partition,
)
from finpile_pipelines.exchange.segments import Segments
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.dedup import exact
from finpile.dedup.contamination.plan import COUNT_SCHEMA
from finpile.dedup.near.buckets import KEY_SCHEMA, ORDERED_KEY_SCHEMA
from finpile.dedup.near.clusters import GROUP_SCHEMA, NEIGHBOUR_SCHEMA, PAIR_SCHEMA
from finpile.dedup.plan import REMOVAL_SCHEMA
from finpile.dedup.substring import repeats
from finpile.dedup.templates.blocks import BLOCK_SCHEMA
from finpile.errors import IntegrityError

#: Every kind of column that has a packed form.
SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("hash", pa.uint64()),
        ("row", pa.int32()),
        ("small", pa.int8()),
        ("share", pa.float64()),
        ("is_new", pa.bool_()),
        ("digest", pa.binary(3)),
        ("at", pa.timestamp("s", tz="UTC")),
        ("id", pa.string()),
        ("text", pa.large_string()),
        ("content", pa.binary()),
        ("context", pa.large_binary()),
    ]
)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "hash": st.integers(0, 2**64 - 1),
    "row": st.integers(-(2**31), 2**31 - 1),
    "small": st.integers(-128, 127),
    "share": st.floats(allow_nan=False),
    "is_new": st.booleans(),
    "digest": st.binary(min_size=3, max_size=3),
    "at": st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1)).map(lambda at: at.replace(microsecond=0, tzinfo=UTC)),
    "id": st.text(max_size=5),
    "text": st.text(max_size=9),
    "content": st.binary(max_size=5),
    "context": st.binary(max_size=9),
}
ROWS = st.lists(
    st.fixed_dictionaries({"key": st.integers(0, 6)} | {name: st.none() | value for name, value in _VALUES.items()}),
    max_size=12,
)


def sent(rows: list[dict[str, Any]], start: int, schema: pa.Schema = SCHEMA) -> SplitTable:
    """The rows from `start` on, of a table in two chunks."""
    middle = len(rows) // 2
    parts = [pa.Table.from_pylist(part, schema=schema) for part in (rows[:middle], rows[middle:])]
    table = pa.concat_tables(parts).slice(start)
    return split_by_partition(table, table["key"].to_numpy())


@settings(max_examples=150, deadline=None)
@given(
    origins=st.lists(st.tuples(ROWS, st.integers(0, 3)), min_size=1, max_size=4),
    compression=st.sampled_from(["zstd", "lz4", None]),
    is_packed=st.booleans(),
    most=st.sampled_from([0, 1, 2, 7]),
)
def test_rows_of_all_origins_come_back_by_partition(
    origins: list[tuple[list[dict[str, Any]], int]], compression: Compression | None, is_packed: bool, most: int
) -> None:
    segments = Segments(SCHEMA if is_packed else None, 7, most)
    expected: dict[int, list[dict[str, Any]]] = {}
    by_number: dict[int, list[bytes]] = {}
    for rows, start in origins:
        for number, segment in segments.encode(segments.rows(sent(rows, start)), compression):
            by_number.setdefault(number, []).append(segment)
        for row in pa.Table.from_pylist(rows, schema=SCHEMA).slice(start).to_pylist():
            expected.setdefault(row["key"], []).append(row)
    found: dict[int, list[dict[str, Any]]] = {}
    for number, several in sorted(by_number.items()):
        table, ranges = segments.decode(several)
        assert table.schema.equals(SCHEMA)
        for name, part in ranges.split(table).items():
            assert segments.number(np.array([name])).tolist() == [number]
            assert name not in found
            found[name] = part.to_pylist()
            part.validate(full=True)
    assert found == expected


@pytest.mark.parametrize(
    "schema",
    [
        exact.ROW_SCHEMA,
        COUNT_SCHEMA,
        KEY_SCHEMA,
        ORDERED_KEY_SCHEMA,
        GROUP_SCHEMA,
        NEIGHBOUR_SCHEMA,
        PAIR_SCHEMA,
        REMOVAL_SCHEMA,
        BLOCK_SCHEMA,
        repeats.MINIMIZER_SCHEMA,
        repeats.SHARED_SCHEMA,
        repeats.CONTEXT_SCHEMA,
        repeats.MATCH_SCHEMA,
    ],
)
def test_exchanges_of_plans_are_packed(schema: pa.Schema) -> None:
    assert can_pack(schema)

    assert list(Segments(schema).encode(SplitTable.of({}), None)) == []


def test_nested_columns_have_no_packed_form() -> None:
    schema = pa.schema([("ids", pa.list_(pa.int32()))])
    assert not can_pack(schema)
    with pytest.raises(TypeError, match="leave its schema out"):
        Segments(schema)


def test_bytes_under_nulls_are_not_sent() -> None:
    """Arrow allows a null to have bytes."""
    offsets, data = pa.py_buffer(np.array([0, 3, 6], np.int32)), pa.py_buffer(b"oilgas")
    values = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(bytes([0b10])), offsets, data])
    table = pa.table({"key": [1, 1], "id": values})
    segments = Segments(table.schema)
    ((_, segment),) = segments.encode(SplitTable.of({1: table}), None)
    assert b"oil" not in segment
    assert segments.decode([segment])[0].to_pylist() == [{"key": 1, "id": None}, {"key": 1, "id": "gas"}]


def test_segment_of_one_row_of_keys_has_few_bytes() -> None:
    table = pa.table({"key": pa.array([1], pa.uint64()), "doc": [2]})
    ((_, segment),) = Segments(KEY_SCHEMA).encode(SplitTable.of({1: table}), None)
    assert len(segment) == 8 + 3 * 8 + 2 * 8 + 2 * 8


@given(rows=ROWS.filter(bool), place=st.integers(0, 10_000), value=st.integers(1, 255), cut=st.booleans())
def test_damaged_segment_never_gives_a_table_of_another_shape(
    rows: list[dict[str, Any]], place: int, value: int, cut: bool
) -> None:
    """Checksums notice every changed bit of a file; without them, sizes and numbers of rows are checked."""
    rows = [{**row, "key": 1} for row in rows]
    ((_, segment),) = Segments(SCHEMA).encode(sent(rows, 0), None)
    damaged = bytearray(segment[: place % len(segment)] if cut else segment)
    if not cut:
        damaged[place % len(damaged)] ^= value
    try:
        table, ranges = Segments(SCHEMA).decode([bytes(damaged)])
    except IntegrityError:
        return
    assert not cut
    assert table.num_rows == len(rows) == int(ranges.sizes.sum())


def test_rows_of_another_schema_are_refused() -> None:
    segments = Segments(KEY_SCHEMA)
    with pytest.raises(TypeError, match="expected \\['key', 'doc'\\]"):
        segments.rows({1: pa.table({"key": [1]})})
    cast = segments.rows({1: pa.table({"key": [1], "doc": [2]})})
    assert cast.table.schema.equals(KEY_SCHEMA)


def test_packed_bytes_do_not_depend_on_chunks() -> None:
    table = pa.table({"key": [1, 2, 3], "id": ["a", None, "bcd"], "is_new": [True, False, None]})
    assert packed_bytes(table) == packed_bytes(pa.concat_tables([table.slice(0, 1), table.slice(1)]))
    assert packed_bytes(table) == 3 * 8 + 3 * 4 + 4 + 3


@given(keys=st.lists(st.integers(0, 1 << 40), max_size=20))
def test_ranges_split_what_split_tables_join(keys: list[int]) -> None:
    table = pa.table({"key": pa.array(keys, pa.int64())})
    rows = split_by_partition(table, np.array(keys, np.int64))
    assert isinstance(rows.ranges, Ranges)
    assert dict(rows.ranges.split(rows.table)) == dict(rows)
    assert PackedRows(table.schema)
