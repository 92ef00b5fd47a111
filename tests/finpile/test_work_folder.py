"""A damaged work file is never read: neither one with a flipped bit nor one that was cut."""

from __future__ import annotations

import random
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from finpile import storage
from finpile.errors import IntegrityError
from finpile.output import stage_record
from finpile.output.layout import Layout
from finpile.output.work_folder import SEAL_BYTES, Seal, WorkFile, WorkFolder


@pytest.fixture(params=["local", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WorkFolder]:
    """A stage's folder, on disk and in memory."""
    root = str(tmp_path) if request.param == "local" else f"memory://{uuid.uuid4().hex}"
    yield Layout(root).work("near")
    storage.remove_tree(root)


def table(num_rows: int = 200) -> pa.Table:
    texts = [f"text {number % 17} é" for number in range(num_rows)]
    return pa.table({"id": [f"{number:032x}" for number in range(num_rows)], "text": texts})


def write_one_of_each(folder: WorkFolder) -> dict[str, list[Callable[[], Any]]]:
    """How each file is read, by its name: every function of `storage` that reads content. The first reads all."""
    files = {name: folder.file(name) for name in ("a.arrow", "b.arrow", "c.parquet", "d.json", "e", "f.parquet")}
    a, b, c, d, e, f = files.values()
    one = table()
    storage.write_ipc(a, one.schema, one.to_batches(max_chunksize=90))
    storage.write_ipc(b, one.schema, one.to_batches(), compress=False)
    storage.write_parquet(c, one, durable=False)
    storage.write_json(d, {"é": [1, 2.5, None]})
    storage.write_bytes(e, b"")
    storage.write_parquet_rows(f, one.schema, [one])

    def readers_of_parquet(file: WorkFile) -> list[Callable[[], Any]]:
        return [
            lambda: storage.read_parquet(file),
            lambda: storage.read_parquet(file, ["text"]),
            lambda: storage.read_parquet_rows(file, [3]),
            lambda: list(storage.read_parquet_parts(file, size_bytes=1)),
            lambda: storage.read_parquet_if_exists(file, one.schema),
        ]

    def readers_of_ipc(file: WorkFile) -> list[Callable[[], Any]]:
        return [
            lambda: pa.Table.from_batches(storage.read_ipc(file)),
            lambda: list(storage.read_ipc(file, ["text"])),
        ]

    return {
        a.name: readers_of_ipc(a),
        b.name: readers_of_ipc(b),
        c.name: readers_of_parquet(c),
        d.name: [lambda: storage.read_json(d)],
        e.name: [lambda: storage.read_bytes(e)],
        f.name: readers_of_parquet(f),
    }


def content(file: WorkFile) -> bytes:
    fs, path = fsspec.url_to_fs(file.url)
    return bytes(fs.cat_file(path))


def overwrite(file: WorkFile, data: bytes) -> None:
    fs, path = fsspec.url_to_fs(file.url)
    fs.makedirs(fs._parent(path), exist_ok=True)
    fs.pipe_file(path, data)


def test_content_comes_back(folder: WorkFolder) -> None:
    found = {name: read() for name, (read, *_) in write_one_of_each(folder).items()}
    assert all(found[name].equals(table()) for name in ("a.arrow", "b.arrow", "c.parquet", "f.parquet"))
    assert (found["d.json"], found["e"]) == ({"é": [1, 2.5, None]}, b"")


def test_seal_is_the_checksum_of_the_content(folder: WorkFolder) -> None:
    write_one_of_each(folder)
    for name in folder.names():
        data = content(folder.file(name))
        assert data[-SEAL_BYTES:] == b"\nFINPILE-CRC32 %08x\n" % zlib.crc32(data[:-SEAL_BYTES])
        assert bytes(folder.file(name).decoded()) == data[:-SEAL_BYTES]


def test_a_path_does_not_decide_how_a_file_is_read(tmp_path: Path) -> None:
    """Only a work file has a seal, wherever it is; a `str` is a file as it is on the disk, in `.work` too."""
    inside, outside = Layout(str(tmp_path)).work("near").file("one"), WorkFolder(str(tmp_path)).file("one")
    for file in (inside, outside):
        storage.write_bytes(file.url, b"plain")
        assert Path(file.url).read_bytes() == b"plain"
        with pytest.raises(IntegrityError, match="one is damaged"):
            storage.read_bytes(file)
        storage.write_bytes(file, b"sealed")
        assert storage.read_bytes(file) == b"sealed"
        assert storage.read_bytes(file.url) == b"sealed" + bytes.fromhex(file.seal())


def test_a_work_file_is_refused_as_a_plain_one(folder: WorkFolder) -> None:
    """Whoever takes the path of a work file does not get other content."""
    write_one_of_each(folder)
    for name in ("a.arrow", "b.arrow"):
        with pytest.raises(pa.ArrowException):
            list(storage.read_ipc(folder.file(name).url))
    with pytest.raises((pa.ArrowException, OSError)):
        storage.read_parquet(folder.file("c.parquet").url)
    with pytest.raises(ValueError, match="Extra data"):
        storage.read_json(folder.file("d.json").url)


@pytest.mark.parametrize("num_flips", [100, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["a.arrow", "b.arrow", "c.parquet", "d.json", "e", "f.parquet"])
def test_a_file_with_a_flipped_bit_is_refused_by_every_reader(name: str, num_flips: int, tmp_path: Path) -> None:
    folder = Layout(str(tmp_path)).work("near")
    readers, file = write_one_of_each(folder)[name], folder.file(name)
    for other in folder.names():
        if other != name:
            folder.file(other).remove()
    whole = content(file)
    (seal,) = folder.seals([name])
    draw = random.Random(name)
    size = len(whole)
    places = {draw.randrange(size) for _ in range(num_flips)} | {0, *range(size - SEAL_BYTES, size)}
    for place in sorted(places):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << draw.randrange(8)
        overwrite(file, bytes(damaged))
        for read in readers:
            with pytest.raises(IntegrityError, match="is damaged"):
                read()
        assert folder.find_damage() == f"{name} is damaged"
        assert folder.find_damage([seal]) == f"{name} is damaged"
    overwrite(file, whole)
    assert folder.find_damage([seal]) is None


def test_cut_and_lengthened_files_are_noticed(folder: WorkFolder) -> None:
    for name, (read, *_) in write_one_of_each(folder).items():
        file = folder.file(name)
        whole = content(file)
        for wrong in (b"", whole[:-1], whole[:-SEAL_BYTES], whole[1:], whole + b"\n", whole + whole, b"x" * 7):
            overwrite(file, wrong)
            with pytest.raises(IntegrityError):
                read()
            assert folder.find_damage() == f"{name} is damaged"
        overwrite(file, whole)


def test_record_notices_files_that_are_missing_more_or_of_another_run(folder: WorkFolder) -> None:
    write_one_of_each(folder)
    names = folder.names()
    record = folder.seals()
    assert [seal.path for seal in record] == names
    assert all(seal.size_bytes == len(content(folder.file(seal.path))) for seal in record)
    assert folder.find_damage(record) is None
    assert folder.find_damage(record[:-1]) == "f.parquet is not of this stage"
    storage.write_bytes(folder.file("e"), b"whole, and of another run")
    assert folder.find_damage() is None
    assert folder.find_damage(record) == "e is damaged"
    folder.file("a.arrow").remove()
    assert folder.find_damage(record) == "a.arrow is missing"


def test_file_without_a_seal_has_no_place_in_a_record(folder: WorkFolder) -> None:
    storage.write_bytes(folder.file("raw").url, b"written as it is, so without a checksum")
    with pytest.raises(IntegrityError, match="raw is damaged"):
        folder.seals(["raw"])


def test_large_file_is_checked_block_by_block(tmp_path: Path) -> None:
    """Blocks end anywhere in the seal."""
    folder = WorkFolder(str(tmp_path))
    for more in (-1, 0, 1, SEAL_BYTES - 1, SEAL_BYTES, SEAL_BYTES + 1):
        storage.write_bytes(folder.file("x"), bytes((1 << 20) - SEAL_BYTES + more))
        assert folder.find_damage() is None
        assert len(storage.read_bytes(folder.file("x"))) == (1 << 20) - SEAL_BYTES + more


def test_seals_are_not_part_of_the_manifest() -> None:
    record = stage_record.StageRecord(
        stage="near", fingerprint="f", files=(), seals=(Seal(path="a", size_bytes=1, crc32=2**32 - 1),)
    )
    assert "seals" not in record.to_json()


def test_record_keeps_the_seals_of_the_stage_output(folder: WorkFolder) -> None:
    def work() -> stage_record.StageRecord:
        write_one_of_each(stage_record.run_folder(folder, "f"))
        return stage_record.StageRecord(stage="near", fingerprint="f", files=())

    record, _ = stage_record.run_once(folder, "f", work)
    assert [seal.path for seal in record.seals] == ["a.arrow", "b.arrow", "c.parquet", "d.json", "e", "f.parquet"]
    assert stage_record.load_stage(folder) == record
    assert stage_record.find_stage_damage("", folder, record) is None


@pytest.mark.parametrize("name", ["d.json", "started.json"])
def test_leftovers_of_an_interrupted_stage_are_removed_if_one_is_damaged(folder: WorkFolder, name: str) -> None:
    def fail() -> stage_record.StageRecord:
        write_one_of_each(files)
        raise RuntimeError("the power went")

    files = stage_record.run_folder(folder, "f")
    with pytest.raises(RuntimeError):
        stage_record.run_once(folder, "f", fail)
    seen: list[list[str]] = []

    def look() -> stage_record.StageRecord:
        seen.append(folder.names())
        return stage_record.StageRecord(stage="near", fingerprint="f", files=())

    file = (folder if name == "started.json" else files).file(name)
    data = bytearray(content(file))
    data[3] ^= 4
    overwrite(file, bytes(data))
    stage_record.run_once(folder, "f", look)
    assert seen == [["started.json"]]
