"""Decontamination: shards search for evaluation items, and the document counts of grams are summed by partition.

    find      each shard: matches, to a file; document counts of the matched grams --by gram--> boilerplate
    decide    each shard: matches without boilerplate, to removals

The items are in one file, from which each worker process builds its index. Texts are read once, by `find`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from finpile import stage_record, storage
from finpile.config import ContaminationConfig, CorpusConfig, to_dict
from finpile.dedup.contamination import evaluation_index
from finpile.dedup.contamination.evaluation_index import EvalIndex
from finpile.eval_sets import load_items, set_files
from finpile.sizes import num_partitions
from finpile_pipelines.dedup.remaining import RemainingDocuments
from finpile_pipelines.dedup.removals import NOT_CONFIGURED, REMOVAL_SCHEMA, removals_url
from finpile_pipelines.exchange.partition import (
    ExchangeByPartition,
    PartitionedTables,
    split_by_partition,
)
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef
from finpile_pipelines.stage import Context, Outcome, Stage

#: The number of found items of a set that the counts name; the ledger has every document.
_NUM_NAMED = 5
#: A shard's matches: `row` is the row of the shard, `id` the document's id.
_MATCH_SCHEMA = evaluation_index.MATCH_SCHEMA.append(pa.field("id", pa.string()))
_GRAM_SCHEMA = pa.schema([evaluation_index.COUNT_SCHEMA.field("gram")])


@dataclass(frozen=True, slots=True)
class EvaluationSets:
    """The evaluation sets of a corpus, read before the build starts: a set that cannot be read is an error."""

    files: tuple[tuple[str, int, str], ...]
    """Locator, size and version of each file, in the order of the sets."""
    items: pa.Table
    """`finpile.dedup.contamination.evaluation_index.ITEM_SCHEMA`."""


def read_sets(config: CorpusConfig) -> EvaluationSets | None:
    """The sets that the corpus file lists under `contamination`; None if there is no such key.

    Raises: InputError if a file is missing or does not have the form that the corpus file gives.
    """
    if config.contamination is None:
        return None
    sets = config.contamination.sets
    files = [file for one in sets for file in set_files(one, config.root)]
    listed = tuple((file.locator, file.size_bytes, file.version) for file in files)
    return EvaluationSets(listed, load_items(sets, config.root))


def settings(context: Context) -> list[Any] | None:
    """The settings on which the stage's outcome depends."""
    sets: EvaluationSets | None = context.prepared["contamination"]
    return None if sets is None else [to_dict(context.config.contamination), sets.files]


def run(context: Context) -> Outcome:
    """Marks documents that contain evaluation items, among those that earlier stages left in the clean shards."""
    config, refs, folder = context.config, context.refs, context.folder
    sets: EvaluationSets | None = context.prepared["contamination"]
    if config.contamination is None or sets is None:
        return Outcome(counts=NOT_CONFIGURED)
    storage.write_parquet(storage.join(folder, "items.parquet"), sets.items)
    version = stage_record.file_record(folder, "items.parquet").checksum
    reader = RemainingDocuments(config, context.clean_folder, context.earlier_removals)
    search = _Search(config.contamination, reader, folder, version, num_partitions(len(refs)))
    finding, deciding = context.engine.parts(9, 1)
    grams = search.run_find(finding, refs)
    outcomes = search.run_decide(deciding, refs)
    counts = {
        "removed": sum(outcome["removed"] for outcome in outcomes),
        "grams_met": sum(outcome["met"] for outcome in grams),
        "grams_dropped": sum(outcome["dropped"] for outcome in grams),
        "sets": _set_counts(search.index(), outcomes),
    }
    return Outcome(counts=counts)


def contamination_kernels(config: CorpusConfig) -> Sequence[str]:
    """Groups of kernels."""
    return ("finpile.dedup.contamination.evaluation_index",) if config.contamination else ()


STAGE = Stage(name="contamination", settings=settings, run=run, kernels=contamination_kernels, prepare=read_sets)


@dataclass(frozen=True, slots=True)
class _Search:
    """One pass over the corpus. It is pickled for the workers, so it does not hold the engine."""

    config: ContaminationConfig
    reader: RemainingDocuments
    folder: str
    version: str
    """The checksum of the file of items."""
    num_partitions: int

    def index(self) -> EvalIndex:
        return _index(storage.join(self.folder, "items.parquet"), self.version, self.config)

    def run_find(self, engine: Engine, refs: Sequence[ShardRef]) -> list[dict[str, int]]:
        """Writes the matches of each shard and the boilerplate grams; returns counts of grams by partition."""
        transport, url = engine.exchange_transport, storage.join(self.folder, "grams.json")

        def construct(pipeline: beam.Pipeline) -> None:
            scratch, share = storage.join(self.folder, "scratch"), 0.1 / self.num_partitions
            exchange = ExchangeByPartition(transport, scratch, "CountsByGram", share)
            counts = pipeline | Tasks(refs, 0.9) | "Find" >> beam.Map(self._find) | exchange
            _ = counts | "Count" >> beam.Map(self._count) | Gather(url)

        engine.run("contamination: find", construct)
        outcomes: list[dict[str, int]] = storage.read_json(url)
        dropped = [storage.read_parquet(self._scratch("dropped", one["partition"])) for one in outcomes]
        common = pa.concat_tables([_GRAM_SCHEMA.empty_table(), *dropped]).sort_by("gram")
        storage.write_parquet(self._boilerplate(), common)
        return outcomes

    def run_decide(self, engine: Engine, refs: Sequence[ShardRef]) -> list[dict[str, Any]]:
        """Writes the removals of each shard; returns their counts by shard."""
        url = storage.join(self.folder, "tasks.json")

        def construct(pipeline: beam.Pipeline) -> None:
            _ = pipeline | Tasks(refs) | "Decide" >> beam.Map(self._decide) | Gather(url)

        engine.run("contamination: decide", construct)
        outcomes: list[dict[str, Any]] = storage.read_json(url)
        return outcomes

    def _find(self, ref: ShardRef) -> PartitionedTables:
        index = self.index()
        found = [_MATCH_SCHEMA.empty_table()]
        for table in self.reader.read(ref):
            matches = index.find(table)
            names = table.select(["row", "id"]).take(matches["row"])
            rows = names["row"].cast(pa.int64())
            found.append(matches.set_column(0, _MATCH_SCHEMA.field("row"), rows).append_column("id", names["id"]))
            report_progress(table.num_rows, table["text"].nbytes)
        matches = pa.concat_tables(found)
        storage.write_parquet(self._scratch("matches", ref.index), matches)
        counts = evaluation_index.count_documents(matches)
        return PartitionedTables(
            f"{ref.index:06d}", split_by_partition(counts, counts["gram"].to_numpy() % self.num_partitions)
        )

    def _count(self, group: tuple[int, pa.Table]) -> dict[str, int]:
        partition, counts = group
        total = evaluation_index.sum_counts([counts])
        dropped = evaluation_index.boilerplate(total, self.config)
        storage.write_parquet(self._scratch("dropped", partition), pa.table([dropped], schema=_GRAM_SCHEMA))
        return {"partition": partition, "met": total.num_rows, "dropped": len(dropped)}

    def _decide(self, ref: ShardRef) -> dict[str, Any]:
        matches = storage.read_parquet(self._scratch("matches", ref.index))
        common = storage.read_parquet(self._boilerplate())["gram"].combine_chunks()
        overlaps = evaluation_index.decide(matches, common, self.index())
        ids = dict(zip(matches["row"].to_pylist(), matches["id"].to_pylist(), strict=True))
        removals = [_removal(ref, row, ids[row], detail) for row, detail in evaluation_index.condemned(overlaps)]
        if removals:
            table = pa.Table.from_pylist(removals, schema=REMOVAL_SCHEMA)
            storage.write_parquet(removals_url(self.folder, ref.index), table)
        return {"shard": ref.index, "removed": len(removals), "sets": _by_set(overlaps)}

    def _scratch(self, name: str, number: int) -> str:
        return storage.join(self.folder, "scratch", name, f"{number:06d}.parquet")

    def _boilerplate(self) -> str:
        return storage.join(self.folder, "boilerplate.parquet")


@lru_cache(maxsize=1)
def _index(url: str, version: str, config: ContaminationConfig) -> EvalIndex:
    """The index of the items stored at `url`, built once per process; `version` identifies its content."""
    return EvalIndex.build(storage.read_parquet(url), config)


def _removal(ref: ShardRef, row: int, identifier: str, detail: str) -> dict[str, Any]:
    return {
        "shard": ref.index,
        "row": row,
        "id": identifier,
        "stage": STAGE.name,
        "reason": evaluation_index.REASON,
        "detail": detail,
    }


def _by_set(overlaps: pa.Table) -> dict[str, Any]:
    """For each set, the number of documents with an item of it and the names of these items."""
    found = {}
    for name in pc.unique(overlaps["set"]).to_pylist():
        mine = overlaps.filter(pc.equal(overlaps["set"], name))
        found[name] = {"documents": len(mine["row"].unique()), "items": sorted(mine["item"].unique().to_pylist())}
    return found


def _set_counts(index: EvalIndex, outcomes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each set, in order: its items, those too short to search for, and those found."""
    by_shard = [outcome["sets"] for outcome in outcomes]
    items, unchecked = index.items, index.not_checkable()
    rows = []
    for one in index.config.sets:
        mine = [sets[one.name] for sets in by_shard if one.name in sets]
        found = sorted({item for entry in mine for item in entry["items"]})
        rows.append(
            {
                "set": one.name,
                "items": pc.sum(pc.equal(items["set"], one.name)).as_py(),
                "items_not_checkable": pc.sum(pc.equal(unchecked["set"], one.name)).as_py() or 0,
                "items_found": len(found),
                "documents": sum(entry["documents"] for entry in mine),
                "first_found": found[:_NUM_NAMED],
            }
        )
    return rows
