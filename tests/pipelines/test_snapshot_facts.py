"""`verify` finds what a manifest says of a snapshot's changes, if files and documents contradict it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finpile import storage
from finpile.output.layout import Layout
from finpile.output.manifest import SNAPSHOT, write_manifest
from finpile.output.snapshots import read_snapshot
from finpile.output.stage_record import file_record
from finpile.output.takedowns import list_path
from finpile.report.dataset_card import write_card
from finpile.verify import snapshots, verify

Facts = dict[str, Any]
#: Of the build of `snapshots_build`: an append, and a removal of four documents.
APPEND, REMOVAL = 1, 2


@pytest.fixture
def out(snapshots_build: Path, tmp_path: Path) -> Path:
    """A build with two snapshots, for a test to damage."""
    return Path(shutil.copytree(snapshots_build / "out", tmp_path / "out", ignore=shutil.ignore_patterns(".work")))


def edit(out: Path, number: int, change: Callable[[Facts], object]) -> None:
    """Changes the facts of a snapshot, with all that follows from them."""
    layout = Layout(str(out))
    manifest = read_snapshot(layout, number)
    before = json.dumps(manifest[SNAPSHOT])
    change(manifest[SNAPSHOT])
    assert json.dumps(manifest[SNAPSHOT]) != before
    for url in (layout.snapshot(number), *([layout.manifest] if number == REMOVAL else [])):
        write_manifest(url, write_card(layout, manifest) if number == REMOVAL else manifest)


def broken(out: Path) -> list[str]:
    """What is wrong with the snapshots; nothing else is."""
    found = verify(str(out))
    (mine,) = (check for check in verify(str(out), groups=[snapshots.checks]) if check.name.startswith("files and"))
    assert [check.name for check in found if not check.ok] == ([] if mine.ok else [mine.name])
    return [] if mine.ok else mine.detail.split("; ")


def test_facts_of_snapshots_hold(out: Path) -> None:
    assert broken(out) == []


def one_less(places: Facts) -> None:
    (first, *_) = places
    places[first][0]["places"][0][2] -= 1


EDITS: dict[str, tuple[int, Callable[[Facts], object], str]] = {
    "documents": (REMOVAL, lambda facts: facts["taken_down"].update(documents=5), "`taken_down.documents` is not"),
    "published": (REMOVAL, lambda facts: facts["taken_down"].update(published=0), "`taken_down.published` is not"),
    "tokens": (REMOVAL, lambda facts: one_less(facts["taken_down"]["tokens"]), "`taken_down.tokens` is not"),
    "nothing": (REMOVAL, lambda facts: facts.pop("taken_down"), "contradict each other"),
    "a removal": (APPEND, lambda facts: facts.update(taken_down={}), "contradict each other"),
    "added": (APPEND, lambda facts: facts["added"].pop(), "`added` is not"),
    "rewritten": (REMOVAL, lambda facts: facts["rewritten"].popitem(), "`rewritten` is not"),
}


@pytest.mark.parametrize(("number", "change", "message"), EDITS.values(), ids=EDITS.keys())
def test_edited_fact_is_found(out: Path, number: int, change: Callable[[Facts], object], message: str) -> None:
    edit(out, number, change)
    found = [check.detail for check in verify(str(out), groups=[snapshots.checks]) if not check.ok]
    assert [message in detail for detail in found] == [True]


def test_edited_snapshot_of_a_takedown_is_found(out: Path) -> None:
    path = list_path(REMOVAL)
    table = pq.ParquetFile(out / path).read()
    at = table.schema.get_field_index("snapshot")
    numbers = pa.array([APPEND, *table["snapshot"].to_pylist()[1:]], pa.int32())
    storage.write_parquet(str(out / path), table.set_column(at, table.schema.field(at), numbers))
    record = asdict(file_record(str(out), path, table.num_rows))
    edit(out, REMOVAL, lambda facts: facts.update(takedowns=record))
    assert "its list of takedowns has a document of another snapshot" in broken(out)[0]
