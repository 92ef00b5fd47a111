"""The index of a build of any size, in OUT/explorer/index: all rows, which the pages read by ranges of bytes.

documents.parquet, removals.parquet   rows in the order of `scan`
ids.parquet                           by id: where its rows are (`kind`, `row`)
data/                                 scripts: what the page begins with, the summary, counts by month, the vocabulary
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from finpile import storage
from finpile.explorer.corpus import Corpus, summarise
from finpile.explorer.ids import ID
from finpile.explorer.scan import DOCUMENT_ROWS, REMOVAL_ROWS
from finpile.explorer.site import data_script, page_files
from finpile.explorer.vocabulary import vocabulary
from finpile.output.published_files import Advance
from finpile.version import __version__

#: Rows of a row group: what is read for one screen of a list, and for one id.
GROUP_ROWS = 4096
#: Kinds of rows of `ids.parquet`: a document, a removal of it, a removal of one of its copies.
DOCUMENT, REMOVAL, COPY = 0, 1, 2
_IDS = pa.schema([("id", ID), ("kind", pa.int32()), ("row", pa.int32())])
_MADE = "made.json"
#: Changes with what the pages read: an index of another format is made again.
_FORMAT = 2


def write_index(out: str, advance: Advance = lambda amount: None) -> str:
    """Writes the index and the pages of the build in the folder `out`, unless they are there; returns the folder.

    Raises: InputError if OUT holds no finished build; IntegrityError if a file is missing or damaged.
    """
    corpus = Corpus.open(out)
    folder = storage.join(corpus.layout.explorer, "index")
    made = {"checksum": corpus.checksum, "finpile": __version__, "format": _FORMAT}
    storage.write_files(folder, page_files())
    with_index = storage.join(folder, _MADE)
    if storage.is_file(with_index) and storage.read_json(with_index) == made:
        return folder
    if storage.is_file(with_index):
        storage.remove_files(folder, [_MADE])
    ids = _Ids()
    with (
        _parquet(storage.join(folder, "documents.parquet"), DOCUMENT_ROWS) as documents,
        _parquet(storage.join(folder, "removals.parquet"), REMOVAL_ROWS) as removals,
    ):
        summary, months = summarise(
            corpus,
            lambda rows: _all(documents.add(ids.documents(rows))),
            lambda rows: _all(removals.add(ids.removals(rows))),
            advance,
        )
    firsts = ids.write(storage.join(folder, "ids.parquet"))
    start: dict[str, Any] = {"mode": "ranges", "documents": documents.num_rows, "removals": removals.num_rows}
    pieces = vocabulary(corpus.layout, advance)
    summary["has_vocabulary"] = pieces is not None
    scripts = {"start": start, "summary": summary, "months": months, **({"vocabulary": pieces} if pieces else {})}
    for name, value in scripts.items():
        storage.write_bytes(storage.join(folder, f"data/{name}.js"), data_script(name, value))
    storage.write_bytes(storage.join(folder, "data/ids.json"), json.dumps(firsts).encode())
    storage.write_json(with_index, made)
    return folder


class _Parquet:
    """Writes rows in groups of `GROUP_ROWS`, whatever tables they come in."""

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._writer, self._left = writer, schema.empty_table()
        self.num_rows = 0

    def add(self, rows: pa.Table) -> pa.Table:
        self.num_rows += rows.num_rows
        self._left = pa.concat_tables([self._left, rows.select(self._left.column_names)])
        whole = self._left.num_rows - self._left.num_rows % GROUP_ROWS
        for start in range(0, whole, GROUP_ROWS):
            self._writer.write_table(self._left.slice(start, GROUP_ROWS).combine_chunks(), GROUP_ROWS)
        self._left = self._left.slice(whole).combine_chunks()
        return rows

    def close(self) -> None:
        if self._left.num_rows or not self.num_rows:
            self._writer.write_table(self._left, GROUP_ROWS)


@contextmanager
def _parquet(url: str, schema: pa.Schema) -> Iterator[_Parquet]:
    options: dict[str, Any] = {"compression": "zstd", "write_statistics": False, "store_schema": False}
    with storage.write_atomically(url) as stream, pq.ParquetWriter(stream, schema, **options) as writer:
        rows = _Parquet(writer, schema)
        yield rows
        rows.close()


class _Ids:
    """Where the rows of each id are."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self._counts = [0, 0]

    def documents(self, rows: pa.Table) -> pa.Table:
        self._add(rows["id"], DOCUMENT, 0, rows.num_rows)
        return rows

    def removals(self, rows: pa.Table) -> pa.Table:
        self._add(rows["id"], REMOVAL, 1, 0)
        self._add(rows["duplicate_of"], COPY, 1, rows.num_rows)
        return rows

    def _add(self, ids: pa.ChunkedArray, kind: int, table: int, num_rows: int) -> None:
        first = self._counts[table]
        self._counts[table] += num_rows
        places = np.arange(first, first + len(ids), dtype=np.int32)
        found = pa.table({"id": ids, "kind": np.full(len(ids), kind, np.int32), "row": places}, schema=_IDS)
        self._parts.append(found.filter(found["id"].is_valid()))

    def write(self, url: str) -> list[str]:
        """Writes the rows by id; returns the first id of each row group."""
        rows = pa.concat_tables([_IDS.empty_table(), *self._parts])
        rows = rows.sort_by([(name, "ascending") for name in _IDS.names])
        with _parquet(url, _IDS) as target:
            target.add(rows)
        return [rows["id"][start].as_py().hex() for start in range(0, rows.num_rows, GROUP_ROWS)]


def _all(rows: pa.Table) -> pa.Array:
    return pa.array(np.ones(rows.num_rows, bool))
