"""Files appear whole or not at all, the same content is the same bytes, and a stage runs once."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from fsspec.core import url_to_fs
from hypothesis import given
from hypothesis import strategies as st

from finpile import stage_record, storage
from finpile.stage_record import (
    FileRecord,
    StageRecord,
    fingerprint,
    run_once,
)

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = pa.schema([("id", pa.string()), ("text", pa.large_string()), ("n", pa.int64())])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(params=["local", "spaces and signs", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder that does not exist yet: on disk, on disk with a name full of signs, in memory."""
    if request.param == "memory":
        url = f"memory://{uuid.uuid4().hex}"
        yield url
        storage.remove_tree(url)
    else:
        yield str(tmp_path / ("tree" if request.param == "local" else "a b [1] é % # *?"))


def python(code: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Python that can import finpile."""
    paths = [str(ROOT), str(ROOT / "pipelines"), str(ROOT / "tokenizer"), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
    )


# --- paths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "expected"), [("out", "out/a/b"), ("/out/", "/out/a/b"), ("gs://bucket/", "gs://bucket/a/b")]
)
def test_join_knows_paths_and_urls(base: str, expected: str) -> None:
    assert storage.join(base, "a", "b") == expected


def test_list_is_sorted_relative_and_without_temporaries(root: str) -> None:
    names = ["b/2.json", "a.json", "b/10.json", "b/c/d.parquet"]
    for name in [*names, "b/2.json.0a1b2c3d.tmp"]:
        storage.write_bytes(storage.join(root, name), b"x")
    assert storage.list_files(root) == sorted(names)
    assert storage.list_files(storage.join(root, "b")) == sorted(name[2:] for name in names if name.startswith("b/"))


def test_list_of_what_is_not_there_is_empty(root: str) -> None:
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


def test_bytes_come_back_and_replace_what_stood_there(root: str) -> None:
    url = storage.join(root, "deep", "er", "file")
    for data in (b"first", b"", b"\x00\xff"):
        storage.write_bytes(url, data)
        with fsspec.open(url, "rb") as stream:
            assert stream.read() == data
    assert storage.list_files(root) == ["deep/er/file"]


class Stop(BaseException):
    """As KeyboardInterrupt and SystemExit are: no Exception."""


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Stop])
@pytest.mark.parametrize("before", [None, b"what stood there"])
def test_error_in_the_middle_leaves_what_was_there(root: str, error: type[BaseException], before: bytes | None) -> None:
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
def test_sigkill_in_the_middle_leaves_what_was_there(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "tree" / "file"
    if before is not None:
        storage.write_bytes(str(path), before)
    with python(WRITE_HALF, str(path)) as process:
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
def test_json_comes_back_from_the_same_bytes(value: object) -> None:
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


def test_parquet_has_its_row_groups_and_compression(root: str) -> None:
    url = storage.join(root, "part.parquet")
    storage.write_parquet(url, rows(storage.ROW_GROUP_ROWS + 1))
    with fsspec.open(url, "rb") as stream:
        found = pq.ParquetFile(io.BytesIO(stream.read())).metadata
    assert [found.row_group(index).num_rows for index in range(found.num_row_groups)] == [storage.ROW_GROUP_ROWS, 1]
    assert {found.row_group(0).column(index).compression for index in range(3)} == {"ZSTD"}


@pytest.mark.parametrize("count", [0, 3])
def test_parquet_comes_back_whole_or_by_columns(root: str, count: int) -> None:
    url = storage.join(root, "part.parquet")
    table = rows(count)
    storage.write_parquet(url, table)
    assert storage.read_parquet(url).equals(table)
    assert storage.read_parquet(url, ["n"]).equals(table.select(["n"]))


@pytest.mark.parametrize("compress", [True, False])
def test_ipc_batches_come_back_as_they_were_cut(root: str, compress: bool) -> None:
    url = storage.join(root, "part.arrow")
    batches = [batch for table in (rows(3), rows(1), rows(0)) for batch in table.to_batches()]
    assert storage.write_ipc(url, SCHEMA, iter(batches), compress=compress) == 4
    assert list(storage.read_ipc(url)) == batches
    assert next(storage.read_ipc(url)).schema == SCHEMA


def test_ipc_of_nothing_is_a_file_of_no_batches(root: str) -> None:
    url = storage.join(root, "part.arrow")
    assert storage.write_ipc(url, SCHEMA, []) == 0
    assert list(storage.read_ipc(url)) == []


@pytest.mark.parametrize("size", [0, 1, storage._BLOCK_BYTES, storage._BLOCK_BYTES + 1])
def test_file_record_is_size_and_blake2b(root: str, size: int) -> None:
    data = os.urandom(size)
    storage.write_bytes(storage.join(root, "a/file"), data)
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    expected = FileRecord(path="a/file", size_bytes=size, checksum=digest, num_rows=7)
    assert stage_record.file_record(root, "a/file", 7) == expected


# --- fingerprints --------------------------------------------------------------------------------------------------

HASH_OF_SAMPLE = """
import sys
from finpile.config import load_config, to_dict
from finpile.stage_record import fingerprint
print(fingerprint("stage", to_dict(load_config(sys.argv[1])), [("a", 1)]))
"""


def test_fingerprint_does_not_depend_on_the_hash_seed(sample_config: Path) -> None:
    runs = [python(HASH_OF_SAMPLE, str(sample_config), PYTHONHASHSEED=seed) for seed in ("0", "1")]
    first, second = (run.communicate()[0] for run in runs)
    assert len(first.strip()) == 32
    assert first == second


@given(JSON, JSON)
def test_equal_parts_have_equal_fingerprints_and_others_have_not(one: object, other: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (fingerprint(one) == fingerprint(other)) == same


def test_fingerprint_tells_parts_apart() -> None:
    parts: list[tuple[object, ...]] = [
        ("ab",),
        ("a", "b"),
        (["a", "b"],),
        ("b", "a"),
        (1,),
        ("1",),
        (1.0,),
        (True,),
        (None,),
        (),
        ({},),
        ([],),
    ]
    assert len({fingerprint(*some) for some in parts}) == len(parts)
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})


# --- stages --------------------------------------------------------------------------------------------------------


class Stage:
    """A stage that writes one file in its folder and one published, and counts its runs; it may fail halfway."""

    def __init__(self, root: str, mark: str) -> None:
        self.folder, self.published = storage.join(root, ".work", "clean"), storage.join(root, "documents")
        self.mark, self.num_runs, self.fails = mark, 0, False
        self.seen: list[str] = []
        self._root = root

    def __call__(self) -> StageRecord:
        self.num_runs += 1
        self.seen = storage.list_files(self._root)
        storage.write_bytes(storage.join(self.folder, f"one-{self.mark}"), b"1")
        if self.fails:
            raise RuntimeError("the power went")
        storage.write_bytes(storage.join(self.published, f"two-{self.mark}"), b"22")
        files = (stage_record.file_record(self._root, f"documents/two-{self.mark}", 2),)
        return StageRecord(stage="clean", fingerprint=self.mark, files=files, counts={"n": 1}, wall_seconds=0.5)

    def run(self) -> tuple[StageRecord, bool]:
        return run_once(self.folder, self.mark, self, (self.published,))


def test_stage_runs_once_and_is_found_again(root: str) -> None:
    stage = Stage(root, "m1")
    first, ran = stage.run()
    assert ran
    assert stage.run() == (first, False)
    assert stage.num_runs == 1
    assert stage_record.load_stage(stage.folder) == first
    assert first.files[0].size_bytes == 2


def test_record_survives_json() -> None:
    record = StageRecord(
        stage="clean",
        fingerprint="f",
        files=(FileRecord(path="a", size_bytes=1, checksum="c"), FileRecord(path="b", size_bytes=2, checksum="d")),
        counts={"n": {"m": [1]}},
        wall_seconds=1.5,
        cpu_seconds=2.5,
        peak_memory_bytes=3,
    )
    assert StageRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_stage_that_failed_has_no_record_and_goes_on_with_what_it_left(root: str) -> None:
    stage = Stage(root, "m1")
    stage.fails = True
    with pytest.raises(RuntimeError):
        stage.run()
    assert stage_record.load_stage(stage.folder) is None
    torn = storage.join(stage.folder, "one-m1.0a1b2c3d.tmp")
    fs, path = url_to_fs(torn)
    fs.pipe_file(path, b"torn")
    stage.fails = False
    assert stage.run()[1]
    assert ".work/clean/one-m1" in stage.seen, "kept: the same names and bytes come again"
    assert not storage.exists(torn)


@pytest.mark.parametrize("finished", [True, False])
def test_stage_of_another_fingerprint_starts_from_nothing(root: str, finished: bool) -> None:
    old, new = Stage(root, "m1"), Stage(root, "m2")
    old.fails = not finished
    if finished:
        old.run()
    else:
        with pytest.raises(RuntimeError):
            old.run()
    other = storage.join(root, "tokens", "not of this stage")
    storage.write_bytes(other, b"x")
    record, ran = new.run()
    assert (ran, record.fingerprint) == (True, "m2")
    assert new.seen == [".work/clean/started.json", "tokens/not of this stage"]
    assert storage.list_files(new.published) == ["two-m2"]


def test_going_back_to_an_old_fingerprint_runs_again(root: str) -> None:
    old, new = Stage(root, "m1"), Stage(root, "m2")
    old.run()
    new.run()
    assert old.run()[1]
    assert storage.list_files(old.published) == ["two-m1"]


def test_record_is_written_after_all_files(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(root, "m1")
    written: list[str] = []
    write = storage.write_bytes

    def watched(url: str, data: bytes) -> None:
        written.append(url)
        write(url, data)

    monkeypatch.setattr(storage, "write_bytes", watched)
    stage.run()
    assert written[-1] == storage.join(stage.folder, "stage.json")
    assert [name.rsplit("/", 1)[-1] for name in written] == ["started.json", "one-m1", "two-m1", "stage.json"]


def test_record_of_a_stage_is_replaced_whole(root: str) -> None:
    record = StageRecord(stage="clean", fingerprint="f", files=())
    stage_record.save_stage(root, record)
    stage_record.save_stage(root, replace(record, counts={"n": 2}))
    found = stage_record.load_stage(root)
    assert found is not None
    assert found.counts == {"n": 2}
    assert storage.list_files(root) == ["stage.json"]
