"""Applies all removals, assigns the temporal split, and publishes documents and ledger in their final order.

Within a source, documents are sorted by the digests of their texts. This order is a shuffle that does not depend on the
run, the machine, or the distribution of the input over files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.config import CorpusConfig, to_dict
from finpile.counts.published import count_documents, count_ledger, files_of
from finpile.dedup import exact
from finpile.dedup.cuts import cut_rows
from finpile.dedup.ledger_rows import removal_rows, span_rows
from finpile.documents.document import (
    CLEAN_SCHEMA,
    PUBLISHED_SCHEMA,
    SUB_SOURCE,
    Label,
    digest_bits,
    label_of,
    with_column,
)
from finpile.documents.labels import document_labels
from finpile.documents.ledger import LEDGER_SCHEMA, PUBLISHED_LEDGER_SCHEMA
from finpile.documents.split import HELDOUT, TRAIN, assign_split
from finpile.errors import RunError
from finpile.filings.facts import FACTS, fact_table, with_cuts
from finpile.output.layout import document_part, removed_part
from finpile.output.takedowns import TAKEDOWN
from finpile.output.work_folder import WorkFile, WorkFolder
from finpile.plugins import stages
from finpile.storage.sizes import most_document_segments, part_bytes_of
from finpile_pipelines import graph
from finpile_pipelines.dedup.duplicate_chains import (
    RedirectDuplicates,
    Removals,
    are_few,
    read_copies,
    redirect_here,
)
from finpile_pipelines.dedup.removals import read_removals, spans_of
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, by_range, split_by_partition
from finpile_pipelines.exchange.tasks import After, Gather, Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.shard_refs import RemovalFolder, ShardRef, read_clean
from finpile_pipelines.stage import Context, Outcome, Stage

K = TypeVar("K", str, tuple[str, str, str])


@dataclass(frozen=True, slots=True)
class Part:
    """One published file: partition in the exchange, path, and index among the `count` files of its stage, or of its
    source and split."""

    partition: int
    path: str
    index: int
    count: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The clean documents that are published, with their ledger rows."""

    refs: Sequence[ShardRef]
    rows: Mapping[int, npt.NDArray[np.int32]] = field(default_factory=dict)
    """The rows of a shard, by its index; of a shard that is not listed, all."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The files of documents and ledger rows, planned before any row is exchanged."""

    documents: Mapping[tuple[str, str, str], tuple[Part, ...]]
    """By dataset, source and split."""
    ledger: Mapping[str, tuple[Part, ...]]

    def by_partition(self) -> tuple[dict[int, Part], dict[int, Part]]:
        documents = {part.partition: part for parts in self.documents.values() for part in parts}
        ledger = {part.partition: part for parts in self.ledger.values() for part in parts}
        return documents, ledger


def plan_parts(
    document_bytes: Mapping[Label, int],
    ledger_bytes: Mapping[str, int],
    part_bytes: int,
    splits: Sequence[str],
    rename: Callable[[str], str] = str,
) -> Parts:
    """Plans a number of parts in proportion to bytes, as a function of the data alone; `rename` changes their paths.

    A source of few full parts has smaller ones, for parallelism and memory (`part_bytes_of`). Each of the `splits` of a
    source has as many parts: how the source is divided is not known before its rows are read.
    """
    split_bytes = {(*row, split): size for row, size in document_bytes.items() for split in splits}
    return Parts(
        _number_parts(split_bytes, lambda key, index, count: rename(document_part(*key, index, count)), part_bytes),
        _number_parts(ledger_bytes, lambda stage, index, count: rename(removed_part(stage, index, count)), part_bytes),
    )


def _number_parts(
    sizes: Mapping[K, int], path: Callable[[K, int, int], str], part_bytes: int
) -> dict[K, tuple[Part, ...]]:
    """Partitions numbered consecutively over all keys; each key has at least one."""
    parts: dict[K, tuple[Part, ...]] = {}
    first = 0
    for key, size in sorted(sizes.items()):
        least = part_bytes_of(size, part_bytes)
        count = max(1, -(-size // least))
        parts[key] = tuple(Part(first + index, path(key, index, count), index, count) for index in range(count))
        first += count
    return parts


def settings(context: Context) -> list[Any]:
    """The settings that determine the stage's output."""
    config = context.config
    rules = [[source.sub_source for source in config.sources]] if config.has_sub_sources else []
    return [to_dict(config.heldout), context.sizes.part_bytes, *rules]


def run(context: Context) -> Outcome:
    """Publishes documents and ledger; the counts list the contents of each file.

    Raises: RunError if no document is left.
    """
    counts = publish(context, _plan(context), Selection(context.refs), redirects(context, work=0.1))
    if not counts["documents"]:
        raise RunError("no document is left after cleaning and deduplication: see the reasons in removed/")
    return Outcome(counts=counts, files=files_of(chain.from_iterable(counts.values())))


STAGE = Stage(name="split", settings=settings, run=run, releases_lock=True)


def _plan(context: Context) -> Parts:
    cleaned = context.counts("clean")["sources"]
    document_bytes = {label_of(row): row["text_bytes"] for row in cleaned}
    ledger_bytes = ledger_sizes(context, sum(document_bytes.values()))
    return plan_parts(document_bytes, ledger_bytes, context.sizes.part_bytes, splits_of(context.config))


def ledger_sizes(context: Context, text_bytes: int) -> dict[str, int]:
    """About how many bytes the rows of the ledger of each stage have, from the bytes of clean text."""
    names = [name for name in stages.ledger_stages() if name in context.records]
    return {name: context.stages[name].ledger_bytes(context.counts(name), text_bytes) for name in names}


def splits_of(config: CorpusConfig) -> tuple[str, ...]:
    """The splits that documents can have."""
    return (TRAIN,) if config.heldout.after is None else (TRAIN, HELDOUT)


def redirects(context: Context, work: float = 1.0) -> RedirectDuplicates | None:
    """Writes the final removals and the numbers of copies of all documents, or returns steps that do if they are many.

    The steps are `work` of a pipeline.
    """
    removals = Removals(
        folders=context.earlier_removals,
        number=sum(context.counts(stage)["removed"] for stage in context.removal_folders),
        copy_stages=stages.copy_stages(),
        num_redirecting=stages.num_redirecting(context.removal_folders),
    )
    if are_few(context.refs, removals, context.sizes.shards_in_memory):
        redirect_here(context.refs, removals, context.folder)
        return None
    return RedirectDuplicates(context.engine, context.refs, removals, context.folder, work)


def publish(
    context: Context, parts: Parts, selection: Selection, redirect: RedirectDuplicates | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Writes `documents/` and `removed/`, after the pass `redirect`; returns a row for each file of `documents`, and of
    the `ledger`.

    The ledger's rows of `ingest` and `clean`, and tombstones, are those in the folders of these stages, without those
    of earlier snapshots.
    """
    engine, config, layout, folder = context.engine, context.config, context.layout, context.folder
    refs, rows_of = selection.refs, selection.rows
    removal_folders = context.removal_folders
    results = folder.file("tasks.json")
    document_parts, ledger_parts = parts.by_partition()
    ledger_files = [
        (stage, context.folder_of(stage).file("removed", name))
        for stage in ("ingest", "clean", TAKEDOWN)
        if stage in context.records
        for name in (context.folder_of(stage) / "removed").names()
    ]

    def apply(ref: ShardRef) -> tuple[PartitionedTables, PartitionedTables]:
        kept, gone = apply_removals(ref, config, folder, removal_folders, rows_of.get(ref.index))
        return _partitioned_documents(ref, config, kept, parts), _partitioned_ledger(f"s{ref.index:06d}", gone, parts)

    def forward(ledger: tuple[str, WorkFile]) -> PartitionedTables:
        stage, file = ledger
        return _partitioned_ledger(f"{stage}-{file.name}", storage.read_parquet(file), parts)

    def write_documents(group: tuple[int, pa.Table]) -> dict[str, Any]:
        return _write_documents(layout.root, document_parts[group[0]], group[1])

    def write_ledger(group: tuple[int, pa.Table]) -> dict[str, Any]:
        return _write_ledger(layout.root, ledger_parts[group[0]], group[1])

    def exchange(label: str, work: float, num_parts: int) -> ExchangeByPartition:
        return ExchangeByPartition(
            engine.exchange_transport,
            folder / "scratch",
            label,
            work / max(1, num_parts),
            partitions=num_parts,
            most_segments=most_document_segments(sum(ref.text_bytes for ref in refs) // max(1, len(refs))),
        )

    def construct(pipeline: graph.Pipeline) -> None:
        after = After(pipeline | redirect) if redirect else None
        tasks = Tasks(refs, 0.3 if redirect else 0.4, after=after, note="publish")
        applied = pipeline | tasks | "Apply" >> graph.Map(apply)
        earlier = pipeline | "LedgerFiles" >> Tasks(ledger_files, 0.05) | "Forward" >> graph.Map(forward)
        documents = (
            applied
            | "Documents" >> graph.item(0, PartitionedTables)
            | exchange("DocumentsByPart", 0.5, len(document_parts))
            | "WriteDocuments" >> graph.Map(write_documents)
        )
        ledger = (
            (applied | "Ledger" >> graph.item(1, PartitionedTables), earlier)
            | exchange("LedgerByPart", 0.05, len(ledger_parts))
            | "WriteLedger" >> graph.Map(write_ledger)
        )
        _ = (documents, ledger) | "All" >> graph.Flatten() | Gather(results)

    engine.run("split", construct)
    outcomes: list[dict[str, Any]] = storage.read_json(results)
    return {
        "documents": [outcome for outcome in outcomes if "stage" not in outcome],
        "ledger": [outcome for outcome in outcomes if "stage" in outcome],
    }


def apply_removals(
    ref: ShardRef,
    config: CorpusConfig,
    folder: WorkFolder,
    spans_folders: Mapping[str, Sequence[RemovalFolder]],
    rows: npt.NDArray[np.int32] | None = None,
) -> tuple[pa.Table, pa.Table]:
    """Returns (kept documents, ledger rows) of one clean shard; documents have the columns of `CLEAN_SCHEMA`, `split`
    and maybe `SUB_SOURCE`.

    `folder` holds the final removals, `spans_folders` the folders with the spans of each stage. With `rows`, only those
    of the shard are in the result.
    """
    table = pa.Table.from_batches(list(read_clean(ref)), schema=CLEAN_SCHEMA).combine_chunks()
    table, ledger = _cut(ref, table, spans_folders)
    decisions = read_removals(folder, ref.index)
    copies = read_copies(folder, ref.index)
    num_copies = np.ones(table.num_rows, np.int32)
    num_copies[copies["row"].to_numpy()] += copies["num_copies"].to_numpy()
    table = table.set_column(table.schema.get_field_index("num_copies"), "num_copies", pa.array(num_copies))
    table = table.append_column("split", assign_split(table["timestamp"], config.heldout.after, config.heldout.undated))
    if config.has_sub_sources:
        rule = config.sources[ref.entry].sub_source
        labels = [None] * table.num_rows if rule is None else document_labels(table, rule)
        table = table.append_column(SUB_SOURCE, pa.array(labels, SUB_SOURCE.type))
    stay = np.ones(table.num_rows, bool)
    stay[decisions["row"].to_numpy()] = False
    decisions = decisions.filter(pc.not_equal(decisions["stage"], TAKEDOWN))  # they have tombstones
    ledger = pa.concat_tables([ledger, removal_rows(table, decisions)])
    if rows is not None:
        stay &= np.isin(np.arange(table.num_rows), rows)
        ledger = ledger.filter(pc.is_in(ledger["id"], table["id"].take(pa.array(rows)).combine_chunks()))
    return table.filter(pa.array(stay)), ledger


def _cut(
    ref: ShardRef, table: pa.Table, spans_folders: Mapping[str, Sequence[RemovalFolder]]
) -> tuple[pa.Table, pa.Table]:
    """The documents without the spans of all stages, with the digests of the remaining texts; the rows of the spans."""
    ledger, is_cut = [LEDGER_SCHEMA.empty_table()], np.zeros(table.num_rows, bool)
    for stage, folders in spans_folders.items():
        spans = spans_of(folders, ref.index)
        if spans.num_rows:
            ledger.append(span_rows(table, spans, stage))
            table = with_cuts(table, *(spans[name].to_numpy().astype(np.int64) for name in ("row", "start", "end")))
            table = with_column(table, "text", cut_rows(table["text"].chunk(0), spans))
            is_cut[spans["row"].to_numpy()] = True
    if is_cut.any():
        mask = pa.array(is_cut)
        digests = pc.replace_with_mask(table["digest"], mask, exact.document_digests(table.filter(mask)))
        table = with_column(table, "digest", digests)
    return table, pa.concat_tables(ledger)


def _partitioned_documents(ref: ShardRef, config: CorpusConfig, kept: pa.Table, parts: Parts) -> PartitionedTables:
    report_progress(kept.num_rows, kept["text"].nbytes)
    source = ref.source(config.sources)
    bits, partition = digest_bits(kept["digest"]), np.full(kept.num_rows, -1)
    for split in splits_of(config):
        mine = parts.documents[source.dataset, source.label, split]
        chosen = pc.fill_null(pc.equal(kept["split"], split), False).to_numpy()
        partition[chosen] = by_range(bits[chosen], len(mine)) + mine[0].partition
    is_placed = partition >= 0
    kept, partition = (kept, partition) if is_placed.all() else (kept.filter(pa.array(is_placed)), partition[is_placed])
    return PartitionedTables(f"{ref.index:06d}", split_by_partition(kept, partition))


def _partitioned_ledger(origin: str, rows: pa.Table, parts: Parts) -> PartitionedTables:
    ids = np.array([int(value[:16], 16) for value in rows["id"].to_pylist()], dtype=np.uint64)
    partition = np.full(rows.num_rows, -1)
    for stage in pc.unique(rows["stage"]).to_pylist():
        mine = parts.ledger[stage]
        chosen = pc.equal(rows["stage"], stage).to_numpy()
        partition[chosen] = by_range(ids[chosen], len(mine)) + mine[0].partition
    return PartitionedTables(origin, split_by_partition(rows, partition))


def _write_documents(root: str, part: Part, rows: pa.Table) -> dict[str, Any]:
    order = pc.sort_indices(rows, [("digest", "ascending"), ("id", "ascending")])
    schema = PUBLISHED_SCHEMA.append(SUB_SOURCE) if SUB_SOURCE.name in rows.column_names else PUBLISHED_SCHEMA
    table = rows.select(schema.names).cast(schema)
    storage.write_parquet_sorted(storage.join(root, part.path), table, order)
    facts = fact_table(rows.select(["id", "meta", "timestamp", FACTS.name]).take(order))
    return count_documents(root, part.path, rows.drop_columns([FACTS.name]), facts)


def _write_ledger(root: str, part: Part, rows: pa.Table) -> dict[str, Any]:
    order = [(name, "ascending") for name in ("dataset", "source", "locator", "id", "start", "end", "reason")]
    table = rows.select(PUBLISHED_LEDGER_SCHEMA.names).cast(PUBLISHED_LEDGER_SCHEMA)
    storage.write_parquet_sorted(storage.join(root, part.path), table, pc.sort_indices(rows, order))
    return count_ledger(root, part.path, rows["stage"][0].as_py(), table)
