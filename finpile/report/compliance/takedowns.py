"""The certificate of a removal: which documents `finpile remove` took down, why, what had them, and how to prove it.

The proof is the digest of the documents of each source, as `finpile verify` computes it from the published files: a sum
over documents of digests of their ids and texts, which does not depend on files and order. A build of the same inputs
without the listed documents has the same digests.

No text, title or address of a document is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from finpile.documents.document import label_of
from finpile.errors import InputError
from finpile.output.manifest import SNAPSHOT, counts_by_stage
from finpile.output.snapshots import number_of, read_snapshot
from finpile.report.compliance.facts import PaperFacts, digests_of, removals_of
from finpile.report.compliance.paper import Answer, Paper, Section, Value, counted, stated
from finpile.report.figures import count, name
from finpile.report.statistics import published_by_source
from finpile.report.table import Field, Table, table_of

#: What a certificate says instead of what had the documents, if `finpile vacuum` deleted the manifest of its snapshot.
DROPPED = "not in this folder"


def certificates(facts: PaperFacts) -> Iterator[tuple[int, Paper]]:
    """One for each snapshot that took documents down, with its number."""
    for number in removals_of(facts.takedowns):
        yield number, _certificate(facts, number)


def _certificate(facts: PaperFacts, number: int) -> Paper:
    rows = facts.takedowns.filter(pc.equal(facts.takedowns["snapshot"], number)).to_pylist()
    manifest = _manifest(facts, number)
    said = next((one for one in facts.stated.takedowns if one.snapshot == number), None)
    whys = tuple(sorted({row["why"] for row in rows}))
    return Paper(
        title=f"Certificate of removal {number}: {facts.card.name}",
        about="Documents that were taken down, what had them, and the digests by which a build without them is equal. "
        "It has no text of a document.",
        parts=(
            counted("snapshot", "Snapshot that took them down", number),
            counted("documents", "Documents", len(rows)),
            counted("why", "Why", whys),
            stated("day", "Day", said.day if said else None),
            stated("reference", "Reference of the request", said.reference if said else None),
        ),
        sections=(
            Section(title="Documents", parts=(_documents(rows),)),
            *(_of_snapshot(facts, number, manifest) if manifest else (_dropped(number),)),
        ),
    )


def _manifest(facts: PaperFacts, number: int) -> Mapping[str, Any] | None:
    """That of a snapshot; None if the folder has none: a corpus as of a day, or after `finpile vacuum`."""
    if number_of(facts.manifest) == number:
        return facts.manifest
    try:
        return read_snapshot(facts.layout, number)
    except InputError:
        return None


def _documents(rows: list[dict[str, Any]]) -> Table:
    fields: Sequence[Field[Mapping[str, Any]]] = (
        Field("id", "Id", lambda row: name(row["id"])),
        Field("source", "Source", lambda row: name(f"{row['dataset']}: {row['source']}"), is_text=True),
        Field("locator", "Locator", lambda row: name(row["locator"]), is_text=True),
        Field("why", "Why", lambda row: name(row["why"]), is_text=True),
    )
    caption = "Ids, and the places in the input files; their rows in the ledger have the stage takedown."
    return table_of(rows, fields, name="documents", title="Documents", caption=caption)


def _dropped(number: int) -> Section:
    answer = counted("manifest", f"Manifest of snapshot {number}", DROPPED)
    return Section(title="What had them", parts=(answer,))


def _of_snapshot(facts: PaperFacts, number: int, manifest: Mapping[str, Any]) -> Iterator[Section]:
    found = manifest[SNAPSHOT]
    gone = found["taken_down"]
    yield Section(
        title="What had them",
        parts=(
            counted("published", "Of the documents, published before", gone["published"]),
            counted("parent", "Checksum of the manifest before", found["parent"]),
            counted(
                "rewritten",
                "Files that were replaced; with their texts below versions/ until finpile vacuum",
                tuple(sorted(found["rewritten"])),
            ),
            counted("added", "Files that were written", tuple(found["added"])),
            _tokens(gone["tokens"]),
            *_steps(facts, number),
        ),
    )
    yield Section(
        title="Equality with a build without them",
        parts=(
            counted("law", "How to prove it", _LAW),
            _digests(manifest),
        ),
    )


_LAW: Value = (
    "Build the inputs without these documents, write its papers, and compare the digests of its bom.cdx.json with "
    "those below. finpile verify computes both from the documents."
)


def _tokens(places: Mapping[str, Any]) -> Table:
    """The sequences that have tokens of the documents."""
    rows = [
        (document, found["snapshot"], found["split"], *place)
        for document, found_places in sorted(places.items())
        for found in found_places
        for place in found["places"]
    ]
    fields: Sequence[Field[tuple[Any, ...]]] = (
        Field("id", "Id", lambda row: name(row[0])),
        Field("shards", "Shards of", lambda row: count(row[1])),
        Field("split", "Split", lambda row: name(row[2]), is_text=True),
        Field("sequence", "Sequence", lambda row: count(row[3])),
        Field("begin", "First", lambda row: count(row[4])),
        Field("end", "End", lambda row: count(row[5])),
    )
    return table_of(
        rows,
        fields,
        name="tokens",
        title="Token sequences",
        caption="Sequences of the shards of the build (0) and of snapshots that have tokens of the documents, from the "
        "first token to the last one, exclusive. The shards stay until the corpus is built again.",
    )


def _steps(facts: PaperFacts, number: int) -> Iterator[Answer]:
    """The steps of the runs that were named."""
    runs = [one for one in facts.given.runs if one.snapshot == number]
    if not runs:
        yield stated("steps", "Training steps that saw them", None)
    for run in runs:
        steps = tuple(map(str, run.steps)) or ("none",)
        yield stated(f"steps of {run.run}", f"Steps of the run {run.run} that saw them", steps)


def _digests(manifest: Mapping[str, Any]) -> Table:
    digests = digests_of(manifest)
    fields: Sequence[Field[Mapping[str, Any]]] = (
        Field("source", "Source", lambda row: name(f"{row['dataset']}: {row['source']}")),
        Field("num_docs", "Docs", lambda row: count(row["num_docs"])),
        Field("num_bytes", "Bytes", lambda row: count(row["num_bytes"])),
        Field("digest", "Digest", lambda row: name(digests[label_of(row)]), is_text=True),
    )
    return table_of(
        published_by_source(counts_by_stage(manifest)["split"]["documents"]),
        fields,
        name="digests",
        title="Digests",
        caption="Of the documents of this snapshot: sums of BLAKE2b-128 of id, zero byte and digest of the text.",
    )
