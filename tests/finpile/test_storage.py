"""Files are written completely or not at all, and equal content gives equal bytes."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from fsspec.core import url_to_fs
from hypothesis import given
from hypothesis import strategies as st

from finpile import storage
from finpile.output import stage_record
from finpile.storage import parquet

StartCode = Callable[..., subprocess.Popen[str]]
SCHEMA = pa.schema([("id", pa.string()), ("text", pa.large_string()), ("n", pa.int64())])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


# --- paths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "expected"), [("out", "out/a/b"), ("/out/", "/out/a/b"), ("gs://bucket/", "gs://bucket/a/b")]
)
def test_join_handles_paths_and_urls(base: str, expected: str) -> None:
    assert storage.join(base, "a", "b") == expected


def test_list_is_sorted_relative_and_without_temporaries(root: str) -> None:
    names = ["b/2.json", "a.json", "b/10.json", "b/c/d.parquet"]
    for name in [*names, "b/2.json.0a1b2c3d.tmp"]:
        storage.write_bytes(storage.join(root, name), b"x")
    assert storage.list_files(root) == sorted(names)
    assert storage.list_files(storage.join(root, "b")) == sorted(name[2:] for name in names if name.startswith("b/"))


def test_list_of_a_missing_folder_is_empty(root: str) -> None:
    assert storage.list_files(root) == []
    assert not storage.exists(root)


def test_remove_tree_takes_files_and_folders_and_nothing_beside(root: str) -> None:
    for name in ("a/1", "a/b/2", "ab/3", "c"):
        storage.write_bytes(storage.join(root, name), b"x")
    storage.remove_tree(storage.join(root, "a"))
    assert storage.list_files(root) == ["ab/3", "c"]
    storage.remove_tree(storage.join(root, "c"))
    storage.remove_tree(storage.join(root, "never there"))
    assert storage.list_files(root) == ["ab/3"]


# --- atomic writes -------------------------------------------------------------------------------------------------


def test_bytes_round_trip_and_replace_earlier_ones(root: str) -> None:
    url = storage.join(root, "deep", "er", "file")
    for data in (b"first", b"", b"\x00\xff"):
        storage.write_bytes(url, data)
        with fsspec.open(url, "rb") as stream:
            assert stream.read() == data
    assert storage.list_files(root) == ["deep/er/file"]


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"a\n" * 100_000,), daemon=True)
    writer.start()
    assert storage.read_bytes(str(tmp_path / "pipe")) == b"a\n" * 100_000
    writer.join()


@pytest.mark.parametrize("cut", [b"", b"cu", b"cut" * (1 << 20)])
def test_an_appended_line_takes_the_place_of_one_that_was_cut(root: str, cut: bytes) -> None:
    url = storage.join(root, "log", "lines.jsonl")
    storage.append_line(url, b"1")
    storage.append_line(url, b"2")
    storage.write_bytes(url, storage.read_bytes(url) + cut)
    storage.append_line(url, b"3")
    assert storage.read_bytes(url) == b"1\n2\n3\n"


def test_the_lines_before_an_appended_one_are_neither_read_nor_written(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    with path.open("wb") as stream:
        stream.truncate(1 << 28)
        stream.seek(0, os.SEEK_END)
        stream.write(b"\n")
    inode = path.stat().st_ino
    tracemalloc.start()
    try:
        storage.append_line(str(path), b"1")
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()
    assert path.stat().st_ino == inode


class Stop(BaseException):
    """As KeyboardInterrupt and SystemExit are: no Exception."""


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Stop])
@pytest.mark.parametrize("before", [None, b"what stood there"])
def test_error_during_a_write_leaves_the_earlier_file(
    root: str, error: type[BaseException], before: bytes | None
) -> None:
    url = storage.join(root, "file")
    if before is not None:
        storage.write_bytes(url, before)
    with pytest.raises(error), storage.write_atomically(url) as stream:
        stream.write(b"half of it")
        raise error
    assert storage.exists(url) == (before is not None)
    fs, path = url_to_fs(root)
    assert [found for found in fs.find(path) if not found.endswith("/file")] == []
    if before is not None:
        with fsspec.open(url, "rb") as stream:
            assert stream.read() == before


def test_final_name_is_not_there_while_writing(root: str) -> None:
    url = storage.join(root, "file")
    with storage.write_atomically(url) as stream:
        stream.write(b"half of it")
        assert not storage.exists(url)
    assert storage.exists(url)


WRITE_HALF = """
import sys, time
from finpile import storage
with storage.write_atomically(sys.argv[1]) as stream:
    stream.write(b"half of it" * 100_000)
    stream.flush()
    print("half", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("durable", [True, False])
def test_durable_file_is_on_disk_before_it_has_its_name(
    durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[list[str]] = []

    def fsync(descriptor: int) -> None:
        assert os.fstat(descriptor).st_size == 3  # nothing is left in a buffer
        synced.append([path.name for path in tmp_path.iterdir()])

    monkeypatch.setattr(os, "fsync", fsync)
    with storage.write_atomically(str(tmp_path / "oil"), durable=durable) as stream:
        stream.write(b"oil")
    assert (tmp_path / "oil").read_bytes() == b"oil"
    assert len(synced) == durable
    assert all("oil" not in names for names in synced)


@pytest.mark.parametrize("before", [None, b"what stood there"])
def test_sigkill_during_a_write_leaves_the_earlier_file(
    start_code: StartCode, tmp_path: Path, before: bytes | None
) -> None:
    path = tmp_path / "tree" / "file"
    if before is not None:
        storage.write_bytes(str(path), before)
    with start_code(WRITE_HALF, str(path)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert (path.read_bytes() if path.exists() else None) == before
    assert storage.list_files(str(tmp_path / "tree")) == ([] if before is None else ["file"])
    storage.write_bytes(str(path), b"whole")
    assert path.read_bytes() == b"whole"


# --- same content, same bytes --------------------------------------------------------------------------------------


@given(JSON)
def test_json_round_trips_with_equal_bytes(value: object) -> None:
    url = "memory://json/value.json"
    storage.write_json(url, value)
    assert storage.read_json(url) == value
    with fsspec.open(url, "rb") as stream:
        data = stream.read()
    assert data.endswith(b"\n")
    storage.write_json(url, json.loads(data))
    with fsspec.open(url, "rb") as stream:
        assert stream.read() == data


def test_json_does_not_depend_on_the_order_of_keys(root: str) -> None:
    for name, value in (("a", {"x": 1, "y": {"p": 2, "q": 3}}), ("b", {"y": {"q": 3, "p": 2}, "x": 1})):
        storage.write_json(storage.join(root, name), value)
    first, second = (stage_record.file_record(root, name) for name in ("a", "b"))
    assert first.checksum == second.checksum


def rows(count: int) -> pa.Table:
    numbers = range(count)
    return pa.table(
        {"id": [f"{n:032x}" for n in numbers], "text": [f"text {n % 97} é" for n in numbers], "n": list(numbers)},
        schema=SCHEMA,
    )


def test_parquet_is_the_same_however_its_table_was_put_together(tmp_path: Path) -> None:
    table = rows(storage.ROW_GROUP_ROWS + 100)
    cuts = [table.slice(0, 1), table.slice(1, 0), table.slice(1, 5000), table.slice(5001)]
    for name, one in (("whole", table), ("cut", pa.concat_tables(cuts)), ("again", table)):
        storage.write_parquet(str(tmp_path / name), one)
    whole, cut, again = ((tmp_path / name).read_bytes() for name in ("whole", "cut", "again"))
    assert whole == cut == again
    assert storage.read_parquet(str(tmp_path / "cut")).equals(table)


@pytest.mark.parametrize("count", [0, 1, 8192, 20_000])
def test_parquet_written_in_an_order_is_that_of_the_ordered_table(count: int, tmp_path: Path) -> None:
    texts = [f"{number * 7919 % 10007} stands {'so' * (number % 5)}" for number in range(count)]
    parts = [pa.table({"number": range(count)[at::3], "text": texts[at::3]}) for at in range(3)]
    table = pa.concat_tables(parts, promote_options="permissive").cast(
        pa.schema([("number", pa.int64()), ("text", pa.large_string())])
    )
    order = pc.sort_indices(table, [("text", "descending"), ("number", "ascending")])
    storage.write_parquet_sorted(str(tmp_path / "sorted"), table, order)
    storage.write_parquet(str(tmp_path / "whole"), table.take(order))
    assert (tmp_path / "sorted").read_bytes() == (tmp_path / "whole").read_bytes()


def test_only_ids_and_texts_have_no_dictionary(tmp_path: Path) -> None:
    facts = [{"name": "Assets", "units": [("USD", 1)]}]
    kind = pa.list_(pa.struct([("name", pa.string()), ("units", pa.map_(pa.string(), pa.int64()))]))
    table = pa.table({"id": ["a"], "text": ["Oil rose."], "split": ["train"], "facts": pa.array([facts], kind)})
    storage.write_parquet(str(tmp_path / "a"), table)
    group = pq.ParquetFile(tmp_path / "a").metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    assert len(columns) == 6
    assert [one.path_in_schema for one in columns if "RLE_DICTIONARY" not in one.encodings] == ["id", "text"]


def test_parquet_has_its_row_groups_and_compression(root: str) -> None:
    url = storage.join(root, "part.parquet")
    storage.write_parquet(url, rows(storage.ROW_GROUP_ROWS + 1))
    with fsspec.open(url, "rb") as stream:
        found = pq.ParquetFile(io.BytesIO(stream.read())).metadata
    assert [found.row_group(index).num_rows for index in range(found.num_row_groups)] == [storage.ROW_GROUP_ROWS, 1]
    assert {found.row_group(0).column(index).compression for index in range(3)} == {"ZSTD"}


def sizes_of_groups(texts: list[str | None], most_bytes: int, most_rows: int) -> list[int]:
    """A slow reference: rows are added to a group until the next one does not fit."""
    groups = [0]
    held = 0
    for text in texts:
        size = len((text or "").encode())
        if groups[-1] and (groups[-1] == most_rows or held + size > most_bytes):
            groups.append(0)
            held = 0
        groups[-1] += 1
        held += size
    return groups


@pytest.mark.parametrize(
    "lengths", [[], [0], [500], [None] * 9, [500, 1, 1, 500, 500], [40, 30, None, 31, 1, 99, 1, 100, 1], [0] * 17]
)
def test_row_groups_have_as_many_rows_as_fit(
    lengths: list[int | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", 100)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 5)
    texts = [None if length is None else "é" * (length // 2) + "x" * (length % 2) for length in lengths]
    schema = pa.schema([("number", pa.int64()), ("text", pa.large_string())])
    table = pa.table([range(len(texts)), texts], schema=schema)
    expected = sizes_of_groups(texts, 100, 5)
    parts = [table.slice(first, 2) for first in range(0, len(texts), 2)]
    storage.write_parquet(str(tmp_path / "whole"), table)
    storage.write_parquet_sorted(str(tmp_path / "sorted"), table, pa.array(range(len(texts)), pa.int64()))
    assert storage.write_parquet_rows(str(tmp_path / "rows"), schema, parts) == len(texts)
    assert storage.write_parquet_parts(str(tmp_path / "parts"), [table.slice(0, 0), *parts]) == len(texts)
    for name in ("whole", "sorted", "rows", *(["parts"] if texts else [])):
        found = pq.read_metadata(tmp_path / name)
        assert [found.row_group(index).num_rows for index in range(found.num_row_groups)] == expected
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    assert storage.read_parquet(str(tmp_path / "whole")).equals(table)
    assert not texts or storage.is_parquet_of(str(tmp_path / "whole"), lambda: iter(parts))


def test_a_file_of_no_rows_is_not_written_in_parts(tmp_path: Path) -> None:
    assert storage.write_parquet_parts(str(tmp_path / "none"), [rows(0), rows(0)]) == 0
    assert not (tmp_path / "none").exists()


def test_a_file_of_other_rows_is_not_that_of_tables(tmp_path: Path) -> None:
    storage.write_parquet(str(tmp_path / "file"), rows(3))
    assert storage.is_parquet_of(str(tmp_path / "file"), lambda: [rows(3).slice(0, 1), rows(3).slice(1)])
    assert not storage.is_parquet_of(str(tmp_path / "file"), lambda: [rows(3).slice(1)])


@pytest.mark.parametrize("count", [0, 3])
def test_parquet_round_trips_whole_or_by_columns(root: str, count: int) -> None:
    url = storage.join(root, "part.parquet")
    table = rows(count)
    storage.write_parquet(url, table)
    assert storage.read_parquet(url).equals(table)
    assert storage.read_parquet(url, ["n"]).equals(table.select(["n"]))


class _Stream(io.BytesIO):
    """A file that notes the threads that read it, and how many bytes they read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.threads: set[int] = set()
        self.num_bytes = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.threads.add(threading.get_ident())
        self.num_bytes += len(data)
        return data


def test_parquet_is_read_by_the_calling_thread_and_by_row_groups() -> None:
    with io.BytesIO() as written:
        pq.write_table(pa.table({"n": range(8_000), "m": range(8_000)}), written, row_group_size=1_000)
        stream = _Stream(written.getvalue())
    file = storage.checked_parquet(stream)
    batches = file.iter_batches(1_000, use_threads=False)
    before = stream.num_bytes
    assert next(batches)["n"].to_pylist() == list(range(1_000))
    group = file.metadata.row_group(0)
    assert stream.num_bytes - before == sum(group.column(place).total_compressed_size for place in range(2))
    assert sum(batch.num_rows for batch in batches) == 7_000
    assert file.read(use_threads=False).num_rows == 8_000
    assert stream.threads == {threading.get_ident()}


@pytest.mark.parametrize("compress", [True, False])
def test_ipc_round_trips_the_same_batches(root: str, compress: bool) -> None:
    url = storage.join(root, "part.arrow")
    batches = [batch for table in (rows(3), rows(1), rows(0)) for batch in table.to_batches()]
    assert storage.write_ipc(url, SCHEMA, iter(batches), compress=compress) == 4
    assert list(storage.read_ipc(url)) == batches
    assert next(storage.read_ipc(url)).schema == SCHEMA


@pytest.mark.parametrize("compress", [True, False])
def test_ipc_columns_are_those_of_the_whole_batches(root: str, compress: bool) -> None:
    url = storage.join(root, "part.arrow")
    batches = [batch for table in (rows(3), rows(1)) for batch in table.to_batches()]
    storage.write_ipc(url, SCHEMA, batches, compress=compress)
    for columns in (["text"], ["n", "id"], []):
        assert list(storage.read_ipc(url, columns)) == [batch.select(columns) for batch in batches]
    with pytest.raises(ValueError, match="'missing'"):
        list(storage.read_ipc(url, ["missing"]))


def test_ipc_of_nothing_is_a_file_of_no_batches(root: str) -> None:
    url = storage.join(root, "part.arrow")
    assert storage.write_ipc(url, SCHEMA, []) == 0
    assert list(storage.read_ipc(url)) == []


@pytest.mark.parametrize("error", [None, errno.EPERM, errno.EXDEV])
def test_a_linked_file_is_there_twice_as_a_copy_where_links_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int | None
) -> None:
    source, target = tmp_path / "a", tmp_path / "folder" / "b"
    source.write_bytes(b"gold")
    if error is not None:

        def refuse(*paths: str) -> None:
            raise OSError(error, "no links here")

        monkeypatch.setattr("finpile.storage.folders.os.link", refuse)
    storage.link(str(source), str(target))
    storage.link(str(source), str(target))  # there already
    assert target.read_bytes() == b"gold"
    assert target.samefile(source) is (error is None)
    assert [path.name for path in target.parent.iterdir()] == ["b"]


@pytest.mark.parametrize("root", ["", "memory://created"])
def test_a_created_file_is_never_overwritten(tmp_path: Path, root: str) -> None:
    url = f"{root or tmp_path}/log/0.json"
    storage.create(url, b"one")
    storage.create(url, b"one")
    with pytest.raises(FileExistsError):
        storage.create(url, b"two")
    assert storage.read_bytes(url) == b"one"
    assert storage.list_folder(f"{root or tmp_path}/log") == ["0.json"]
