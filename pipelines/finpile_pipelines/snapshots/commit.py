"""Makes a snapshot the current one: moves its files to where readers find them, and writes its manifest.

    move in    its files from `.work`
    move out   files of documents and ledger that it does not have, to `versions`
    tables     a version of the Delta tables, if OUT has some
    describe   its manifest, below `snapshots` and then as `manifest.json`

What is to be done is written first, so that a run that was interrupted here is ended by the next one. Meanwhile readers
of a manifest find its files, wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from finpile import delta, storage
from finpile.errors import ConfigError, IntegrityError
from finpile.output.layout import CARD_FILES, INPUTS_PART, Layout, added_part, earlier_place
from finpile.output.lock import hold_to_write
from finpile.output.manifest import CERTIFICATE, CHECKSUM, SNAPSHOT, load_manifest, write_manifest
from finpile.output.snapshots import COPIES_SCHEMA, number_of, read_copies, sorted_copies
from finpile.output.stage_record import FileRecord, StageRecord, file_record, fingerprint
from finpile.output.takedowns import list_path
from finpile.plugins import stages
from finpile.report.dataset_card import write_card
from finpile_pipelines.snapshots.base import Base

_PLAN_CHECKSUM = "plan_checksum"


@contextmanager
def hold_base(layout: Layout, what: str, check: Callable[[Mapping[str, Any]], None]) -> Iterator[Base]:
    """The current snapshot of OUT, for a process that makes the next one; an interrupted publication is ended first.

    `check` is given the manifest before anything else is read.

    Raises: ConfigError if OUT cannot be written, or lacks what the snapshot left in `.work`; InputError if it holds no
    finished build.
    """
    load_manifest(layout)
    with hold_to_write(layout, what, f"{layout.root} cannot be written"):
        finish(layout, number_of(load_manifest(layout)) + 1)
        manifest = load_manifest(layout)
        if certificate := manifest.get(CERTIFICATE):
            raise ConfigError(
                f"{layout.root} is a corpus as of {certificate['date']}, and `finpile {what}` changes whole builds "
                "alone: change the whole build, and run `finpile as-of` again"
            )
        check(manifest)
        base = Base.of(layout, manifest)
        forget_decisions(layout, base.number)
        yield base


def commit(
    base: Base,
    records: Mapping[str, StageRecord],
    config: Mapping[str, Any],
    takedowns: pa.Table,
    further: Mapping[str, str],
    facts: Mapping[str, Any],
) -> None:
    """Publishes the snapshot after `base`, of which `records` has the stages, and `takedowns` the list.

    `further` files are moved too, and are in the `facts` of the snapshot.
    """
    layout, number = base.layout, base.number + 1
    work = layout.snapshot_work(number)
    moves = {file.path: file.path for record in records.values() for file in record.files}
    if INPUTS_PART in moves:
        moves[INPUTS_PART] = added_part(INPUTS_PART, number)
    copies = sorted_copies(_copies(base, records["split"].counts["changes"]))
    lists = {"copies": _write_list(work, f"snapshots/{number:06d}-copies.parquet", copies)}
    lists["takedowns"] = _write_list(work, list_path(number), takedowns.sort_by("id"))
    moves |= {file["path"]: file["path"] for file in lists.values() if file is not None}
    added = sorted(moves[file.path] for record in records.values() for file in record.files)
    rewritten = records["split"].counts["changes"]["rewritten"]
    replacing = {path for paths in rewritten.values() for path in paths}
    manifest = {
        **{key: value for key, value in base.manifest.items() if key != SNAPSHOT},
        "config": dict(config),
        "config_hash": fingerprint(dict(config)),
        "stages": [_stage(base, record, records, moves) for record in records.values()],
        SNAPSHOT: {
            "number": number,
            "parent": base.manifest[CHECKSUM],
            "added": [path for path in added if path not in replacing],
            "rewritten": rewritten,
            **lists,
            **facts,
        },
    }
    manifest = write_card(work, manifest)
    moves |= {path: path for path in CARD_FILES}
    write_plan(layout.snapshot_plan(number), {"moves": {**moves, **further}, "manifest": manifest})
    finish(layout, number)


def _write_list(work: Layout, path: str, rows: pa.Table) -> dict[str, Any] | None:
    """Writes a list of a snapshot; returns its record, None if it is empty."""
    if not rows.num_rows:
        return None
    storage.write_parquet(storage.join(work.root, path), rows)
    return asdict(file_record(work.root, path, rows.num_rows))


def write_plan(url: str, plan: Mapping[str, Any]) -> None:
    """Writes what a command is about to do to published files."""
    storage.write_json(url, {**plan, _PLAN_CHECKSUM: fingerprint(plan)})


def read_plan(url: str) -> dict[str, Any] | None:
    """What an interrupted run was about to do; None if there is no such file.

    Raises: IntegrityError if the file is damaged.
    """
    try:
        plan: dict[str, Any] = storage.read_json(url)
        is_whole = plan.pop(_PLAN_CHECKSUM) == fingerprint(plan)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        is_whole = False
    if not is_whole:
        raise IntegrityError(f"{url} is damaged: delete it, and run the same command again")
    return plan


def finish(layout: Layout, number: int) -> bool:
    """Ends the publication of a snapshot of the build in OUT, if it was begun; returns whether it was."""
    work, current = layout.snapshot_work(number), load_manifest(layout)
    plan = read_plan(layout.snapshot_plan(number))
    if plan is None or plan["manifest"][SNAPSHOT]["parent"] != current[CHECKSUM]:
        return False  # without a plan, or the build to which it was added was replaced
    if number == 1:  # from here on readers take only files that a manifest lists
        storage.write_bytes(layout.snapshot(0), storage.read_bytes(layout.manifest))
    storage.remove_tree(layout.explorer)  # its pages may have texts that this snapshot takes down
    storage.remove_tree(layout.attributes)  # of the documents before
    superseded = plan["manifest"][SNAPSHOT]["rewritten"]
    moves = {storage.join(work.root, source): target for source, target in plan["moves"].items()}
    moves |= {storage.join(layout.root, path): earlier_place(path) for path in superseded}
    for source, target in moves.items():
        if storage.is_file(source):
            storage.move(source, storage.join(layout.root, target))
    storage.remove_empty_folders(layout.root, superseded)
    if storage.exists(layout.delta):
        delta.extend(layout, plan["manifest"])
    for url in (layout.snapshot(number), layout.manifest):
        write_manifest(url, plan["manifest"])
    return True


def forget_decisions(layout: Layout, number: int) -> None:
    """Removes what the dedup stages of all snapshots before this one left in `.work`; their clean shards stay."""
    for snapshot in range(number):
        work = layout.snapshot_work(snapshot)
        for name in (*stages.dedup_stages(), stages.DEDUPLICATED):
            work.work(name).remove()


def _stage(
    base: Base, record: StageRecord, records: Mapping[str, StageRecord], moves: Mapping[str, str]
) -> dict[str, Any]:
    """The manifest's entry of a stage, with all files of the snapshot."""
    name = record.stage
    none: dict[str, Any] = {"files": [], "fingerprint": record.fingerprint}
    entry: Mapping[str, Any] = next((entry for entry in base.manifest["stages"] if entry["stage"] == name), none)
    replaced = records["split"].counts["changes"]["rewritten"] if name == stages.DEDUPLICATED else {}
    files = [FileRecord(**file) for file in entry["files"] if file["path"] not in replaced]
    files += [FileRecord(**{**asdict(file), "path": moves[file.path]}) for file in record.files]
    listed = sorted((asdict(file) for file in files), key=lambda file: str(file["path"]))
    counts = {key: value for key, value in record.counts.items() if key != "changes"}
    mark = record.fingerprint if stages.find(name).is_dedup or name == stages.DEDUPLICATED else entry["fingerprint"]
    return {**record.to_json(), "files": listed, "counts": counts, "fingerprint": mark}


def _copies(base: Base, changes: Mapping[str, Any]) -> dict[str, int]:
    """The numbers of copies that the files of documents do not have, by id."""
    before = read_copies(base.layout, base.manifest).to_pydict()
    known = dict(zip(before[COPIES_SCHEMA.names[0]], before[COPIES_SCHEMA.names[1]], strict=True))
    written = set(changes["changed"])
    return {name: count for name, count in {**known, **changes["copies"]}.items() if name not in written}
