"""`finpile as-of`: the corpus of a build as it would have been built on a day.

Documents and ledger are filtered (`finpile.as_of`); if undated documents are among them that later ones may have
shaped, all dedup stages run again (`finpile_pipelines.as_of_stages`). The stages after `split` run on the documents of
the day: their outcome is a function of all documents, and no filter of that of the whole build. The tokenizer takes the
models of domains without later training documents from the whole build (`finpile_pipelines.unigram.domain_models`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_changes
from typing import Any

import pyarrow as pa

from finpile import storage
from finpile.as_of import Cut, check_causal, check_day, must_decide, takedowns_of_day, write_cut, write_takedowns
from finpile.config import CorpusConfig, from_dict
from finpile.counts.published import files_of
from finpile.errors import ConfigError, RunError
from finpile.output import stage_record
from finpile.output.layout import Layout
from finpile.output.lock import hold
from finpile.output.manifest import CERTIFICATE, find_damage, load_manifest, remedy
from finpile.output.snapshots import BUILD, load_snapshot, number_of, numbers
from finpile.output.stage_record import StageRecord, fingerprint
from finpile.output.takedowns import TAKEDOWN
from finpile.plugins import stages
from finpile.plugins.stages import DEDUPLICATED
from finpile_pipelines.as_of_stages import DayStages
from finpile_pipelines.build import load
from finpile_pipelines.engines.local import memory_bytes, preload
from finpile_pipelines.out_folder import OutFolder, check_kind, check_later_stages, forget_stages
from finpile_pipelines.plan.memory import fit_built
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.owner import owned
from finpile_pipelines.snapshots.base import largest_shard
from finpile_pipelines.stage import Context, Sizes, Stage
from finpile_pipelines.stage_runner import Listener, StageEvent, StageRunner, cpu_seconds, run_stages, teller


def as_of(
    source: str,
    cut: Cut,
    out: str,
    engine: Engine,
    *,
    until: str | None = None,
    fresh: bool = False,
    replace: bool = False,
    sizes: Sizes | None = None,
    memory: int | None = None,
    listen: Listener = lambda event: None,
    tables: bool | None = None,
) -> dict[str, Any]:
    """Writes the corpus of the build `source` as of a day into the folder `out`; returns its manifest.

    It ends with the stage `until`, by default with that with which the build ends. After an interruption the same call
    continues; `fresh` starts over. A build of another name in `out` is overwritten only with `replace`. It has Delta
    tables if `tables` says so, by default on a local disk. With `memory`, the engine has as many of its workers as fit
    into this number of bytes.

    Raises: ConfigError or InputError for a build that has no corpus as of that day, or whose `.work` lacks that from
    which undated documents are decided, or if one worker needs more than `memory`, before anything is written.
    """
    whole, layout = Layout(source), Layout(out)
    place, of_whole = (storage.real(one.root).rstrip("/") for one in (layout, whole))
    if f"{place}/".startswith(f"{of_whole}/"):
        raise ConfigError(f"-o {out} is the build itself, or a folder in it: name another folder")
    day = _Day.of(whole, cut, until)
    sizes = sizes or Sizes()
    if memory is not None:
        shard_bytes = largest_shard(whole, day.manifest)
        names = (DEDUPLICATED, *day.table)
        fit = fit_built(day.config, day.manifest, names, shard_bytes, engine.num_workers, memory, sizes)
        engine, sizes = fit.engine(engine, memory, teller(listen)), fit.sizes
    for name in day.table:
        preload(stages.find(name).module)
    check_kind(layout)
    with hold(layout, "as-of") as is_writable:
        folder = OutFolder(layout, day.config, day.last, replace=replace, is_writable=is_writable, as_of=cut.arguments)
        folder.check_name()
        with owned(layout, engine, teller(listen), is_writable=is_writable) as engine:
            if fresh:
                folder.claim("--fresh runs every stage again")
                forget_stages(layout)
            elif not replace:
                check_later_stages(layout, day.last)
            context = day.context(layout, engine, sizes)
            listen(StageEvent("", "accepted"))

            def run(runner: StageRunner, engine: Engine) -> dict[str, Any]:
                day.run(runner, folder, with_changes(context, engine=engine), listen)
                return runner.finish(day.config, tables=tables, **{CERTIFICATE: day.certificate(layout)})

            return run_stages(layout, folder, day.config, day.table.values(), engine, listen, run)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Day:
    """A day of a build."""

    whole: Layout
    manifest: Mapping[str, Any]
    cut: Cut
    config: CorpusConfig
    table: Mapping[str, Stage]
    """The stages that run: those after `split`, or all."""
    again: DayStages | None
    """What the first stages do if undated documents are decided again; None: documents and ledger are a filter."""
    takedowns: pa.Table
    """The documents of the day that were taken down."""

    @classmethod
    def of(cls, whole: Layout, cut: Cut, until: str | None) -> _Day:
        """Raises: ConfigError or InputError for a build that has no corpus as of that day."""
        manifest = load_manifest(whole)
        check_causal(whole.root, manifest, cut)
        if wrong := find_damage(whole, manifest, ("documents", "facts", "removed")):
            raise ConfigError(f"{whole.root}: {wrong[0]}: {remedy(whole)}")
        config = from_dict(manifest["config"])
        config = with_changes(config, name=f"{config.name} as of {cut.day}")
        names = _names(whole, manifest, until)
        again = DayStages.of(whole, manifest, cut) if must_decide(whole, manifest, cut) else None
        if again is None:
            check_day(whole, manifest, cut)
        running = names if again else names[names.index(DEDUPLICATED) + 1 :]
        table = {name: load(name) for name in running} | (again.table if again else {})
        takedowns = takedowns_of_day(whole, manifest, cut)
        return cls(
            whole=whole, manifest=manifest, cut=cut, config=config, table=table, again=again, takedowns=takedowns
        )

    @property
    def last(self) -> str:
        """The last stage."""
        return [DEDUPLICATED, *self.table][-1]

    def context(self, layout: Layout, engine: Engine, sizes: Sizes) -> Context:
        """That of each stage, but for its name and the records of those before it.

        Raises: ConfigError if a file that a dedup stage reads is not that of the build.
        """
        dedup = {name: stage for name, stage in self.table.items() if stages.find(name).is_dedup}
        context = Context(
            info=stages.find(DEDUPLICATED),
            config=self.config,
            layout=layout,
            engine=engine,
            sizes=sizes,
            prepared={**{name: stage.prepare(self.config) for name, stage in dedup.items()}, TAKEDOWN: self.takedowns},
            stages=self.table,
            records={},
            whole=self.whole,
        )
        if self.again:
            self.again.check(dedup.values(), context)
        return context

    def run(self, runner: StageRunner, folder: OutFolder, context: Context, listen: Listener) -> None:
        """Runs all stages, or finds them done.

        Raises: RunError if one fails; of those after the split it names what can be had without them.
        """
        if self.again is None:
            runner.records.update(self._filter(folder, context.layout, listen))
        for name, stage in self.table.items():
            try:
                runner.run(stage, with_changes(context, info=stages.find(name), records=dict(runner.records)))
            except RunError as error:
                if type(error) is not RunError or name not in stages.after(DEDUPLICATED):
                    raise
                raise RunError(
                    f"{error}; as of {self.cut.day}, `--until split` ends with documents and ledger"
                ) from error
            if self.again and name == DEDUPLICATED:
                runner.records.update(self.again.counted(runner.records, context.layout))

    def certificate(self, layout: Layout) -> dict[str, Any]:
        """What the manifest says of the day; writes the list of documents that were taken down."""
        return {**self.cut.certificate(self.manifest), "takedowns": write_takedowns(layout, self.takedowns)}

    def _filter(self, folder: OutFolder, layout: Layout, listen: Listener) -> dict[str, StageRecord]:
        """The records of the stages up to `split`, whose files are written unless an earlier run wrote them."""
        names = [stage["stage"] for stage in self.manifest["stages"]]
        names = names[: names.index(DEDUPLICATED) + 1]
        mark = fingerprint(CERTIFICATE, self.cut.certificate(self.manifest))
        is_done = all(stage_record.is_done(layout.work(name), mark) for name in names) and _is_whole(layout)
        if not is_done:
            folder.begin(DEDUPLICATED)
            listen(StageEvent(DEDUPLICATED, "running"))
            for name in names:
                stage_record.begin(layout.work(name), mark, layout.published(name))
            wall, cpu, memory = time.monotonic(), cpu_seconds(), [memory_bytes()]
            counts = write_cut(self.whole, layout, self.manifest, self.cut, lambda: memory.append(memory_bytes()))
            files = tuple(files_of((*counts["split"]["documents"], *counts["split"]["ledger"])))
            for name in names:
                record = StageRecord(stage=name, fingerprint=mark, files=(), counts=counts[name])
                if name == DEDUPLICATED:
                    seconds = round(max(time.monotonic() - wall, 0.001), 3)
                    used = round(max(cpu_seconds() - cpu, 0.001), 3)
                    files = tuple(sorted(files, key=lambda file: file.path))
                    record = with_changes(
                        record, files=files, wall_seconds=seconds, cpu_seconds=used, peak_memory_bytes=max(memory)
                    )
                stage_record.save_stage(layout.work(name), record)
        records = {name: stage_record.load_stage(layout.work(name)) for name in names}
        found = {name: record for name, record in records.items() if record is not None}
        listen(StageEvent(DEDUPLICATED, "found" if is_done else "done", found[DEDUPLICATED]))
        return found


def _is_whole(layout: Layout) -> bool:
    """Whether no published file of the filter is missing or has another size."""
    record = stage_record.load_stage(layout.work(DEDUPLICATED))
    return record is not None and not stage_record.find_damage(layout.root, record.files)


def _names(whole: Layout, manifest: Mapping[str, Any], until: str | None) -> Sequence[str]:
    """The stages of the corpus as of a day."""
    names = [stage["stage"] for stage in manifest["stages"]]
    if number_of(manifest) and BUILD in numbers(whole):  # those after the split are its; `vacuum` drops one without any
        built = [stage["stage"] for stage in load_snapshot(whole, BUILD)["stages"]]
        names = [*names[: names.index(DEDUPLICATED)], *built[built.index(DEDUPLICATED) :]]
    if until is None:
        return names
    ends = names[names.index(DEDUPLICATED) :]
    if until not in ends:
        raise ConfigError(f"{whole.root} has no stage {until} after its documents: expected one of {', '.join(ends)}")
    return names[: names.index(until) + 1]
