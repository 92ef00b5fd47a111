"""Removes the documents that `finpile remove` takes down, before all other dedup stages: these decide without them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from finpile import takedowns
from finpile.config import CorpusConfig
from finpile_pipelines.dedup.removals import REMOVAL_SCHEMA, write_removals
from finpile_pipelines.stage import Context, Outcome, Stage, Work


def settings(context: Context) -> list[Any]:
    """The settings on which the stage's outcome depends."""
    table: pa.Table = context.prepared[takedowns.TAKEDOWN]
    rows = repr(sorted(zip(table["id"].to_pylist(), table["why"].to_pylist(), strict=True)))
    return [hashlib.blake2b(rows.encode(), digest_size=16).hexdigest()]


def run(context: Context) -> Outcome:
    """Marks the documents of the list (`finpile.takedowns.TAKEDOWN_SCHEMA`) that `prepare` is given."""
    table: pa.Table = context.prepared[takedowns.TAKEDOWN]
    shards = table["shard"].to_numpy()
    for shard in np.unique(shards).tolist():
        mine = table.filter(pa.array(shards == shard))
        rows = [
            {
                "shard": shard,
                "row": row["row"],
                "id": row["id"],
                "stage": takedowns.TAKEDOWN,
                "reason": takedowns.REASON,
                "detail": row["why"],
            }
            for row in mine.to_pylist()
        ]
        write_removals(context.folder, shard, pa.Table.from_pylist(rows, schema=REMOVAL_SCHEMA))
    return Outcome(counts={"removed": table.num_rows})


def prepare(config: CorpusConfig) -> pa.Table:
    """The list of a build, which takes down nothing; a snapshot has one of its own."""
    return takedowns.TAKEDOWN_SCHEMA.empty_table()


def _one_task(context: Context) -> Work:
    return Work(size_bytes=1, num_tasks=1)


def _no_bytes(counts: Any, text_bytes: int) -> int:
    return 1


STAGE = Stage(
    name=takedowns.TAKEDOWN, settings=settings, run=run, prepare=prepare, work=_one_task, ledger_bytes=_no_bytes
)
