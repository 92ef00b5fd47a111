"""`finpile build`: the stages in their order, each run once, each leaving a record that the next run finds.

    ingest -> clean -> exact -> near -> substring -> overlap -> contamination -> split -> tokenizer -> tokens
        -> reports

A stage's fingerprint covers its own settings and, through the fingerprint before it, all that it was made from. A
changed setting therefore re-runs the first stage that it touches and those after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from finpile import stage_record, storage
from finpile.config import CorpusConfig, SourceConfig, to_dict
from finpile.errors import ConfigError, RunError
from finpile.layout import (
    DEDUP_STAGES,
    LEDGER_STAGES,
    STAGES,
    Layout,
)
from finpile.lock import hold
from finpile.report import records as reports
from finpile.sources.base import InputFile
from finpile.stage_record import FileRecord
from finpile.timestamps import Order
from finpile.tokens.tokenizer_files import tokenizer_checksum
from finpile_pipelines import tokens
from finpile_pipelines.corpus import (
    clean,
    ingest,
    split,
)
from finpile_pipelines.dedup import (
    contamination,
    duplicate_chains,
    exact,
    near,
    overlap,
    substring,
)
from finpile_pipelines.dedup.contamination import EvaluationSets
from finpile_pipelines.dedup.removals import NOT_CONFIGURED
from finpile_pipelines.out_folder import OutFolder, check_kind, check_later_stages, forget_stages
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.local import preload
from finpile_pipelines.shard_refs import (
    SHARD_BYTES,
    ShardRef,
    shard_refs,
)
from finpile_pipelines.stage_runner import (
    Listener,
    StageDamagedError,
    StageEvent,
    StageRunner,
)
from finpile_pipelines.unigram import tokenizer

#: Publishes documents and ledger: the earliest stage that a build may end with.
DEDUPLICATED = "split"
#: MinHash values of a text that take about as long as one reading of it.
_LIGHT_HASHES = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """How work is cut. None of these shows in what is written, but for the number of published files."""

    shard_bytes: int = SHARD_BYTES
    part_bytes: int = split.PART_BYTES
    worker_bytes: int = 0
    """Text that is worth one more local process where a stage does little to each byte; 0: processes, always."""


def build(
    config: CorpusConfig,
    out: str,
    engine: Engine,
    *,
    fresh: bool = False,
    replace: bool = False,
    sizes: Sizes | None = None,
    listen: Listener = lambda event: None,
    until: str = STAGES[-1],
) -> dict[str, Any]:
    """Builds, or goes on building, the corpus in the folder `out`; returns the manifest, which lists the stages run.

    `until` is the last stage to run: `split`, after which documents and ledger are published, or a later one. Another
    build in `out` is overwritten only with `replace`.

    Raises: ConfigError or InputError before anything is written, RunError where a stage failed.
    """
    preload(__name__)
    layout = Layout(out)
    inputs, sets = ingest.find_inputs(config), contamination.read_sets(config)
    stages = _stages_until(until)
    check_kind(layout)
    if not fresh and not replace:
        check_later_stages(layout, stages)
    with hold(layout, "build") as is_writable:
        folder = OutFolder(layout, config, stages, replace=replace, is_writable=is_writable)
        folder.check_name()
        if fresh:
            folder.claim("--fresh runs every stage again")
            forget_stages(layout)
        return _Build(config, layout, folder, engine, sizes or Sizes(), listen, stages).run(inputs, sets)


class _Build:
    """One run over its stages."""

    def __init__(
        self,
        config: CorpusConfig,
        layout: Layout,
        folder: OutFolder,
        engine: Engine,
        sizes: Sizes,
        listen: Listener,
        stages: tuple[str, ...],
    ) -> None:
        self._config = config
        self._layout = layout
        self._sizes = sizes
        self._listen = listen
        self._runner = StageRunner(layout, folder, stages, listen, engine.watch)
        self._engine = replace(engine, watch=self._runner.watch)
        self._records = self._runner.records
        self._orders: list[Order | None] = []
        self._is_accepted = False

    def run(self, inputs: Sequence[Sequence[InputFile]], sets: EvaluationSets | None) -> dict[str, Any]:
        while True:
            try:
                self._run_stages(inputs, sets)
                return self._runner.finish(self._config)
            except StageDamagedError as damage:
                self._runner.forget(damage)

    def _run_stages(self, inputs: Sequence[Sequence[InputFile]], sets: EvaluationSets | None) -> None:
        config = self._config
        reading = [_without_cleaning(source) for source in config.sources]
        files = [[(file.locator, file.size_bytes, file.version) for file in some] for some in inputs]
        cutting = substring.settings(config)
        if not self._is_accepted:  # once, although the stages may be gone through again
            self._is_accepted = True
            self._listen(StageEvent("", "accepted"))
        self._runner.run("ingest", [reading, files, self._sizes.shard_bytes], lambda: self._ingest(inputs))
        self._orders = ingest.decide_orders(config, self._records["ingest"].counts["evidence"])
        self._runner.run("clean", clean.settings(config), self._clean)
        self._runner.run("exact", [config.dedup.exact, config.dedup.exact_fold, config.dedup.scope], self._exact)
        self._runner.run("near", [to_dict(config.dedup.near)], self._near)
        self._runner.run("substring", cutting, self._substring)
        heldout = to_dict(config.heldout)
        self._runner.run("overlap", [heldout if config.heldout.overlap else None], self._overlap)
        self._runner.run("contamination", contamination.settings(config, sets), lambda: self._contamination(sets))
        self._runner.run("split", [heldout, self._sizes.part_bytes], self._split)
        self._runner.run("tokenizer", [to_dict(config.tokenizer)], self._tokenizer)
        self._runner.run("tokens", [to_dict(config.tokens)], self._tokens)
        self._runner.run("reports", [config.name, to_dict(config.report)], self._reports)

    def _ingest(self, inputs: Sequence[Sequence[InputFile]]) -> tuple[Mapping[str, Any], Sequence[FileRecord]]:
        tasks = ingest.plan(self._config, inputs, self._sizes.shard_bytes)
        engine = self._sized(sum(file.size_bytes for task in tasks for file in task.files), len(tasks))
        folder = self._layout.work("ingest")
        counts = ingest.run(engine, tasks, folder, self._sizes.shard_bytes)
        return counts, [ingest.publish_accounts(tasks, folder, self._layout)]

    def _clean(self) -> tuple[Mapping[str, Any], Sequence[FileRecord]]:
        before, folder = self._layout.work("ingest"), self._layout.work("clean")
        engine = self._sized(self._text_bytes("ingest"))
        return clean.run(engine, self._config, self._orders, self._refs(), before, folder), ()

    def _exact(self) -> tuple[Mapping[str, Any], Sequence[FileRecord]]:
        if not self._config.dedup.exact:
            return dict(NOT_CONFIGURED), ()
        engine, folders = self._sized(self._text_bytes("clean")), map(self._layout.work, ("clean", "exact"))
        return exact.run_exact(engine, self._config, self._refs(), *folders), ()

    def _near(self) -> tuple[Mapping[str, Any], Sequence[FileRecord]]:
        clean_folder, folder = self._layout.work("clean"), self._layout.work("near")
        asked = self._config.dedup.near
        hashes = asked.bands * asked.rows if asked else 1
        engine = self._sized(self._text_bytes("clean") * -(-hashes // _LIGHT_HASHES))
        return near.run_near(engine, self._config, self._refs(), clean_folder, self._decided("near"), folder), ()

    def _substring(self) -> tuple[Mapping[str, Any], Sequence[FileRecord]]:
        clean_folder, folder = self._layout.work("clean"), self._layout.work("substring")
        found, engine = self._decided("substring"), self._sized(self._text_bytes("clean"))
        return substring.run_substring(engine, self._config, self._refs(), clean_folder, found, folder), ()

    def _overlap(self) -> tuple[Mapping[str, Any], Sequence[FileRecord]]:
        clean_folder, folder = self._layout.work("clean"), self._layout.work("overlap")
        found = self._decided("overlap")
        return overlap.run_overlap(self._engine, self._config, self._refs(), clean_folder, found, folder), ()

    def _contamination(self, sets: EvaluationSets | None) -> tuple[Mapping[str, Any], Sequence[FileRecord]]:
        clean_folder, folder = self._layout.work("clean"), self._layout.work("contamination")
        found = self._decided("contamination")
        engine = self._sized(self._text_bytes("clean"))
        return contamination.run_contamination(
            engine, self._config, self._refs(), sets, clean_folder, found, folder
        ), ()

    def _split(self) -> tuple[Mapping[str, Any], Sequence[FileRecord]]:
        refs, folder = self._refs(), self._layout.work("split")
        engine = self._sized(self._text_bytes("clean"))
        num_removals = sum(self._records[stage].counts["removed"] for stage in DEDUP_STAGES)
        resolving, publishing = engine.parts(1, 9)
        duplicate_chains.run_resolve(resolving, refs, self._decided("split"), folder, num_removals)
        cleaned = self._records["clean"].counts["sources"]
        document_bytes = {(row["dataset"], row["source"]): row["text_bytes"] for row in cleaned}
        total = sum(document_bytes.values())
        parts = split.plan_parts(document_bytes, self._ledger_bytes(total), self._sizes.part_bytes)
        outcomes = split.run(publishing, self._config, refs, parts, self._layout, folder, self._cut_folder())
        documents = [outcome for outcome in outcomes if "stage" not in outcome]
        if not documents:
            raise RunError("no document is left after cleaning and deduplication: see the reasons in removed/")
        ledger = [outcome for outcome in outcomes if "stage" in outcome]
        return {"documents": documents, "ledger": ledger}, [_record(outcome) for outcome in outcomes]

    def _tokenizer(self) -> tuple[Mapping[str, Any], Sequence[FileRecord]]:
        config, folder = self._config.tokenizer, self._layout.work("tokenizer")
        training = tokenizer.run(self._engine, config, self._documents(), self._layout, folder)
        counts = {key: value for key, value in training.items() if key != "chunks"}
        told = {"chunks": len(training["chunks"]), "checksum": tokenizer_checksum(self._layout)}
        return {**counts, **told}, self._published("tokenizer")

    def _tokens(self) -> tuple[Mapping[str, Any], Sequence[FileRecord]]:
        length = self._config.tokens.sequence_length
        counts = tokens.run(self._engine, self._documents(), length, self._layout, self._layout.work("tokens"))
        files = [_record(outcome) for outcome in counts.pop("files")]
        return counts, files

    def _reports(self) -> tuple[Mapping[str, Any], Sequence[FileRecord]]:
        stages = [record.to_json() for record in self._records.values()]
        told = {"name": self._config.name, "config": to_dict(self._config), "stages": stages}
        reports.write_from_manifest(self._layout, told)
        return {}, reports.report_files(self._layout)

    def _decided(self, stage: str) -> list[str]:
        """Where the stages before this one left their decisions on documents, in order."""
        folders: list[str] = []
        for earlier in DEDUP_STAGES[: DEDUP_STAGES.index(stage) if stage in DEDUP_STAGES else None]:
            if earlier == "substring":
                folders += substring.removal_folders(self._layout.work(earlier), self._records[earlier].counts)
            elif earlier == "overlap":
                folders += overlap.result_folders(self._layout.work(earlier))
            else:
                folders.append(self._layout.work(earlier))
        return folders

    def _cut_folder(self) -> str:
        return substring.span_folder(self._layout.work("substring"), self._records["substring"].counts)

    def _text_bytes(self, stage: str) -> int:
        return sum(row["text_bytes"] for row in self._records[stage].counts["sources"])

    def _sized(self, size_bytes: int, num_tasks: int | None = None) -> Engine:
        """The engine with the processes that the bytes and the tasks keep busy, or with threads where these are few."""
        engine, least = self._engine, self._sizes.worker_bytes
        if engine.runner != "local" or not least:
            return engine
        busy = engine.num_workers if num_tasks is None else min(engine.num_workers, num_tasks)
        worth = min(busy, size_bytes // least)
        if worth > _THREADS_DO:
            return replace(engine, num_workers=worth)
        return replace(engine, num_workers=max(1, busy), threads=True)

    def _refs(self) -> list[ShardRef]:
        return shard_refs(storage.read_json(storage.join(self._layout.work("ingest"), "tasks.json")))

    def _documents(self) -> list[Mapping[str, Any]]:
        return list(self._records["split"].counts["documents"])

    def _ledger_bytes(self, total_bytes: int) -> dict[str, int]:
        """About what the ledger holds of each stage; where a stage does not say, what dedup seldom exceeds."""
        sizes = dict.fromkeys(LEDGER_STAGES, total_bytes // 8)
        for stage in ("ingest", "clean"):
            sizes[stage] = sum(row["removed_bytes"] for row in self._records[stage].counts["sources"])
        sizes["substring"] = sum(self._records["substring"].counts.get("cut_bytes", ()))
        return sizes

    def _published(self, stage: str) -> list[FileRecord]:
        (folder,) = self._layout.published(stage)
        return [stage_record.file_record(self._layout.root, f"{stage}/{name}") for name in storage.list_files(folder)]


#: So many processes at most, and threads are as fast: kernels, Arrow and compression run without Python's lock.
_THREADS_DO = 2


def _without_cleaning(source: SourceConfig) -> dict[str, Any]:
    """What ingest depends on: a `date_format` that is added after its error does not read the inputs again."""
    return {key: value for key, value in to_dict(source).items() if key not in ("clean", "date_format")}


def _record(outcome: Mapping[str, Any]) -> FileRecord:
    return FileRecord(
        path=outcome["path"], size_bytes=outcome["size_bytes"], checksum=outcome["checksum"], num_rows=outcome["rows"]
    )


def _stages_until(last: str) -> tuple[str, ...]:
    least = STAGES.index(DEDUPLICATED)
    if last not in STAGES[least:]:
        raise ConfigError(f"a build cannot end with {last!r}: expected one of {', '.join(STAGES[least:])}")
    return STAGES[: STAGES.index(last) + 1]
