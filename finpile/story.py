"""A document's story: where it came from, what it says, what was cut from it and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
from fsspec.core import url_to_fs

from finpile import shards
from finpile.errors import InputError
from finpile.tree import Tree

MIN_ID_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Story:
    """What the tree knows of one id."""

    id: str
    document: dict[str, Any] | None
    """The kept document; None where it was removed as a whole."""
    removals: tuple[dict[str, Any], ...]
    """Its rows of the ledger, in the order of the text."""
    copies: tuple[dict[str, Any], ...]
    """Ledger rows of documents that were removed as its duplicates."""


def tell(out: str, prefix: str) -> Story:
    """The story of the one document whose id begins with `prefix` (4 hex digits or more).

    Raises: InputError where no document, or more than one, has such an id.
    """
    tree = Tree(out)
    if len(prefix) < MIN_ID_DIGITS:
        raise InputError(f"id {prefix!r} is too short: give at least {MIN_ID_DIGITS} of its 32 digits")
    documents = _find(tree.documents, pc.starts_with(ds.field("id"), prefix))
    removals = _find(tree.removed, pc.starts_with(ds.field("id"), prefix))
    ids = sorted({row["id"] for row in (*documents, *removals)})
    if not ids:
        raise InputError(
            f"no document of {out} has an id that begins with {prefix!r}; ids stand in documents/ and removed/"
        )
    if len(ids) > 1:
        raise InputError(f"{len(ids)} ids begin with {prefix!r}: {ids[0]}, {ids[1]}, ...: give more digits")
    copies = _find(tree.removed, ds.field("duplicate_of") == ids[0])
    return Story(ids[0], documents[0] if documents else None, tuple(removals), tuple(copies))


def _find(folder: str, condition: Any) -> list[dict[str, Any]]:
    if not shards.list_files(folder):
        return []
    fs, path = url_to_fs(folder)
    rows: list[dict[str, Any]] = (
        ds.dataset(path, filesystem=fs, format="parquet").to_table(filter=condition, use_threads=False).to_pylist()
    )
    return sorted(rows, key=lambda row: (row["id"], row.get("start") or 0))
