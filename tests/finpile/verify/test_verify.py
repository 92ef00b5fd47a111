"""`verify` finds damaged files and manifests, and nothing wrong in an undamaged build."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from finpile.errors import InputError, IntegrityError
from finpile.output.build_state import DEDUP_NAME, BuildState, write_state
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.verify import Check, verify
from finpile.verify.output import Output
from tests.support.damage import (
    BEFORE_CLEAN,
    BEFORE_EXACT,
    COPIES,
    COUNTED,
    DISTINCT,
    FILES,
    IDS,
    LATER,
    broken,
    detail,
    edit_manifest,
    mend_manifest,
    read_documents,
)
from tests.support.trees import rows_below

# --- an undamaged build --------------------------------------------------------------------------------------------


def test_finished_build_passes_every_check(sample_build: Path) -> None:
    checks = verify(str(sample_build))
    assert [check for check in checks if not check.ok] == []
    assert {check.name for check in checks} >= {
        FILES,
        COUNTED,
        BEFORE_EXACT,
        BEFORE_CLEAN,
        COPIES,
        IDS,
        LATER,
        DISTINCT,
    }


def test_checks_report_their_counts(sample_build: Path) -> None:
    found = {check.name: check.detail for check in verify(str(sample_build))}
    expected = json.loads((Path(__file__).resolve().parents[3] / "data_samples" / "expected.json").read_text())
    num_read = sum(row["read"] for row in expected["sources"])
    assert found[COUNTED] == f"{num_read:,} documents read"
    assert found[IDS] == f"{len(read_documents(sample_build)):,} documents"
    assert "31 documents after 2022-07-31" in found[LATER]


def test_copies_of_a_document_are_its_duplicates_and_itself(sample_build: Path) -> None:
    removed = [row for row in rows_below(sample_build / "removed") if row["start"] is None]
    copies = Counter(row["duplicate_of"] for row in removed)
    rows = read_documents(sample_build)
    assert [row for row in rows if row["num_copies"] != 1 + copies[row["id"]]] == []
    assert max(row["num_copies"] for row in rows) > 1


def test_mending_alone_breaks_nothing(copy_of_sample: Path) -> None:
    mend_manifest(copy_of_sample)
    assert [check for check in verify(str(copy_of_sample)) if not check.ok] == []


def test_progress_counts_every_byte_of_every_file(sample_build: Path) -> None:
    reported: list[float] = []
    verify(str(sample_build), reported.append)
    sizes = [path.stat().st_size for path in sample_build.rglob("*") if path.is_file() and ".work" not in path.parts]
    assert sum(reported) >= sum(sizes) - (sample_build / "manifest.json").stat().st_size


def test_groups_run_at_the_same_time_and_are_reported_in_their_order(
    sample_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    both = threading.Barrier(2, timeout=60)

    def group(name: str) -> Callable[[Output], list[Check]]:
        def checks(output: Output) -> list[Check]:
            both.wait()
            return [Check(name, True, output.layout.root)]

        return checks

    *_, first, second = verify(str(sample_build), groups=[group("first"), group("second")])
    assert [first.name, second.name] == ["first", "second"]


def test_an_error_ends_the_groups_that_still_read(sample_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    def endless(output: Output) -> list[Check]:
        while True:
            output.advance(1)

    def failing(output: Output) -> list[Check]:
        raise MemoryError

    with pytest.raises(MemoryError):
        verify(str(sample_build), groups=[failing, endless])


def test_verify_writes_nothing(copy_of_sample: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in copy_of_sample.rglob("*")}
    verify(str(copy_of_sample))
    assert {path: path.stat().st_mtime_ns for path in copy_of_sample.rglob("*")} == before


# --- files ---------------------------------------------------------------------------------------------------------

ONE_OF_EACH = [
    "documents/dataset=FinPile/source=News/train-00000-of-00001.parquet",
    "removed/stage=exact/part-00000-of-00001.parquet",
    "tokenizer/tokenizer.json",
    "tokens/split=train/part-00000-of-00001.arrow",
    "reports/index.html",
]


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_missing_file_is_found(copy_of_sample: Path, name: str) -> None:
    (copy_of_sample / name).unlink()
    assert broken(copy_of_sample) == {FILES}
    assert detail(copy_of_sample, FILES) == f"{name} is missing"


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_one_altered_bit_is_found(copy_of_sample: Path, name: str) -> None:
    path = copy_of_sample / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert detail(copy_of_sample, FILES) == f"{name} is altered"


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_cut_file_is_found(copy_of_sample: Path, name: str) -> None:
    path = copy_of_sample / name
    path.write_bytes(path.read_bytes()[:-1])
    assert detail(copy_of_sample, FILES) == f"{name} is altered"


@pytest.mark.parametrize(
    "name", [*(f"{Path(name).parent}/extra" for name in ONE_OF_EACH), "documents/new/part.parquet"]
)
def test_file_of_no_stage_is_found(copy_of_sample: Path, name: str) -> None:
    (copy_of_sample / name).parent.mkdir(exist_ok=True)
    (copy_of_sample / name).write_bytes(b"")
    assert detail(copy_of_sample, FILES) == f"{name} is not of this build"


def test_many_places_are_reported_by_the_first_and_their_number(copy_of_sample: Path) -> None:
    for index in range(5):
        (copy_of_sample / "reports" / f"extra{index}").touch()
    assert detail(copy_of_sample, FILES).endswith("reports/extra2 is not of this build (and 2 more)")


# --- what is not a build ----------------------------------------------------------------------------------------------


def test_folder_without_a_manifest_is_no_build(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no finished build .+ run `finpile build CONFIG.yaml -o "):
        verify(str(tmp_path))
    with pytest.raises(InputError, match=r"`finpile build CONFIG.yaml -o '\S+/my corpus'`"):
        load_manifest(Layout(str(tmp_path / "my corpus")))


@pytest.mark.parametrize(
    ("name", "as_of", "command"),
    [
        ("News", (), "finpile build CONFIG.yaml -o '{}'"),
        ("News as of 2020-01-02", (), "finpile build CONFIG.yaml -o '{}'"),
        ("News as of 2020-01-02", ("2020-01-02", "--undated"), "finpile as-of BUILD 2020-01-02 --undated -o '{}'"),
        (DEDUP_NAME, (), "finpile dedup DOCS -o '{}'"),
    ],
)
def test_an_interrupted_run_names_its_command(tmp_path: Path, name: str, as_of: tuple[str, ...], command: str) -> None:
    out = tmp_path / "my corpus"
    write_state(Layout(str(out)), BuildState(name=name, paths=(), is_whole=False, as_of=as_of))
    with pytest.raises(InputError) as caught:
        load_manifest(Layout(str(out)))
    assert str(caught.value).endswith(f"is running, or was interrupted: `{command.format(out)}` ends it")


MANIFESTS = {"cut": '{"version": 1, "sta', "empty": "", "of another kind": "[]", "without stages": '{"version": 1}'}


@pytest.mark.parametrize("text", MANIFESTS.values(), ids=MANIFESTS.keys())
def test_damaged_manifest_is_reported_as_such(copy_of_sample: Path, text: str) -> None:
    (copy_of_sample / "manifest.json").write_text(text)
    with pytest.raises((IntegrityError, InputError), match=r"manifest\.json"):
        verify(str(copy_of_sample))


def test_manifest_without_a_stage_is_reported_as_such(copy_of_sample: Path) -> None:
    edit_manifest(copy_of_sample, lambda manifest: manifest["stages"].pop(1))
    with pytest.raises((IntegrityError, InputError), match=r"manifest\.json"):
        verify(str(copy_of_sample))


def test_build_can_be_verified_after_a_move(copy_of_sample: Path, tmp_path: Path) -> None:
    moved = shutil.move(copy_of_sample, tmp_path / "elsewhere [1]")
    assert broken(Path(moved)) == set()
