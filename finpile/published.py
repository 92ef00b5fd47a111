"""The documents and the ledger of a build, as Arrow datasets."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds

from finpile import storage
from finpile.document import DOCUMENT_FOLDERS, DOCUMENT_SCHEMA, PUBLISHED_SCHEMA, SUB_SOURCE
from finpile.errors import InputError
from finpile.file_systems import file_system_of
from finpile.ledger import LEDGER_FOLDERS, LEDGER_SCHEMA, PUBLISHED_LEDGER_SCHEMA


def open_documents(out: str) -> ds.Dataset:
    """The kept documents of the build in the folder or fsspec URL `out`, with the columns `dataset` and `source`.

    Raises: InputError if there are none.

    >>> open_documents("out/sample").count_rows(filter=ds.field("split") == "heldout")  # doctest: +SKIP
    31
    """
    folders = pa.schema([DOCUMENT_SCHEMA.field(name) for name in DOCUMENT_FOLDERS])
    return _open(storage.join(out, "documents"), PUBLISHED_SCHEMA, folders, (SUB_SOURCE,))


def open_ledger(out: str) -> ds.Dataset:
    """The removals of the build in the folder or fsspec URL `out`, with the column `stage`.

    Raises: InputError if there are none.
    """
    folders = pa.schema([LEDGER_SCHEMA.field(name) for name in LEDGER_FOLDERS])
    return _open(storage.join(out, "removed"), PUBLISHED_LEDGER_SCHEMA, folders)


def _open(folder: str, schema: pa.Schema, folders: pa.Schema, optional: tuple[pa.Field, ...] = ()) -> ds.Dataset:
    """The files of `schema`, and those `optional` columns that the first file has."""
    fs, path = file_system_of(folder)
    if not fs.isdir(path):
        raise InputError(f"{folder}: no such folder; expected the output of `finpile build` or `finpile dedup`")
    partitioning = ds.partitioning(folders, flavor="hive")
    found = ds.dataset(path, filesystem=fs, format="parquet").schema.names if optional else ()
    whole = pa.schema([*schema, *(entry for entry in optional if entry.name in found), *folders])
    return ds.dataset(path, schema=whole, filesystem=fs, format="parquet", partitioning=partitioning)
