"""A damaged file of `.work` is never read: neither one with a flipped bit nor one that was cut."""

from __future__ import annotations

import random
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finpile import storage
from finpile.errors import IntegrityError
from finpile.output import stage_record
from finpile.output.layout import Layout
from finpile.plugins.stages import names
from finpile.storage import seals
from finpile.storage.seals import SEAL_BYTES, TRAINING, Seal

NUM_FLIPS = 300


@pytest.fixture(params=["local", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A stage's folder, on disk and in memory."""
    if request.param == "local":
        yield str(tmp_path / ".work" / "near")
    else:
        url = f"memory://{uuid.uuid4().hex}/.work/near"
        yield url
        storage.remove_tree(url)


def table(num_rows: int = 200) -> pa.Table:
    texts = [f"text {number % 17} é" for number in range(num_rows)]
    return pa.table({"id": [f"{number:032x}" for number in range(num_rows)], "text": texts})


def write_one_of_each(folder: str) -> dict[str, Callable[[], Any]]:
    """How each file is read, by its name."""
    urls = {name: storage.join(folder, name) for name in ("a.arrow", "b.arrow", "c.parquet", "d.json", "e")}
    one = table()
    storage.write_ipc(urls["a.arrow"], one.schema, one.to_batches(max_chunksize=90))
    storage.write_ipc(urls["b.arrow"], one.schema, one.to_batches(), compress=False)
    storage.write_parquet(urls["c.parquet"], one, durable=False)
    storage.write_json(urls["d.json"], {"é": [1, 2.5, None]})
    storage.write_bytes(urls["e"], b"")
    return {
        "a.arrow": lambda: pa.Table.from_batches(storage.read_ipc(urls["a.arrow"])),
        "b.arrow": lambda: pa.Table.from_batches(storage.read_ipc(urls["b.arrow"])),
        "c.parquet": lambda: storage.read_parquet(urls["c.parquet"], ["text"]),
        "d.json": lambda: storage.read_json(urls["d.json"]),
        "e": lambda: storage.read_bytes(urls["e"]),
    }


def content(url: str) -> bytes:
    fs, path = fsspec.url_to_fs(url)
    return bytes(fs.cat_file(path))


def overwrite(url: str, data: bytes) -> None:
    fs, path = fsspec.url_to_fs(url)
    fs.makedirs(fs._parent(path), exist_ok=True)
    fs.pipe_file(path, data)


def test_folders_of_all_stages_are_sealed_and_nothing_else() -> None:
    for root in (".", "out", "/out", "gs://bucket/out", "/a/.work/b"):
        layout = Layout(root)
        assert all(seals.is_sealed(storage.join(layout.work(stage), "x/y.arrow")) for stage in (*names(), TRAINING))
        for plain in (
            layout.manifest,
            layout.state,
            layout.work("lock"),
            storage.join(layout.documents, "part-0.parquet"),
        ):
            assert not seals.is_sealed(plain)
        assert not seals.is_sealed(storage.join(layout.work("training"), "out", "tokenizer.json"))
    assert not seals.is_sealed("/home/me/.work/corpora/out/documents/part.parquet")


def test_sealed_files_come_back(folder: str) -> None:
    found = {name: read() for name, read in write_one_of_each(folder).items()}
    assert found["a.arrow"].equals(table()) and found["b.arrow"].equals(table())
    assert found["c.parquet"].equals(table().select(["text"]))
    assert (found["d.json"], found["e"]) == ({"é": [1, 2.5, None]}, b"")


def test_seal_is_the_checksum_of_the_bytes_before_it(folder: str, tmp_path: Path) -> None:
    write_one_of_each(folder)
    pq.write_table(table(), tmp_path / "plain.parquet")
    for name in storage.list_files(folder):
        data = content(storage.join(folder, name))
        assert data[-SEAL_BYTES:] == b"\nFINPILE-CRC32 %08x\n" % zlib.crc32(data[:-SEAL_BYTES])
    storage.write_parquet(str(tmp_path / "published.parquet"), table())
    assert pq.read_table(tmp_path / "published.parquet").equals(table())  # what is published has none


@pytest.mark.parametrize("name", ["a.arrow", "b.arrow", "c.parquet", "d.json", "e"])
def test_every_flipped_bit_is_noticed(name: str, tmp_path: Path) -> None:
    folder = str(tmp_path / ".work" / "near")
    read = write_one_of_each(folder)[name]
    url = storage.join(folder, name)
    whole = content(url)
    (seal,) = seals.seals_of(folder, [name])
    draw = random.Random(name)
    size = len(whole)
    places = {draw.randrange(size) for _ in range(NUM_FLIPS)} | {0, *range(size - SEAL_BYTES, size)}
    for place in sorted(places):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << draw.randrange(8)
        overwrite(url, bytes(damaged))
        with pytest.raises(IntegrityError, match="is damaged"):
            read()
        assert seals.find_damage(folder, [name]) == f"{name} is damaged"
        assert seals.find_damage(folder, [name], [seal]) == f"{name} is damaged"
    overwrite(url, whole)
    assert seals.find_damage(folder, [name], [seal]) is None


def test_cut_and_lengthened_files_are_noticed(folder: str) -> None:
    readers = write_one_of_each(folder)
    for name, read in readers.items():
        url = storage.join(folder, name)
        whole = content(url)
        for wrong in (b"", whole[:-1], whole[:-SEAL_BYTES], whole[1:], whole + b"\n", whole + whole, b"x" * 7):
            overwrite(url, wrong)
            with pytest.raises(IntegrityError):
                read()
            assert seals.find_damage(folder, [name]) == f"{name} is damaged"


def test_record_notices_files_that_are_missing_more_or_of_another_run(folder: str) -> None:
    write_one_of_each(folder)
    names = storage.list_files(folder)
    record = seals.seals_of(folder, names)
    assert [seal.path for seal in record] == names
    assert all(seal.size_bytes == len(content(storage.join(folder, seal.path))) for seal in record)
    assert seals.find_damage(folder, names, record) is None
    assert seals.find_damage(folder, names[1:], record) == "a.arrow is missing"
    assert seals.find_damage(folder, names, record[:-1]) == "e is not of this stage"
    storage.write_bytes(storage.join(folder, "e"), b"whole, and of another run")
    assert seals.find_damage(folder, names) is None
    assert seals.find_damage(folder, names, record) == "e is damaged"


def test_file_without_a_seal_has_no_place_in_a_record(folder: str) -> None:
    overwrite(storage.join(folder, "raw"), b"written past finpile.storage, so without a checksum")
    with pytest.raises(IntegrityError, match="raw is damaged"):
        seals.seals_of(folder, ["raw"])


def test_large_file_is_checked_block_by_block(tmp_path: Path) -> None:
    """Blocks end anywhere in the seal."""
    folder = str(tmp_path / ".work" / "near")
    for more in (-1, 0, 1, SEAL_BYTES - 1, SEAL_BYTES, SEAL_BYTES + 1):
        storage.write_bytes(storage.join(folder, "x"), bytes((1 << 20) - SEAL_BYTES + more))
        assert seals.find_damage(folder, ["x"]) is None
        assert len(storage.read_bytes(storage.join(folder, "x"))) == (1 << 20) - SEAL_BYTES + more


def test_seal_survives_json() -> None:
    record = stage_record.StageRecord(
        stage="near", fingerprint="f", files=(), seals=(Seal(path="a", size_bytes=1, crc32=2**32 - 1),)
    )
    assert "seals" not in record.to_json()


def test_record_keeps_the_seals_of_the_stage_output(folder: str) -> None:
    def work() -> stage_record.StageRecord:
        write_one_of_each(stage_record.run_folder(folder, "f"))
        return stage_record.StageRecord(stage="near", fingerprint="f", files=())

    record, _ = stage_record.run_once(folder, "f", work)
    assert [seal.path for seal in record.seals] == ["a.arrow", "b.arrow", "c.parquet", "d.json", "e"]
    assert stage_record.load_stage(folder) == record
    assert stage_record.find_stage_damage("", folder, record) is None


@pytest.mark.parametrize("name", ["d.json", "started.json"])
def test_leftovers_of_an_interrupted_stage_are_removed_if_one_is_damaged(folder: str, name: str) -> None:
    def fail() -> stage_record.StageRecord:
        write_one_of_each(files)
        raise RuntimeError("the power went")

    files = stage_record.run_folder(folder, "f")
    with pytest.raises(RuntimeError):
        stage_record.run_once(folder, "f", fail)
    seen: list[list[str]] = []

    def look() -> stage_record.StageRecord:
        seen.append(storage.list_files(folder))
        return stage_record.StageRecord(stage="near", fingerprint="f", files=())

    url = storage.join(folder if name == "started.json" else files, name)
    data = bytearray(content(url))
    data[3] ^= 4
    overwrite(url, bytes(data))
    stage_record.run_once(folder, "f", look)
    assert seen == [["started.json"]]
