"""Templates, by hashes of lines and paragraphs over all shards. `finpile.dedup.templates.blocks` has the rule.

    blocks   the first documents of each block --by hash--> templates --by shard--> back to the shards that have them
    cut      each shard cuts the templates of its documents; those of which too little is left are removed
    left     all but one of equal remainders are removed (`residue`)

All clean documents are counted, those that `exact` removes among them: equal texts count once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from finpile import storage
from finpile.config import CorpusConfig, TemplatesConfig, to_dict
from finpile.dedup.order import Order
from finpile.dedup.substring.spans import SPAN_SCHEMA, short_documents
from finpile.dedup.templates import blocks
from finpile.document import CLEAN_SCHEMA
from finpile.document_labels import document_labels
from finpile.takedowns import TAKEDOWN
from finpile_pipelines.dedup.exact import num_removed
from finpile_pipelines.dedup.remaining import RemainingDocuments, order_setting
from finpile_pipelines.dedup.removals import (
    NO_ROWS,
    NOT_CONFIGURED,
    REMOVAL_SCHEMA,
    removals_url,
    removed_rows,
    spans_url,
)
from finpile_pipelines.dedup.request_reply import RequestReply, exchanged_bytes, read_reply
from finpile_pipelines.dedup.residue import RemoveEqualRemains, equal_remains
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After, Gather, Tasks, sum_of
from finpile_pipelines.progress import report_progress
from finpile_pipelines.shard_refs import RemovalFolder, Rows, ShardRef, read_clean_rows
from finpile_pipelines.stage import Context, Outcome, Stage, Step, StepInput

_COUNTED = ("removed", "spans", "cut_bytes", "grouped")


def settings(context: Context) -> list[Any] | None:
    """The settings on which the stage's outcome depends."""
    config = context.config
    groups = [source.template_group for source in config.sources]
    if config.dedup.templates is None:
        return None
    return [to_dict(config.dedup.templates), groups, config.dedup.exact_fold, *order_setting(config)]


def run(context: Context) -> Outcome:
    """Cuts templates from the documents that earlier stages left in the clean shards.

    Counts: `grouped` is the number of documents that have a group.
    """
    config, engine = context.config, context.engine
    if config.dedup.templates is None:
        return Outcome(counts=NOT_CONFIGURED)
    cutting, left = removal_folders(context.folder, {})
    work = _cutting(context, config.dedup.templates, cutting)

    def construct(pipeline: beam.Pipeline) -> None:
        cut_bytes = work.construct(pipeline, engine.exchange_transport)
        if config.dedup.exact:
            reader = RemainingDocuments(config, context.clean_folder, (*context.earlier_removals, cutting))
            after = After(cut_bytes, _is_positive)
            equal = RemoveEqualRemains(
                engine, config, STAGE.name, context.refs, reader, left, work=_COMPARING, after=after
            )
            _ = pipeline | equal

    engine.run(STAGE.name, construct)
    outcomes = storage.read_json(work.outcomes)
    counts = {name: sum(outcome[name] for outcome in outcomes) for name in _COUNTED}
    duplicates = num_removed(left) if config.dedup.exact and counts["cut_bytes"] else 0
    return Outcome(
        counts={
            **counts,
            "removed": counts["removed"] + duplicates,
            "duplicates": duplicates,
            "exchanged_bytes": exchanged_bytes(cutting, *_STEPS),
        }
    )


def removal_folders(folder: str, counts: Mapping[str, Any]) -> list[str]:
    """The folders of the cuts and of equal remainders."""
    return [storage.join(folder, part) for part in ("cut", "left")]


def ledger_bytes(counts: Mapping[str, Any], text_bytes: int) -> int:
    """The bytes that were cut."""
    return int(counts.get("cut_bytes", 0))


def template_kernels(config: CorpusConfig) -> tuple[str, ...]:
    """Groups of kernels."""
    return blocks.TEMPLATE_GROUPS if config.dedup.templates else ()


def steps(config: CorpusConfig) -> Sequence[Step]:
    """The cuts, and the removal of documents that they made equal."""
    templates = config.dedup.templates
    if templates is None:
        return ()
    cut = Step(
        name="cut",
        keys=_keys,
        bytes_of_key=32,
        reach="shared",
        is_causal=config.dedup.order == "time",
        run=partial(_run_cut, templates),
    )
    return [cut, equal_remains("templates")] if config.dedup.exact else [cut]


def _run_cut(templates: TemplatesConfig, context: Context) -> str:
    work, engine = _cutting(context, templates, context.folder), context.engine

    def construct(pipeline: beam.Pipeline) -> None:
        work.construct(pipeline, engine.exchange_transport)

    engine.run(STAGE.name, construct)
    return context.folder


def _keys(step: StepInput, ref: ShardRef) -> pa.Table:
    """The blocks of documents, those of documents that earlier stages removed included."""
    reader = _GroupedDocuments(step.config, step.clean_folder, step.rows)
    table, groups = reader.read(ref)
    hashes, docs = blocks.block_keys(table, groups)
    return pa.table({"key": hashes, "row": table["row"].to_numpy()[docs]})


STAGE = Stage(
    name="templates",
    settings=settings,
    run=run,
    kernels=template_kernels,
    removal_folders=removal_folders,
    ledger_bytes=ledger_bytes,
    steps=steps,
)

_STEPS = "blocks", "templates"
#: Shares of the stage's work.
_COUNTING, _CUTTING, _COMPARING = 0.6, 0.3, 0.1


def _is_positive(number: int) -> bool:
    return number > 0


def _cutting(context: Context, templates: TemplatesConfig, folder: str) -> "_Cutting":
    takedowns = context.removal_folders.get(TAKEDOWN, ())
    reader = _GroupedDocuments(context.config, context.clean_folder, context.rows, takedowns)
    return _Cutting(context.config, templates, tuple(context.refs), reader, context.earlier_removals, folder)


@dataclass(frozen=True, slots=True)
class _GroupedDocuments:
    """Reads the documents of shards with their groups, but for takedowns; with `rows`, only these."""

    config: CorpusConfig
    clean_folder: str
    rows: Rows | None
    takedowns: tuple[RemovalFolder, ...] = ()

    def has_groups(self, ref: ShardRef) -> bool:
        return self.config.sources[ref.entry].template_group is not None

    def read(self, ref: ShardRef) -> tuple[pa.Table, list[str | None]]:
        """The documents of a shard as `CLEAN_SCHEMA` with `row` and `priority`, and the group of each; none if its
        source has no groups."""
        rule = self.config.sources[ref.entry].template_group
        tables = [_SCHEMA.empty_table()]
        if rule is None:
            return tables[0], []
        wanted = None if self.rows is None else self.rows.get(ref.index, NO_ROWS)
        gone = removed_rows(self.takedowns, ref.index)
        for first, batch in read_clean_rows(self.clean_folder, ref, wanted):
            rows = np.arange(first, first + batch.num_rows, dtype=np.int32)
            table = pa.Table.from_batches([batch]).append_column("row", pa.array(rows))
            table = table.append_column("priority", pa.array(np.full(len(rows), ref.entry, np.int32)))
            mask = ~np.isin(rows, gone) & (wanted is None or np.isin(rows, wanted))
            tables.append(table.filter(pa.array(mask)))
            report_progress(batch.num_rows, batch["text"].nbytes)
        documents = pa.concat_tables(tables).combine_chunks()
        return documents, document_labels(documents, rule)


_SCHEMA = CLEAN_SCHEMA.append(pa.field("row", pa.int32())).append(pa.field("priority", pa.int32()))


@dataclass(frozen=True, slots=True)
class _Cutting:
    """Counts and cuts. It is pickled for the workers, so it does not hold the engine."""

    config: CorpusConfig
    templates: TemplatesConfig
    refs: tuple[ShardRef, ...]
    reader: _GroupedDocuments
    earlier_removals: tuple[RemovalFolder, ...]
    folder: str

    @property
    def outcomes(self) -> str:
        """The file with the counts of each shard."""
        return storage.join(self.folder, "cut.json")

    def construct(self, pipeline: beam.Pipeline, transport: Any) -> beam.PCollection[Passed]:
        """Adds the steps to a pipeline; the summary is the number of bytes cut, once all spans are written."""
        steps = (_STEPS[0], self._blocks), (_STEPS[1], self._find)
        replied = pipeline | RequestReply(transport, self.refs, self.folder, *steps, work=_COUNTING)
        tasks = Tasks(self.refs, _CUTTING, after=After(replied), note="cut")
        return pipeline | tasks | "CutShard" >> beam.Map(self._cut) | Gather(self.outcomes, sum_of("cut_bytes"))

    def _blocks(self, ref: ShardRef) -> pa.Table:
        documents, groups = self.reader.read(ref)
        return blocks.block_rows(documents, groups, self._num, ref.index, self._order)

    def _find(self, received: pa.Table) -> pa.Table:
        return blocks.templates(received.combine_chunks(), self._num)

    def _cut(self, ref: ShardRef) -> dict[str, int]:
        """Writes the spans of a shard and the documents of which too little is left."""
        nothing = {"shard": ref.index, **dict.fromkeys(_COUNTED, 0)}
        if not self.reader.has_groups(ref):
            return nothing
        known = read_reply(self.folder, _STEPS[1], ref.index, blocks.BLOCK_SCHEMA)
        documents, groups = self.reader.read(ref)
        rows = documents["row"].to_numpy()
        is_left = ~np.isin(rows, removed_rows(self.earlier_removals, ref.index))
        left = [group if stays else None for group, stays in zip(groups, is_left.tolist(), strict=True)]
        spans = blocks.template_spans(documents, left, known, self.templates, self._order)
        spans = spans.set_column(0, SPAN_SCHEMA.field("row"), pa.array(rows[spans["row"].to_numpy()]))
        if spans.num_rows:
            storage.write_parquet(spans_url(self.folder, ref.index), spans)
        short = short_documents(documents, spans, self.templates.min_chars)
        if short.num_rows:
            found = [{**row, "shard": ref.index, "stage": STAGE.name} for row in short.to_pylist()]
            storage.write_parquet(
                removals_url(self.folder, ref.index), pa.Table.from_pylist(found, schema=REMOVAL_SCHEMA)
            )
        sizes = spans["end"].to_numpy() - spans["start"].to_numpy()
        grouped = sum(group is not None for group in groups)
        counts = {"removed": short.num_rows, "spans": spans.num_rows, "cut_bytes": int(sizes.sum()), "grouped": grouped}
        return {**nothing, **counts}

    @property
    def _order(self) -> Order:
        return self.config.dedup.order

    @property
    def _num(self) -> int:
        return self.templates.min_documents
