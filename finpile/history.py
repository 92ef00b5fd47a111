"""The history of a document: its origin, its text, and its removals with their reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from finpile import stages, storage
from finpile.errors import InputError, IntegrityError
from finpile.file_systems import file_system_of, list_below, open_in
from finpile.layout import Layout, values_in_path
from finpile.ledger import mask_bytes
from finpile.manifest import find_damage, load_manifest, remedy
from finpile.snapshots import numbers, published_files, read_copies

MIN_ID_DIGITS = 4
#: Bytes of one request: of a large file only the ids are read, which are small parts of it.
_BLOCK_BYTES = 1 << 20
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


def document_history(out: str, prefix: str) -> DocumentHistory:
    """The history of the document whose id begins with `prefix` (4 hex digits or more).

    Raises: InputError if no document, or more than one, has such an id.
    """
    layout = Layout(out)
    if len(prefix) < MIN_ID_DIGITS:
        raise InputError(f"id {prefix!r} is too short: give at least {MIN_ID_DIGITS} of its 32 digits")
    documents, removed = _Search(layout, "documents", prefix), _Search(layout, "removed", prefix)
    removals = sorted((row for row in removed.rows if row["id"].startswith(prefix)), key=_place)
    ids = sorted({row["id"] for row in (*documents.rows, *removals)})
    if not ids:
        raise InputError(
            f"no document of {out} has an id that begins with {prefix!r}; ids are in documents/ and removed/"
        )
    if len(ids) > 1:
        raise InputError(f"{len(ids)} ids begin with {prefix!r}: {ids[0]}, {ids[1]}, ...: give more digits")
    copies = tuple(row for row in removed.rows if row["duplicate_of"] == ids[0])
    warnings = _warnings(layout, (documents, removed))
    document = documents.rows[0] if documents.rows else None
    if document is not None and numbers(layout):
        known = read_copies(layout, load_manifest(layout))
        found = known.filter(pc.equal(known["id"], ids[0]))["num_copies"].to_pylist()
        document = {**document, "num_copies": (*found, document["num_copies"])[0]}
    return DocumentHistory(ids[0], document, tuple(removals), copies, tuple(warnings))


def _place(row: Mapping[str, Any]) -> tuple[int, bool, int]:
    """The stage of a ledger row, and its place among the rows of that stage."""
    return (stages.names().index(row["stage"]), row["start"] is None, row["start"] or 0)


def _warnings(layout: Layout, searches: Sequence[_Search]) -> list[str]:
    if not storage.is_file(layout.manifest):
        return ["manifest.json is missing: the build is not finished, or damaged"]
    sizes = {path: size for search in searches for path, size in search.sizes.items()}
    files = [path for search in searches for path in search.files]
    return find_damage(layout, load_manifest(layout), ("documents", "removed"), files, sizes)


class _Search:
    """The rows of the Parquet files below a folder of OUT whose `id` or `duplicate_of` begins with a prefix."""

    def __init__(self, layout: Layout, name: str, prefix: str) -> None:
        """Raises: IntegrityError if a file cannot be read."""
        fs, root = file_system_of(layout.root)
        self.sizes = {f"{name}/{path}": size for path, size in list_below(fs, f"{root.rstrip('/')}/{name}").items()}
        """Bytes of all files, by path relative to OUT."""
        names = [path for path in self.sizes if not path.rsplit("/", 1)[-1].startswith((".", "_"))]
        if numbers(layout):  # some files belong to earlier snapshots alone
            names = [path for path in published_files(layout, name) if path in self.sizes]

        def search(path: str) -> list[dict[str, Any]]:
            try:
                return _matches(open_in(fs, f"{root.rstrip('/')}/{path}", self.sizes[path], _BLOCK_BYTES), path, prefix)
            except (pa.ArrowException, OSError) as error:
                raise IntegrityError(
                    f"{storage.join(layout.root, name)} is damaged: {error}; {remedy(layout)}"
                ) from error

        with ThreadPoolExecutor(_NUM_THREADS) as pool:
            found = dict(zip(names, pool.map(search, names), strict=True))
        rows = [row for some in found.values() for row in some]
        self.rows = sorted(rows, key=lambda row: str(row["id"]))
        self.files = [path for path, some in found.items() if some]
        """Those of the rows."""


def _matches(stream: BinaryIO, path: str, prefix: str) -> list[dict[str, Any]]:
    """The rows of a file that have the prefix, with the columns that its folders hold; other columns are read only of
    row groups that have such rows."""
    rows: list[dict[str, Any]] = []
    with stream, pq.ParquetFile(stream) as file:
        keys = [name for name in ("id", "duplicate_of") if name in file.schema_arrow.names]
        for number in range(file.num_row_groups):
            group = file.read_row_group(number, columns=keys, use_threads=False)
            starts = [pc.fill_null(pc.starts_with(group[name], prefix), False) for name in keys]
            match = reduce(pc.or_, starts)
            if pc.any(match).as_py():
                rows += file.read_row_group(number, use_threads=False).filter(match).to_pylist()
    return [{**row, **values_in_path(path)} for row in rows]
