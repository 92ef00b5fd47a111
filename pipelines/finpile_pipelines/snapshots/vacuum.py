"""`finpile vacuum`: deletes what no kept snapshot needs, and all texts of documents that were taken down.

    drop     the manifests of snapshots that are not kept
    blank    texts of documents that were taken down, in clean shards and in files of earlier snapshots that are kept
    delete   files that no manifest lists, and what no later snapshot reads in `.work`
    end      the versions of the Delta tables that are not kept, and files with texts that were blanked

Rows keep their numbers, ids and digests: clean shards, the index of keys and the token index refer to them. Blank
copies of published files are all written, and their checksums, before the first one replaces its file. Each step finds
what is left to do, so an interrupted run is ended by the next one.

Decision: docs/decisions/0064-vacuum.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile import delta, storage
from finpile.documents.document import CLEAN_SCHEMA
from finpile.output import stage_record
from finpile.output.layout import CARD_FILES, FACTS, VERSIONED, VERSIONS, Layout, earlier_place
from finpile.output.lock import hold_to_write
from finpile.output.manifest import load_manifest, recorded_files, write_manifest
from finpile.output.published_files import PublishedFile, PublishedFiles
from finpile.output.snapshots import BUILD, load_snapshot, number_of, numbers
from finpile.output.stage_record import FileRecord, file_record
from finpile.output.takedowns import TAKEDOWN, by_shard, read_takedowns, without_texts
from finpile.output.work_folder import WorkFolder
from finpile.plugins import stages
from finpile_pipelines.corpus.ingest import FILES
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.owner import owned
from finpile_pipelines.shard_refs import ShardRef, read_clean_rows, write_shard
from finpile_pipelines.snapshots.base import Base
from finpile_pipelines.snapshots.commit import finish, forget_decisions, read_plan, write_plan

_I32 = npt.NDArray[np.int32]
#: Folders of OUT to which snapshots add files.
_FOLDERS = (*VERSIONED, VERSIONS, "inputs", "snapshots")
#: What a later snapshot reads of `ingest` and `clean` of an earlier one, as beginnings of paths.
_READ_LATER = {"ingest": ("tasks.json", FILES), "clean": ("tasks.json", "documents/")}
_RECORDS = ("stage.json", "started.json")
#: Below the folder of a vacuum in `.work`: the records of blank files that replace published ones.
_PLAN = "blank.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Vacuumed:
    """What was done, or would be."""

    kept: list[int]
    """Snapshots that are left. Those with a tokenizer or tokens are, as is number 0, the build, with its reports."""
    dropped: list[int]
    deleted: list[str]
    """Files, as paths relative to OUT."""
    deleted_bytes: int
    documents: int
    """That were taken down; none of their texts is left, except as tokens."""
    tokens: list[str]
    """Folders with the token shards of the build and of snapshots, which stay, relative to OUT."""
    rewritten: list[str] = field(default_factory=list)
    """Files in which their texts were blanked, as paths relative to OUT. A dry run does not know them."""


def vacuum(out: str, engine: Engine, *, keep: int = 1, dry_run: bool = False) -> Vacuumed:
    """Keeps the `keep` newest snapshots of the build in `out`, without the texts of documents that were taken down.

    A build without snapshots stays as it is.

    Raises: InputError if `out` holds no finished build; ConfigError if it cannot be written, or `.work` is incomplete.
    """
    layout = Layout(out)
    load_manifest(layout)
    if dry_run:
        return _plan(layout, keep)
    with hold_to_write(layout, "vacuum", f"{out} cannot be written"), owned(layout, engine) as engine:
        finish(layout, number_of(load_manifest(layout)) + 1)
        found = _plan(layout, keep)
        if not numbers(layout):
            return found
        manifest = load_manifest(layout)
        takedowns = read_takedowns(layout, manifest)
        shards = _shards_with(layout, manifest, takedowns) if takedowns.num_rows else []
        forget_decisions(layout, number_of(manifest))
        interrupted = _replace_by_blank(layout)
        storage.remove_files(out, [f"snapshots/{number:06d}.json" for number in found.dropped])
        rewritten = [one["path"] for one in _run(layout, engine, shards, _blank_shard, "vacuum: clean shards")]
        earlier = [number for number in found.kept if number != number_of(manifest)]
        _write_blank(layout, manifest, engine, earlier, takedowns["id"])
        rewritten += interrupted + _replace_by_blank(layout)
        storage.remove_temporaries(out)
        storage.remove_files(out, found.deleted)
        if storage.exists(layout.delta):
            delta.make(layout, repairs=False)
        _seal_again(layout, number_of(manifest))
        storage.remove_tree(layout.vacuum_work)
    return Vacuumed(**{**asdict(found), "rewritten": sorted(rewritten)})


def _plan(layout: Layout, keep: int) -> Vacuumed:
    manifest, there = load_manifest(layout), numbers(layout)
    kept = [number for number in there if number in there[-keep:] or _has_tokens(load_snapshot(layout, number))]
    dropped = [number for number in there if number not in kept]
    deleted: dict[str, int] = {}
    if there:
        current = recorded_files(manifest)
        listed = {
            path if path in current else earlier_place(path)
            for number in kept
            for path in recorded_files(load_snapshot(layout, number))
        }
        listed |= {f"snapshots/{number:06d}.json" for number in kept}
        for folder in _FOLDERS:
            names = [f"{folder}/{name}" for name in storage.list_files(storage.join(layout.root, folder))]
            deleted |= storage.sizes_of(layout.root, [name for name in names if name not in listed])
        for path in _unread(layout, number_of(manifest)):
            deleted |= storage.sizes_of(layout.root, [path])
    folders = [layout.snapshot_tokens(number).tokens for number in kept]
    return Vacuumed(
        kept=kept,
        dropped=dropped,
        deleted=sorted(deleted),
        deleted_bytes=sum(deleted.values()),
        documents=read_takedowns(layout, manifest).num_rows,
        tokens=[folder.removeprefix(f"{layout.root}/") for folder in folders if storage.exists(folder)],
    )


def _has_tokens(manifest: Mapping[str, Any]) -> bool:
    """Whether a snapshot has token shards or, as the build, a tokenizer or reports: these belong to it alone."""
    paths = recorded_files(manifest)
    return any(path.split("/")[0] not in (*_FOLDERS, *CARD_FILES) or "/tokens/" in path for path in paths)


def _unread(layout: Layout, current: int) -> list[str]:
    """Files of `.work` that no later snapshot reads, relative to OUT; those of a snapshot that was begun included."""
    found: list[str] = []
    for number in (BUILD, *map(int, storage.names_in(layout.snapshots_work))):
        work, prefix = layout.snapshot_work(number), f".work/snapshots/{number:06d}/" if number else ""
        if number > current:
            found += [f"{prefix}{path}" for path in storage.list_files(work.root)]
            continue
        for name in stages.names():
            read = _read_later(work.work(name), name, number == current)
            paths = work.work(name).names()
            found += [f"{prefix}.work/{name}/{path}" for path in paths if not path.startswith(read)]
        if number:
            found += [f"{prefix}{path}" for path in storage.list_files(work.root) if not path.startswith(".work/")]
    return found


def _read_later(folder: WorkFolder, stage: str, is_current: bool) -> tuple[str, ...]:
    """The beginnings of the names of files that a later snapshot reads in the folder of a stage."""
    is_decided = is_current and stage in (*stages.dedup_stages(), stages.DEDUPLICATED)
    record = stage_record.load_stage(folder) if is_decided or stage in _READ_LATER else None
    if record is None:
        return ()
    run = stage_record.run_name(record.fingerprint)
    return (*(f"{run}/{name}" for name in _READ_LATER.get(stage, ("",))), *_RECORDS)


def _shards_with(layout: Layout, manifest: Mapping[str, Any], takedowns: pa.Table) -> list[tuple[ShardRef, _I32]]:
    """The clean shards that have the documents, and their rows there. Raises: ConfigError if `.work` is incomplete."""
    if not storage.exists(layout.work("clean").url):
        return []  # `.work` was deleted
    refs = {ref.index: ref for ref in Base.of(layout, manifest).refs}
    return [(refs[shard], listed["row"].to_numpy()) for shard, listed in by_shard(takedowns)]


def _blank_shard(root: str, task: tuple[ShardRef, _I32]) -> dict[str, Any]:
    ref, rows = task
    batches: list[pa.RecordBatch] = []
    is_changed = False
    for first, batch in read_clean_rows(ref, None):
        mask = np.isin(np.arange(first, first + batch.num_rows), rows)
        table = pa.Table.from_batches([batch])
        blank = without_texts(table, pa.array(mask)) if mask.any() else table
        is_changed = is_changed or not blank.equals(table)
        batches += blank.combine_chunks().to_batches() if blank.num_rows else [batch]
    report_progress(sum(batch.num_rows for batch in batches), 0)
    if is_changed:
        write_shard(ref.file, CLEAN_SCHEMA, batches)
    return {"path": ref.file.url.removeprefix(f"{root.rstrip('/')}/"), "rewritten": is_changed}


def _write_blank(
    layout: Layout, manifest: Mapping[str, Any], engine: Engine, numbers_kept: Sequence[int], ids: pa.ChunkedArray
) -> None:
    """Writes blank copies of the files of earlier snapshots with texts of documents, and the plan to put them there."""
    storage.remove_tree(layout.vacuum_work)
    current = recorded_files(manifest)
    earlier = [PublishedFiles(layout, load_snapshot(layout, number)).below(*VERSIONED) for number in numbers_kept]
    files = {file.path: file for found in earlier for file in found if file.path not in current}
    tasks = [
        (file, ids.combine_chunks())
        for path, file in sorted(files.items())
        if len(ids) and not path.startswith(f"removed/stage={TAKEDOWN}/")
    ]
    written = _run(layout, engine, tasks, _write_blank_file, "vacuum: files")
    if written:
        write_plan(storage.join(layout.vacuum_work, _PLAN), {"records": [outcome["record"] for outcome in written]})


def _write_blank_file(root: str, task: tuple[PublishedFile, pa.Array]) -> dict[str, Any]:
    file, ids = task
    done = {"path": earlier_place(file.path), "rewritten": False}
    mask = pc.is_in(file.pages(["id"])["id"], ids)
    if not pc.any(mask).as_py():
        return done
    table = file.stored()
    is_of_facts = file.path.startswith(f"{FACTS}/")
    blank = table.filter(pc.invert(mask)) if is_of_facts else without_texts(table, mask)
    report_progress(table.num_rows, table.nbytes)
    if blank.equals(table):
        return done
    work = Layout(root).vacuum_work
    storage.write_parquet(storage.join(work, file.path), blank)
    return {**done, "rewritten": True, "record": asdict(file_record(work, file.path, blank.num_rows))}


def _replace_by_blank(layout: Layout) -> list[str]:
    """Puts blank files in the place of published ones, and their records into the manifests, if there is a plan for it;
    returns their paths."""
    work = layout.vacuum_work
    plan = read_plan(storage.join(work, _PLAN))
    if plan is None:
        return []
    records: dict[str, FileRecord] = {record["path"]: FileRecord(**record) for record in plan["records"]}
    for path in records:
        if storage.is_file(storage.join(work, path)):
            storage.move(storage.join(work, path), storage.join(layout.root, earlier_place(path)))
    for number in numbers(layout):
        _record_again(layout, number, records)
    storage.remove_tree(work)
    return list(map(earlier_place, records))


def _record_again(layout: Layout, number: int, records: Mapping[str, FileRecord]) -> None:
    """Puts records of files into the manifest of a snapshot that lists these files."""
    manifest = load_snapshot(layout, number)
    entries = [
        {
            **stage,
            "files": [asdict(records[file["path"]]) if file["path"] in records else file for file in stage["files"]],
        }
        for stage in manifest["stages"]
    ]
    if entries != manifest["stages"]:
        write_manifest(layout.snapshot(number), {**manifest, "stages": entries})


def _run(
    layout: Layout,
    engine: Engine,
    tasks: Sequence[Any],
    work: Callable[[str, Any], dict[str, Any]],
    name: str,
) -> list[dict[str, Any]]:
    """Runs tasks on the workers; returns the outcomes of those that rewrote a file."""
    file = storage.join(layout.vacuum_work, "outcomes.json")
    outcomes = engine.run_tasks(name, tasks, partial(work, layout.root), file, "blank") if tasks else []
    return [outcome for outcome in outcomes if outcome["rewritten"]]


def _seal_again(layout: Layout, current: int) -> None:
    """The records of `ingest` and `clean` list the files that are left."""
    for number in range(current + 1):
        for stage in _READ_LATER:
            stage_record.seal_again(layout.snapshot_work(number).work(stage))
