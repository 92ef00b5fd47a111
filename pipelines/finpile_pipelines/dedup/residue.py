"""Removes all but one of the documents that cuts made equal.

The exchange is that of the stage `exact`. The texts are those after the cuts, of all remaining documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from finpile.config import CorpusConfig
from finpile.dedup import exact
from finpile.dedup.substring import repeats
from finpile.document import digest_bits
from finpile_pipelines.dedup.exact import RemoveEqual, digest_rows
from finpile_pipelines.dedup.remaining import RemainingDocuments, documents_of, remaining_documents
from finpile_pipelines.exchange.tasks import After
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef
from finpile_pipelines.stage import Context, Step, StepInput


class RemoveEqualRemains(RemoveEqual):
    """Writes removals of documents whose text after the cuts equals another's.

    Equality is that of `dedup.exact_fold`. The first document in the order of `exact` is kept; the digests in that
    order are those of the uncut texts.
    """

    def __init__(
        self,
        engine: Engine,
        config: CorpusConfig,
        stage: str,
        refs: Sequence[ShardRef],
        reader: RemainingDocuments,
        folder: str,
        *,
        work: float = 1.0,
        after: After | None = None,
    ) -> None:
        fold = config.dedup.exact_fold

        def rows(ref: ShardRef) -> pa.Table:
            tables = [exact.ROW_SCHEMA.empty_table()]
            for table in reader.read(ref):
                report_progress(table.num_rows, table["text"].nbytes)
                left = exact.document_digests(table, fold)
                tables.append(digest_rows(ref, config, table, table["row"], left, table["digest"]))
            return pa.concat_tables(tables)

        super().__init__(
            engine, refs, stage, rows, repeats.DUPLICATE, folder, config.dedup.order, work=work, after=after
        )


def equal_remains(stage: str) -> Step:
    """The comparison of what a stage left, as a step of it."""
    return Step(name="left", keys=_keys, bytes_of_key=2048, reach="equal", run=partial(_run_step, stage))


def _run_step(stage: str, context: Context) -> str:
    reader, folder = remaining_documents(context), context.folder
    equal = RemoveEqualRemains(context.engine, context.config, stage, context.refs, reader, folder)
    context.engine.run_one(f"{stage}: left", equal)
    return folder


def _keys(step: StepInput, ref: ShardRef) -> pa.Table:
    """The digests of what is left of documents, each mixed with its scope."""
    reader = documents_of(step)
    table = pa.concat_tables(reader.read(ref))
    digests = exact.document_digests(table, step.config.dedup.exact_fold)
    return pa.table({"key": digest_bits(digests) ^ repeats.scope_bits(reader.scope(ref)), "row": table["row"]})
