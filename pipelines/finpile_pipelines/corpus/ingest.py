"""Ingest: every input file is read once, into shards of raw documents and ledger rows for what could not be read.

What became of each file's bytes is published as `inputs/`, so that `finpile verify` can check that none is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from finpile import storage
from finpile.config import CorpusConfig, SourceConfig, to_dict
from finpile.documents.document import label_of
from finpile.documents.ledger import Removal, count_reasons, ledger_table
from finpile.documents.sums import add_counts
from finpile.errors import RunError, count_of
from finpile.output import stage_record
from finpile.output.layout import INPUTS_PART, Layout
from finpile.output.stage_record import FileRecord
from finpile.output.work_folder import WorkFolder
from finpile.sources.readers.accounting import ACCOUNT_SCHEMA, SUMS, Account, account_batch, whole_accounts
from finpile.sources.readers.finding import InputFile, list_sources
from finpile.sources.readers.multistream import in_ranges
from finpile.sources.readers.reading import read_file
from finpile.sources.readers.record_evidence import evidence_by_entry
from finpile.storage.sizes import SHARD_BYTES, shard_bytes_of, task_bytes_of
from finpile_pipelines import graph
from finpile_pipelines.corpus.clean import clean_after, orders_of
from finpile_pipelines.corpus.raw_shards import RowShards, ShardWriter, writing
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import report_part, report_reading
from finpile_pipelines.stage import Context, Outcome, Stage, Work, removed_bytes

#: In the stage's folder: the locator, bytes and version of each file, by source entry.
FILES = "files.json"
#: Rows of the ledger that a task holds before it writes them, and the bytes of their texts.
_LEDGER_ROWS = 1 << 16
_LEDGER_BYTES = 64 << 20
#: Share of reading in the work of a pipeline that also cleans; affects the shown progress only.
_READING = 0.6


@dataclass(frozen=True, slots=True)
class IngestTask:
    """Input files of one source entry, together about a shard's worth."""

    index: int
    entry: int
    source: SourceConfig
    files: tuple[InputFile, ...]

    @property
    def size_bytes(self) -> int:
        """Of the files as they are stored (compressed)."""
        return sum(file.span_bytes for file in self.files)


def find_inputs(config: CorpusConfig) -> list[list[InputFile]]:
    """The input files of each source entry; of a large multistream dump with an index, its ranges.

    Raises: InputError where a pattern matches nothing, or sources of one name would read a file twice.
    """
    return [
        [part for file in files for part in in_ranges(file, source)]
        for source, files in zip(config.sources, list_sources(config), strict=True)
    ]


def plan(
    config: CorpusConfig, inputs: Sequence[Sequence[InputFile]], task_bytes: int = SHARD_BYTES
) -> list[IngestTask]:
    """Groups small files of a source into one task; a task is never more than one file beyond `task_bytes`.

    Tasks of a small source are smaller, so that workers share it. The plan depends on sizes alone.
    """
    tasks: list[IngestTask] = []
    for entry, (source, files) in enumerate(zip(config.sources, inputs, strict=True)):
        group: list[InputFile] = []
        size_bytes = 0
        enough_bytes = task_bytes_of(sum(file.span_bytes for file in files), task_bytes)
        for file in files:
            group.append(file)
            size_bytes += file.span_bytes
            if size_bytes >= enough_bytes:
                tasks.append(IngestTask(len(tasks), entry, source, tuple(group)))
                group, size_bytes = [], 0
        if group:
            tasks.append(IngestTask(len(tasks), entry, source, tuple(group)))
    return tasks


def ingest_task(task: IngestTask, folder: WorkFolder, shard_bytes: int = SHARD_BYTES) -> list[dict[str, Any]]:
    """Reads a task's files into `folder/documents` and `folder/removed`; returns what it did.

    The first outcome is that of the files; of a source with several rows, the documents of each follow.
    """
    writer = ShardWriter(task.index, task.source, folder, shard_bytes)
    accounts, ledger = _Accounts(), _LedgerWriter(task, folder)
    for item in _read_all(task, accounts):
        if isinstance(item, Removal):
            ledger.append(item)
        else:
            writer.append(item)
    writer.close()
    ledger.close()
    with writing(folder.numbered("accounts", task.index)) as file:
        storage.write_parquet(file, accounts.table())
    whole = {
        **_row_outcome(task, None, writer.of(None)),
        "files": sum(file.is_first for file in task.files),
        "input_bytes": task.size_bytes,
        "removed": ledger.reasons,
        "removed_bytes": ledger.removed_bytes,
        **accounts.sums,
        "evidence": writer.evidence.to_json(),
    }
    return [whole, *(_row_outcome(task, name, row) for name, row in writer.rows.items() if name is not None)]


def _row_outcome(task: IngestTask, name: str | None, row: RowShards) -> dict[str, Any]:
    """The documents and shards of one row; files and bytes of the input are counted once, for all rows."""
    source = task.source.of_row(name)
    return {
        "dataset": source.dataset,
        "source": source.label,
        "entry": task.entry,
        "row": name,
        "files": 0,
        "input_bytes": 0,
        "documents": row.num_documents,
        "text_bytes": row.text_bytes,
        "removed": {},
        "removed_bytes": 0,
        **_Accounts().sums,
        "shards": row.names,
        "evidence": None,
    }


def publish_accounts(tasks: Sequence[IngestTask], folder: WorkFolder, layout: Layout) -> FileRecord:
    """Writes the accounts of all inputs, in the order of sources and files, into one file."""
    read = (storage.read_parquet(folder.numbered("accounts", task.index)) for task in tasks)
    tables = whole_accounts(read, {file.locator for task in tasks for file in task.files if file.span})
    url = storage.join(layout.root, INPUTS_PART)
    num_rows = storage.write_parquet_rows(url, ACCOUNT_SCHEMA, tables)
    return stage_record.file_record(layout.root, INPUTS_PART, num_rows)


def settings(context: Context) -> list[Any]:
    """The settings and files on which the stage's outcome depends.

    A `date_format` that is added after its error does not read the inputs again.
    """
    later = ("clean", "date_format", "kind", "max_removed", "sub_source", "template_group")
    sources = [
        {key: value for key, value in to_dict(source).items() if key not in later} for source in context.config.sources
    ]
    files = [[_identity(file) for file in some if file.is_first] for some in context.prepared["ingest"]]
    return [sources, files, _shard_bytes(context)]


def _identity(file: InputFile) -> list[Any]:
    """What tells a file from another one; the ranges of a file give what the file gives."""
    known = [file.locator, file.size_bytes, file.version]
    return [*known, file.index_defect] if file.index_defect else known


def _files_read(files: Iterable[InputFile]) -> list[tuple[str, int, str]]:
    return [(file.locator, file.size_bytes, file.version) for file in files if file.is_first]


def _shard_bytes(context: Context) -> int:
    if context.sizes.shard_bytes is not None:
        return context.sizes.shard_bytes
    return shard_bytes_of(sum(file.span_bytes for files in context.prepared["ingest"] for file in files))


def _tasks(context: Context) -> list[IngestTask]:
    return plan(context.config, context.prepared["ingest"], _shard_bytes(context))


def work(context: Context) -> Work:
    """The bytes of all files, and the tasks that they are grouped to."""
    tasks = _tasks(context)
    return Work(size_bytes=sum(task.size_bytes for task in tasks), num_tasks=len(tasks))


def run(context: Context) -> Outcome:
    """Reads all inputs, and publishes their accounts. The counts are by source.

    If `clean` may run ahead, the same pipeline cleans the shards, in a second pass.

    Raises: RunError if no document of a source could be read.
    """
    outcome = read(context)
    _check_read(storage.read_json(context.folder.file("tasks.json")), outcome.counts["sources"])
    return outcome


def read(context: Context) -> Outcome:
    """As `run`, and accepts sources without a document."""
    tasks, folder, shard_bytes = _tasks(context), context.folder, _shard_bytes(context)
    results = folder.file("tasks.json")
    config, clean_folder, runs_clean = context.config, context.clean_folder, bool(context.next_mark)
    share, summary = (_READING, partial(orders_of, config)) if runs_clean else (1.0, len)

    def construct(pipeline: graph.Pipeline) -> None:
        read = (
            pipeline
            | Tasks(tasks, share, [task.size_bytes for task in tasks])
            | "Ingest" >> graph.FlatMap(ingest_task, folder, shard_bytes)
            | Gather(results, summary)
        )
        if runs_clean:
            clean_after(read, config, folder, clean_folder, 1.0 - share)

    context.engine.run("ingest", construct)
    storage.write_json(folder.file(FILES), list(map(_files_read, context.prepared["ingest"])))
    counts = _counts(storage.read_json(results))
    return Outcome(counts=counts, files=[publish_accounts(tasks, folder, context.layout)])


def _counts(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    counted = [
        {key: outcome[key] for key in outcome if key not in ("entry", "row", "shards", "evidence")}
        for outcome in outcomes
    ]
    return {"sources": add_counts(counted, ("dataset", "source")), "evidence": evidence_by_entry(outcomes)}


def _check_read(outcomes: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> None:
    """Raises: RunError if no document of a source could be read; a row that records choose may be empty."""
    split = {(outcome["dataset"], outcome["entry"]) for outcome in outcomes if outcome["row"] is not None}
    has_rows = {label_of(outcome) for outcome in outcomes if (outcome["dataset"], outcome["entry"]) in split}
    for row in rows:
        if row["documents"] == 0 and label_of(row) not in has_rows:
            reasons = ", ".join(f"{reason} {count}" for reason, count in row["removed"].items()) or "no records"
            raise RunError(
                f"source {row['source']!r} ({row['dataset']}): not one document could be read from "
                f"{count_of(row['files'], 'file')} ({reasons}); check its `format`, `fields` and `members`"
            )


def _read_all(task: IngestTask, accounts: _Accounts) -> Iterator[Any]:
    total, before = max(1, task.size_bytes), 0

    def reached(position: int) -> None:
        report_part((before + position) / total)

    for file in task.files:
        report_reading(file.locator)
        yield from read_file(file, task.source, accounts.add, reached)
        before += file.span_bytes


class _Accounts:
    """The accounts of a task's inputs, as rows and as sums."""

    def __init__(self) -> None:
        self._accounts: list[Account] = []
        self._batches: list[pa.RecordBatch] = []
        self.sums: dict[str, Any] = {**dict.fromkeys(SUMS, 0), "structure": {}}

    def add(self, account: Account) -> None:
        self._accounts.append(account)
        if len(self._accounts) >= storage.ROW_GROUP_ROWS:
            self._flush()
        [self.sums] = add_counts([self.sums, {name: getattr(account, name) for name in SUMS}], ())

    def table(self) -> pa.Table:
        """Rows of `ACCOUNT_SCHEMA`."""
        self._flush()
        return pa.Table.from_batches(self._batches, ACCOUNT_SCHEMA)

    def _flush(self) -> None:
        self._batches.append(account_batch(self._accounts))
        self._accounts = []


class _LedgerWriter:
    """Writes a task's rows of the ledger, a file as often as their texts have `_LEDGER_BYTES`."""

    def __init__(self, task: IngestTask, folder: WorkFolder) -> None:
        self._task = task
        self._folder = folder
        self._rows: list[Removal] = []
        self._held_bytes = 0
        self._num_files = 0
        self.reasons: Counter[str] = Counter()
        self.removed_bytes = 0

    def append(self, row: Removal) -> None:
        self._rows.append(row)
        self._held_bytes += len(row.removed_text)
        if self._held_bytes >= _LEDGER_BYTES or len(self._rows) >= _LEDGER_ROWS:
            self._flush()

    def close(self) -> None:
        if self._rows:
            self._flush()

    def _flush(self) -> None:
        name = f"{self._task.index:06d}-{self._num_files:04d}.parquet"
        with writing(self._folder.file("removed", name)) as file:
            storage.write_parquet(file, ledger_table(self._rows))
        self.reasons.update(count_reasons(self._rows))
        self.removed_bytes += self._held_bytes
        self._num_files += 1
        self._rows, self._held_bytes = [], 0


STAGE = Stage(
    name="ingest",
    settings=settings,
    run=run,
    prepare=find_inputs,
    work=work,
    may_run="clean",
    ledger_bytes=removed_bytes,
)
