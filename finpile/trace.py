"""From tokens to documents and back: the documents of sequences with their origin, and what was cut from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.errors import InputError
from finpile.history import MIN_ID_DIGITS
from finpile.layout import Layout, read_published, values_in_path
from finpile.snapshots import BUILD, published_files
from finpile.split import HELDOUT, TRAIN
from finpile.tokens.provenance import Location, Span, TokenProvenance

#: Columns of the ledger that are summed.
_LEDGER = ["id", "stage", "reason", "duplicate_of", "start", "end"]


@dataclass(frozen=True, slots=True)
class TracedDocument:
    """A document of sequences of tokens."""

    row: dict[str, Any]
    """Its published columns, with the text."""
    spans: tuple[Span, ...]
    """Its tokens in the sequences."""
    cuts: tuple[dict[str, Any], ...]
    """What the stages removed from its text: `stage`, `reason`, `spans` and `bytes`."""
    copies: tuple[dict[str, Any], ...]
    """The documents that were removed as its copies: `stage`, `reason` and `documents`."""

    def text_of(self, span: Span) -> str:
        """The text of a span; characters that it cuts are replaced."""
        return str(self.row["text"]).encode()[span.first_byte : span.last_byte].decode(errors="replace")


def documents_of(out: str, spans: Iterable[Span], snapshot: int = BUILD) -> list[TracedDocument]:
    """The documents of spans in the shards of the build or of a snapshot, in the order of their first ones.

    Reads their row groups, and the ledger's columns but for its texts.
    """
    by_location: dict[Location, list[Span]] = {}
    for span in spans:
        by_location.setdefault(span.location, []).append(span)
    rows = _rows(out, by_location)
    cuts, copies = _removals(Layout(out), {row["id"] for row in rows.values()}, snapshot)
    return [
        TracedDocument(row, tuple(mine), _counted(cuts, row["id"]), _counted(copies, row["id"]))
        for location, mine in by_location.items()
        for row in [rows[location]]
    ]


def find_document(out: str, prefix: str) -> tuple[Location, str]:
    """Where the document whose id begins with `prefix` (4 hex digits or more) is published, and its id.

    Raises: InputError if no kept document, or more than one, has such an id.
    """
    if len(prefix) < MIN_ID_DIGITS:
        raise InputError(f"id {prefix!r} is too short: give at least {MIN_ID_DIGITS} of its 32 digits")
    layout = Layout(out)
    found: list[tuple[Location, str]] = []
    for path in published_files(layout, "documents", BUILD):
        ids = storage.read_parquet(storage.join(out, path), ["id"])["id"]
        match = pc.starts_with(ids, prefix)
        rows = pc.indices_nonzero(match).to_pylist()
        found += [(Location(path, row), ids[row].as_py()) for row in rows]
    if not found:
        raise InputError(
            f"no kept document of {out} has an id that begins with {prefix!r}: `finpile show` finds removed ones"
        )
    if len(found) > 1:
        raise InputError(f"{len(found)} ids begin with {prefix!r}: {found[0][1]}, {found[1][1]}, ...: give more digits")
    return found[0]


def spans_of_documents(out: str, ids: Collection[str]) -> Iterator[tuple[str, str, Span]]:
    """The id, the split and the places in token shards of each of these documents that the build published.

    Raises: InputError as `TokenProvenance`.
    """
    wanted = pa.array(sorted(ids), pa.string())
    found: dict[tuple[str, str] | None, dict[Location, str]] = {}
    for path in published_files(Layout(out), "documents", BUILD):
        table = storage.read_parquet(storage.join(out, path), ["id", "split"])
        rows = pc.indices_nonzero(pc.is_in(table["id"], wanted))
        named = values_in_path(path)
        for row, document in zip(rows.to_pylist(), table.take(rows).to_pylist(), strict=True):
            side = None if document["split"] == TRAIN else (named["dataset"], named["source"])
            found.setdefault(side, {})[Location(path, row)] = document["id"]
    for side, documents in found.items():
        split = TRAIN if side is None else HELDOUT
        for span in TokenProvenance(out, side).spans_of(*documents):
            yield documents[span.location], split, span


def shards_of(out: str, location: Location) -> TokenProvenance:
    """The shards that have a document: those of training, or those of its source's held-out documents.

    Raises: InputError as `TokenProvenance`.
    """
    (row,) = storage.read_parquet_rows(storage.join(out, location.file), [location.row], ["split"]).to_pylist()
    named = values_in_path(location.file)
    is_heldout = row["split"] != "train"
    return TokenProvenance(out, (named["dataset"], named["source"]) if is_heldout else None)


def _rows(out: str, locations: Collection[Location]) -> dict[Location, dict[str, Any]]:
    """The published rows of documents."""
    numbers: dict[str, set[int]] = {}
    for location in locations:
        numbers.setdefault(location.file, set()).add(location.row)
    return {
        Location(file, number): {**row, **values_in_path(file)}
        for file, wanted in numbers.items()
        for number, row in zip(
            sorted(wanted), storage.read_parquet_rows(storage.join(out, file), wanted).to_pylist(), strict=True
        )
    }


_Sums = dict[str, Counter[tuple[str, str, str]]]


def _removals(layout: Layout, ids: Collection[str], snapshot: int) -> tuple[_Sums, _Sums]:
    """The spans that were cut from documents, and the copies that were removed for them, by id, stage and reason, in
    the ledger of a snapshot."""
    wanted = pa.array(sorted(ids), pa.string())
    cuts: _Sums = {}
    copies: _Sums = {}
    for path in published_files(layout, "removed", snapshot):
        table = read_published(storage.join(layout.root, path), _LEDGER)
        is_span = pc.and_(pc.is_in(table["id"], wanted), pc.is_valid(table["start"]))
        for row in table.filter(is_span).to_pylist():
            if row["end"] > row["start"]:
                sums = cuts.setdefault(row["id"], Counter())
                sums[row["stage"], row["reason"], "spans"] += 1
                sums[row["stage"], row["reason"], "bytes"] += row["end"] - row["start"]
        is_copy = pc.and_(pc.is_in(table["duplicate_of"], wanted), pc.is_null(table["start"]))
        for row in table.filter(is_copy).to_pylist():
            copies.setdefault(row["duplicate_of"], Counter())[row["stage"], row["reason"], "documents"] += 1
    return cuts, copies


def _counted(sums: _Sums, identifier: str) -> tuple[dict[str, Any], ...]:
    """The counts of a document, by stage and reason."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for (stage, reason, name), value in sums.get(identifier, Counter()).items():
        rows.setdefault((stage, reason), {"stage": stage, "reason": reason})[name] = value
    return tuple(rows.values())
