"""What is below a folder of a build: the rows of its Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finpile.output.layout import read_published


def rows_below(folder: Path) -> list[dict[str, Any]]:
    """The rows of all Parquet files, by file, with the columns that the names of their folders hold."""
    return [row for path in sorted(folder.rglob("*.parquet")) for row in read_published(str(path)).to_pylist()]
