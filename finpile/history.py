"""The history of a document: its origin, its text, and its removals with their reasons."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from finpile import stages, storage
from finpile.document import DOCUMENT_FOLDERS
from finpile.errors import InputError, IntegrityError
from finpile.file_systems import file_system_of
from finpile.layout import Layout
from finpile.ledger import LEDGER_FOLDERS
from finpile.manifest import find_damage, load_manifest, remedy

MIN_ID_DIGITS = 4
#: The name of pyarrow's column with the file of a row.
_FILE = "__filename"


@dataclass(frozen=True, slots=True)
class DocumentHistory:
    """The document and the ledger rows of one id."""

    id: str
    document: dict[str, Any] | None
    """The kept document; None if it was removed as a whole."""
    removals: tuple[dict[str, Any], ...]
    """Its ledger rows, in the order of the text."""
    copies: tuple[dict[str, Any], ...]
    """Ledger rows of documents that were removed as its duplicates."""
    warnings: tuple[str, ...] = ()
    """Damage of the files that were read, and files of the manifest that are missing."""


class Segment(NamedTuple):
    """A segment of the original text, and the ledger row that removed it; None for kept text."""

    text: bytes
    removal: Mapping[str, Any] | None


def segments(left: bytes, removals: Iterable[Mapping[str, Any]]) -> list[Segment]:
    """The original text as segments: the kept text with all removed spans inserted in their places.

    >>> row = {"stage": "substring", "start": 2, "end": 4, "removed_text": b"cd"}
    >>> [segment.text for segment in segments(b"abef", [row])]
    [b'ab', b'cd', b'ef']
    """
    spans = [row for row in removals if row["start"] is not None and row["end"] > row["start"]]
    woven = [Segment(left, None)] if left else []
    dedup = stages.dedup_stages()  # the spans of all dedup stages are byte ranges of clean text
    earlier = [(name,) for name in stages.names() if name not in dedup]  # those of others, of the stage's input text
    for group in (dedup, *reversed(earlier)):
        woven = _woven(woven, sorted((row for row in spans if row["stage"] in group), key=lambda row: row["start"]))
    return woven


def _woven(kept: Iterable[Segment], spans: Iterable[Mapping[str, Any]]) -> list[Segment]:
    """The segments with the spans inserted."""
    waiting, out, position = list(kept)[::-1], [], 0
    for span in spans:
        while waiting and position < span["start"]:
            segment, room = waiting.pop(), span["start"] - position
            out.append(segment._replace(text=segment.text[:room]))
            position += len(out[-1].text)
            if len(segment.text) > room:
                waiting.append(segment._replace(text=segment.text[room:]))
        out.append(Segment(span["removed_text"], span))
        position = span["end"]
    return out + waiting[::-1]


def document_history(out: str, prefix: str) -> DocumentHistory:
    """The history of the document whose id begins with `prefix` (4 hex digits or more).

    Raises: InputError if no document, or more than one, has such an id.
    """
    layout = Layout(out)
    if len(prefix) < MIN_ID_DIGITS:
        raise InputError(f"id {prefix!r} is too short: give at least {MIN_ID_DIGITS} of its 32 digits")
    files: set[str] = set()
    documents = _find(layout, "documents", DOCUMENT_FOLDERS, pc.starts_with(ds.field("id"), prefix), files)
    removals = _find(layout, "removed", LEDGER_FOLDERS, pc.starts_with(ds.field("id"), prefix), files)
    ids = sorted({row["id"] for row in (*documents, *removals)})
    if not ids:
        raise InputError(
            f"no document of {out} has an id that begins with {prefix!r}; ids are in documents/ and removed/"
        )
    if len(ids) > 1:
        raise InputError(f"{len(ids)} ids begin with {prefix!r}: {ids[0]}, {ids[1]}, ...: give more digits")
    copies = _find(layout, "removed", LEDGER_FOLDERS, ds.field("duplicate_of") == ids[0], files)
    warnings = _warnings(layout, files)
    return DocumentHistory(ids[0], documents[0] if documents else None, tuple(removals), tuple(copies), tuple(warnings))


def _warnings(layout: Layout, files: Iterable[str]) -> list[str]:
    if not storage.is_file(layout.manifest):
        return ["manifest.json is missing: the build is not finished, or damaged"]
    return find_damage(layout, load_manifest(layout), ("documents", "removed"), files)


def _find(layout: Layout, name: str, named: Sequence[str], condition: Any, files: set[str]) -> list[dict[str, Any]]:
    """Rows of the files below a folder whose folders hold the columns `named`; adds the rows' files to `files`.

    Raises: IntegrityError if a file cannot be read.
    """
    folder = storage.join(layout.root, name)
    if not storage.list_files(folder):
        return []
    fs, path = file_system_of(folder)
    folders = ds.partitioning(pa.schema([(column, pa.string()) for column in named]), flavor="hive")
    try:
        dataset = ds.dataset(path, filesystem=fs, format="parquet", partitioning=folders)
        columns = [*dataset.schema.names, _FILE]
        table = dataset.to_table(columns=columns, filter=condition, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise IntegrityError(f"{folder} is damaged: {error}; {remedy(layout)}") from error
    files.update(f"{name}/{os.path.relpath(file, path)}" for file in table[_FILE].unique().to_pylist())
    rows: list[dict[str, Any]] = table.drop_columns([_FILE]).to_pylist()
    return sorted(rows, key=lambda row: (row["id"], row.get("start") or 0))
