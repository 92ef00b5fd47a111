"""Lists of documents against a scan of all rows in plain Python, and counts by hand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finpile.documents.conditions import Condition
from finpile.errors import ConfigError, InputError, IntegrityError
from finpile.history.document import document_history
from finpile.history.listing import DOCUMENT_COLUMNS, REMOVAL_COLUMNS, Filter, Listing
from tests.support.trees import rows_below

Row = dict[str, Any]
Keep = Callable[[Row], bool]


def all_rows(out: Path, folder: str) -> list[Row]:
    """All rows, with `bytes`, in the order of the files."""
    rows = rows_below(out / folder)
    for row in rows:
        row["bytes"] = len(row["removed_text"] if folder == "removed" else row["text"].encode())
    return rows


def listed(out: Path, **conditions: Any) -> list[Row]:
    conditions["where"] = tuple(map(Condition.parse, conditions.get("where", ())))
    return list(Listing(str(out), Filter(**conditions)).rows())


def in_utf8(row: Row) -> str:
    return str(row["text"] if "text" in row else row["removed_text"].decode(errors="replace"))


DOCUMENTS: dict[str, tuple[Row, Keep]] = {
    "all": ({}, lambda row: True),
    "source": ({"source": "News"}, lambda row: bool(row["source"] == "News")),
    "size": ({"where": ["bytes>3000"]}, lambda row: bool(row["bytes"] > 3000)),
    "days": (
        {"where": ["timestamp>=2012", "timestamp<=2015-06-30"]},
        lambda row: row["timestamp"] is not None and "2012" <= str(row["timestamp"])[:10] <= "2015-06-30",
    ),
    "split": ({"where": ["split=heldout"]}, lambda row: bool(row["split"] == "heldout")),
    "locator": ({"where": ["locator=*.warc.gz#*"]}, lambda row: ".warc.gz#" in row["locator"]),
    "text": ({"text": r"(?i)\bcrude oil\b"}, lambda row: bool(re.search(r"(?i)\bcrude oil\b", in_utf8(row)))),
    "several": (
        {"source": "Web", "where": ["num_copies>1"], "text": "the"},
        lambda row: row["source"] == "Web" and row["num_copies"] > 1 and "the" in row["text"],
    ),
}
LEDGER: dict[str, tuple[Row, Keep]] = {
    "removed": ({"is_removed": True}, lambda row: row["start"] is None),
    "reason": ({"reason": "c4_policy"}, lambda row: bool(row["reason"] == "c4_policy")),
    "reason of whole documents": (
        {"is_removed": True, "reason": "near_duplicate"},
        lambda row: row["start"] is None and row["reason"] == "near_duplicate",
    ),
    "whole documents of a reason of spans": ({"is_removed": True, "reason": "c4_policy"}, lambda row: False),
    "stage": ({"is_removed": True, "where": ["stage=exact"]}, lambda row: bool(row["stage"] == "exact")),
    "source": (
        {"is_removed": True, "source": "Web"},
        lambda row: row["start"] is None and row["source"] == "Web",
    ),
    "text": ({"is_removed": True, "text": "Parking"}, lambda row: row["start"] is None and "Parking" in in_utf8(row)),
    "bytes that are no text": (
        {"reason": "undecodable", "text": "."},
        lambda row: row["reason"] == "undecodable" and row["bytes"] > 0,
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_are_those_of_a_scan(name: str, sample_build: Path) -> None:
    conditions, keep = DOCUMENTS[name]
    expected = [{key: row[key] for key in DOCUMENT_COLUMNS} for row in all_rows(sample_build, "documents") if keep(row)]
    assert expected
    assert listed(sample_build, **conditions) == expected


@pytest.mark.parametrize("name", LEDGER)
def test_removals_are_those_of_a_scan(name: str, sample_build: Path) -> None:
    conditions, keep = LEDGER[name]
    expected = [{key: row[key] for key in REMOVAL_COLUMNS} for row in all_rows(sample_build, "removed") if keep(row)]
    assert bool(expected) == (name != "whole documents of a reason of spans")
    assert listed(sample_build, **conditions) == expected


def test_numbers_of_the_sample(sample_build: Path) -> None:
    """298 documents, 20 exact and 12 near duplicates, as in the README."""
    assert len(listed(sample_build)) == 298
    removed = Counter(row["reason"] for row in listed(sample_build, is_removed=True))
    assert (removed["exact_duplicate"], removed["near_duplicate"]) == (20, 12)


def test_every_id_has_a_history(sample_build: Path) -> None:
    for row in (*listed(sample_build, source="Press")[:3], *listed(sample_build, is_removed=True)[::12]):
        assert document_history(str(sample_build), row["id"]).id == row["id"]


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        ({"source": "Wbe"}, "did you mean `Web`"),
        ({"reason": "near_dup"}, "did you mean `near_duplicate`"),
        ({"where": ["ulr=x"]}, "did you mean `url`"),
        ({"where": ["text=x"]}, "'text' is not known"),
        ({"is_removed": True, "where": ["meta.cik=1"]}, "'meta.cik' is not known"),
        ({"text": "("}, r"--text is '\('"),
    ],
)
def test_unknown_names_are_refused_before_files_are_read(conditions: Row, says: str, copy_of_sample: Path) -> None:
    for path in copy_of_sample.rglob("*.parquet"):
        path.unlink()
    with pytest.raises(ConfigError, match=says):
        listed(copy_of_sample, **conditions)


def test_damaged_file_is_an_error_that_names_it(copy_of_sample: Path) -> None:
    (path,) = (copy_of_sample / "documents").glob("*/source=News/train-*.parquet")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert listed(copy_of_sample, source="Web")  # files of other sources are not read
    with pytest.raises(IntegrityError, match=f"{path} is damaged"):
        listed(copy_of_sample)


def test_a_folder_without_a_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        listed(tmp_path)
