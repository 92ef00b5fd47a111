"""The run of one snapshot: its stages, and its publication.

    ingest, clean    the new files alone; the clean shards of earlier snapshots stay in `.work`
    takedown         the documents that this snapshot and earlier ones take down
    dedup stages     decide what new, changed and taken down documents touch (`executors.incremental`)
    split            new files for what is new, and for what is decided otherwise (`publish`)
    commit           moves them into OUT and writes the manifest

The stages are those of a build, run in a folder of the snapshot's own, and leave records there: an interrupted run is
continued.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from finpile.config import CorpusConfig, to_dict
from finpile.counts.stages import StageCounts
from finpile.documents.digest import from_hex
from finpile.documents.document import label_of
from finpile.documents.sums import add_counts
from finpile.errors import ConfigError, InputError
from finpile.output.stage_record import StageRecord
from finpile.output.takedowns import TAKEDOWN
from finpile.plugins import stages
from finpile.sources.readers.record_evidence import decide_orders, evidence_by_entry
from finpile_pipelines.build import load, stage_names
from finpile_pipelines.corpus import clean, ingest, split
from finpile_pipelines.engines.local import preload
from finpile_pipelines.executors import incremental
from finpile_pipelines.out_folder import OutFolder
from finpile_pipelines.plan.memory import fit_built
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots import publish, tokens
from finpile_pipelines.snapshots.base import Base, largest_shard
from finpile_pipelines.snapshots.commit import commit, forget_decisions
from finpile_pipelines.snapshots.new_inputs import same_stage
from finpile_pipelines.snapshots.selection import Selection
from finpile_pipelines.stage import Context, Sizes, Stage
from finpile_pipelines.stage_runner import Listener, StageRunner, run_stages, teller

TOKENS = "tokens"
_DIGESTS = ("digest", "digest_before_filters")
#: An index of keys has about a tenth of the bytes of the text (benchmarks/results/2026-11-23_append.md).
_INDEXED = 10
#: A process is worth its start for this many times the bytes of a small corpus (`Sizes.small_bytes`).
_WORTH = 16


def check_base(base: Base) -> None:
    """Looks for all that a next snapshot may be made from.

    Raises: IntegrityError or ConfigError if a file is missing, or the tokenizer is altered.
    """
    base.check_files()
    if tokens.are_made(base):
        tokens.check_tokenizer(base)


def fit_snapshot(
    config: CorpusConfig,
    base: Base,
    new: Sequence[Sequence[Any]],
    engine: Engine,
    memory: int | None,
    sizes: Sizes,
    listen: Listener,
) -> tuple[Engine, Sizes]:
    """What makes the snapshot after `base` with the documents of the files `new`, by source entry, in `memory` bytes:
    the engine with the workers that fit, and sizes; without `memory`, those given.

    Raises: ConfigError as `fit_built`.
    """
    if memory is None:
        return engine, sizes
    names = [*stage_names(config, stages.DEDUPLICATED), *([TOKENS] if tokens.are_made(base) else ())]
    shard_bytes = largest_shard(base.layout, base.manifest)
    fit = fit_built(config, base.manifest, names, shard_bytes, engine.num_workers, memory, sizes, new)
    return fit.engine(engine, memory, teller(listen)), fit.sizes


class SnapshotRun:
    """The stages of one snapshot."""

    def __init__(
        self,
        config: CorpusConfig,
        base: Base,
        engine: Engine,
        takedowns: pa.Table,
        selection: Selection | None = None,
        *,
        sizes: Sizes,
        listen: Listener,
    ) -> None:
        """`takedowns` are those of this snapshot, which are `selection`, and of earlier ones (`TAKEDOWN_SCHEMA`)."""
        self._config = config
        self._base = base
        self._engine = engine
        self._takedowns = takedowns
        self._has_tokens = tokens.are_made(base)
        self._selection = selection or Selection()
        self._sizes = sizes
        self._listen = listen
        self._work = base.layout.snapshot_work(base.number + 1)
        keys = [*config.dedup.optional_keys, *([stages.TAKEDOWN_KEY] if takedowns.num_rows else ())]
        self._table = {name: _stage(name, base) for name in stages.until(stages.DEDUPLICATED, keys)}

    def make(self, new: Sequence[Sequence[Any]]) -> None:
        """Makes the snapshot with the documents of the files `new`, by source entry, and publishes it."""
        for name in self._table:
            preload(stages.find(name).module)
        prepared = {name: stage.prepare(self._config) for name, stage in self._table.items() if name != "ingest"}
        prepared |= {"ingest": new, TAKEDOWN: self._takedowns}
        folder = OutFolder(self._work, self._config, stages.DEDUPLICATED, replace=True, is_writable=True)
        run = partial(self._run_stages, prepared)
        table = self._table.values()
        ran = run_stages(self._work, folder, self._config, table, self._engine, self._listen, run)
        records = self._merged(ran)
        written = records.pop(TOKENS, None)
        moves, facts = tokens.facts_of(written, self._base.number + 1)
        facts |= self._selection.facts
        commit(self._base, records, to_dict(self._config), self._takedowns, moves, facts)
        forget_decisions(self._base.layout, self._base.number + 1)

    def _run_stages(self, prepared: Mapping[str, Any], runner: StageRunner, engine: Engine) -> dict[str, StageRecord]:
        own = {
            "ingest": replace(ingest.STAGE, run=ingest.read, settings=self._ingest_settings),
            "split": replace(split.STAGE, run=partial(publish.run, self._base, self._selection.rows["id"])),
        }
        for name, stage in self._table.items():
            context = self._context(name, runner, engine, prepared)
            if name == "clean":
                self._check_clean(context)
            runner.run(own.get(name, stage), context)
        if self._has_tokens:
            runner.run(tokens.stage_of(self._base), self._context(TOKENS, runner, engine, prepared))
        return runner.records

    def _context(self, name: str, runner: StageRunner, engine: Engine, prepared: Mapping[str, Any]) -> Context:
        return Context(
            info=stages.find(name),
            config=self._config,
            layout=self._work,
            engine=engine,
            sizes=replace(self._sizes, worker_bytes=self._worker_bytes(prepared["ingest"])),
            prepared=prepared,
            stages={} if name == "ingest" else self._table,
            records=self._merged(runner.records),
            earlier_refs=() if name in ("ingest", "clean") else self._base.refs,
            snapshot=self._base.number + 1,
        )

    def _worker_bytes(self, new: Sequence[Sequence[Any]]) -> int:
        """The share of the whole text for which a process is worth its start.

        Of that, a snapshot reads the new files, and an index of the documents before.
        """
        num_new = sum(file.span_bytes for files in new for file in files)
        num_before = sum(ref.text_bytes for ref in self._base.refs)
        num_read = num_new + num_before // _INDEXED
        worth: int = _WORTH * self._sizes.small_bytes * (num_new + num_before) // max(1, num_read)
        return worth

    def _ingest_settings(self, context: Context) -> list[Any]:
        """The outcome of a snapshot depends on the one before it."""
        return [*ingest.settings(context), self._base.manifest["checksum"]]

    def _check_clean(self, context: Context) -> None:
        """Raises: ConfigError or InputError if the documents of earlier snapshots would be cleaned otherwise, or the
        order of the dates of new ones is open."""
        if not same_stage(self._base.manifest, "clean", "ingest", clean.settings(context)):
            raise ConfigError(
                "files that the filters of a source read are not those of the build: restore them, or build the "
                "corpus again with `finpile build --fresh`"
            )
        before = decide_orders(self._config, self._base.counts("ingest")["evidence"])
        try:
            now = decide_orders(self._config, context.counts("ingest")["evidence"])
        except InputError as error:
            raise InputError(f"{error}. Then build the corpus again with `finpile build --fresh`") from error
        for source, old, new in zip(self._config.sources, before, now, strict=True):
            if old is not None and old != new:
                raise InputError(
                    f"source {source.label!r}: dates of the new files have another order of day and month than those "
                    "before: declare `date_format`, and build the corpus again"
                )

    def _merged(self, records: Mapping[str, StageRecord]) -> dict[str, StageRecord]:
        """The records of the stages, those of `ingest` and `clean` with the counts of all snapshots."""
        found, changes = dict(records), self._selection.changes
        for name, merge in (("ingest", _merged_ingest), ("clean", _merged_clean)):
            if name in found:
                counts = merge(self._base.counts(name), found[name].counts, changes)
                found[name] = replace(found[name], counts=counts)
        return found


def _stage(name: str, base: Base) -> Stage:
    info = stages.find(name)
    return incremental.stage_of(info, base.before()) if isinstance(info, stages.Algorithm) else load(name)


def _merged_ingest(before: Mapping[str, Any], counts: Mapping[str, Any], changes: StageCounts) -> dict[str, Any]:
    evidence = [*before["evidence"], *counts["evidence"]]
    merged = add_counts([*before["sources"], *counts["sources"]], ("dataset", "source"))
    return {
        "sources": [changes.of("ingest", label_of(row)).on(row) for row in merged],
        "evidence": evidence_by_entry({"entry": found["entry"], "evidence": found} for found in evidence),
    }


def _merged_clean(before: Mapping[str, Any], counts: Mapping[str, Any], changes: StageCounts) -> dict[str, Any]:
    rows = [
        {**row, **{name: from_hex(row[name]) for name in _DIGESTS}} for row in (*before["sources"], *counts["sources"])
    ]
    merged = add_counts(rows, ("dataset", "source"))
    return {"sources": [changes.of("clean", label_of(row)).on(row) for row in merged]}
