"""Snapshots: versions of a corpus in one output folder, which share the files that are the same in both.

`finpile append` makes a snapshot. It adds files to the folders of a build under new names and never changes a file.
`manifest.json` is the manifest of the current snapshot, `snapshots/000001.json` that of each one; number 0 is the
build. So the files of a folder may belong to different snapshots: readers take those that a manifest lists.

A file of documents has the `num_copies` of the snapshot that wrote it. Counts that later snapshots changed are in
`snapshots/000001-copies.parquet`, one row for each document, so that a copy of an old document rewrites no file.

Decision: docs/decisions/0060-snapshots.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.errors import InputError
from finpile.layout import Layout
from finpile.manifest import CHECKSUM, checksum_of, load_manifest, published

#: The manifest's key for the facts of a snapshot; a build has none.
SNAPSHOT = "snapshot"
#: The number of the build to which the first snapshot was added. Tokenizer, tokens and reports are its.
BUILD = 0
#: The current `num_copies` of documents whose file has an older one.
COPIES_SCHEMA = pa.schema(
    [pa.field("id", pa.string(), nullable=False), pa.field("num_copies", pa.int32(), nullable=False)]
)


def number_of(manifest: Mapping[str, Any]) -> int:
    """The number of the snapshot that a manifest describes; 0 for a build."""
    return int(manifest.get(SNAPSHOT, {}).get("number", 0))


def numbers(layout: Layout) -> list[int]:
    """The numbers of the snapshots of OUT, ascending; none for a build without any."""
    try:
        names = storage.list_folder(layout.snapshots)
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(int(name) for name in found if name.isdigit())


def load_snapshot(layout: Layout, number: int | None = None) -> dict[str, Any]:
    """The manifest of a snapshot; None: of the current one.

    Raises: InputError if OUT holds no finished build or no such snapshot, or its manifest is altered.
    """
    current = load_manifest(layout)
    if number is None or number == number_of(current):
        return current
    try:
        manifest: dict[str, Any] = storage.read_json(layout.snapshot(number))
    except FileNotFoundError:
        known = ", ".join(map(str, numbers(layout))) or "0"
        raise InputError(f"{layout.root} has no snapshot {number}; it has {known}") from None
    if manifest.get(CHECKSUM) != checksum_of(manifest):
        raise InputError(f"{layout.snapshot(number)} is altered: its checksum is another")
    return manifest


def load_build(layout: Layout, *, through: str) -> dict[str, Any]:
    """The manifest of the build, which ran the stage `through`; that of its first snapshot or of a later one lists no
    stage after the split.

    Raises: InputError as `load_manifest`.
    """
    if not numbers(layout):
        return load_manifest(layout, through=through)
    manifest = load_snapshot(layout, BUILD)
    if through not in [stage["stage"] for stage in manifest["stages"]]:
        raise InputError(f"{layout.root} was built without the stage {through}: run `finpile build --fresh` for it")
    return manifest


def published_files(layout: Layout, folder: str, number: int | None = None) -> list[str]:
    """The files below `documents`, `removed` or `inputs` of a snapshot, as sorted paths relative to OUT; None: of the
    current one.

    Of a build without snapshots these are all files there.
    """
    if numbers(layout):
        return published(load_snapshot(layout, number), folder)
    return [f"{folder}/{name}" for name in storage.list_files(storage.join(layout.root, folder))]


def is_published(layout: Layout, identifier: str) -> bool:
    """Whether the current snapshot has a document of this id."""
    tables = (
        storage.read_parquet(storage.join(layout.root, path), ["id"]) for path in published_files(layout, "documents")
    )
    return any(pc.index(table["id"], identifier).as_py() >= 0 for table in tables)


def read_copies(layout: Layout, manifest: Mapping[str, Any]) -> pa.Table:
    """`COPIES_SCHEMA` of a snapshot, by id."""
    file = manifest.get(SNAPSHOT, {}).get("copies")
    return storage.read_parquet(storage.join(layout.root, file["path"])) if file else COPIES_SCHEMA.empty_table()


def with_copies(documents: pa.Table, copies: pa.Table) -> pa.Table:
    """Documents with `num_copies` of the snapshot of `copies` (`COPIES_SCHEMA`).

    >>> documents = pa.table({"id": ["a", "b"], "num_copies": pa.array([1, 1], pa.int32())})
    >>> copies = pa.table({"id": ["b"], "num_copies": pa.array([3], pa.int32())})
    >>> with_copies(documents, copies)["num_copies"].to_pylist()
    [1, 3]
    """
    if not copies.num_rows:
        return documents
    at = pc.index_in(documents["id"], copies["id"].combine_chunks()).combine_chunks()
    counts = pc.coalesce(copies["num_copies"].take(at), documents["num_copies"])
    place = documents.schema.get_field_index("num_copies")
    return documents.set_column(place, documents.schema.field(place), counts)


def sorted_copies(counts: Mapping[str, int]) -> pa.Table:
    """`COPIES_SCHEMA` from the counts by id."""
    ids = sorted(counts)
    numbers_of = np.array([counts[name] for name in ids], np.int32)
    return pa.table({"id": pa.array(ids, pa.string()), "num_copies": pa.array(numbers_of)}, schema=COPIES_SCHEMA)
