"""Removes the documents that `finpile remove` takes down, before all other dedup stages: these decide without them."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa

from finpile import storage
from finpile.config import CorpusConfig
from finpile.output.takedowns import REASON, TAKEDOWN, TAKEDOWN_SCHEMA, by_shard, tombstones
from finpile_pipelines.dedup.removals import REMOVAL_SCHEMA, write_removals
from finpile_pipelines.stage import Context, Outcome, Stage, Work


def settings(context: Context) -> list[Any]:
    """The settings on which the stage's outcome depends."""
    rows = repr(context.prepared[TAKEDOWN].sort_by("id").to_pylist())
    return [hashlib.blake2b(rows.encode(), digest_size=16).hexdigest()]


def run(context: Context) -> Outcome:
    """Marks the documents of the list (`TAKEDOWN_SCHEMA`), and writes the tombstones of this snapshot.

    Tombstones are in a file of the ledger, because documents that `clean` had removed have no row in a shard.
    """
    listed: pa.Table = context.prepared[TAKEDOWN]
    for shard, mine in by_shard(listed):
        known = {"shard": shard, "stage": TAKEDOWN, "reason": REASON}
        rows = [{**known, "row": row["row"], "id": row["id"], "detail": row["why"]} for row in mine.to_pylist()]
        write_removals(context.folder, shard, pa.Table.from_pylist(rows, schema=REMOVAL_SCHEMA))
    numbers = listed["snapshot"].to_numpy()
    new = listed.filter(pa.array(numbers == context.snapshot))
    if new.num_rows:
        storage.write_parquet(context.folder.file("removed", "000000.parquet"), tombstones(new))
    return Outcome(counts={"removed": listed.num_rows})


def prepare(config: CorpusConfig) -> pa.Table:
    """The list of a build, which takes nothing down; a snapshot has one of its own."""
    return TAKEDOWN_SCHEMA.empty_table()


STAGE = Stage(
    name=TAKEDOWN,
    settings=settings,
    run=run,
    prepare=prepare,
    work=lambda context: Work(size_bytes=1, num_tasks=1),
    ledger_bytes=lambda counts, text_bytes: 1,
)
