"""A published file is what its manifest says, or reading it is an error that names it."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from finpile import storage
from finpile.errors import IntegrityError
from finpile.output.layout import Layout
from finpile.output.manifest import write_manifest
from finpile.output.published_files import PublishedFile, PublishedFiles, unlisted_files
from finpile.output.stage_record import file_record

PATH = "documents/dataset=D/source=a%2Fb/part-00000-of-00001.parquet"


def documents(num_rows: int) -> pa.Table:
    draw = random.Random(num_rows)
    rows = [{"id": f"{draw.getrandbits(128):032x}", "text": "oil " * draw.randrange(9)} for _ in range(num_rows)]
    return pa.Table.from_pylist(rows, schema=pa.schema([("id", pa.string()), ("text", pa.large_string())]))


@pytest.fixture
def file(tmp_path: Path) -> PublishedFile:
    storage.write_parquet(str(tmp_path / PATH), documents(300))
    return PublishedFile(str(tmp_path), file_record(str(tmp_path), PATH, 300))


READS: dict[str, Callable[[PublishedFile], Any]] = {
    "table": lambda file: file.table(),
    "some columns": lambda file: file.table(["source", "id"]),
    "stored": lambda file: file.stored(),
    "parts": lambda file: pa.concat_tables(file.parts(["id", "dataset"], size_bytes=1 << 12)),
    "batches": lambda file: pa.Table.from_batches(file.batches(["text", "id", "absent"], num_rows=7)),
    "rows": lambda file: file.rows([5, 3, 299]),
    "pages": lambda file: file.pages(["id", "source"]),
    "matching": lambda file: file.matching(["id"], lambda rows: pc.starts_with(rows["id"], "0")),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_what_is_read_is_what_was_written(file: PublishedFile, read: Callable[[PublishedFile], Any]) -> None:
    expected = documents(300)
    for name, value in (("dataset", "D"), ("source", "a/b")):
        expected = expected.append_column(name, pa.array([value] * 300))
    found = read(pickle.loads(pickle.dumps(file)))
    if read is READS["rows"]:
        expected = expected.take([3, 5, 299])
    elif read is READS["matching"]:
        expected = expected.filter(pc.starts_with(expected["id"], "0"))
    assert found.num_rows > 0 and found.to_pylist() == expected.select(found.column_names).to_pylist()


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
@pytest.mark.parametrize("num_flips", [150, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_flipped_bit_changes_nothing_or_is_named(
    file: PublishedFile, read: Callable[[PublishedFile], Any], num_flips: int
) -> None:
    """Half of the flips are in the footer, which has no checksum of its own."""
    path, draw, expected = Path(file.root, file.path), random.Random(1), read(file)
    whole = path.read_bytes()
    num_footer = 8 + int.from_bytes(whole[-8:-4], "little")
    num_errors = 0
    for number in range(num_flips):
        place = draw.randrange(8 * (len(whole) - num_footer) if number % 2 else 0, 8 * len(whole))
        data = bytearray(whole)
        data[place // 8] ^= 1 << place % 8
        path.write_bytes(data)
        try:
            found = read(file)
        except IntegrityError as error:
            num_errors += file.path in str(error)
        else:
            assert found.equals(expected)
    reads_all = read not in (READS["pages"], READS["matching"])
    assert num_errors == num_flips if reads_all else num_errors > num_flips // 8


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
@pytest.mark.parametrize("data", [None, b"", b"PAR1", b"PAR1PAR1"])
def test_missing_and_cut_files_are_named(
    file: PublishedFile, read: Callable[[PublishedFile], Any], data: bytes | None
) -> None:
    path = Path(file.root, file.path)
    path.unlink() if data is None else path.write_bytes(data)
    with pytest.raises(IntegrityError, match=rf"{PATH} (is missing|has \d bytes).*finpile verify"):
        read(file)


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_file_of_an_earlier_snapshot_is_found(file: PublishedFile, read: Callable[[PublishedFile], Any]) -> None:
    expected = read(file)
    place = Path(file.root, "versions", file.path)
    place.parent.mkdir(parents=True)
    Path(file.root, file.path).rename(place)
    assert read(file).equals(expected)


def test_files_are_those_of_the_manifest(file: PublishedFile) -> None:
    layout = Layout(file.root)
    record = {"path": PATH, "size_bytes": 9, "checksum": "0" * 32, "num_rows": 1}
    manifest = write_manifest(layout.manifest, {"stages": [{"stage": "split", "files": [record]}]})
    files = PublishedFiles(layout, manifest)
    assert [found.path for found in files.below("documents", "removed")] == [PATH]
    assert files.below("documents/dataset=D/source=a") == []
    with pytest.raises(IntegrityError, match=r"has [0-9,]+ bytes, expected 9"):
        files[PATH].check()
    with pytest.raises(IntegrityError, match="removed/x is in no manifest"):
        _ = files["removed/x"]
    (unlisted,) = unlisted_files(layout, "documents", "removed")
    assert unlisted.table().num_rows == 300
