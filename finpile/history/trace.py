"""From tokens to documents and back: the documents of sequences with their origin, and what was cut from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.names import have_names, is_prefix, the_one
from finpile.documents.split import HELDOUT, TRAIN
from finpile.output.layout import Layout, row_of, values_in_path
from finpile.output.manifest import SNAPSHOT
from finpile.output.published_files import PublishedFile, PublishedFiles
from finpile.output.snapshots import BUILD, load_snapshot, numbers, published_files
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
    rows = _rows(published_files(Layout(out), snapshot), by_location)
    cuts, copies = _removals(Layout(out), {row["id"] for row in rows.values()}, snapshot)
    return [
        TracedDocument(row, tuple(mine), _counted(cuts, row["id"]), _counted(copies, row["id"]))
        for location, mine in by_location.items()
        for row in [rows[location]]
    ]


@dataclass(frozen=True, slots=True)
class DocumentTokens:
    """The tokens of a document in the shards of the build, or in those that a snapshot added."""

    id: str
    snapshot: int
    heldout: tuple[str, str] | None
    """Its dataset and source if it is held out."""
    location: Location
    """Where it is published with the text of these tokens."""
    spans: tuple[Span, ...]

    @property
    def split(self) -> str:
        return TRAIN if self.heldout is None else HELDOUT


def find_document(out: str, name: str, snapshot: int | None = None) -> str:
    """The id of the document of that name: an id or its first 4 digits or more, a locator, or that of its file; of the
    documents of which there may be tokens.

    Raises: InputError if there is no such document, or more than one.
    """
    by_id: dict[str, str] = {}
    by_locator: dict[str, str] = {}
    for _, file in _files_of_tokens(out, snapshot):
        table = file.pages(["id", "locator"])
        if is_prefix(name):
            by_id |= _locators(table.filter(pc.starts_with(table["id"], name)))
        by_locator |= _locators(table.filter(have_names(table["locator"], [name])))
    return the_one(out, name, by_id or by_locator, "kept document")


def _locators(documents: pa.Table) -> dict[str, str]:
    return dict(zip(documents["id"].to_pylist(), documents["locator"].to_pylist(), strict=True))


def tokens_of(out: str, ids: Collection[str], snapshot: int | None = None) -> list[DocumentTokens]:
    """The tokens of these documents, in order of snapshots; without a number, those of the build and of all snapshots.

    Documents without tokens are left out.

    Raises: InputError as `TokenProvenance`.
    """
    wanted = pa.array(sorted(ids), pa.string())
    places: dict[tuple[int, tuple[str, str]], dict[Location, str]] = {}
    for number, file in _files_of_tokens(out, snapshot):
        table = file.pages(["id", "split"])
        rows = pc.indices_nonzero(pc.is_in(table["id"], wanted))
        for row, document in zip(rows.to_pylist(), table.take(rows).to_pylist(), strict=True):
            side = _TRAINING if document["split"] == TRAIN else row_of(file.path)
            places.setdefault((number, side), {})[Location(file.path, row)] = document["id"]
    return [found for (number, side), mine in sorted(places.items()) for found in _tokens_in(out, number, side, mine)]


def facts_of_removal(out: str, published: PublishedFiles, ids: Collection[str]) -> dict[str, Any]:
    """What `snapshot.taken_down` of a manifest says of documents that are taken down.

    How many there are, how many of them were `published`, and the sequences of tokens that have them: by id, for the
    build and each snapshot whose shards do, its number, the split, and triples of a sequence, the first token in it and
    the end.
    """
    names, num_published = pa.array(sorted(ids), pa.string()), 0
    for file in published.below("documents"):
        num_published += int(pc.sum(pc.is_in(file.pages(["id"])["id"], names)).as_py() or 0)
    places: dict[str, list[dict[str, Any]]] = {}
    for found in tokens_of(out, ids):
        spans = [[span.sequence, span.begin, span.end] for span in found.spans]
        places.setdefault(found.id, []).append({"snapshot": found.snapshot, "split": found.split, "places": spans})
    return {"documents": len(ids), "published": num_published, "tokens": dict(sorted(places.items()))}


#: Stands for the shards of training, before those of all sources.
_TRAINING = ("", "")


def _tokens_in(
    out: str, number: int, side: tuple[str, str], documents: Mapping[Location, str]
) -> Iterator[DocumentTokens]:
    """The tokens of documents in one folder of shards."""
    heldout = None if side == _TRAINING else side
    if not TokenProvenance.is_there(out, heldout, number):
        return  # the snapshot added files of documents without a new text
    spans: dict[Location, list[Span]] = {}
    for span in TokenProvenance(out, heldout, number).spans_of(*documents):
        spans.setdefault(span.location, []).append(span)
    for location, found in spans.items():
        yield DocumentTokens(documents[location], number, heldout, location, tuple(found))


def _files_of_tokens(out: str, snapshot: int | None) -> Iterator[tuple[int, PublishedFile]]:
    """The numbers of the build and of snapshots with tokens, each with the files of documents that these are of."""
    layout = Layout(out)
    for number in numbers(layout) or [BUILD]:
        if snapshot not in (None, number):
            continue
        manifest = load_snapshot(layout, number)
        documents = PublishedFiles(layout, manifest).below("documents")
        if number == BUILD:
            yield from ((number, file) for file in documents)
        elif manifest[SNAPSHOT]["tokens"]:
            added = set(manifest[SNAPSHOT]["added"])
            yield from ((number, file) for file in documents if file.path in added)


def _rows(files: PublishedFiles, locations: Collection[Location]) -> dict[Location, dict[str, Any]]:
    """The published rows of documents."""
    numbers: dict[str, set[int]] = {}
    for location in locations:
        numbers.setdefault(location.file, set()).add(location.row)
    return {
        Location(file, number): {**row, **values_in_path(file)}
        for file, wanted in numbers.items()
        for number, row in zip(sorted(wanted), files[file].rows(wanted).to_pylist(), strict=True)
    }


_Sums = dict[str, Counter[tuple[str, str, str]]]


def _removals(layout: Layout, ids: Collection[str], snapshot: int) -> tuple[_Sums, _Sums]:
    """The spans that were cut from documents, and the copies that were removed for them, by id, stage and reason, in
    the ledger of a snapshot."""
    wanted = pa.array(sorted(ids), pa.string())
    cuts: _Sums = {}
    copies: _Sums = {}
    for file in published_files(layout, snapshot).below("removed"):
        table = file.pages(_LEDGER)
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
