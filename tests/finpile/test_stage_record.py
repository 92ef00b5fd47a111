"""A stage runs once: its fingerprint covers its inputs, and its record is written after all of its files."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fsspec.core import url_to_fs
from hypothesis import given

from finpile import storage
from finpile.errors import IntegrityError
from finpile.output import stage_record
from finpile.output.stage_record import FileRecord, StageRecord, fingerprint, run_folder, run_name, run_once
from finpile.output.work_folder import WorkFolder
from finpile.storage import files
from tests.finpile.test_storage import JSON

StartCode = Callable[..., subprocess.Popen[str]]


@pytest.mark.parametrize("size", [0, 1, files._BLOCK_BYTES, files._BLOCK_BYTES + 1])
def test_file_record_is_size_and_sha256(root: str, size: int) -> None:
    data = os.urandom(size)
    storage.write_bytes(storage.join(root, "a/file"), data)
    digest = hashlib.sha256(data).hexdigest()
    expected = FileRecord(path="a/file", size_bytes=size, checksum=digest, num_rows=7)
    assert stage_record.file_record(root, "a/file", 7) == expected


# --- fingerprints --------------------------------------------------------------------------------------------------

HASH_OF_SAMPLE = """
import sys
from finpile.config import load_config, to_dict
from finpile.output.stage_record import fingerprint
print(fingerprint("stage", to_dict(load_config(sys.argv[1])), [("a", 1)]))
"""


def test_fingerprint_does_not_depend_on_the_hash_seed(start_code: StartCode, sample_config: Path) -> None:
    runs = [start_code(HASH_OF_SAMPLE, str(sample_config), PYTHONHASHSEED=seed) for seed in ("0", "1")]
    first, second = (run.communicate()[0] for run in runs)
    assert len(first.strip()) == 32
    assert first == second


@given(JSON, JSON)
def test_equal_parts_have_equal_fingerprints_and_others_have_not(one: object, other: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (fingerprint(one) == fingerprint(other)) == same


def test_fingerprint_distinguishes_parts() -> None:
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
        self.folder, self.published = WorkFolder(root) / ".work" / "clean", storage.join(root, "documents")
        self.mark, self.num_runs, self.fails = mark, 0, False
        self.seen: list[str] = []
        self._root = root

    def __call__(self) -> StageRecord:
        self.num_runs += 1
        self.seen = storage.list_files(self._root)
        storage.write_bytes(run_folder(self.folder, self.mark).file(f"one-{self.mark}"), b"1")
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


def test_stage_that_failed_has_no_record_and_continues_with_its_files(root: str) -> None:
    stage = Stage(root, "m1")
    stage.fails = True
    with pytest.raises(RuntimeError):
        stage.run()
    assert stage_record.load_stage(stage.folder) is None
    torn = run_folder(stage.folder, "m1").file("one-m1.0a1b2c3d.tmp")
    fs, path = url_to_fs(torn.url)
    fs.pipe_file(path, b"torn")
    stage.fails = False
    assert stage.run()[1]
    assert f".work/clean/{run_name('m1')}/one-m1" in stage.seen, "kept: the same names and bytes come again"
    assert not torn.exists()


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
    written: list[storage.File] = []
    write = storage.write_bytes

    def watched(file: storage.File, data: bytes) -> None:
        written.append(file)
        write(file, data)

    monkeypatch.setattr(storage, "write_bytes", watched)
    monkeypatch.setattr(files, "write_bytes", watched)  # of JSON
    stage.run()
    assert written[-1] == stage.folder.file("stage.json")
    assert [str(file).rsplit("/", 1)[-1] for file in written] == ["started.json", "one-m1", "two-m1", "stage.json"]


def test_record_of_a_stage_is_replaced_whole(root: str) -> None:
    record = StageRecord(stage="clean", fingerprint="f", files=())
    folder = WorkFolder(root)
    stage_record.save_stage(folder, record)
    stage_record.save_stage(folder, replace(record, counts={"n": 2}))
    found = stage_record.load_stage(folder)
    assert found is not None
    assert found.counts == {"n": 2}
    assert storage.list_files(root) == ["stage.json"]


def test_a_job_of_another_run_writes_into_another_folder(root: str) -> None:
    """It writes after the new run has begun, before it ends, and after its end."""
    old, new = Stage(root, "m1"), Stage(root, "m2")
    late = run_folder(old.folder, "m1").file("late")

    def run() -> StageRecord:
        storage.write_bytes(late, b"of the old run")
        return new()

    record, _ = run_once(new.folder, "m2", run, (new.published,))
    assert [seal.path for seal in record.seals] == ["one-m2"]
    storage.write_bytes(run_folder(old.folder, "m1").file("one-m2"), b"of the old run")
    assert new.run() == (record, False)
    assert stage_record.find_stage_damage(root, new.folder, record) is None
    assert stage_record.files_of(new.folder) == run_folder(new.folder, "m2")
    third = Stage(root, "m3")
    third.run()
    assert not late.exists()


@pytest.mark.parametrize("name", ["documents/two-m1", "documents/two-m2"], ids=["other name", "same name"])
def test_files_that_the_run_did_not_publish_are_refused(root: str, name: str) -> None:
    """The next run begins anew."""
    stage = Stage(root, "m2")

    def run() -> StageRecord:
        record = stage()
        storage.write_bytes(storage.join(root, name), b"of the old run")
        return record

    with pytest.raises(IntegrityError, match=rf"{name} is not what stage clean wrote: .* end it, and run"):
        run_once(stage.folder, "m2", run, (stage.published,))
    assert stage_record.load_stage(stage.folder) is None
    assert stage.run()[1]
    assert storage.list_files(stage.published) == ["two-m2"]
