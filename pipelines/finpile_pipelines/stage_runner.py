"""Runs the stages of a build, each once: finds stages that an earlier run finished, checks them, writes records."""

from __future__ import annotations

import json
import platform
import resource
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, TypeVar

from finpile import delta, storage
from finpile.config import CorpusConfig, to_dict
from finpile.output import stage_record
from finpile.output.layout import CARD_FILES, Layout
from finpile.output.manifest import MANIFEST_VERSION, find_manifest, write_manifest
from finpile.output.snapshots import BUILD
from finpile.output.stage_record import StageRecord, fingerprint
from finpile.report.dataset_card import write_card
from finpile.version import __version__
from finpile_pipelines.engines.local import memory_bytes, preload, workers_cpu_seconds
from finpile_pipelines.out_folder import OutFolder
from finpile_pipelines.progress import Progress, Watch
from finpile_pipelines.runner import kernels
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.usage import USED
from finpile_pipelines.stage import Context, Stage, sized_engine

T = TypeVar("T")
_PACKAGES = ("apache-beam", "pyarrow", "numba", "numpy", "resiliparse", "zstandard", "rapidfuzz")


@dataclass(frozen=True, slots=True)
class StageEvent:
    """Progress event passed to the listener."""

    stage: str
    state: str
    """`running`, `done` (now), `found` (finished by an earlier run) or `damaged` (found, and to run again). With an
    empty `stage`: `accepted` after the corpus file, the inputs and the output folder were checked; `note` for a line
    about the run."""
    record: StageRecord | None = None
    detail: str = ""
    """Which file is damaged, or the note: what became of a job of an earlier run, or how many workers fit."""


Listener = Callable[[StageEvent], None]


def teller(listen: Listener) -> Callable[[str], None]:
    """Passes notes on to the listener."""
    return lambda text: listen(StageEvent("", "note", detail=text))


class StageDamagedError(Exception):
    """Files of a finished stage are missing or damaged, and the stage has to run again."""

    def __init__(self, stage: str, what: str) -> None:
        super().__init__(what)
        self.stage = stage


class StageRunner:
    """The stages of one run, in their order."""

    def __init__(
        self,
        layout: Layout,
        folder: OutFolder,
        listen: Listener,
        watch: Watch | None,
        compile_kernels: Callable[[], None] = lambda: None,
    ) -> None:
        self._layout = layout
        self._folder = folder
        self._listen = listen
        self._watch = watch
        self._compile_kernels = compile_kernels
        self._peak = 0
        self._num_run = 0
        self._reported: set[str] = set()
        self._are_checked = False
        self.records: dict[str, StageRecord] = {}
        """Of the stages so far, in order."""

    def run(self, stage: Stage, context: Context) -> None:
        """Runs a stage, or finds it done. It is given the context with a sized engine."""
        name, settings = stage.name, stage.settings(context)
        mark = _mark(name, settings, [record.fingerprint for record in self.records.values()][-1:])
        stage.check(context)

        def run() -> StageRecord:
            self._listen(StageEvent(name, "running"))
            self._peak, USED.peak_bytes = memory_bytes(), 0
            wall, cpu = time.monotonic(), cpu_seconds()
            self._compile_kernels()
            if settings is not None:
                self._wait_for_kernels(name, stage.kernels(context.config))
            engine = sized_engine(context, stage.work(context), stage.releases_lock)
            own = replace(context, engine=engine, mark=mark, next_mark=self._begin_next(stage, context, mark))
            outcome = stage.run(own)
            (own.folder / "scratch").remove()
            return StageRecord(
                stage=name,
                fingerprint=mark,
                files=tuple(sorted(outcome.files, key=lambda file: file.path)),
                counts=outcome.counts,
                wall_seconds=round(time.monotonic() - wall, 3),
                cpu_seconds=round(cpu_seconds() - cpu, 3),
                peak_memory_bytes=max(self._peak, USED.peak_bytes),
            )

        self._prepare(name, mark)
        record, ran = stage_record.run_once(self._layout.work(name), mark, run, self._layout.published(name))
        self.records[name] = record
        self._num_run += ran
        if ran or name not in self._reported:
            self._listen(StageEvent(name, "done" if ran else "found", record))
        self._reported.add(name)

    def _begin_next(self, stage: Stage, context: Context, mark: str) -> str:
        """The fingerprint of the next stage, if the pipeline of this one has to do its work; its folder is prepared."""
        following = context.stages.get(stage.may_run)
        if following is None or not context.engine.runs_jobs:
            return ""
        folder = self._layout.work(following.name)
        following_mark = _mark(following.name, following.settings(context), [mark])
        if stage_record.is_done(folder, following_mark):
            return ""
        stage_record.begin(folder, following_mark, self._layout.published(following.name))
        return following_mark

    def _wait_for_kernels(self, stage: str, groups: Sequence[str]) -> None:
        """Waits for groups that are being compiled in the background; worker processes will load them once."""

        def report() -> None:
            self.watch(stage, Progress(0, 0, memory_bytes(), note=kernels.NOTE))

        kernels.wait_for(groups, report)
        for group in groups:
            preload(group)

    def _prepare(self, stage: str, mark: str) -> None:
        """Checks the stage's files; if it has to run, the files of all stages before it.

        Raises: ConfigError if OUT must not be changed.
        """
        done = stage_record.load_stage(self._layout.work(stage))
        if done is not None and done.fingerprint == mark:
            if damage := stage_record.find_damage(self._layout.root, done.files):
                raise StageDamagedError(stage, storage.join(self._layout.root, damage[0]))
            return
        self._folder.begin(stage)
        for found, record in self.records.items() if not self._are_checked else ():
            if wrong := stage_record.find_stage_damage(self._layout.root, self._layout.work(found), record):
                raise StageDamagedError(found, wrong)
        self._are_checked = True

    def forget(self, damage: StageDamagedError) -> None:
        """Marks a damaged stage to run again. The caller then repeats all stages from the first.

        Raises: ConfigError if OUT must not be changed.
        """
        self._folder.claim(str(damage))
        self._listen(StageEvent(damage.stage, "damaged", detail=str(damage)))
        self._layout.work(damage.stage).remove()
        self.records.clear()

    def watch(self, label: str, progress: Progress) -> None:
        """Records the peak of memory, and passes the progress on."""
        self._peak = max(self._peak, progress.memory_bytes)
        if self._watch is not None:
            self._watch(label, progress)

    def finish(self, config: CorpusConfig, *, tables: bool | None = None, **more: Any) -> dict[str, Any]:
        """Writes the manifest, with `more` keys, the dataset card and the Delta tables, which `tables` switches on or
        off, unless they exist and nothing has changed; returns the manifest."""
        stages = json.loads(json.dumps([record.to_json() for record in self.records.values()]))
        found = find_manifest(self._layout)
        resolved = to_dict(config)
        has_tables = delta.wants(self._layout, tables)
        is_same = not self._num_run and not self._folder.is_open and self._has_card() and self._has_tables(has_tables)
        if is_same and found is not None and _is_of(found, stages, resolved):
            return found
        self._folder.claim("its manifest has to be written")
        self._folder.remove_later()
        manifest = {
            "version": MANIFEST_VERSION,
            "name": config.name,
            "config": resolved,
            "config_hash": fingerprint(resolved),
            "finpile": __version__,
            "python": platform.python_version(),
            "packages": {name: version(name) for name in _PACKAGES},
            "stages": stages,
            **more,
        }
        manifest = write_card(self._layout, manifest)
        if has_tables:
            delta.extend(self._layout, manifest)
        else:
            delta.end(self._layout)
        manifest = write_manifest(self._layout.manifest, manifest)
        self._folder.end()
        return manifest

    def _has_tables(self, are_wanted: bool) -> bool:
        """Whether OUT has the tables that it is to have."""
        return delta.are_there(self._layout, BUILD) if are_wanted else not storage.exists(self._layout.delta)

    def _has_card(self) -> bool:
        return all(storage.is_file(storage.join(self._layout.root, path)) for path in CARD_FILES)


def _is_of(manifest: Mapping[str, Any], stages: Sequence[Any], config: Mapping[str, Any]) -> bool:
    is_read = manifest["version"] == MANIFEST_VERSION and manifest["stages"] == stages
    return is_read and _kinds(manifest["config"]) == _kinds(config)


def _kinds(config: Mapping[str, Any]) -> list[str | None]:
    """The kinds of the sources of a corpus file, which no stage reads."""
    return [source.get("kind") for source in config["sources"]]


def run_stages(
    layout: Layout,
    folder: OutFolder,
    config: CorpusConfig,
    stages: Iterable[Stage],
    engine: Engine,
    listen: Listener,
    run: Callable[[StageRunner, Engine], T],
) -> T:
    """Calls `run` with a runner of the stages, whose kernels are compiled meanwhile; again if files are damaged."""
    groups = [group for stage in stages if not engine.runs_jobs for group in stage.kernels(config)]
    with kernels.Compilation(groups, engine.num_workers) as compilation:
        runner = StageRunner(layout, folder, listen, engine.watch, compilation.start)
        while True:
            try:
                return run(runner, replace(engine, watch=runner.watch))
            except StageDamagedError as damage:
                runner.forget(damage)


def _mark(stage: str, settings: Sequence[Any] | None, before: Sequence[str]) -> str:
    """The fingerprint of a stage's outcome, from its settings and the fingerprint of the stage before it."""
    return fingerprint(__version__, stage, [None] if settings is None else settings, list(before))


def cpu_seconds() -> float:
    """Of this process, of the local workers that have ended, and of the workers of jobs."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime + workers_cpu_seconds() + USED.cpu_seconds
