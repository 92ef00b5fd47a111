"""`finpile as-of`: the corpus of a build as it would have been built on a day.

Documents and ledger are filtered (`finpile.as_of`). The stages after them run on the filtered documents: their outcome
is a function of all documents, and no filter of that of the whole build. The tokenizer takes the models of domains
without later documents from the whole build (`finpile_pipelines.unigram.domain_models`).
"""

from __future__ import annotations

import time
from dataclasses import replace as with_changes
from typing import Any

from finpile import stage_record, stages
from finpile.as_of import CERTIFICATE, Cut, check_causal, write_cut
from finpile.config import CorpusConfig, from_dict
from finpile.errors import ConfigError
from finpile.layout import Layout
from finpile.lock import hold
from finpile.manifest import find_damage, load_manifest, remedy
from finpile.published_counts import file_of
from finpile.snapshots import BUILD, load_snapshot, number_of, numbers
from finpile.stage_record import StageRecord, fingerprint
from finpile.stages import DEDUPLICATED
from finpile_pipelines.build import load
from finpile_pipelines.out_folder import OutFolder, check_kind, check_later_stages, forget_stages
from finpile_pipelines.runner import kernels
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.local import preload
from finpile_pipelines.stage import Context, Sizes, Stage
from finpile_pipelines.stage_runner import Listener, StageDamagedError, StageEvent, StageRunner


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
    listen: Listener = lambda event: None,
) -> dict[str, Any]:
    """Writes the corpus of the build `source` as of a day into the folder `out`; returns its manifest.

    It ends with the stage `until`, by default with that with which the build ends. After an interruption the same call
    continues; `fresh` starts over. A build of another name in `out` is overwritten only with `replace`.

    Raises: ConfigError or InputError for a build that has no corpus as of that day, before anything is written.
    """
    whole, layout = Layout(source), Layout(out)
    if whole.root.rstrip("/") == layout.root.rstrip("/"):
        raise ConfigError(f"-o {out} is the build itself: name another folder")
    manifest = load_manifest(whole)
    check_causal(source, manifest, cut)
    if wrong := find_damage(whole, manifest, ("documents", "removed")):
        raise ConfigError(f"{source}: {wrong[0]}: {remedy(whole)}")
    config = from_dict(manifest["config"])
    config = with_changes(config, name=f"{config.name} as of {cut.day}")
    names = [stage["stage"] for stage in manifest["stages"]]
    if number_of(manifest) and BUILD in numbers(whole):  # those after the split are its; `vacuum` drops one without any
        built = [stage["stage"] for stage in load_snapshot(whole, BUILD)["stages"]]
        names = [*names[: names.index(DEDUPLICATED)], *built[built.index(DEDUPLICATED) :]]
    if until is not None:
        names = _first(source, names, until)
    later = {name: load(name) for name in names[names.index(DEDUPLICATED) + 1 :]}
    for name in later:
        preload(stages.find(name).module)
    check_kind(layout)
    with hold(layout, "build") as is_writable:
        folder = OutFolder(layout, config, names[-1], replace=replace, is_writable=is_writable)
        folder.check_name()
        if fresh:
            folder.claim("--fresh runs every stage again")
            forget_stages(layout)
        elif not replace:
            check_later_stages(layout, names[-1])
        groups = [group for stage in later.values() for group in stage.kernels(config)]
        with kernels.Compilation(groups, engine.num_workers) as compilation:
            runner = StageRunner(layout, folder, listen, engine.watch, compilation.start)
            listen(StageEvent("", "accepted"))
            work = _Work(
                whole, layout, manifest, cut, config, with_changes(engine, watch=runner.watch), sizes or Sizes()
            )
            while True:
                try:
                    runner.records.update(work.filter(folder, listen))
                    for stage in later.values():
                        runner.run(stage, work.context(stage, later, runner))
                    return runner.finish(config, **{CERTIFICATE: cut.certificate(manifest)})
                except StageDamagedError as damage:
                    runner.forget(damage)


def _first(source: str, names: list[str], until: str) -> list[str]:
    """The stages up to `until`."""
    ends = names[names.index(DEDUPLICATED) :]
    if until not in ends:
        raise ConfigError(f"{source} has no stage {until} after its documents: expected one of {', '.join(ends)}")
    return names[: names.index(until) + 1]


class _Work:
    """The filter of one build, and the context of the stages after it."""

    def __init__(
        self,
        whole: Layout,
        layout: Layout,
        manifest: dict[str, Any],
        cut: Cut,
        config: CorpusConfig,
        engine: Engine,
        sizes: Sizes,
    ) -> None:
        self._whole = whole
        self._layout = layout
        self._manifest = manifest
        self._cut = cut
        self._config = config
        self._engine = engine
        self._sizes = sizes

    def filter(self, folder: OutFolder, listen: Listener) -> dict[str, StageRecord]:
        """The records of the stages up to `split`, whose files are written unless an earlier run wrote them."""
        names = [stage["stage"] for stage in self._manifest["stages"]]
        names = names[: names.index(DEDUPLICATED) + 1]
        mark = fingerprint(CERTIFICATE, self._cut.certificate(self._manifest))
        work = self._layout.work
        must_run = not (all(stage_record.is_done(work(name), mark) for name in names) and self._is_whole())
        if must_run:
            folder.begin(DEDUPLICATED)
            listen(StageEvent(DEDUPLICATED, "running"))
            published = self._layout.published(DEDUPLICATED)
            stage_record.begin(work(DEDUPLICATED), mark, published)
            began = time.monotonic()
            counts = write_cut(self._whole, self._layout, self._manifest, self._cut)
            files = tuple(map(file_of, (*counts["split"]["documents"], *counts["split"]["ledger"])))
            for name in names:
                record = StageRecord(stage=name, fingerprint=mark, files=(), counts=counts[name])
                if name == DEDUPLICATED:
                    seconds = round(max(time.monotonic() - began, 0.001), 3)
                    files = tuple(sorted(files, key=lambda file: file.path))
                    record = with_changes(record, files=files, wall_seconds=seconds)
                stage_record.save_stage(work(name), record)
        records = {name: stage_record.load_stage(work(name)) for name in names}
        found = {name: record for name, record in records.items() if record is not None}
        listen(StageEvent(DEDUPLICATED, "done" if must_run else "found", found[DEDUPLICATED]))
        return found

    def _is_whole(self) -> bool:
        """Whether no published file of the filter is missing or has another size."""
        record = stage_record.load_stage(self._layout.work(DEDUPLICATED))
        return record is not None and stage_record.find_missing(self._layout.root, record) is None

    def context(self, stage: Stage, later: dict[str, Stage], runner: StageRunner) -> Context:
        """That of a stage after `split`."""
        return Context(
            info=stages.find(stage.name),
            config=self._config,
            layout=self._layout,
            engine=self._engine,
            sizes=self._sizes,
            prepared={},
            stages=later,
            records=dict(runner.records),
            whole=self._whole,
        )
