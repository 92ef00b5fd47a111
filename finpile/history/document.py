"""The history of a document: its origin, its text, and its removals with their reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.documents.ledger import mask_bytes
from finpile.documents.names import have_names, is_id, is_prefix, names_of, the_one
from finpile.errors import IntegrityError
from finpile.output.layout import FACTS, TABLES, Layout
from finpile.output.manifest import is_unaltered, read_manifest, remedy
from finpile.output.published_files import PublishedFile, PublishedFiles, unlisted_files
from finpile.output.snapshots import read_copies
from finpile.plugins import stages

#: Names that one pass over the locators looks for.
_NAMES_AT_ONCE = 500
#: Files that are searched at the same time; most of the time is spent in waiting for an object store.
_NUM_THREADS = 8


@dataclass(frozen=True, slots=True)
class DocumentHistory:
    """The document and the ledger rows of one id."""

    id: str
    document: dict[str, Any] | None
    """The kept document; None if it was removed as a whole."""
    removals: tuple[dict[str, Any], ...]
    """Its ledger rows, by stage, then in the order of the text; that of the whole document is the last one."""
    copies: tuple[dict[str, Any], ...]
    """Ledger rows of documents that were removed as its duplicates."""
    facts: tuple[dict[str, Any], ...] = ()
    """The facts of Inline XBRL in it, as in `facts/`, in the order of the page."""
    warnings: tuple[str, ...] = ()
    """Damage of the manifest and of the files that were read, those that are missing included."""


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
    for name in reversed(stages.names()):
        woven = _woven(woven, sorted((row for row in spans if row["stage"] == name), key=lambda row: row["start"]))
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
        _skip(waiting, mask_bytes(span.get("detail", "")))
    return out + waiting[::-1]


def _skip(waiting: list[Segment], num_bytes: int) -> None:
    """Removes bytes, those of a mask, from the segments that follow, of which the last one is the next."""
    while num_bytes and waiting:
        segment = waiting.pop()
        if len(segment.text) > num_bytes:
            waiting.append(segment._replace(text=segment.text[num_bytes:]))
        num_bytes -= min(num_bytes, len(segment.text))


def document_history(out: str, name: str) -> DocumentHistory:
    """The history of the document with that name: an id or its first 4 digits or more, a locator, or that of its file.

    Raises: InputError if there is no such document, or more than one; IntegrityError if a damaged file may have it.
    """
    layout = Layout(out)
    manifest, warnings = _manifest(layout)  # once: meanwhile, another snapshot may become the current one
    files = _files(layout, manifest)
    found = _of_prefix(files, name) if is_prefix(name) else None
    if found is None or not found[2]:
        found = _of_prefix(files, _ids_in(out, files, [name])[name])
    documents, removed, locators = found
    damage = [*warnings, *sorted((*documents.damage, *removed.damage))]
    if not locators and damage:
        raise IntegrityError(damage[0])
    identifier = the_one(out, name, locators)
    removals = sorted((row for row in removed.rows if row["id"] == identifier), key=_place)
    copies = tuple(row for row in removed.rows if row["duplicate_of"] == identifier)
    document = documents.rows[0] if documents.rows else None
    if document is not None and manifest is not None:
        try:
            known = read_copies(layout, manifest)
        except IntegrityError as error:
            if not warnings:
                raise
            damage.append(str(error))  # of an altered manifest, which may be what is wrong
        else:
            counted = known.filter(pc.equal(known["id"], identifier))["num_copies"].to_pylist()
            document = {**document, "num_copies": (*counted, document["num_copies"])[0]}
    facts = _facts(_files(layout, manifest, [FACTS]), identifier)
    damage += facts.damage
    return DocumentHistory(identifier, document, tuple(removals), copies, tuple(facts.rows), tuple(damage))


def find_ids(out: str, names: Collection[str]) -> dict[str, str]:
    """The ids of documents, kept or removed, by their names: whole ids as they are, locators, or those of their files.

    Raises: InputError for a name of no document, or of several; IntegrityError for a damaged file.
    """
    layout = Layout(out)
    manifest, _ = _manifest(layout)
    return _ids_in(out, _files(layout, manifest), names)


def _ids_in(out: str, files: Collection[PublishedFile], names: Collection[str]) -> dict[str, str]:
    """As `find_ids`, of these files."""
    found: dict[str, dict[str, str]] = {name: {} for name in names if not is_id(name)}
    others = sorted(found)
    if others and not files:
        read_manifest(Layout(out))  # raises the error about a folder that is no build
    for start in range(0, len(others), _NAMES_AT_ONCE):
        some = others[start : start + _NAMES_AT_ONCE]
        match = _Match(("locator",), partial(_have_names, names=some), ["id", "locator"])
        search = _Search(files, match)
        if search.damage:
            raise IntegrityError(search.damage[0])
        for row in search.rows:
            for name in names_of(row["locator"]) & found.keys():
                found[name][row["id"]] = row["locator"]
    return {name: the_one(out, name, found[name]) if name in found else name for name in names}


def _have_names(group: pa.Table, names: Collection[str]) -> pa.ChunkedArray:
    return have_names(group["locator"], names)


def _of_prefix(files: Iterable[PublishedFile], prefix: str) -> tuple[_Search, _Search, dict[str, str]]:
    """The kept documents and the rows of the ledger whose id, or that of the kept copy, begins with a prefix, and the
    locators of those whose own id does."""

    def mask(group: pa.Table) -> pa.ChunkedArray:
        starts = [pc.fill_null(pc.starts_with(column, prefix), False) for column in group.columns]
        return reduce(pc.or_, starts)

    match = _Match(("id", "duplicate_of"), mask)
    kept = [file for file in files if file.path.startswith("documents/")]
    documents, removed = _Search(kept, match), _Search([file for file in files if file not in kept], match)
    rows = [row for row in (*removed.rows, *documents.rows) if row["id"].startswith(prefix)]
    return documents, removed, {row["id"]: row["locator"] for row in rows}


class _Match(NamedTuple):
    """What a search finds."""

    keys: tuple[str, ...]
    """Columns that `mask` reads, of those that a file has."""
    mask: Callable[[pa.Table], pa.ChunkedArray]
    columns: list[str] | None = None
    """Those of the rows that are found; None: all."""


def _place(row: Mapping[str, Any]) -> tuple[int, bool, int]:
    """The stage of a ledger row, and its place among the rows of that stage."""
    return (stages.names().index(row["stage"]), row["start"] is None, row["start"] or 0)


def _manifest(layout: Layout) -> tuple[dict[str, Any] | None, list[str]]:
    """The manifest of the current snapshot, altered or not, None if it is missing, and what is wrong with it."""
    if storage.is_file(layout.manifest):
        manifest = read_manifest(layout)
        return manifest, [] if is_unaltered(manifest) else [f"manifest.json is altered: {remedy(layout)}"]
    return None, [f"manifest.json is missing: the build is not finished, or damaged: {remedy(layout)}"]


def _files(layout: Layout, manifest: Mapping[str, Any] | None, folders: Iterable[str] = TABLES) -> list[PublishedFile]:
    """The files of documents and ledger that a manifest lists; without one, those that are there."""
    if manifest is None:
        return unlisted_files(layout, *folders)
    return PublishedFiles(layout, manifest).below(*folders)


def _facts(files: Iterable[PublishedFile], identifier: str) -> _Search:
    """The facts of a document."""
    found = _Search(files, _Match(("id",), lambda group: pc.equal(group["id"], identifier)))
    found.rows = [{**row, "dimensions": dict(row["dimensions"])} for row in found.rows]
    return found


class _Search:
    """The rows of files of documents or of the ledger that match; files that have such rows are compared as a whole."""

    def __init__(self, files: Iterable[PublishedFile], match: _Match) -> None:
        self.rows: list[dict[str, Any]] = []
        self.damage: list[str] = []
        """Messages about files that are missing or damaged."""
        with ThreadPoolExecutor(_NUM_THREADS) as pool:
            list(pool.map(lambda file: self._add(file, match), files))
        self.rows.sort(key=lambda row: str(row["id"]))
        self.damage.sort()

    def _add(self, file: PublishedFile, match: _Match) -> None:
        try:
            rows = file.matching(match.keys, match.mask, match.columns).to_pylist()
            if rows:
                file.check()
            self.rows += rows
        except IntegrityError as error:
            self.damage.append(str(error))
