"""Documents and ledger of a corpus as of a day, from those of the whole build."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.as_of.counts import Ledger, Texts, stage_counts
from finpile.as_of.cut import Cut, ends_of
from finpile.counts.published import write_documents, write_ledger
from finpile.dedup.order import UNDATED
from finpile.documents.document import with_column
from finpile.documents.ledger import PUBLISHED_LEDGER_SCHEMA
from finpile.errors import InputError, IntegrityError
from finpile.output.layout import Layout
from finpile.output.published_files import PublishedFile, PublishedFiles
from finpile.output.stage_record import file_record
from finpile.output.takedowns import TAKEDOWN, list_path, read_takedowns
from finpile.plugins import stages
from finpile.storage.sizes import READ_BYTES


def must_decide(source: Layout, manifest: Mapping[str, Any], cut: Cut) -> bool:
    """Whether a filter is not enough: undated documents are in, and later ones may have shaped what is decided about
    them, which they follow in the order of time.

    Reads the timestamps of all documents that the dedup stages decided.
    """
    if not cut.undated:
        return False
    undated: set[str] = set()
    later: set[str] = set()
    decided = [name for name in stages.dedup_stages() if name != TAKEDOWN]
    files = PublishedFiles(source, manifest).below("documents", *(f"removed/stage={name}" for name in decided))
    for file in files:
        table = file.pages(["dataset", "timestamp"])
        ends = ends_of(table["timestamp"])
        for found, mask in ((undated, ends == UNDATED), (later, (ends > cut.end) & (ends != UNDATED))):
            found.update(pc.unique(table["dataset"].filter(pa.array(mask))).to_pylist())
    config = manifest["config"]
    is_one = config["dedup"]["scope"] == "corpus" or config["heldout"]["overlap"] is not None  # across datasets
    return bool(undated and later if is_one else undated & later)


def check_day(source: Layout, manifest: Mapping[str, Any], cut: Cut) -> None:
    """Raises: InputError if no published document is of the day or before."""
    files = PublishedFiles(source, manifest).below("documents")
    if not any(cut.has(file.pages(["timestamp"])["timestamp"]).any() for file in files):
        raise InputError(f"{source.root}: no document is from {cut.day} or before: name a later day")


def write_cut(
    source: Layout,
    target: Layout,
    manifest: Mapping[str, Any],
    cut: Cut,
    after_part: Callable[[], None] = lambda: None,
) -> dict[str, dict[str, Any]]:
    """Writes `documents/` and `removed/` of the corpus as of a day; returns the counts of the stages up to `split`.

    Files keep their names, and those without a row are left out. A part of one file is in memory at a time, and the
    spans of the ledger; `after_part` is called while it is.

    Raises: IntegrityError if a row of the ledger names a document that is not from that day or before: then a decision
    depended on a later one; IntegrityError for a file that is not as it was written.
    """
    files = PublishedFiles(source, manifest)
    ledger, texts = Ledger(), Texts(manifest)

    def removals(file: PublishedFile) -> Iterator[pa.Table]:
        for rows in parts_of_day(file, cut):
            ledger.add(rows)
            texts.add_spans(rows)
            yield rows.select(PUBLISHED_LEDGER_SCHEMA.names).cast(PUBLISHED_LEDGER_SCHEMA)
            after_part()

    def kept(file: PublishedFile) -> Iterator[pa.Table]:
        for part in parts_of_day(file, cut):
            rows = _with_copies(part, ledger.copies)
            texts.add(rows)
            ledger.find(rows["id"].to_pylist())
            yield rows
            after_part()

    found = (write_ledger(target.root, file.path, removals(file)) for file in files.below("removed"))
    removed = [counts for counts in found if counts is not None]
    for entry in removed:
        for rows in _parts(target, entry):
            ledger.find(texts.add_removed(rows))
    found = (
        write_documents(target.root, file.path, kept(file), files.facts_of(file.path))
        for file in files.below("documents")
    )
    documents = [counts for counts in found if counts is not None]
    if missing := ledger.missing():
        raise IntegrityError(
            f"{source.root}: a document up to {cut.day} was removed in favour of {missing}, which is later: the build "
            "is damaged, or one of its stages does not keep the order of time"
        )
    return stage_counts(manifest, documents, removed, texts)


def count_again(target: Layout, manifest: Mapping[str, Any], split: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The counts of the stages up to `split`, whose counts are `split`, from the documents and the ledger in `target`.

    `manifest` is that of the whole build.
    """
    texts = Texts(manifest)
    for add, kind in ((texts.add_spans, "ledger"), (texts.add_removed, "ledger"), (texts.add, "documents")):
        for entry in split[kind]:
            for rows in _parts(target, entry):
                add(rows)
    return stage_counts(manifest, split["documents"], split["ledger"], texts)


def _parts(target: Layout, counts: Mapping[str, Any]) -> Iterator[pa.Table]:
    """The rows of a file that was written, from its counts."""
    return PublishedFile.of_counts(target.root, counts).parts(size_bytes=READ_BYTES)


def takedowns_of_day(source: Layout, manifest: Mapping[str, Any], cut: Cut) -> pa.Table:
    """The documents of a day that were taken down, as `TAKEDOWN_SCHEMA`: of snapshot 0, and in no shard."""
    listed = read_takedowns(source, manifest)
    listed = listed.filter(pa.array(cut.has(listed["timestamp"])))
    for name, value in (("snapshot", 0), ("shard", -1), ("row", -1)):
        listed = with_column(listed, name, pa.repeat(value, listed.num_rows))
    return listed


def write_takedowns(target: Layout, listed: pa.Table) -> dict[str, Any] | None:
    """Writes the list of a corpus as of a day, unless it is there; returns its record, None for an empty list."""
    if not listed.num_rows:
        return None
    path = list_path(0)
    if not storage.is_file(storage.join(target.root, path)):
        storage.write_parquet(storage.join(target.root, path), listed)
    return asdict(file_record(target.root, path, listed.num_rows))


def parts_of_day(file: PublishedFile, cut: Cut) -> Iterator[pa.Table]:
    """The rows of a file of documents or of the ledger that are about documents up to the day, without empty parts."""
    for table in file.parts(size_bytes=READ_BYTES):
        rows = table.filter(pa.array(cut.has(table["timestamp"])))
        if rows.num_rows:
            yield rows


def _with_copies(documents: pa.Table, copies: Mapping[str, int]) -> pa.Table:
    """The documents with `num_copies` of the rows of the ledger."""
    counted = [1 + copies.get(identifier, 0) for identifier in documents["id"].to_pylist()]
    return with_column(documents, "num_copies", pa.array(counted, pa.int32()))
