"""A finished build as the checks read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from finpile.output.layout import Layout, read_published, read_published_parts
from finpile.output.manifest import counts_by_stage, published
from finpile.output.published_files import Advance


@dataclass(frozen=True, slots=True)
class Output:
    """The folder of a build, and one of its manifests."""

    layout: Layout
    manifest: Mapping[str, Any]
    advance: Advance = lambda size_bytes: None

    @property
    def config(self) -> Mapping[str, Any]:
        """The corpus file."""
        config: Mapping[str, Any] = self.manifest["config"]
        return config

    @property
    def counts(self) -> dict[str, dict[str, Any]]:
        """The counts of each stage."""
        return counts_by_stage(self.manifest)

    def paths(self, folder: str) -> list[str]:
        """The files below a folder that the manifest lists, sorted, relative to OUT."""
        return published(self.manifest, folder)

    def table(self, path: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a Parquet file, with the columns that its folders' names hold."""
        table = read_published(self.layout.root, path, columns)
        self.advance(table.nbytes)
        return table

    def tables(self, folder: str, columns: Sequence[str] | None = None) -> Iterator[tuple[str, pa.Table]]:
        """The path and rows of each file below a folder; a file with many rows is several tables."""
        return ((path, table) for path in self.paths(folder) for table in self.parts(path, columns))

    def parts(self, path: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """As `table`, in parts."""
        for table in read_published_parts(self.layout.root, path, columns):
            self.advance(table.nbytes)
            yield table
