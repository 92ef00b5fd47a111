"""`finpile remove`: takes documents out of a finished build, as a snapshot.

    select    the requested documents, those that any stage had removed included
    run       a snapshot without new files: its dedup stages decide without these documents, so copies come back
    publish   all rows about them leave the ledger, which gets tombstones without text

The result is that of a build of all inputs without these documents, but for the tombstones.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.config import from_dict
from finpile.counts.stages import EARLY
from finpile.documents.conditions import check_columns
from finpile.documents.document import DOCUMENT_SCHEMA
from finpile.documents.ledger import LEDGER_SCHEMA
from finpile.errors import ConfigError, InputError, command_line, nearest
from finpile.history.trace import facts_of_removal
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.output.snapshots import published_files
from finpile.output.takedowns import REASON, Wanted, read_takedowns
from finpile.sources.readers.finding import InputFile
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.owner import owned
from finpile_pipelines.snapshots.commit import hold_base
from finpile_pipelines.snapshots.new_inputs import check_version
from finpile_pipelines.snapshots.run import SnapshotRun, check_base, fit_snapshot
from finpile_pipelines.snapshots.selection import select
from finpile_pipelines.stage import Sizes
from finpile_pipelines.stage_runner import Listener, StageEvent, teller

#: Columns of documents that are not compared: clean shards are read without texts, and before copies are counted.
_NOT_IN_CLEAN = {"text", "num_copies"}


def remove(
    out: str,
    wanted: Wanted,
    why: str,
    engine: Engine,
    *,
    sizes: Sizes | None = None,
    memory: int | None = None,
    listen: Listener = lambda event: None,
) -> dict[str, Any]:
    """Takes the `wanted` documents out of the build in `out`; returns the manifest of its snapshot.

    `why` is in the ledger. Documents that were taken down before stay so, with their reason. If all that are wanted
    were taken down before, nothing is changed, and the manifest is the current one. With `memory`, the engine has as
    many of its workers as fit into this number of bytes.

    Raises: InputError if `out` holds no finished build, no document is wanted, or an id is unknown; ConfigError for a
    `.work` that is incomplete, another version of FinPile, or if one worker needs more than `memory`; RunError if a
    stage failed.
    """
    layout = Layout(out)
    with hold_base(layout, "remove", check_version) as base, ExitStack() as stack:
        check_conditions(wanted, base.manifest)
        check_base(base)
        config = from_dict(base.manifest["config"])
        no_files: list[list[InputFile]] = [[] for _ in config.sources]
        engine, sizes = fit_snapshot(config, base, no_files, engine, memory, sizes or Sizes(), listen)
        engine = stack.enter_context(owned(layout, engine, teller(listen)))
        listen(StageEvent("", "accepted"))
        known = read_takedowns(layout, base.manifest)
        found = select(base, engine, wanted, why, known)
        _check(wanted, found.rows, known, out)
        if found.rows.num_rows:
            takedowns = pa.concat_tables([known, found.rows]).sort_by("id")
            facts = facts_of_removal(out, base.published, found.rows["id"].to_pylist())
            found = replace(found, facts={"taken_down": facts})
            run = SnapshotRun(config, base, engine, takedowns, found, sizes=sizes, listen=listen)
            run.make(no_files)
        return load_manifest(layout)


def preview(out: str, wanted: Wanted, engine: Engine) -> dict[str, Any]:
    """What `remove` would take down, without doing it: as `snapshot.taken_down` of the manifest, and

    - `sources`: the number of documents by dataset and source;
    - `copies`: documents that were removed as copies of these, of which one may come back for each.

    Raises: as `remove`.
    """
    layout = Layout(out)
    with hold_base(layout, "remove", check_version) as base:
        check_conditions(wanted, base.manifest)
        check_base(base)
        known = read_takedowns(layout, base.manifest)
        rows = select(base, engine, wanted, "", known).rows
        _check(wanted, rows, known, out)
        ids = rows["id"].combine_chunks()
        copies = 0
        for file in base.published.below("removed"):
            named = file.pages(["duplicate_of", "start"])
            mask = pc.and_(pc.is_in(named["duplicate_of"], ids), pc.is_null(named["start"]))
            copies += pc.sum(mask).as_py() or 0
        sources = rows.group_by(["dataset", "source"]).aggregate([("id", "count")]).to_pylist()
        found = sorted((row["dataset"], row["source"], row["id_count"]) for row in sources)
        return {
            **facts_of_removal(out, base.published, ids.to_pylist()),
            "sources": [{"dataset": name[0], "source": name[1], "documents": count} for *name, count in found],
            "copies": copies,
        }


def not_compared(out: str, wanted: Wanted) -> tuple[list[str], int]:
    """The columns of conditions that the ledger does not have, and the number of inputs and documents there, removed by
    `ingest` or `clean`, that may be wanted: they fulfil all other conditions.

    Raises: as `load_snapshot`.
    """
    names = [name for name in LEDGER_SCHEMA.names if name != "removed_text"]
    columns = sorted({condition.column for condition in wanted.where if condition.stored not in names})
    if not columns:
        return [], 0
    rest = replace(wanted, where=tuple(one for one in wanted.where if one.stored in names))
    early = published_files(Layout(out)).below(*(f"removed/stage={stage}" for stage in EARLY))
    tables = (file.pages(names) for file in early)
    return columns, sum(len(rest.find(table.filter(pc.is_null(table["start"])))) for table in tables)


def check_conditions(wanted: Wanted, manifest: Mapping[str, Any]) -> None:
    """Raises: ConfigError for a dataset, source or column that the corpus does not have."""
    config = from_dict(manifest["config"])
    sources = {*(row for _, row in config.rows), *(source.label for source in config.sources)}
    for what, value, known in (
        ("--dataset", wanted.dataset, {dataset for dataset, _ in config.rows}),
        ("--source", wanted.source, sources),
    ):
        if value is not None and value not in known:
            raise ConfigError(f"{what}: {value!r} is not known{nearest(value, known)}")
    check_columns(wanted.where, {*DOCUMENT_SCHEMA.names} - _NOT_IN_CLEAN)


def _check(wanted: Wanted, found: pa.Table, known: pa.Table, out: str) -> None:
    """Raises: InputError."""
    if wanted.ids is not None:
        there = {*found["id"].to_pylist(), *known["id"].to_pylist()}
        if missing := sorted(wanted.ids - there):
            raise InputError(
                f"{len(missing):,} of {len(wanted.ids):,} ids are of no document that fulfils all conditions: "
                f"{', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''}"
            )
    elif not found.num_rows and not known.take(pa.array(wanted.find(known))).num_rows:
        unknown = sorted({condition.column for condition in wanted.where} - {*known.column_names})
        message = "no document fulfils all conditions: `finpile show` prints documents with their columns"
        columns, number = not_compared(out, wanted)
        if number:
            names = ", ".join(columns)
            message += f"; {number:,} that `ingest` or `clean` removed were not compared: the ledger has no {names}"
        if known.num_rows and unknown:
            message += (
                f"; {known.num_rows:,} documents were taken down before, of which {', '.join(unknown)} is not known: "
                f"`{command_line('ls', out, '--reason', REASON)}` lists them"
            )
        raise InputError(message)
