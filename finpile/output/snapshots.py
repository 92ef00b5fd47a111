"""Snapshots: versions of a corpus in one output folder, which share the files that are the same in both.

`finpile append` makes a snapshot. It adds files to the folders of a build under new names and never changes a file.
`manifest.json` is the manifest of the current snapshot, `snapshots/000001.json` that of each one; number 0 is the
build. `documents/` and `removed/` have the files of the current snapshot, and `versions/` those that only earlier ones
have.

A file of documents has the `num_copies` of the snapshot that wrote it. Counts that later snapshots changed are in
`snapshots/000001-copies.parquet`, one row for each document, so that a copy of an old document rewrites no file.

Decision: docs/decisions/0060-snapshots.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.documents.document import with_column
from finpile.errors import InputError, IntegrityError
from finpile.output.layout import Layout
from finpile.output.manifest import CHECKSUM, SNAPSHOT, counts_by_stage, damaged_manifest, is_unaltered, load_manifest
from finpile.output.published_files import PublishedFile, PublishedFiles, unlisted_files

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
    found = (name.removesuffix(".json") for name in storage.names_in(layout.snapshots) if name.endswith(".json"))
    return sorted(int(name) for name in found if name.isdigit())


def load_snapshot(layout: Layout, number: int | None = None) -> dict[str, Any]:
    """The manifest of a snapshot; None: of the current one.

    Raises: InputError if OUT holds no finished build or no such snapshot; IntegrityError if a manifest is damaged.
    """
    current = load_manifest(layout)
    return current if number is None or number == number_of(current) else read_snapshot(layout, number)


def read_snapshot(layout: Layout, number: int) -> dict[str, Any]:
    """The manifest below `snapshots/` of a snapshot, the current one too.

    Raises: InputError if there is none; IntegrityError if it is damaged or altered.
    """
    try:
        manifest: dict[str, Any] = storage.read_json(layout.snapshot(number))
        is_whole = is_unaltered(manifest) and number_of(manifest) == number
    except FileNotFoundError:
        there = numbers(layout)
        was = f"snapshot {number} of {layout.root} was deleted by `finpile vacuum`"
        what = was if 0 <= number < max(there, default=0) else f"{layout.root} has no snapshot {number}"
        raise InputError(f"{what}; it has {', '.join(map(str, there)) or '0'}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged_manifest(layout.snapshot(number)) from error
    if not is_whole:
        raise damaged_manifest(layout.snapshot(number), "is altered: its checksum is another")
    return manifest


def pending(layout: Layout, manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The manifest of the snapshot after that of `manifest`, if its publication was begun and not ended; None if not.

    Meanwhile some files of both are not at their places.
    """
    try:
        plan = storage.read_json(layout.snapshot_plan(number_of(manifest) + 1))
        found: Mapping[str, Any] = plan["manifest"]
        return found if found[SNAPSHOT]["parent"] == manifest[CHECKSUM] else None
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def check_tokens(layout: Layout) -> None:
    """Raises: InputError as `load_manifest` if the build has no tokens; of one with snapshots, number 0 lists them."""
    if not numbers(layout):
        load_manifest(layout, through="tokens")
    elif "tokens" not in counts_by_stage(load_snapshot(layout, BUILD)):
        raise InputError(f"{layout.root} was built without the stage tokens: run `finpile build --fresh` for it")


def published_files(layout: Layout, number: int | None = None) -> PublishedFiles:
    """The files of a snapshot; None: of the current one.

    Raises: as `load_snapshot`.
    """
    return PublishedFiles(layout, load_snapshot(layout, number))


def document_files(layout: Layout) -> list[PublishedFile]:
    """The files of documents of the current snapshot; of a folder without a manifest those that are there, which are
    not compared with anything.

    Raises: as `load_snapshot`.
    """
    if storage.is_file(layout.manifest):
        return published_files(layout).below("documents")
    return unlisted_files(layout, "documents")


@contextmanager
def unless_deleted(layout: Layout, number: int) -> Iterator[None]:
    """Within it, files of a snapshot are read.

    Raises: InputError instead of IntegrityError for a file of a snapshot that `finpile vacuum` deleted meanwhile.
    """
    try:
        yield
    except IntegrityError:
        load_snapshot(layout, number)
        raise


def is_published(layout: Layout, identifier: str) -> bool:
    """Whether the current snapshot has a document of this id."""
    tables = (file.pages(["id"]) for file in published_files(layout).below("documents"))
    return any(pc.index(table["id"], identifier).as_py() >= 0 for table in tables)


def read_copies(layout: Layout, manifest: Mapping[str, Any]) -> pa.Table:
    """`COPIES_SCHEMA` of a snapshot, by id."""
    file = manifest.get(SNAPSHOT, {}).get("copies")
    return PublishedFiles(layout, manifest)[file["path"]].stored() if file else COPIES_SCHEMA.empty_table()


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
    return with_column(documents, "num_copies", counts)


def sorted_copies(counts: Mapping[str, int]) -> pa.Table:
    """`COPIES_SCHEMA` from the counts by id."""
    ids = sorted(counts)
    numbers_of = np.array([counts[name] for name in ids], np.int32)
    return pa.table({"id": pa.array(ids, pa.string()), "num_copies": pa.array(numbers_of)}, schema=COPIES_SCHEMA)
