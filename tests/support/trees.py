"""What is below a folder of a build: the rows of its Parquet files, and the bytes of all files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from finpile.output import layout


def read_published(path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """A file of documents or of the ledger, with the columns that the names of its folders hold."""
    return layout.read_published("/", path.removeprefix("/"), columns)


def rows_below(folder: Path) -> list[dict[str, Any]]:
    """The rows of all Parquet files, by file, with the columns that the names of their folders hold."""
    return [row for path in sorted(folder.rglob("*.parquet")) for row in read_published(str(path)).to_pylist()]


def files_below(folder: Path) -> dict[str, bytes]:
    """The bytes of all files, by path relative to the folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_same(found: Mapping[str, bytes], expected: Mapping[str, bytes]) -> None:
    """Compares files that there are: names first, so that a failure is readable."""
    assert sorted(found) == sorted(expected) != []
    assert [path for path in sorted(found) if found[path] != expected[path]] == []
