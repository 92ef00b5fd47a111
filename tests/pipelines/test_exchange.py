"""Exchanges: a partition has its rows in the same order for every transport and every order of arrival."""

from __future__ import annotations

import random
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from finpile_pipelines import graph
from finpile_pipelines.exchange import held_tables
from finpile_pipelines.exchange.coders import RecordBatchCoder, TableCoder
from finpile_pipelines.exchange.packed import SplitTable
from finpile_pipelines.exchange.partition import (
    ExchangeByPartition,
    PartitionedTables,
    Transport,
    by_range,
    split_by_partition,
)
from finpile_pipelines.exchange.segments import SegmentFiles, write_block
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.process_folder import process_folder
from finpile_pipelines.runner.engine import Engine
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile import storage
from finpile.output.work_folder import WorkFolder
from finpile.storage import sizes

SCHEMA = pa.schema([("key", pa.int64()), ("text", pa.large_string()), ("ids", pa.list_(pa.int32()))])
ROWS = st.lists(
    st.fixed_dictionaries(
        {"key": st.integers(0, 5), "text": st.text(max_size=8), "ids": st.none() | st.lists(st.integers(0, 9))}
    ),
    max_size=30,
)


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def origins() -> dict[str, list[dict[str, Any]]]:
    """What nine origins send, one of them nothing."""
    draw = random.Random(5)
    sent = {
        f"s{number}": [
            {"key": draw.randrange(6), "text": f"{number}-{row} é", "ids": list(range(row % 3))}
            for row in range(number * 7)
        ]
        for number in (4, 2, 8, 1, 10, 3, 7, 5)
    }
    return {**sent, "s0": []}


def exchanged(
    transport: Transport, order: list[str], folder: Path, partitions: int = 0, *, is_packed: bool = False
) -> list[dict[str, Any]]:
    """The exchange's tables, as a pipeline gathers them; each origin's table is sent as a slice in two chunks.

    If it `is_packed`, they have no lists, and the exchange has their schema.
    """
    sent = origins()
    partitioned = []
    for origin in order:
        table = pa.concat_tables([table_of(sent[origin][:3]), table_of([*sent[origin][3:], *sent["s1"]])])
        table = table.slice(0, len(sent[origin])).drop_columns(["ids"] * is_packed)
        partitioned.append(PartitionedTables(origin, split_by_partition(table, table["key"].to_numpy())))
    schema = table.schema if is_packed else None
    scratch = WorkFolder(str(folder)) / "scratch"
    exchange = ExchangeByPartition(transport, scratch, "ByKey", schema=schema, partitions=partitions)

    def construct(pipeline: graph.Pipeline) -> None:
        received = pipeline | Tasks(partitioned) | exchange
        described = received | graph.Map(lambda group: {"partition": group[0], "rows": group[1].to_pylist()})
        _ = described | Gather(str(folder / "out.json"))

    Engine().run("exchange", construct)
    found: list[dict[str, Any]] = storage.read_json(str(folder / "out.json"))
    return sorted(found, key=lambda group: group["partition"])


@pytest.mark.parametrize("transport", ["files", "local", "shuffle"])
@pytest.mark.parametrize("seed", [0, 1])
def test_rows_of_a_partition_are_by_origin_for_any_order_of_arrival(
    transport: Transport, seed: int, tmp_path: Path
) -> None:
    sent = origins()
    order = sorted(sent)
    random.Random(seed).shuffle(order)
    expected: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for origin in sorted(sent):
        for row in sent[origin]:
            expected[row["key"]].append(row)
    assert exchanged(transport, order, tmp_path) == [
        {"partition": key, "rows": rows} for key, rows in sorted(expected.items())
    ]


@pytest.mark.parametrize("transport", ["files", "local", "shuffle"])
@pytest.mark.parametrize("range_bytes", [1, 2000, 1 << 20])
@pytest.mark.parametrize("most", [1, 2, 6])
@pytest.mark.parametrize("is_packed", [False, True])
def test_segments_of_several_partitions_give_the_same_tables(
    transport: Transport,
    range_bytes: int,
    most: int,
    is_packed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In memory, and in parts of one segment or of several that are split into files."""
    expected = exchanged(transport, sorted(origins()), tmp_path / "each", is_packed=is_packed)
    monkeypatch.setattr(sizes, "MOST_SEGMENTS", most)
    monkeypatch.setattr(sizes, "RANGE_BYTES", range_bytes)
    monkeypatch.setattr(held_tables, "HELD_BYTES", 2000)
    order = sorted(origins(), reverse=True)
    assert exchanged(transport, order, tmp_path / "ranges", 6, is_packed=is_packed) == expected
    assert not list((process_folder() / "exchange").rglob("*.arrow"))


@pytest.mark.parametrize(("most", "expected"), [(None, 5), (2, 2)])
def test_most_segments_of_an_origin_are_those_of_the_exchange(most: int | None, expected: int, tmp_path: Path) -> None:
    rows = table_of([{"key": key, "text": "oil", "ids": None} for key in range(5)])
    exchange = ExchangeByPartition("files", WorkFolder(str(tmp_path)), "Keys", partitions=5, most_segments=most)
    numbers, _ = exchange._segments.cut(split_by_partition(rows, rows["key"].to_numpy()))
    assert numbers.tolist() == list(range(expected))


def test_segments_of_origins_with_long_names_are_files(tmp_path: Path) -> None:
    """The names of a dataset and of a source, in any script, are in that of an origin."""
    folder, names = WorkFolder(str(tmp_path)), [f"source={'%E6%96%B0' * 40}-part-{number:05d}" for number in range(3)]
    for name in names:
        write_block(folder, name, iter([(0, name.encode())]))
    files = SegmentFiles(folder, are_mapped=False)
    for name in names:
        assert bytes(files.read(name, 0, len(name), zlib.crc32(name.encode()))) == name.encode()


@pytest.mark.parametrize(("mib", "expected"), [(0, 256), (16, 256), (64, 1024), (128, 2048), (1024, 2048)])
def test_segments_of_documents_have_64_kib_of_text(mib: int, expected: int) -> None:
    assert sizes.most_document_segments(mib << 20) == expected


def num_read(
    transport: Transport, held_bytes: int, folder: Path, monkeypatch: pytest.MonkeyPatch, *, is_packed: bool = True
) -> tuple[Any, int]:
    """What the exchange gives, and the number of segments that it reads from files."""
    read: list[str] = []
    read_file = SegmentFiles.read

    def count(files: SegmentFiles, origin: str, *place: int) -> bytes | memoryview:
        read.append(origin)
        return read_file(files, origin, *place)

    monkeypatch.setattr(SegmentFiles, "read", count)
    monkeypatch.setattr(held_tables, "HELD_BYTES", held_bytes)
    return exchanged(transport, sorted(origins()), folder, is_packed=is_packed), len(read)


def test_tables_are_held_up_to_the_limit_and_equal_those_from_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transport `files`, which a caller may ask for, holds none, and tables that are streams are not held."""
    expected, from_files = num_read("files", 1 << 20, tmp_path / "files", monkeypatch)
    found = {size: num_read("local", size, tmp_path / str(size), monkeypatch) for size in (0, 2000, 1 << 20)}
    assert [tables for tables, _ in found.values()] == [expected] * 3
    assert found[1 << 20][1] < found[2000][1] < found[0][1] == from_files
    streams = num_read("local", 1 << 20, tmp_path / "streams", monkeypatch, is_packed=False)
    assert streams == num_read("files", 0, tmp_path / "streams in files", monkeypatch, is_packed=False)


def test_bytes_of_rows_can_be_held_again_when_all_partitions_are_read() -> None:
    table = table_of([{"key": key, "text": "oil", "ids": [1]} for key in (1, 1, 2)])
    rows = split_by_partition(table, table["key"].to_numpy())
    with held_tables.tables_held(table.nbytes):
        first = held_tables.hold(rows)
        assert first is not None and held_tables.hold(rows) is None
        assert dict(first.read(0, 1)) == {1: table.slice(0, 2)}
        assert held_tables.hold(rows) is None
        assert dict(first.read(1, 2)) == {2: table.slice(2)}
        assert held_tables.hold(rows) is not None
        with pytest.raises(ValueError, match="twice"):
            first.read(0, 1)
    assert held_tables.hold(rows) is None


def test_held_lists_do_not_have_the_values_of_other_partitions() -> None:
    table = table_of([{"key": key, "text": "oil", "ids": [key, key]} for key in (1, 2)])
    with held_tables.tables_held():
        held = held_tables.hold(split_by_partition(table, table["key"].to_numpy()))
    assert held is not None
    assert held.read(1, 2).table["ids"].chunk(0).values.to_pylist() == [2, 2]


def test_slice_is_not_held() -> None:
    """It would hold its whole parent."""
    table = table_of([{"key": 1, "text": "oil", "ids": None} for _ in range(100)])
    with held_tables.tables_held():
        assert held_tables.hold(SplitTable.of({1: table.slice(1, 2)})) is None
        assert held_tables.hold(SplitTable.of({1: table.take(pa.array([1, 2]))})) is not None


@pytest.mark.parametrize("transport", ["files", "shuffle"])
@pytest.mark.parametrize("order", [[], ["s0"]], ids=["no origin", "an origin that sends nothing"])
def test_exchange_of_no_rows_is_empty(transport: Transport, order: list[str], tmp_path: Path) -> None:
    assert exchanged(transport, order, tmp_path) == []


@given(rows=ROWS, start=st.integers(0, 10), chunks=st.booleans())
def test_split_keeps_every_row_of_a_partition_in_order(rows: list[dict[str, Any]], start: int, chunks: bool) -> None:
    middle = len(rows) // 2 if chunks else 0
    table = pa.concat_tables([table_of(rows[:middle]), table_of(rows[middle:])]).slice(start)
    expected: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows[start:]:
        expected[row["key"]].append(row)
    found = split_by_partition(table, table["key"].to_numpy())
    assert {name: part.to_pylist() for name, part in found.items()} == expected
    assert all(part.schema == SCHEMA for part in found.values())


@given(
    keys=st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([0, 2**32 - 1, 2**32, 2**63, 2**64 - 1])),
    num_partitions=st.integers(1, 1 << 20),
)
def test_ranges_are_the_keys_share_of_the_whole_and_keep_its_order(keys: list[int], num_partitions: int) -> None:
    keys = sorted(keys)
    found = by_range(np.array(keys, dtype=np.uint64), num_partitions).tolist()
    assert found == [(key >> 32) * num_partitions // 2**32 for key in keys]
    assert found == sorted(found)
    assert all(0 <= partition < num_partitions for partition in found)


@settings(max_examples=50)
@given(rows=ROWS, start=st.integers(0, 10), size=st.integers(0, 10))
def test_coders_give_a_slice_back(rows: list[dict[str, Any]], start: int, size: int) -> None:
    table = table_of(rows).slice(start, size)
    assert TableCoder().decode(TableCoder().encode(table)) == table
    parent = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    batch = parent.slice(min(start, len(rows)), size)
    found = RecordBatchCoder().decode(RecordBatchCoder().encode(batch))
    assert isinstance(found, pa.RecordBatch)
    assert found == batch
    assert found.schema == SCHEMA


@settings(max_examples=50)
@given(rows=ROWS, origin=st.text())
def test_coder_of_partitioned_tables_round_trips(rows: list[dict[str, Any]], origin: str) -> None:
    partitioned = PartitionedTables(origin, split_by_partition(table_of(rows), table_of(rows)["key"].to_numpy()))
    coder = beam.coders.registry.get_coder(PartitionedTables)
    assert coder.decode(coder.encode(partitioned)) == partitioned
    assert coder.estimate_size(partitioned) == sum(table.nbytes for table in partitioned.tables.values())


def test_encoded_slice_does_not_carry_its_parent() -> None:
    noise = random.Random(1).randbytes(1 << 20)
    parent = pa.record_batch({"data": [noise[at : at + 64] for at in range(0, len(noise), 64)]})
    part = parent.slice(len(parent) // 2, 4)
    assert len(RecordBatchCoder().encode(parent)) > len(noise)
    assert len(RecordBatchCoder().encode(part)) < 2048
    assert len(TableCoder().encode(pa.Table.from_batches([part]))) < 2048


def test_beam_finds_the_coders_by_type() -> None:
    assert isinstance(beam.coders.registry.get_coder(pa.RecordBatch), RecordBatchCoder)
    assert type(beam.coders.registry.get_coder(pa.Table)) is TableCoder
