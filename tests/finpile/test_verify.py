"""`verify` finds every kind of damage, and each by the check that fails.

A copy of the sample build is damaged; then its manifest is mended, so that no checksum differs and the check itself
must.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from finpile import stage_record, storage
from finpile.document import PUBLISHED_SCHEMA
from finpile.errors import InputError, IntegrityError
from finpile.layout import (
    Layout,
    read_published,
)
from finpile.ledger import PUBLISHED_LEDGER_SCHEMA
from finpile.manifest import CHECKSUM, checksum_of, load_manifest
from finpile.verify import distinct, inputs, texts, verify

Row = dict[str, Any]
Change = Callable[[list[Row]], list[Row] | None]

FILES = "every file is there, unaltered, and no other"
ACCOUNTS = "the accounts of inputs are those of the documents and the ledger"
COUNTED = "documents read = kept + removed, for every source"
BEFORE_EXACT = "kept text + ledger = the text before exact, near, substring, overlap and contamination, byte for byte"
BEFORE_CLEAN = "kept text + ledger = the text before clean, byte for byte"
COPIES = "every duplicate's kept copy is kept"
DISTINCT = "kept texts are distinct within the scope"
IDS = "every id is that of its source and locator, once"
LATER = "what is held out is later than all that is trained on"


_OF_TEXTS = (inputs.checks, texts.checks, distinct.checks)


def broken(out: Path) -> set[str]:
    """Of files, inputs, texts, ids and split. An edit that breaks one of these breaks some of counts, too."""
    return {check.name for check in verify(str(out), groups=_OF_TEXTS) if not check.ok}


def detail(out: Path, name: str) -> str:
    (check,) = (check for check in verify(str(out), groups=_OF_TEXTS) if check.name == name)
    assert not check.ok
    return check.detail


def edit(path: Path, schema: pa.Schema, change: Change) -> None:
    """Rewrites a Parquet file, its rows changed in place or by the list that comes back."""
    before = read_published(str(path)).to_pylist()
    after = json.loads(json.dumps(before, default=_escape), object_hook=_unescape)
    changed = change(after)
    after = after if changed is None else changed
    assert after != before, "the damage must change something"
    storage.write_parquet(str(path), pa.Table.from_pylist(after, schema=schema))


def _escape(value: Any) -> Row:
    return {"moment": value.isoformat()} if isinstance(value, datetime) else {"hex": value.hex()}


def _unescape(value: Row) -> Any:
    if value.keys() == {"hex"}:
        return bytes.fromhex(value["hex"])
    return datetime.fromisoformat(value["moment"]) if value.keys() == {"moment"} else value


def edit_ledger(out: Path, stage: str, change: Change) -> None:
    (path,) = (out / "removed" / f"stage={stage}").iterdir()
    edit(path, PUBLISHED_LEDGER_SCHEMA, change)
    mend_manifest(out)


def edit_documents(out: Path, source: str, change: Change) -> None:
    (path,) = (out / "documents").glob(f"*/source={source}/*.parquet")
    edit(path, PUBLISHED_SCHEMA, change)
    mend_manifest(out)


def read_documents(out: Path) -> list[Row]:
    return [row for path in (out / "documents").rglob("*.parquet") for row in read_published(str(path)).to_pylist()]


def edit_manifest(out: Path, change: Callable[[Row], None]) -> None:
    path = out / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps({**manifest, CHECKSUM: checksum_of(manifest)}))


def mend_manifest(out: Path) -> None:
    """Makes the manifest agree with whatever lies there now, file by file."""

    def change(manifest: Row) -> None:
        for stage in manifest["stages"]:
            for file in stage["files"]:
                found = stage_record.file_record(str(out), file["path"])
                file["size_bytes"], file["checksum"] = found.size_bytes, found.checksum

    edit_manifest(out, change)


def find(rows: list[Row], **wanted: Any) -> Row:
    return next(row for row in rows if all(row[key] == value for key, value in wanted.items()))


def flip(text: bytes) -> bytes:
    """The same length, another first byte."""
    return bytes([text[0] ^ 1]) + text[1:]


# --- an undamaged build --------------------------------------------------------------------------------------------


def test_finished_build_keeps_every_law(sample_build: Path) -> None:
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


def test_laws_say_what_they_counted(sample_build: Path) -> None:
    found = {check.name: check.detail for check in verify(str(sample_build))}
    expected = json.loads((Path(__file__).resolve().parents[2] / "data_samples" / "expected.json").read_text())
    num_read = sum(row["read"] for row in expected["sources"])
    assert found[COUNTED] == f"{num_read:,} documents read"
    assert found[IDS] == f"{len(read_documents(sample_build)):,} documents"
    assert "31 documents after 2022-07-31" in found[LATER]


def test_copies_of_a_document_are_its_duplicates_and_itself(sample_build: Path) -> None:
    files = (sample_build / "removed").rglob("*.parquet")
    copies = Counter(row["duplicate_of"] for path in files for row in read_published(str(path)).to_pylist())
    rows = read_documents(sample_build)
    assert [row for row in rows if row["num_copies"] != 1 + copies[row["id"]]] == []
    assert max(row["num_copies"] for row in rows) > 1


def test_mending_alone_breaks_nothing(copy_of_sample: Path) -> None:
    mend_manifest(copy_of_sample)
    assert [check for check in verify(str(copy_of_sample)) if not check.ok] == []


def test_progress_counts_every_byte_of_every_file(sample_build: Path) -> None:
    told: list[float] = []
    verify(str(sample_build), told.append)
    sizes = [path.stat().st_size for path in sample_build.rglob("*") if path.is_file() and ".work" not in path.parts]
    assert sum(told) >= sum(sizes) - (sample_build / "manifest.json").stat().st_size


def test_verify_writes_nothing(copy_of_sample: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in copy_of_sample.rglob("*")}
    verify(str(copy_of_sample))
    assert {path: path.stat().st_mtime_ns for path in copy_of_sample.rglob("*")} == before


# --- files ---------------------------------------------------------------------------------------------------------

ONE_OF_EACH = [
    "documents/dataset=FinPile/source=News/part-00000-of-00001.parquet",
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


def test_many_places_are_told_by_the_first_and_their_number(copy_of_sample: Path) -> None:
    for index in range(5):
        (copy_of_sample / "reports" / f"extra{index}").touch()
    assert detail(copy_of_sample, FILES).endswith("reports/extra2 is not of this build (and 2 more)")


# --- the ledger ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["ingest", "clean", "exact", "near"])
def test_dropped_ledger_row_is_found(copy_of_sample: Path, stage: str) -> None:
    edit_ledger(copy_of_sample, stage, lambda rows: [row for row in rows if row is not find(rows, start=None)])
    assert COUNTED in broken(copy_of_sample)


@pytest.mark.parametrize("stage", ["ingest", "clean", "exact", "near"])
def test_doubled_ledger_row_is_found(copy_of_sample: Path, stage: str) -> None:
    edit_ledger(copy_of_sample, stage, lambda rows: [*rows, find(rows, start=None)])
    assert COUNTED in broken(copy_of_sample)


def test_removal_booked_to_another_source_is_found(copy_of_sample: Path) -> None:
    edit_ledger(copy_of_sample, "ingest", lambda rows: find(rows, source="News").update(source="Press"))
    assert broken(copy_of_sample) == {COUNTED, ACCOUNTS}
    assert "FinPile/News" in detail(copy_of_sample, COUNTED)
    assert "FinPile/Press" in detail(copy_of_sample, COUNTED)


@pytest.mark.parametrize("stage", ["exact", "near"])
def test_altered_text_of_a_removed_duplicate_is_found(copy_of_sample: Path, stage: str) -> None:
    def change(rows: list[Row]) -> None:
        row = find(rows, source="News")
        row["removed_text"] = flip(row["removed_text"])

    edit_ledger(copy_of_sample, stage, change)
    assert broken(copy_of_sample) >= {BEFORE_EXACT}
    assert "FinPile/News" in detail(copy_of_sample, BEFORE_EXACT)


def test_swapped_texts_of_two_removed_documents_are_found(copy_of_sample: Path) -> None:
    def change(rows: list[Row]) -> None:
        one, other = [row for row in rows if row["source"] == "News"][:2]
        one["removed_text"], other["removed_text"] = other["removed_text"], one["removed_text"]

    edit_ledger(copy_of_sample, "near", change)
    assert BEFORE_EXACT in broken(copy_of_sample)


def test_altered_text_of_a_rejected_document_is_found(copy_of_sample: Path) -> None:
    def change(rows: list[Row]) -> None:
        row = find(rows, reason="c4_curly_bracket")
        row["removed_text"] = flip(row["removed_text"])

    edit_ledger(copy_of_sample, "clean", change)
    assert broken(copy_of_sample) == {BEFORE_CLEAN}


def cut_span(rows: list[Row]) -> Row:
    return find(rows, reason="c4_ellipsis")


SPANS: dict[str, Change] = {
    "altered": lambda rows: cut_span(rows).update(removed_text=flip(cut_span(rows)["removed_text"])),
    "moved": lambda rows: cut_span(rows).update(start=cut_span(rows)["start"] - 1, end=cut_span(rows)["end"] - 1),
    "shortened": lambda rows: cut_span(rows).update(removed_text=cut_span(rows)["removed_text"][:-1]),
    "dropped": lambda rows: [row for row in rows if row is not cut_span(rows)],
    "doubled": lambda rows: [*rows, cut_span(rows)],
    "given to another document": lambda rows: cut_span(rows).update(id="0" * 32),
}


@pytest.mark.parametrize("change", SPANS.values(), ids=SPANS.keys())
def test_span_that_is_not_what_was_cut_is_found(copy_of_sample: Path, change: Change) -> None:
    edit_ledger(copy_of_sample, "clean", change)
    assert broken(copy_of_sample) == {BEFORE_CLEAN}


# --- duplicates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["exact", "near"])
def test_copy_that_is_nowhere_is_found(copy_of_sample: Path, stage: str) -> None:
    edit_ledger(copy_of_sample, stage, lambda rows: rows[0].update(duplicate_of="f" * 32))
    assert COPIES in broken(copy_of_sample)
    assert f"is for {'f' * 32}, which is not kept" in detail(copy_of_sample, COPIES)


@pytest.mark.parametrize("stage", ["exact", "near"])
def test_copy_that_was_itself_removed_is_found(copy_of_sample: Path, stage: str) -> None:
    def change(rows: list[Row]) -> None:
        one, other = [row for row in rows if row["source"] == "News"][:2]
        one["duplicate_of"] = other["id"]

    edit_ledger(copy_of_sample, stage, change)
    assert COPIES in broken(copy_of_sample)


@pytest.mark.parametrize("stage", ["exact", "near"])
def test_copy_that_is_another_document_is_found(copy_of_sample: Path, stage: str) -> None:
    def change(rows: list[Row]) -> None:
        one, other = [row for row in rows if row["source"] == "News"][:2]
        assert one["duplicate_of"] != other["duplicate_of"]
        one["duplicate_of"] = other["duplicate_of"]

    edit_ledger(copy_of_sample, stage, change)
    assert broken(copy_of_sample) != set()


def test_copy_that_stands_elsewhere_in_the_document_is_found(copy_of_sample: Path) -> None:
    edit_ledger(copy_of_sample, "exact", lambda rows: rows[0].update(duplicate_offset=1))
    assert broken(copy_of_sample) == {COPIES}
    assert "at byte 1" in detail(copy_of_sample, COPIES)


@pytest.mark.parametrize("stage", ["exact", "near"])
def test_duplicate_of_nothing_is_found(copy_of_sample: Path, stage: str) -> None:
    edit_ledger(copy_of_sample, stage, lambda rows: rows[0].update(duplicate_of=None, duplicate_offset=None))
    assert COPIES in broken(copy_of_sample)
    assert "is a duplicate of nothing" in detail(copy_of_sample, COPIES)


def test_wrong_number_of_copies_is_found(copy_of_sample: Path) -> None:
    edit_documents(copy_of_sample, "News", lambda rows: rows[0].update(num_copies=rows[0]["num_copies"] + 1))
    assert COPIES in broken(copy_of_sample)
    assert re.search(r" counts \d+ copies, the ledger \d+", detail(copy_of_sample, COPIES))


# --- documents -----------------------------------------------------------------------------------------------------


def repeat_first_text(rows: list[Row], **changes: Any) -> list[Row]:
    """The rows of a source, and the first of them once more under another id."""
    return [*rows, {**rows[0], "id": "0" * 32, **changes}]


def test_text_that_is_kept_twice_is_found(copy_of_sample: Path) -> None:
    edit_documents(copy_of_sample, "News", repeat_first_text)
    first = find(read_documents(copy_of_sample), source="News")["id"]
    assert DISTINCT in broken(copy_of_sample)
    assert "1 documents repeat the text of another, such as " in detail(copy_of_sample, DISTINCT)
    assert {first, "0" * 32} == set(detail(copy_of_sample, DISTINCT).split("such as ")[1].split(" and "))


@pytest.mark.parametrize(
    ("settings", "is_found"),
    [
        ({"exact_fold": "none"}, False),
        ({"exact_fold": "case_whitespace"}, True),
        ({"exact_fold": "case_whitespace", "scope": "corpus"}, True),
        ({"exact_fold": "case_whitespace", "exact": False}, False),
    ],
)
def test_texts_are_distinct_as_the_config_has_it(copy_of_sample: Path, settings: Row, is_found: bool) -> None:
    """The second text differs from the first in case and white space."""
    text = find(read_documents(copy_of_sample), source="News")["text"]
    edit_documents(copy_of_sample, "News", lambda rows: repeat_first_text(rows, text=f"  {text.upper()}\n"))
    edit_manifest(copy_of_sample, lambda manifest: manifest["config"]["dedup"].update(settings))
    assert (DISTINCT in broken(copy_of_sample)) == is_found


@pytest.mark.parametrize(("scope", "is_found"), [("dataset", False), ("corpus", True)])
def test_texts_are_distinct_within_the_scope(scope: str, is_found: bool, copy_of_sample: Path) -> None:
    """A text of FinPile is given to a document of another dataset."""
    rows = read_documents(copy_of_sample)
    text = find(rows, dataset="FinPile")["text"]
    other = next(row["source"] for row in rows if row["dataset"] != "FinPile")
    edit_documents(copy_of_sample, other, lambda rows: rows[0].update(text=text))
    edit_manifest(copy_of_sample, lambda manifest: manifest["config"]["dedup"].update(scope=scope))
    assert (DISTINCT in broken(copy_of_sample)) == is_found


def test_altered_text_of_a_kept_document_is_found(copy_of_sample: Path) -> None:
    edit_documents(copy_of_sample, "Press", lambda rows: rows[0].update(text=rows[0]["text"] + "\n"))
    assert broken(copy_of_sample) == {BEFORE_EXACT, BEFORE_CLEAN}


def test_dropped_document_is_found(copy_of_sample: Path) -> None:
    edit_documents(copy_of_sample, "Press", lambda rows: rows[1:])
    assert broken(copy_of_sample) >= {COUNTED, BEFORE_EXACT, BEFORE_CLEAN}


def test_doubled_document_is_found(copy_of_sample: Path) -> None:
    edit_documents(copy_of_sample, "Press", lambda rows: [*rows, rows[0]])
    assert broken(copy_of_sample) >= {COUNTED, IDS, BEFORE_EXACT}


def test_document_taken_for_another_is_found(copy_of_sample: Path) -> None:
    """One dropped and one doubled: the counts agree, ids and texts do not."""
    edit_documents(copy_of_sample, "Press", lambda rows: [rows[0], *rows[:1], *rows[2:]])
    assert broken(copy_of_sample) >= {IDS, BEFORE_EXACT, BEFORE_CLEAN}


@pytest.mark.parametrize("key", ["id", "locator"])
def test_id_that_is_not_of_its_locator_is_found(copy_of_sample: Path, key: str) -> None:
    edit_documents(copy_of_sample, "Press", lambda rows: rows[0].update({key: "0" * 32}))
    assert IDS in broken(copy_of_sample)


def test_document_booked_to_another_source_is_found(copy_of_sample: Path) -> None:
    moved: list[Row] = []
    edit_documents(copy_of_sample, "Press", lambda rows: moved.append(rows.pop()))
    edit_documents(copy_of_sample, "News", lambda rows: rows.append(moved[0]))
    assert broken(copy_of_sample) >= {COUNTED, IDS, BEFORE_EXACT}


# --- the split -----------------------------------------------------------------------------------------------------


def only_the_split_is_broken(out: Path) -> bool:
    found = broken(out)
    return bool(found) and not found & {FILES, COUNTED, BEFORE_EXACT, BEFORE_CLEAN, COPIES, IDS}


@pytest.mark.parametrize("which", [0, -1], ids=["earliest", "latest"])
def test_heldout_document_in_train_is_found(copy_of_sample: Path, which: int) -> None:
    """The earliest of all, too: with it in train, all that is held out is still later than train."""
    rows = [row for row in read_documents(copy_of_sample) if row["split"] == "heldout"]
    leak = sorted(rows, key=lambda row: row["timestamp"])[which]
    edit_documents(copy_of_sample, leak["source"], lambda rows: find(rows, id=leak["id"]).update(split="train"))
    assert only_the_split_is_broken(copy_of_sample)


def test_training_document_held_out_is_found(copy_of_sample: Path) -> None:
    """The latest of all: with it held out, all that is held out is still later than train."""
    rows = [row for row in read_documents(copy_of_sample) if row["split"] == "train" and row["timestamp"]]
    last = max(rows, key=lambda row: row["timestamp"])
    edit_documents(copy_of_sample, last["source"], lambda rows: find(rows, id=last["id"]).update(split="heldout"))
    assert only_the_split_is_broken(copy_of_sample)


def test_undated_document_held_out_is_found(copy_of_sample: Path) -> None:
    edit_documents(copy_of_sample, "News", lambda rows: find(rows, timestamp=None).update(split="heldout"))
    assert only_the_split_is_broken(copy_of_sample)


def test_document_on_neither_side_is_found(copy_of_sample: Path) -> None:
    edit_documents(copy_of_sample, "News", lambda rows: find(rows, split="train").update(split="dev"))
    assert only_the_split_is_broken(copy_of_sample)


# --- what is no build ----------------------------------------------------------------------------------------------


def test_folder_without_a_manifest_is_no_build(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no finished build .+ run `finpile build CONFIG.yaml -o "):
        verify(str(tmp_path))
    with pytest.raises(InputError):
        load_manifest(Layout(str(tmp_path / "absent")))


MANIFESTS = {"cut": '{"version": 1, "sta', "empty": "", "of another kind": "[]", "without stages": '{"version": 1}'}


@pytest.mark.parametrize("text", MANIFESTS.values(), ids=MANIFESTS.keys())
def test_damaged_manifest_is_told_as_such(copy_of_sample: Path, text: str) -> None:
    (copy_of_sample / "manifest.json").write_text(text)
    with pytest.raises((IntegrityError, InputError), match=r"manifest\.json"):
        verify(str(copy_of_sample))


def test_manifest_without_a_stage_is_told_as_such(copy_of_sample: Path) -> None:
    edit_manifest(copy_of_sample, lambda manifest: manifest["stages"].pop(1))
    with pytest.raises((IntegrityError, InputError), match=r"manifest\.json"):
        verify(str(copy_of_sample))


def test_build_can_be_verified_where_it_was_moved(copy_of_sample: Path, tmp_path: Path) -> None:
    moved = shutil.move(copy_of_sample, tmp_path / "elsewhere [1]")
    assert broken(Path(moved)) == set()
