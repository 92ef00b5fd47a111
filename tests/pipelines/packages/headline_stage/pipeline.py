"""The stage `headline` as a pipeline: headlines are compared over all shards of a scope."""

from typing import Any

import pyarrow as pa
from finpile_pipelines.dedup.exact import digest_rows, remove_equal
from finpile_pipelines.dedup.remaining import RemainingDocuments
from finpile_pipelines.shard_refs import ShardRef
from finpile_pipelines.stage import Context, Outcome, Stage

from finpile.config import to_dict
from finpile.dedup import exact
from headline_stage.headline import REASON, headline_digests


def settings(context: Context) -> list[Any]:
    """The settings on which the stage's outcome depends."""
    return [to_dict(context.settings)]


def run(context: Context) -> Outcome:
    """Marks documents whose headline an earlier document has."""
    config, min_chars = context.config, context.settings.min_chars
    reader = RemainingDocuments(config, context.clean_folder, context.earlier_removals)

    def rows(ref: ShardRef) -> pa.Table:
        tables = [exact.ROW_SCHEMA.empty_table()]
        for table in reader.read(ref):
            found, digests = headline_digests(table, min_chars)
            tables.append(digest_rows(ref, config, found, found["row"], digests, found["digest"]))
        return pa.concat_tables(tables)

    removed = remove_equal(context.engine, context.refs, "headline", rows, REASON, context.folder)
    return Outcome(counts={"removed": removed})


STAGE = Stage(name="headline", settings=settings, run=run)
