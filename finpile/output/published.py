"""The documents, the ledger and the facts of a build, as Arrow datasets.

Pages are compared with their checksums as they are read, files with the manifest by `finpile verify` alone.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds

from finpile import storage
from finpile.documents.document import DOCUMENT_FOLDERS, DOCUMENT_SCHEMA, PUBLISHED_SCHEMA, SUB_SOURCE
from finpile.documents.ledger import LEDGER_FOLDERS, LEDGER_SCHEMA, PUBLISHED_LEDGER_SCHEMA
from finpile.errors import InputError
from finpile.filings.facts import FACT_SCHEMA
from finpile.output.layout import FACTS, Layout
from finpile.output.snapshots import numbers, published_files
from finpile.storage.file_systems import file_system_of


def open_documents(out: str, snapshot: int | None = None) -> ds.Dataset:
    """The kept documents of the build in the folder or fsspec URL `out`, with the columns `dataset` and `source`.

    Of a build with snapshots these are the documents of the current one, or of the `snapshot` of that number. There,
    `num_copies` is that of the snapshot that wrote a document's file: `finpile.output.snapshots.with_copies` has later
    counts.

    Raises: InputError if a build has none; of a snapshot, there are no rows then.

    >>> open_documents("out/sample").count_rows(filter=ds.field("split") == "heldout")  # doctest: +SKIP
    31
    """
    folders = pa.schema([DOCUMENT_SCHEMA.field(name) for name in DOCUMENT_FOLDERS])
    return _open(out, "documents", snapshot, PUBLISHED_SCHEMA, folders, (SUB_SOURCE,))


def open_ledger(out: str, snapshot: int | None = None) -> ds.Dataset:
    """The removals of the build in the folder or fsspec URL `out`, or of a snapshot of it, with the column `stage`.

    Raises: InputError if a build has none; of a snapshot, there are no rows then.
    """
    folders = pa.schema([LEDGER_SCHEMA.field(name) for name in LEDGER_FOLDERS])
    return _open(out, "removed", snapshot, PUBLISHED_LEDGER_SCHEMA, folders)


def open_facts(out: str, snapshot: int | None = None) -> ds.Dataset:
    """The facts of Inline XBRL in the documents of the build in the folder or fsspec URL `out`, or of a snapshot of it,
    with the columns `dataset` and `source`: `finpile.filings.facts.FACT_SCHEMA`.

    Raises: InputError if no document of a build has any; of a snapshot, there are no rows then.
    """
    folders = pa.schema([DOCUMENT_SCHEMA.field(name) for name in DOCUMENT_FOLDERS])
    return _open(out, FACTS, snapshot, FACT_SCHEMA, folders)


def _open(
    out: str,
    name: str,
    snapshot: int | None,
    schema: pa.Schema,
    folders: pa.Schema,
    optional: tuple[pa.Field, ...] = (),
) -> ds.Dataset:
    """The files of `schema`, and those `optional` columns that the first file has."""
    folder, layout = storage.join(out, name), Layout(out)
    fs, path = file_system_of(folder)
    partitioning = ds.partitioning(folders, flavor="hive")
    files: str | list[str] = path
    if snapshot is not None or numbers(layout):
        root = path.removesuffix(name)
        files = [f"{root}{file}" for file in published_files(layout, snapshot).places(name).values()]
    elif not fs.isdir(path):
        missing = {FACTS: "no document has facts of Inline XBRL", "removed": "nothing was removed"}
        expected = f"{missing[name]}, or this is not" if name in missing else "expected"
        raise InputError(f"{folder}: no such folder; {expected} the output of `finpile build` or `finpile dedup`")
    verifying = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    checked = ds.ParquetFileFormat(default_fragment_scan_options=verifying)
    try:
        found = ds.dataset(files, filesystem=fs, format=checked).schema.names if optional else ()
        whole = pa.schema([*schema, *(entry for entry in optional if entry.name in found), *folders])
        opened = ds.dataset(files, schema=whole, filesystem=fs, format=checked, partitioning=partitioning)
        if files != path or not numbers(layout):  # else the folder may have had files of the build and a snapshot
            return opened
    except FileNotFoundError:
        if not numbers(layout):
            raise
    return _open(out, name, snapshot, schema, folders, optional)  # files were moved meanwhile, as a snapshot began
