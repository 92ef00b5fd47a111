"""The last word on every duplicate, before anything is published.

    decisions --by the kept copy's shard--> those whose kept copy went later are passed on --by shard--> decisions
                                                                          --by the kept copy's shard--> copy counts

Of a few shards the launcher does this by itself: that takes it less than a pipeline's start.
"""

from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile import shards
from finpile.tree import COPY_STAGES
from finpile_pipelines.decisions import DECISION_SCHEMA, WriteDecisions, read_decisions, write_decisions
from finpile_pipelines.engine import Engine, Gather, Tasks
from finpile_pipelines.exchange import ExchangeByPartition, Parcels, split_by_partition
from finpile_pipelines.shardrefs import FEW_SHARDS, ShardRef

#: What a shard's row gains when others are removed for its sake.
COPIES_SCHEMA = pa.schema([pa.field("row", pa.int32()), pa.field("num_copies", pa.int32())])
#: Decisions up to which the launcher works alone; one takes some 300 bytes.
DECISIONS_IN_MEMORY = 250_000


def run_resolve(
    engine: Engine,
    refs: Sequence[ShardRef],
    found: Sequence[str],
    folder: str,
    num_decisions: int,
    decisions_in_memory: int = DECISIONS_IN_MEMORY,
) -> None:
    """Writes final decisions and copy counts by shard into `folder`.

    `found` are the decision folders of the dedup stages in order, which have `num_decisions` in all. A document removed
    by an earlier stage for the sake of one that a later stage removed is passed on to the later stage's kept copy,
    where there is one.
    """
    if num_decisions <= decisions_in_memory and len(refs) <= FEW_SHARDS:
        _resolve_here([ref.index for ref in refs], found, folder)
    else:
        _resolve_in_pipeline(engine, [ref.index for ref in refs], found, folder)


def read_copies(folder: str, shard: int) -> pa.Table:
    """How many documents went for the sake of a shard's rows; rows for which none did are not there."""
    url = _copies_url(folder, shard)
    return shards.read_parquet(url) if shards.exists(url) else COPIES_SCHEMA.empty_table()


def _resolve_here(indices: Sequence[int], found: Sequence[str], folder: str) -> None:
    decided = pa.concat_tables(_decided_on(index, found) for index in indices)
    met = split_by_partition(decided, _meeting_shard(decided))
    passed = [_passed_on(rows, _decided_on(shard, found)) for shard, rows in met.items()]
    final = pa.concat_tables([DECISION_SCHEMA.empty_table(), *passed])
    for shard, rows in split_by_partition(final, final["shard"].to_numpy()).items():
        write_decisions(folder, shard, rows)
    copies = _copies(final)
    for part in split_by_partition(copies, copies["kept_shard"].to_numpy()).items():
        _write_copies(part, folder)


def _resolve_in_pipeline(engine: Engine, indices: Sequence[int], found: Sequence[str], folder: str) -> None:
    carrier, scratch = engine.exchange_carrier, shards.join(folder, "scratch")

    def by_kept(index: int) -> Parcels:
        table = _decided_on(index, found)
        return Parcels(f"{index:06d}", split_by_partition(table, _meeting_shard(table)))

    def pass_on(group: tuple[int, pa.Table]) -> pa.Table:
        return _passed_on(group[1], _decided_on(group[0], found))

    def construct(pipeline: beam.Pipeline) -> None:
        final = (
            pipeline
            | Tasks(indices)
            | "ByKept" >> beam.Map(by_kept)
            | ExchangeByPartition(carrier, scratch, "ByMiddle")
            | "PassOn" >> beam.Map(pass_on)
        )
        _ = final | WriteDecisions(engine, folder) | Gather(shards.join(folder, "decisions.json"))
        _ = (
            final
            | "Copies" >> beam.Map(_copies)
            | "SomeCopies" >> beam.Filter(lambda table: table.num_rows > 0)
            | "SendCopies" >> beam.Map(_copies_parcels)
            | ExchangeByPartition(carrier, scratch, "CopiesByShard")
            | "WriteCopies" >> beam.Map(_write_copies, folder)
            | "GatherCopies" >> Gather(shards.join(folder, "copies.json"))
        )

    engine.run("resolve", construct)


def _decided_on(shard: int, found: Sequence[str]) -> pa.Table:
    """The decisions on a shard's rows, stage after stage."""
    return pa.concat_tables([DECISION_SCHEMA.empty_table(), *(read_decisions(source, shard) for source in found)])


def _meeting_shard(decisions: pa.Table) -> np.ndarray[Any, Any]:
    """Where each decision learns what became of its kept copy: that copy's shard, its own where there is none."""
    return np.asarray(pc.coalesce(decisions["kept_shard"], decisions["shard"]).to_numpy())


def _passed_on(table: pa.Table, later: pa.Table) -> pa.Table:
    """Decisions `table`, all kept by rows of one shard, after the decisions `later` on that shard's rows."""
    final = {row["row"]: row for row in later.to_pylist()}
    if not final:
        return table
    rows = [_follow(row, final.get(row["kept_row"])) for row in table.to_pylist()]
    return pa.Table.from_pylist(rows, schema=DECISION_SCHEMA)


def _follow(row: dict[str, Any], later: dict[str, Any] | None) -> dict[str, Any]:
    if later is None or later["duplicate_of"] is None:
        return row
    detail = f"{row['detail']}; its kept copy {row['duplicate_of']} went in stage {later['stage']}"
    moved = {name: later[name] for name in ("duplicate_of", "kept_shard", "kept_row")}
    return {**row, **moved, "duplicate_offset": None, "detail": detail}


def _copies(table: pa.Table) -> pa.Table:
    """The decisions on documents that are copies of the one kept for them."""
    return table.filter(pc.is_in(table["stage"], pa.array(COPY_STAGES)))


def _copies_parcels(table: pa.Table) -> Parcels:
    origin = table["id"][0].as_py() + "-" + table["stage"][0].as_py()
    slim = table.select(["kept_shard", "kept_row"])
    return Parcels(origin, split_by_partition(slim, slim["kept_shard"].to_numpy()))


def _write_copies(group: tuple[int, pa.Table], folder: str) -> dict[str, Any]:
    shard, table = group
    rows, counts = np.unique(table["kept_row"].to_numpy(), return_counts=True)
    copies = pa.table([pa.array(rows, pa.int32()), pa.array(counts, pa.int32())], schema=COPIES_SCHEMA)
    shards.write_parquet(_copies_url(folder, shard), copies)
    return {"shard": shard, "kept": len(rows)}


def _copies_url(folder: str, shard: int) -> str:
    return shards.join(folder, "copies", f"{shard:06d}.parquet")
