"""The data of static pages are counts of all rows, samples by digest, and text only where it was asked for."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from finpile import open_documents, open_ledger
from finpile.errors import InputError, IntegrityError
from finpile.explorer import write_explorer
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.verify.files import checks
from finpile.verify.output import Output
from tests.finpile.explorer.conftest import read_data


def rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def test_counts_are_those_of_the_documents_and_the_ledger(explored: Path) -> None:
    summary = read_data(explored, "summary")
    sources = [(row["dataset"], row["source"]) for row in summary["sources"]]
    documents = open_documents(str(explored)).to_table().to_pylist()
    expected = Counter((row["dataset"], row["source"], row["split"]) for row in documents)
    found: Counter[tuple[str, str, str]] = Counter()
    for cell in rows(summary["documents"]["cells"]):
        found[(*sources[cell["source"]], "heldout" if cell["split"] else "train")] += cell["rows"]
    assert found == expected
    sizes = sum(len(row["text"].encode()) for row in documents)
    assert sum(summary["documents"]["cells"]["bytes"]) == sizes
    assert sum(summary["documents"]["lengths"]["rows"]) == len(documents)
    ledger = open_ledger(str(explored)).to_table().to_pylist()
    removed = Counter((row["stage"], row["reason"], row["dataset"], row["source"]) for row in ledger)
    in_cells: Counter[tuple[str, str, str, str]] = Counter()
    for cell in rows(summary["removals"]["cells"]):
        reason = summary["reasons"][cell["reason"]]
        in_cells[(reason["stage"], reason["reason"], *sources[cell["source"]])] += cell["rows"]
    assert in_cells == removed
    assert sum(summary["removals"]["cells"]["documents"]) == sum(row["start"] is None for row in ledger)
    assert sum(summary["removals"]["cells"]["bytes"]) == sum(len(row["removed_text"]) for row in ledger)
    assert all(row["meaning"] for row in summary["reasons"])


def test_listed_rows_are_in_the_order_of_the_cells(explored: Path) -> None:
    summary = read_data(explored, "summary")
    for name, keys in (("documents", ("source", "split")), ("removals", ("reason", "source"))):
        listed = rows(read_data(explored, f"{name}-0"))
        cells = rows(summary[name]["cells"])
        of_cells = [tuple(cell[key] for key in keys) for cell in cells for _ in range(cell["listed"])]
        assert [tuple(row[key] for key in keys) for row in listed] == of_cells


def test_fewer_rows_are_the_first_by_id_of_each_reason_and_source(copy_of_sample: Path, explored: Path) -> None:
    write_explorer(str(copy_of_sample), rows=1)
    few, all_ = rows(read_data(copy_of_sample, "documents-0")), rows(read_data(explored, "documents-0"))
    first: dict[tuple[int, int], str] = {}
    for row in all_:
        key = (row["source"], row["split"])
        first[key] = min(first.get(key, row["id"]), row["id"])
    assert sorted(row["id"] for row in few) == sorted(first.values())
    counts = read_data(copy_of_sample, "summary")["documents"]["cells"]["rows"]
    assert counts == read_data(explored, "summary")["documents"]["cells"]["rows"]


def test_pages_have_no_text_unless_it_is_asked_for(copy_of_sample: Path) -> None:
    write_explorer(str(copy_of_sample), samples=2)
    assert list((copy_of_sample / "explorer" / "data").glob("texts-*.js"))
    write_explorer(str(copy_of_sample))  # and those of the command before are gone
    written = b"".join(path.read_bytes() for path in sorted((copy_of_sample / "explorer" / "data").iterdir()))
    assert b"texts-" not in written
    titles = 0
    for row in open_documents(str(copy_of_sample)).to_table().to_pylist():
        assert row["text"][:60].encode("ascii", "backslashreplace") not in written
        titles += bool(row["title"]) and row["title"].encode() in written
    assert titles == 0


def test_samples_have_the_texts_of_the_kept_copies(explored: Path) -> None:
    identifiers = set(read_data(explored, "samples")["ids"])
    near = open_ledger(str(explored)).to_table(filter=pc.field("stage") == "near").to_pylist()
    assert near and all({row["id"], row["duplicate_of"]} <= identifiers for row in near)


def test_same_build_gives_the_same_bytes(copy_of_sample: Path, explored: Path) -> None:
    write_explorer(str(copy_of_sample), samples=5)
    ours, theirs = (sorted((folder / "explorer").rglob("*.*")) for folder in (copy_of_sample, explored))
    assert [path.name for path in ours] == [path.name for path in theirs]
    assert [path.read_bytes() for path in ours] == [path.read_bytes() for path in theirs]


def test_verify_accepts_pages(explored: Path) -> None:
    layout = Layout(str(explored))
    (check,) = checks(Output(layout, load_manifest(layout)))
    assert check.ok, check.detail


def test_folder_without_a_build_and_damage_are_refused(tmp_path: Path, copy_of_sample: Path) -> None:
    with pytest.raises(InputError, match="holds no finished build"):
        write_explorer(str(tmp_path))
    victim = next((copy_of_sample / "removed" / "stage=near").iterdir())
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(bytes(data))
    with pytest.raises(IntegrityError, match="is damaged"):
        write_explorer(str(copy_of_sample))
    assert not (copy_of_sample / "explorer" / "index.html").exists()
    shutil.rmtree(copy_of_sample)
