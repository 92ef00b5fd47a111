"""`verify` finds every kind of damage to ledger, documents and split, by the check that it fails.

A copy of the sample build is damaged; then its manifest is mended, so that no checksum shows it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from finpile.verify.texts import _Copy, _may_outlive
from tests.support.damage import (
    ACCOUNTS,
    BEFORE_CLEAN,
    BEFORE_EXACT,
    COPIES,
    COUNTED,
    DATES_OF_CUTS,
    DISTINCT,
    FILES,
    IDS,
    Change,
    Row,
    broken,
    detail,
    edit_documents,
    edit_ledger,
    edit_manifest,
    find,
    flip,
    mend_manifest,
    read_documents,
)

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
    assert broken(copy_of_sample) == {COUNTED, ACCOUNTS, IDS}
    assert "FinPile/News" in detail(copy_of_sample, COUNTED)
    assert "FinPile/Press" in detail(copy_of_sample, COUNTED)


@pytest.mark.parametrize("stage", ["ingest", "clean", "exact", "near"])
def test_removal_with_the_locator_of_another_document_is_found(copy_of_sample: Path, stage: str) -> None:
    edit_ledger(copy_of_sample, stage, lambda rows: rows[0].update(locator=rows[-1]["locator"]))
    assert broken(copy_of_sample) == {IDS, ACCOUNTS}


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
def test_span_that_differs_from_the_cut_is_found(copy_of_sample: Path, change: Change) -> None:
    edit_ledger(copy_of_sample, "clean", change)
    assert broken(copy_of_sample) - {IDS} == {BEFORE_CLEAN}


@pytest.mark.parametrize("moment", [None, datetime(1999, 1, 1, tzinfo=UTC)])
def test_cut_with_another_date_than_its_document_is_found(copy_of_sample: Path, moment: datetime | None) -> None:
    """`as-of` chooses rows of the ledger by their dates."""
    edit_ledger(copy_of_sample, "clean", lambda rows: cut_span(rows).update(timestamp=moment))
    assert broken(copy_of_sample) == {DATES_OF_CUTS}


# --- duplicates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["exact", "near"])
def test_missing_copy_is_found(copy_of_sample: Path, stage: str) -> None:
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
    assert broken(copy_of_sample) == {COPIES}


def test_copy_at_another_offset_of_the_document_is_found(copy_of_sample: Path) -> None:
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
    first = find(read_documents(copy_of_sample), source="News", split="train")["id"]
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
    edit_documents(
        copy_of_sample, leak["source"], lambda rows: find(rows, id=leak["id"]).update(split="train"), "heldout"
    )
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


def test_documents_under_the_name_of_the_other_split_are_found(copy_of_sample: Path) -> None:
    """Readers that go by the names of files would train on them."""
    names = [f"documents/dataset=FinPile/source=News/{split}-00000-of-00001.parquet" for split in ("train", "heldout")]
    contents = [(copy_of_sample / name).read_bytes() for name in names]
    for name, content in zip(names, reversed(contents), strict=True):
        (copy_of_sample / name).write_bytes(content)
    mend_manifest(copy_of_sample)
    assert only_the_split_is_broken(copy_of_sample)


# --- documents that name one which is removed later -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "is_whole", "gone", "has_kept", "may"),
    [
        ("exact", True, "near", False, True),
        ("exact", True, "near", True, False),  # then its own kept copy is to be named
        ("near", True, "near", False, False),
        ("near", True, "exact", False, False),
        ("substring", False, "overlap", True, True),
        ("substring", False, "substring", True, True),
        ("substring", False, "near", False, False),
    ],
)
def test_only_what_was_removed_earlier_may_name_a_document_that_is_gone(
    stage: str, is_whole: bool, gone: str, has_kept: bool, may: bool
) -> None:
    assert _may_outlive(_Copy("a", stage, is_whole, None), gone, has_kept) == may
