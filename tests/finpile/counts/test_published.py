"""Published files that are written and counted in parts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from finpile import storage
from finpile.counts.published import (
    count_documents,
    count_ledger,
    counts_of_documents,
    sum_of_documents,
    write_documents,
    write_ledger,
)
from finpile.output.layout import read_published, values_in_path


def _parts(table: pa.Table, num_rows: int) -> list[pa.Table]:
    return [table.slice(first, num_rows) for first in range(0, table.num_rows, num_rows)]


def _files(folder: Path, kind: str) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in sorted((folder / kind).rglob("*.parquet"))]


@pytest.mark.parametrize("num_rows", [1, 7])
def test_documents_in_parts_are_the_same_file_with_the_same_counts(
    sample_build: Path, tmp_path: Path, num_rows: int
) -> None:
    for path in _files(sample_build, "documents"):
        table = read_published(str(sample_build), path)
        counts = write_documents(str(tmp_path), path, [table.slice(0, 0), *_parts(table, num_rows)])
        assert counts == count_documents(str(tmp_path), path, table)
        storage.write_parquet(str(tmp_path / "whole"), table.drop_columns(list(values_in_path(path))))
        assert (tmp_path / path).read_bytes() == (tmp_path / "whole").read_bytes()
    assert write_documents(str(tmp_path), "documents/dataset=A/source=B/none.parquet", [table.slice(0, 0)]) is None


def test_counts_of_parts_add_up_with_licences_of_some_and_none() -> None:
    texts = pa.array(["x", "yy", "z"], pa.large_string())
    columns = {"id": ["a", "b", "c"], "text": texts, "split": ["train", "heldout", "train"]}
    table = pa.table({**columns, "license": pa.array(["B", None, "A"], pa.string())})
    assert sum_of_documents(map(counts_of_documents, _parts(table, 1))) == counts_of_documents(table)


def test_rows_of_the_ledger_in_parts_are_the_same_file_with_the_same_counts(sample_build: Path, tmp_path: Path) -> None:
    for path in _files(sample_build, "removed"):
        table = read_published(str(sample_build), path)
        counts = write_ledger(str(tmp_path), path, _parts(table.drop_columns(["stage"]), 3))
        assert counts == count_ledger(str(tmp_path), path, table["stage"][0].as_py(), table)
        storage.write_parquet(str(tmp_path / "whole"), table.drop_columns(["stage"]))
        assert (tmp_path / path).read_bytes() == (tmp_path / "whole").read_bytes()
