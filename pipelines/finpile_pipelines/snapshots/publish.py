"""Publishes a snapshot: the new documents and ledger rows, and the earlier ones that are decided otherwise.

    changes    earlier rows with other decisions (`changes`)
    add        new documents and changed ones, with their ledger rows, in new files
    rewrite    earlier files that have a changed document or ledger row, without it

All files are written below the snapshot's folder in `.work`, from which `commit` moves them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.counts.published import FACTS_FILE, files_of, write_documents, write_ledger
from finpile.documents.document import label_of
from finpile.output import stage_record
from finpile.output.layout import Layout, added_part, rewritten_part
from finpile.output.published_files import PublishedFile
from finpile.plugins import stages
from finpile.storage.sizes import READ_BYTES
from finpile_pipelines.corpus.split import (
    Parts,
    Selection,
    ledger_sizes,
    plan_parts,
    publish,
    redirects,
    splits_of,
)
from finpile_pipelines.progress import report_progress
from finpile_pipelines.shard_refs import ShardRef, read_clean
from finpile_pipelines.snapshots.base import Base
from finpile_pipelines.snapshots.changes import FINAL_KINDS, Changes, Decisions, find_changes
from finpile_pipelines.stage import Context, Outcome


def run(base: Base, taken_down: pa.ChunkedArray, context: Context) -> Outcome:
    """Writes the files of the snapshot after `base`. The counts are those of all its files, and `changes`, for
    `commit`.

    The ledger loses all rows about the documents `taken_down`, which are ids.
    """
    number = base.number + 1
    if (steps := redirects(context)) is not None:
        context.engine.run_one("split", steps)
    num_before = len(base.refs)
    changes = find_changes(_before(base), _after(context), range(num_before))
    refs = context.refs
    selection = Selection([ref for ref in refs if ref.index >= num_before or ref.index in changes.rows], changes.rows)
    added = publish(context, _plan(context, base, changes, number), selection)
    gone = _changed_documents(context, [refs[index] for index in changes.rows], changes)
    earlier = base.counts("split")
    rewritten = _rewrite(context, base, gone, taken_down.combine_chunks(), number)
    counts = {
        kind: sorted(
            [*(row for entry in earlier[kind] for row in rewritten.get(entry["path"], [entry])), *rows],
            key=lambda row: row["path"],
        )
        for kind, rows in added.items()
    }
    written = chain.from_iterable([*added.values(), *rewritten.values()])
    facts = {
        "rewritten": _paths(rewritten, earlier["documents"]),
        "copies": dict(sorted(changes.copies.items())),
        "changed": sorted(gone["id"].to_pylist()),
    }
    return Outcome(counts={**counts, "changes": facts}, files=files_of(written))


def _paths(
    rewritten: Mapping[str, Sequence[Mapping[str, Any]]], documents: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    """The paths of the files that replace others, by the paths of these; those of facts too."""
    found = {path: [row["path"] for row in rows] for path, rows in rewritten.items()}
    for entry in documents:
        if FACTS_FILE in entry and entry["path"] in rewritten:
            files = [row[FACTS_FILE]["path"] for row in rewritten[entry["path"]] if FACTS_FILE in row]
            found[entry[FACTS_FILE]["path"]] = files
    return dict(sorted(found.items()))


def _before(base: Base) -> Decisions:
    return Decisions(
        final=stage_record.files_of(base.work.work("split")),
        spans=base.removal_folders,
        seals={name: record.seals for name, record in base.records.items()},
    )


def _after(context: Context) -> Decisions:
    names = [f"{kind}/{name}" for kind in FINAL_KINDS for name in (context.folder / kind).names()]
    found = {name: record.seals for name, record in context.records.items() if stages.find(name).is_dedup}
    return Decisions(
        final=context.folder,
        spans=context.removal_folders,
        seals={**found, "split": context.folder.seals(names)},
    )


def _plan(context: Context, base: Base, changes: Changes, number: int) -> Parts:
    """The new files, from the bytes of the new text and the mean size of the documents that are published again."""
    total = {label_of(row): row for row in context.counts("clean")["sources"]}
    before = {label_of(row): row["text_bytes"] for row in base.counts("clean")["sources"]}
    sizes = {row: counts["text_bytes"] - before.get(row, 0) for row, counts in total.items()}
    for ref in (context.refs[index] for index in changes.rows):
        source = ref.source(context.config.sources)
        counts = total[source.dataset, source.label]
        mean = counts["text_bytes"] // max(1, counts["documents"])
        sizes[source.dataset, source.label] += mean * len(changes.rows[ref.index])
    text_bytes = max(1, sum(sizes.values()))
    return plan_parts(
        {row: max(1, size) for row, size in sizes.items()},
        {name: min(text_bytes, size) for name, size in ledger_sizes(context, text_bytes).items()},
        context.sizes.part_bytes,
        splits_of(context.config),
        partial(added_part, snapshot=number),
    )


#: Columns that name a changed document.
_NAMES = ("id", "dataset", "source")
NAMED = pa.schema([pa.field(name, pa.string()) for name in _NAMES])


def _changed_documents(context: Context, refs: Sequence[ShardRef], changes: Changes) -> pa.Table:
    """`id`, `dataset` and `source` of the changed rows."""
    rows_of = changes.rows
    if not refs:
        return NAMED.empty_table()

    def names(ref: ShardRef) -> dict[str, Any]:
        tables = [pa.Table.from_batches([batch]).select(_NAMES) for batch in read_clean(ref, _NAMES)]
        table = pa.concat_tables(tables).take(pa.array(rows_of[ref.index]))
        return {"shard": ref.index, "documents": table.to_pylist()}

    file = context.folder.file("changed.json")
    outcomes = context.engine.run_tasks("split: changed", refs, names, file, "changed")
    return pa.Table.from_pylist([row for outcome in outcomes for row in outcome["documents"]], schema=NAMED)


def _rewrite(
    context: Context,
    base: Base,
    gone: pa.Table,
    taken_down: pa.Array,
    number: int,
) -> dict[str, list[dict[str, Any]]]:
    """The files that replace those with rows of the documents `gone`, by path; none for one of which nothing is left.

    Ledger rows of `ingest` and `clean` stay, but for those about documents that are taken down: no later document
    changes them.
    """
    if not gone.num_rows and not len(taken_down):
        return {}
    ids = pa.concat_arrays([gone["id"].combine_chunks(), taken_down])
    rows = set(zip(gone["dataset"].to_pylist(), gone["source"].to_pylist(), strict=True))
    dedup, entries = stages.dedup_stages(), base.counts("split")
    tasks = [entry["path"] for entry in entries["documents"] if label_of(entry) in rows]
    tasks += [entry["path"] for entry in entries["ledger"] if entry["stage"] in dedup]
    early = [entry["path"] for entry in entries["ledger"] if entry["stage"] not in dedup and len(taken_down)]
    target, results = context.layout, context.folder.file("rewritten.json")
    files = [(base.published[path], base.published.facts_of(path)) for path in (*tasks, *early)]

    def rewrite(task: tuple[PublishedFile, PublishedFile | None]) -> dict[str, Any]:
        file, facts = task
        return _without(file, facts, target, taken_down if file.path in early else ids, number)

    outcomes = context.engine.run_tasks("split: rewrite", files, rewrite, results, "rewrite")
    return {outcome["path"]: outcome["files"] for outcome in outcomes if outcome["files"] is not None}


def _without(
    file: PublishedFile, facts: PublishedFile | None, target: Layout, gone: pa.Array, number: int
) -> dict[str, Any]:
    """Writes the rows of a published file, and its facts, without those of the documents `gone`, if it has some."""
    path, replacing = file.path, rewritten_part(file.path, number)
    if not pc.any(pc.is_in(file.pages(["id"])["id"], gone)).as_py():
        return {"path": path, "files": None}
    parts = _rows_without(file, gone)
    if path.startswith("documents/"):
        counts = write_documents(target.root, replacing, parts, facts)
    else:
        counts = write_ledger(target.root, replacing, (rows.drop_columns(["stage"]) for rows in parts))
    return {"path": path, "files": [] if counts is None else [counts]}


def _rows_without(file: PublishedFile, gone: pa.Array) -> Iterator[pa.Table]:
    """The rows of a published file without those of the documents `gone`."""
    for part in file.parts(size_bytes=READ_BYTES):
        rows = part.filter(pc.invert(pc.is_in(part["id"], gone)))
        report_progress(rows.num_rows, rows.nbytes)
        yield rows
