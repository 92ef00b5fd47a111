"""A stage of a build: the object that each stage module defines as `STAGE`, and the context that it runs in."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from finpile import storage
from finpile.config import CorpusConfig
from finpile.output.layout import Layout
from finpile.output.stage_record import FileRecord, StageRecord, run_folder
from finpile.output.work_folder import WorkFolder
from finpile.plugins.stages import StageInfo, find
from finpile.storage.sizes import PART_BYTES
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import FinishedFolder, ShardRef, finished_folders, shard_refs

#: Workers of a stage that releases Python's lock that are threads: they are as fast as processes. Of other stages, more
#: workers are threads unless more processes than these have enough to do.
_THREADS_DO = 2
#: Corpora below this size run in this process: to start workers would take longer than they save.
SMALL_BYTES = 4 << 20
#: Candidate pairs up to which one task connects them, which takes up to about 100 bytes a pair.
PAIRS_IN_MEMORY = 4_000_000
#: Shards up to which the launcher, or one task, does small work by itself.
SHARDS_IN_MEMORY = 64
#: Environment variables that replace the three; tests set them to 0.
SMALL_VARIABLE, PAIRS_VARIABLE, SHARDS_VARIABLE = (
    "FINPILE_SMALL_BYTES",
    "FINPILE_PAIRS_IN_MEMORY",
    "FINPILE_SHARDS_IN_MEMORY",
)
#: Part of the text that rows of a stage seldom exceed in the ledger.
_LEDGER_PART = 8


def _from_environment(variable: str, otherwise: int) -> Any:
    return field(default_factory=lambda: int(os.environ.get(variable, otherwise)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """How work is cut into tasks and files. Only `part_bytes` affects the output: the number of published files."""

    shard_bytes: int | None = None
    """Text bytes of a shard; None: by the bytes of the inputs (`finpile.storage.sizes.shard_bytes_of`)."""
    part_bytes: int = PART_BYTES
    worker_bytes: int = 0
    """Bytes that keep a local process busy long enough to be worth its start; 0: always all processes."""
    small_bytes: int = _from_environment(SMALL_VARIABLE, SMALL_BYTES)
    """Text bytes of a corpus, or bytes of its inputs, below which the local runner uses this process alone."""
    pairs_in_memory: int = _from_environment(PAIRS_VARIABLE, PAIRS_IN_MEMORY)
    """Candidate pairs of near duplicates up to which one task connects them; more are connected by star rounds."""
    shards_in_memory: int = _from_environment(SHARDS_VARIABLE, SHARDS_IN_MEMORY)
    """Shards up to which one task finds the members of groups, and the launcher redirects duplicates."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """The work of a stage, from which the number of its local processes follows."""

    size_bytes: int
    """Bytes of text, at the cost of one reading each."""
    num_tasks: int | None = None
    """Tasks that it consists of, if they are few; None: as many as are useful."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a stage returns."""

    counts: Mapping[str, Any] = field(default_factory=dict)
    """JSON-able; stored in the manifest. Those of a dedup stage include `removed`, the number of documents."""
    files: Sequence[FileRecord] = ()
    """Published files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What one stage of one build reads. It holds the engine, so it does not travel to workers: pass its parts."""

    info: StageInfo
    config: CorpusConfig
    layout: Layout
    engine: Engine
    """For `run`, sized by the stage's `work`."""
    sizes: Sizes
    prepared: Mapping[str, Any]
    """The results of the stages' `prepare`, by name."""
    stages: Mapping[str, Stage]
    """All stages of the build, by name, in order."""
    records: Mapping[str, StageRecord]
    """Of the stages before this one, by name, in order."""
    earlier_refs: tuple[ShardRef, ...] = ()
    """The clean shards of earlier snapshots, before those of this one."""
    snapshot: int = 0
    """The number of the snapshot that is made; 0 for a build."""
    whole: Layout | None = None
    """Of a corpus as of a day: the build that it is a part of."""
    mark: str = ""
    """The fingerprint of this run of the stage; `settings` and `check` are called without."""
    next_mark: str = ""
    """That of the stage that it `may_run`, if the pipeline of this stage has to do its work."""

    @property
    def folder(self) -> WorkFolder:
        """The folder of this run of the stage below `.work`. `scratch` in it is removed when the stage ends."""
        return self.folder_of(self.info.name)

    @property
    def input_folder(self) -> WorkFolder:
        """The shards that `ingest` wrote."""
        return self.folder_of("ingest")

    @property
    def clean_folder(self) -> WorkFolder:
        """The shards that `clean` wrote, or writes."""
        return self.folder_of("clean")

    def folder_of(self, stage: str) -> WorkFolder:
        """The files that this stage, one before it, or the one that it runs ahead left in `.work`."""
        mark = self.mark if stage == self.info.name else self.next_mark
        if stage in self.records:
            mark = self.records[stage].fingerprint
        return run_folder(self.layout.work(stage), mark)

    @property
    def refs(self) -> list[ShardRef]:
        """The shards in both folders, after those of earlier snapshots."""
        outcomes = storage.read_json(self.input_folder.file("tasks.json"))
        return [*self.earlier_refs, *shard_refs(outcomes, self.clean_folder, len(self.earlier_refs))]

    @property
    def removal_folders(self) -> dict[str, tuple[FinishedFolder, ...]]:
        """The folders in which each dedup stage before this one left removals and spans, by stage, in order."""
        return removal_folders(self.layout, self.records)

    @property
    def earlier_removals(self) -> tuple[FinishedFolder, ...]:
        """All `removal_folders`, in order."""
        return tuple(folder for folders in self.removal_folders.values() for folder in folders)

    def counts(self, stage: str) -> Mapping[str, Any]:
        """Those of an earlier stage."""
        return self.records[stage].counts

    def text_bytes(self, stage: str = "clean") -> int:
        """Bytes of the text that `ingest` or `clean` wrote."""
        return sum(row["text_bytes"] for row in self.counts(stage)["sources"])

    @property
    def documents(self) -> list[Mapping[str, Any]]:
        """The counts of each published file of documents, its `path` included."""
        return list(self.counts("split")["documents"])


def removal_folders(layout: Layout, records: Mapping[str, StageRecord]) -> dict[str, tuple[FinishedFolder, ...]]:
    """The folders in which finished dedup stages left removals and spans, by stage, in order."""
    return {
        name: finished_folders(run_folder(layout.work(name), record.fingerprint), [seal.path for seal in record.seals])
        for name, record in records.items()
        if find(name).is_dedup
    }


def all_processes(context: Context) -> None:
    """As a stage's `work`: it uses all processes of the engine, whatever the size of the corpus."""


def removed_bytes(counts: Mapping[str, Any], text_bytes: int) -> int:
    """As a stage's `ledger_bytes`: those that its counts by source have."""
    return sum(row["removed_bytes"] for row in counts["sources"])


def _cut_bytes(counts: Mapping[str, Any], text_bytes: int) -> int:
    """The bytes that a stage cut, or a part of the text for stages that remove whole documents."""
    cut = counts.get("cut_bytes", text_bytes // _LEDGER_PART)
    return cut if isinstance(cut, int) else sum(cut)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One stage. Its facts are in `finpile.plugins.stages`, under the same name."""

    name: str
    settings: Callable[[Context], Sequence[Any] | None]
    """JSON-able values on which the outcome depends, besides earlier stages: if they change, the stage runs again.
    None if the corpus file does not enable it. Called before the stage begins to write; may raise ConfigError or
    InputError. That of a stage which another one `may_run` reads no records of earlier stages."""
    run: Callable[[Context], Outcome]
    """Writes the stage's files. May be repeated after an interruption: names and bytes are then the same."""
    kernels: Callable[[CorpusConfig], Sequence[str]] = lambda config: ()
    """Groups of kernels that the stage calls under this corpus file: `module:function`, or `module` for its function
    `compile_kernels`. They are compiled while earlier stages run, and loaded before worker processes are forked."""
    check: Callable[[Context], object] = lambda context: None
    """Raises ConfigError or InputError for what earlier stages found, before the stage begins to write."""
    may_run: str = ""
    """The next stage, if the pipeline of this one can do its work: then both are one job of an engine on which jobs
    take minutes to start. `Context.next_mark` demands it. The next stage finds its files as an interrupted run of its
    own would leave them."""
    prepare: Callable[[CorpusConfig], Any] = lambda config: None
    """Reads and checks further inputs before anything is written; its result is in `Context.prepared`."""
    work: Callable[[Context], Work | None] = lambda context: Work(size_bytes=context.text_bytes())
    """For the number of local processes, by default by the clean text; None: all of them."""
    releases_lock: bool = False
    """Whether nearly all of its work is done without Python's lock. Then up to two local workers are threads, whatever
    the size of the corpus: they read a tokenizer once, and tables pass between them in memory."""
    ledger_bytes: Callable[[Mapping[str, Any], int], int] = _cut_bytes
    """About how many bytes its rows of the ledger have, from its counts and the bytes of clean text."""


def sized_engine(context: Context, work: Work | None, releases_lock: bool = False) -> Engine:
    """The engine with the processes that the work keeps busy, or with threads if these are few.

    A small corpus is processed by this process alone, whatever the number of workers.
    """
    engine, sizes = context.engine, context.sizes
    if engine.runs_jobs:
        return engine
    if _corpus_bytes(context, work) < sizes.small_bytes:
        return replace(engine, num_workers=1)
    if releases_lock and engine.num_workers <= _THREADS_DO:
        return replace(engine, threads=True)
    if work is None or not sizes.worker_bytes:
        return engine
    busy = engine.num_workers if work.num_tasks is None else min(engine.num_workers, work.num_tasks)
    # What takes long for each byte are kernels, which two threads run as fast as two processes.
    size_bytes = work.size_bytes if busy > _THREADS_DO else _corpus_bytes(context, work)
    worth = min(busy, size_bytes // sizes.worker_bytes)
    if worth > 1 and worth >= min(busy, _THREADS_DO + 1):
        return replace(engine, num_workers=worth)
    return replace(engine, num_workers=max(1, busy), threads=True)


def _corpus_bytes(context: Context, work: Work | None) -> int:
    """Bytes of clean text; before there is any the size of the work."""
    if "clean" in context.records:
        return context.text_bytes()
    return work.size_bytes if work is not None else sys.maxsize
