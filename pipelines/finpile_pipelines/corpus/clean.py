"""Clean: markup off, Unicode and white space in order, the source's filters, the document's date."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.clean import PAGE_GROUPS, Cleaned, clean_batch, filter_files, needs_kernels
from finpile.config import CorpusConfig, SourceConfig, to_dict
from finpile.documents.digest import add, digest_of_documents, to_hex
from finpile.documents.ledger import count_reasons, ledger_table
from finpile.documents.sums import add_counts
from finpile.errors import InputError
from finpile.filings.facts import fact_counts, flat_facts
from finpile.output.work_folder import WorkFile, WorkFolder
from finpile.plugins.filter import FILTERS
from finpile.sources.readers.record_evidence import decide_orders, evidence_by_entry
from finpile.timestamps import Order
from finpile_pipelines import graph
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After, Gather, Outcomes, PlannedTasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.shard_refs import ShardRef, shard_file, shard_refs, write_clean
from finpile_pipelines.stage import Context, Outcome, Stage, Work, removed_bytes

#: A shard, and the order of day, month and year in its source's dates.
CleanTask = tuple[ShardRef, Order | None]


def clean_task(
    ref: ShardRef, source: SourceConfig, input_folder: WorkFolder, order: Order | None, drop_undated: bool
) -> dict[str, Any]:
    """Cleans one shard of `input_folder` into `documents` and `removed` of the shard's folder; returns counts."""
    batches = [
        clean_batch(batch, source, order, drop_undated=drop_undated)
        for batch in storage.read_ipc(shard_file(input_folder, ref.name))
    ]
    kept = [cleaned.batch for cleaned in batches]
    removals = [removal for cleaned in batches for removal in cleaned.removals]
    write_clean(ref.file, kept)
    if removals:
        storage.write_parquet(ref.folder.file("removed", f"{ref.name}.parquet"), ledger_table(removals))
    num_documents = sum(batch.num_rows for batch in kept)
    text_bytes = sum(pc.sum(pc.binary_length(batch["text"])).as_py() or 0 for batch in kept)
    report_progress(num_documents, text_bytes)
    return {
        "dataset": source.dataset,
        "source": source.label,
        "documents": num_documents,
        "text_bytes": text_bytes,
        "removed": count_reasons(removals),
        "spans": sum(removal.start is not None and removal.start != removal.end for removal in removals),
        "removed_bytes": sum(len(removal.removed_text) for removal in removals),
        "undated": sum(cleaned.num_undated for cleaned in batches),
        "unreadable_dates": sum(cleaned.num_unreadable_dates for cleaned in batches),
        **(fact_counts(flat_facts(pa.Table.from_batches(kept))) if kept else {}),
        **_part_counts(batches),
        **sum((Counter(cleaned.table_counts) for cleaned in batches), Counter()),
        "digest": sum(map(digest_of_documents, kept)),
        "digest_before_filters": sum(cleaned.digest_before_filters for cleaned in batches),
    }


def _cleaning(config: CorpusConfig, input_folder: WorkFolder) -> Callable[[CleanTask], dict[str, Any]]:
    """`clean_task` under a corpus file. It is pickled for the workers."""
    sources, drop_undated = config.sources, config.heldout.undated == "drop"

    def clean(task: CleanTask) -> dict[str, Any]:
        ref, order = task
        return clean_task(ref, ref.source(sources), input_folder, order, drop_undated)

    return clean


def _tasks(refs: Sequence[ShardRef], orders: Sequence[Order | None]) -> list[CleanTask]:
    return [(ref, orders[ref.entry]) for ref in refs]


def orders_of(config: CorpusConfig, outcomes: Outcomes) -> list[Order | None] | None:
    """The orders of dates that the outcomes of `ingest` prove; None if an error follows from them."""
    try:
        return decide_orders(config, evidence_by_entry(outcomes))
    except InputError:
        return None


def clean_after(
    read: graph.PCollection[Passed], config: CorpusConfig, input_folder: WorkFolder, folder: WorkFolder, share: float
) -> None:
    """Cleans what an earlier pass of the same pipeline wrote to `input_folder`; its summary is `orders_of`.

    The pass is skipped if the orders of dates are not proven.
    """
    is_proven = After(read, lambda orders: orders is not None)

    def plan(orders: Sequence[Order | None]) -> list[CleanTask]:
        return _tasks(shard_refs(storage.read_json(_results(input_folder)), folder), orders)

    _ = (
        read.pipeline
        | "CleanTasks" >> PlannedTasks(plan, share, after=is_proven, note="clean")
        | "Clean" >> graph.Map(_cleaning(config, input_folder))
        | "GatherCleaned" >> Gather(_results(folder), after=is_proven)
    )


def _results(folder: WorkFolder) -> WorkFile:
    return folder.file("tasks.json")


def settings(context: Context) -> list[Any]:
    """The settings on which the stage's outcome depends, besides what `ingest` found."""
    config = context.config
    sources = [[to_dict(source.clean), source.date_format] for source in config.sources]
    files = context.prepared[STAGE.name]
    return [*sources, config.heldout.undated == "drop", *([files] if files else [])]


def prepare(config: CorpusConfig) -> list[str]:
    """The digests of the files that filters read. Raises: ConfigError if one is missing or unusable."""
    files = sorted({file for source in config.sources for file in filter_files(source)})
    return [storage.digest_of(file) for file in files]


def check(context: Context) -> list[Order | None]:
    """The order of day, month and year that each source entry's dates prove, if they do.

    Raises: InputError for dates whose order is neither declared nor proven.
    """
    return decide_orders(context.config, context.counts("ingest")["evidence"])


def work(context: Context) -> Work:
    """The text that `ingest` read."""
    return Work(size_bytes=context.text_bytes("ingest"))


def run(context: Context) -> Outcome:
    """Cleans all shards. The counts are by source, with digests against which `finpile verify` checks the ledger.

    If the pipeline of `ingest` has cleaned them, or a run that was interrupted after it, nothing is left to run.
    """
    results = _results(context.folder)
    if not _is_cleaned(context):
        clean = _cleaning(context.config, context.input_folder)
        context.engine.run_tasks("clean", _tasks(context.refs, check(context)), clean, results)
    rows = add_counts(storage.read_json(results), ("dataset", "source"))
    for row in rows:
        for name in ("digest", "digest_before_filters"):
            row[name] = to_hex(add(row[name]))
    return Outcome(counts={"sources": rows})


def _is_cleaned(context: Context) -> bool:
    """Whether all shards and their outcomes are in the stage's folder: the outcomes are written last."""
    if not _results(context.folder).exists():
        return False
    found = set((context.folder / "documents").names())
    return all(f"{ref.name}.arrow" in found for ref in context.refs)


def clean_kernels(config: CorpusConfig) -> Sequence[str]:
    """The groups of kernels of the sources: none if all texts stay byte for byte."""
    common = PAGE_GROUPS if any(map(needs_kernels, config.sources)) else ()
    of_filters = {FILTERS.get(entry.name).kernels for source in config.sources for entry in source.clean.filters}
    return (*common, *sorted(group for group in of_filters if group is not None))


STAGE = Stage(
    name="clean",
    settings=settings,
    prepare=prepare,
    check=check,
    run=run,
    kernels=clean_kernels,
    work=work,
    ledger_bytes=removed_bytes,
)


def _part_counts(batches: Sequence[Cleaned]) -> Mapping[str, int]:
    """`parts_more`: parts less the documents that they are of; nothing where no document was divided."""
    more = sum(cleaned.num_parts_more for cleaned in batches)
    return {"parts_more": more} if more else {}
