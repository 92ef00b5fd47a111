"""Removes all but one of the documents that cuts made equal.

The exchange is that of the stage `exact`. The texts are those after the cuts, of all remaining documents.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from finpile.config import CorpusConfig
from finpile.dedup import exact
from finpile.dedup.substring import repeats
from finpile_pipelines.dedup.exact import RemoveEqual, digest_rows
from finpile_pipelines.dedup.remaining import RemainingDocuments
from finpile_pipelines.exchange.tasks import After
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef


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
