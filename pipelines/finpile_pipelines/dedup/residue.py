"""Removes all but one of the documents that cuts made equal.

The exchange is that of the stage `exact`. The texts are those after the cuts, of all remaining documents.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from finpile.config import CorpusConfig
from finpile.dedup import exact
from finpile.dedup.substring import repeats
from finpile_pipelines.dedup.exact import digest_rows, remove_equal
from finpile_pipelines.dedup.remaining import RemainingDocuments
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef

_LABEL = "substring: left"


def remove_equal_remains(
    engine: Engine, config: CorpusConfig, refs: Sequence[ShardRef], reader: RemainingDocuments, folder: str
) -> int:
    """Writes removals of documents whose text after the cuts equals another's; returns their number.

    Equality is that of `dedup.exact_fold`. The first document in the order of `exact` is kept; the digests in that
    order are those of the uncut texts.
    """
    fold = config.dedup.exact_fold

    def rows(ref: ShardRef) -> pa.Table:
        tables = [exact.ROW_SCHEMA.empty_table()]
        for table in reader.read(ref):
            report_progress(table.num_rows, table["text"].nbytes)
            left = exact.document_digests(table, fold)
            tables.append(digest_rows(ref, config, table, table["row"], left, table["digest"]))
        return pa.concat_tables(tables)

    return remove_equal(engine, refs, _LABEL, rows, repeats.DUPLICATE, folder)
