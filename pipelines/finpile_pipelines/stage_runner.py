"""Runs the stages of a build, each once: finds what an earlier run finished, checks it, and writes the records."""

from __future__ import annotations

import json
import platform
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import psutil

from finpile import (
    stage_record,
    storage,
)
from finpile.config import CorpusConfig, to_dict
from finpile.layout import (
    STAGES,
    Layout,
)
from finpile.manifest import CHECKSUM, checksum_of, write_manifest
from finpile.stage_record import (
    FileRecord,
    StageRecord,
    fingerprint,
)
from finpile.version import __version__
from finpile_pipelines.out_folder import OutFolder
from finpile_pipelines.progress import Progress, Watch
from finpile_pipelines.runner.local import preload, workers_cpu_seconds

MANIFEST_VERSION = 1
_PACKAGES = ("apache-beam", "pyarrow", "numba", "numpy", "resiliparse", "zstandard", "rapidfuzz")
#: Packages whose kernels the tasks of a stage run.
_KERNELS = {
    **dict.fromkeys(("near", "substring", "overlap", "contamination"), "finpile.dedup"),
    **dict.fromkeys(("tokenizer", "tokens"), "finpile_tokenizer"),
}


@dataclass(frozen=True, slots=True)
class StageEvent:
    """Passed to the caller's listener as a build goes on."""

    stage: str
    state: str
    """`running`, `done` (now), `found` (finished by an earlier run) or `damaged` (found, and to run again); `accepted`,
    of no stage, once the corpus file, the inputs and the output folder are found good."""
    record: StageRecord | None = None
    detail: str = ""
    """What is damaged."""


Listener = Callable[[StageEvent], None]


class StageDamagedError(Exception):
    """Files of a finished stage are missing or damaged, and the stage has to run again."""

    def __init__(self, stage: str, what: str) -> None:
        super().__init__(what)
        self.stage = stage


class StageRunner:
    """The stages of one run, in their order."""

    def __init__(
        self, layout: Layout, folder: OutFolder, stages: Sequence[str], listen: Listener, watch: Watch | None
    ) -> None:
        self._layout = layout
        self._folder = folder
        self._stages = stages
        self._listen = listen
        self._watch = watch
        self._peak = 0
        self._num_run = 0
        self._reported: set[str] = set()
        self._are_checked = False
        self.records: dict[str, StageRecord] = {}
        """Of the stages so far."""

    def run(
        self, stage: str, settings: Any, work: Callable[[], tuple[Mapping[str, Any], Sequence[FileRecord]]]
    ) -> None:
        """Runs a stage, or finds it done; nothing where it is not one of this run's."""
        if stage not in self._stages:
            return
        before = [self.records[name].fingerprint for name in STAGES[: STAGES.index(stage)][-1:]]
        mark = fingerprint(__version__, stage, settings, before)

        def run() -> StageRecord:
            self._listen(StageEvent(stage, "running"))
            if stage in _KERNELS and settings != [None]:
                preload(_KERNELS[stage])
            self._peak = psutil.Process().memory_info().rss
            wall, cpu = time.monotonic(), _cpu_seconds()
            counts, files = work()
            storage.remove_tree(storage.join(self._layout.work(stage), "scratch"))
            return StageRecord(
                stage=stage,
                fingerprint=mark,
                files=tuple(sorted(files, key=lambda file: file.path)),
                counts=counts,
                wall_seconds=round(time.monotonic() - wall, 3),
                cpu_seconds=round(_cpu_seconds() - cpu, 3),
                peak_memory_bytes=self._peak,
            )

        self._prepare(stage, mark)
        record, ran = stage_record.run_once(self._layout.work(stage), mark, run, self._layout.published(stage))
        self.records[stage] = record
        self._num_run += ran
        if ran or stage not in self._reported:
            self._listen(StageEvent(stage, "done" if ran else "found", record))
        self._reported.add(stage)

    def _prepare(self, stage: str, mark: str) -> None:
        """Checks what the stage left, or, where it is to run, what all stages before it left.

        Raises: ConfigError where OUT may not be changed.
        """
        done = stage_record.load_stage(self._layout.work(stage))
        if done is not None and done.fingerprint == mark:
            if missing := stage_record.find_missing(self._layout.root, done):
                raise StageDamagedError(stage, missing)
            return
        self._folder.begin(stage)
        for found, record in self.records.items() if not self._are_checked else ():
            if damage := stage_record.find_stage_damage(self._layout.root, self._layout.work(found), record):
                raise StageDamagedError(found, damage)
        self._are_checked = True

    def forget(self, damage: StageDamagedError) -> None:
        """Has a damaged stage run again; all stages are then to be gone through once more, from the first.

        Raises: ConfigError where OUT may not be changed.
        """
        self._folder.claim(str(damage))
        self._listen(StageEvent(damage.stage, "damaged", detail=str(damage)))
        storage.remove_tree(self._layout.work(damage.stage))
        self.records.clear()

    def watch(self, label: str, progress: Progress) -> None:
        """Remembers the peak of memory, and passes the progress on."""
        self._peak = max(self._peak, progress.memory_bytes)
        if self._watch is not None:
            self._watch(label, progress)

    def finish(self, config: CorpusConfig) -> dict[str, Any]:
        """Writes the manifest, unless it is there and nothing has changed; returns it."""
        stages = json.loads(json.dumps([self.records[stage].to_json() for stage in self._stages]))
        found = _read_manifest(self._layout)
        if not self._num_run and not self._folder.is_open and found is not None and found["stages"] == stages:
            return found
        self._folder.claim("its manifest has to be written")
        resolved = to_dict(config)
        manifest = {
            "version": MANIFEST_VERSION,
            "name": config.name,
            "config": resolved,
            "config_hash": fingerprint(resolved),
            "finpile": __version__,
            "python": platform.python_version(),
            "packages": {name: version(name) for name in _PACKAGES},
            "stages": stages,
        }
        manifest = write_manifest(self._layout, manifest)
        self._folder.end()
        return manifest


def _cpu_seconds() -> float:
    """Of this process and the workers that have ended."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime + workers_cpu_seconds()


def _read_manifest(layout: Layout) -> dict[str, Any] | None:
    """The manifest; None where there is none, or it is damaged."""
    try:
        found = storage.read_json(layout.manifest)
    except (FileNotFoundError, ValueError):
        return None
    is_whole = isinstance(found, dict) and "stages" in found and found.get(CHECKSUM) == checksum_of(found)
    return found if is_whole else None
