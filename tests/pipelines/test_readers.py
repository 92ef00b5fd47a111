"""The published folders open in the readers that people have, each with its default options, and all agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from finpile import storage
from finpile.documents.document import PUBLISHED_SCHEMA
from finpile.documents.ledger import PUBLISHED_LEDGER_SCHEMA
from finpile.output.layout import document_part
from tests.support.readers import READERS, Rows
from tests.support.trees import rows_below


@pytest.fixture(scope="module")
def published(sample_build: Path) -> dict[str, Rows]:
    """The reference: file by file, with the names of its folders."""
    return {folder: rows_below(sample_build / folder) for folder in ("documents", "removed")}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize(
    ("folder", "columns"),
    [("documents", ("dataset", "source", "id", "text")), ("removed", ("stage", "source", "id", "reason"))],
)
def test_folder_opens_with_the_columns_of_its_names(
    sample_build: Path,
    published: dict[str, Rows],
    reader: Callable[[Path], Rows],
    folder: str,
    columns: tuple[str, ...],
) -> None:
    expected = Counter(tuple(row[name] for name in columns) for row in published[folder])
    assert len(expected) > 20
    assert Counter(tuple(row[name] for name in columns) for row in reader(sample_build / folder)) == expected


@pytest.mark.parametrize("folder", ["documents", "removed"])
def test_files_open_without_their_folders(
    sample_build: Path, published: dict[str, Rows], folder: str, tmp_path: Path
) -> None:
    files = str(sample_build / folder / "**" / "*.parquet")
    loaded = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path))
    assert Counter(loaded["id"]) == Counter(row["id"] for row in published[folder])
    table = ds.dataset(sample_build / folder, partitioning=None).to_table()
    schema = PUBLISHED_SCHEMA if folder == "documents" else PUBLISHED_LEDGER_SCHEMA
    assert (table.num_rows, table.column_names) == (len(published[folder]), schema.names)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("names", [["2021", "2022"], ["The Pile", "a=b/c%"], ["2021", "News"]], ids=str)
def test_no_name_of_a_source_breaks_a_reader(tmp_path: Path, reader: Callable[[Path], Rows], names: list[str]) -> None:
    """Readers take names for numbers where all of them look like numbers."""
    row: dict[str, Any] = dict.fromkeys(PUBLISHED_SCHEMA.names) | dict.fromkeys(("id", "text", "meta", "locator"), "x")
    row |= {"timestamp_origin": "none", "num_copies": 1, "split": "train"}
    for name in names:
        url = str(tmp_path / "out" / document_part(name, name, "train", 0, 1))
        storage.write_parquet(url, pa.Table.from_pylist([row], schema=PUBLISHED_SCHEMA))
    found = reader(tmp_path / "out" / "documents")
    assert sorted((str(row["dataset"]), str(row["source"])) for row in found) == sorted(zip(names, names, strict=True))
