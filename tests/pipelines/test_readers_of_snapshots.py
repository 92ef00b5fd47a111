"""Plain readers of the folders see the current snapshot; earlier ones are read by their numbers."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.vacuum import vacuum

from finpile import open_documents, open_ledger
from finpile.explorer.corpus import Corpus, summarise
from finpile.output.layout import Layout, earlier_place
from finpile.output.published_files import PublishedFiles
from finpile.output.snapshots import load_snapshot, numbers
from tests.support.delta_corpus import steps
from tests.support.made_days import documents_of, failed, ledger_of
from tests.support.readers import READERS

_LEDGER = ("stage", "id", "reason", "start")


def rows_of(out: Path, number: int | None = None) -> dict[str, Counter[tuple[Any, ...]]]:
    """The ids of documents and rows of the ledger of a snapshot, by the files that its manifest lists."""
    return {
        "documents": Counter((name,) for name in documents_of(out, number)["id"].to_pylist()),
        "removed": Counter(tuple(row[name] for name in _LEDGER) for row in ledger_of(out, number)),
    }


def named(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """Columns of rows; what a reader gives for null is None."""
    return Counter(tuple(None if (value := row[name]) != value else value for name in columns) for row in rows)


def steps_and_vacuums(folder: Path, out: Path) -> Iterator[str]:
    """A build and what is done to it, one after the other."""
    yield from steps(folder, str(out))
    vacuum(str(out), Engine(), keep=2)
    yield "vacuum"
    vacuum(str(out), Engine())
    yield "second vacuum"


def test_readers_of_the_folders_see_the_current_snapshot(tmp_path: Path) -> None:
    seen: list[dict[str, Counter[tuple[Any, ...]]]] = []
    out = tmp_path / "out"
    for step in steps_and_vacuums(tmp_path, out):
        expected = rows_of(out)
        assert max(expected["documents"].values()) == 1
        assert step != "late append" or load_snapshot(Layout(str(out)))["snapshot"]["rewritten"]
        for folder, columns in (("documents", ("id",)), ("removed", _LEDGER)):
            for name, read in READERS.items():
                assert named(read(out / folder), columns) == expected[folder], (step, folder, name)
        assert open_documents(str(out)).count_rows() == len(expected["documents"])
        loaded = datasets.load_dataset(str(out), cache_dir=str(tmp_path / step))
        assert Counter((name,) for rows in loaded.values() for name in rows["id"]) == expected["documents"], step
        assert failed(out) == []
        if "vacuum" not in step:
            seen.append(expected)
            for number in numbers(Layout(str(out))):
                assert rows_of(out, number) == seen[number]
                documents = open_documents(str(out), number).to_table(columns=["id"])
                assert named(documents.to_pylist(), ("id",)) == seen[number]["documents"]
                assert named(open_ledger(str(out), number).to_table().to_pylist(), _LEDGER) == seen[number]["removed"]
    assert len({repr(sorted(one["documents"])) for one in seen}) == len(seen)
    assert not (out / "versions").exists()


def test_a_file_that_a_snapshot_replaces_while_a_dataset_is_opened_is_found(
    snapshots_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Path(shutil.copytree(snapshots_build / "out", tmp_path / "out"))
    expected, places = open_documents(str(out)).count_rows(), PublishedFiles.places

    def move_the_first(files: PublishedFiles, folder: str) -> dict[str, str]:
        monkeypatch.undo()
        found = places(files, folder)
        path = next(iter(found))
        (out / earlier_place(path)).parent.mkdir(parents=True, exist_ok=True)
        (out / path).rename(out / earlier_place(path))
        return found

    monkeypatch.setattr(PublishedFiles, "places", move_the_first)
    assert open_documents(str(out)).count_rows() == expected


def test_the_explorer_counts_the_inputs_of_all_snapshots(snapshots_build: Path) -> None:
    corpus = Corpus.open(str(snapshots_build / "out"))
    summary, _ = summarise(corpus, *2 * [lambda rows: pa.repeat(True, rows.num_rows)])
    accounts = [pq.read_table(path) for path in (snapshots_build / "out" / "inputs").iterdir()]
    assert len(accounts) > 1
    for key in ("decompressed_bytes", "record_bytes"):
        expected = sum(sum(table[key].to_pylist()) for table in accounts)
        assert sum(row[key] for row in summary["inputs"]) == expected
    assert sum(row["files"] for row in summary["inputs"]) == sum(table.num_rows for table in accounts)
