"""Near duplicates over exchanges. `finpile.dedup` hashes, pairs and verifies; here rows and texts meet.

    keys      band keys of each text --by key--> candidate pairs
    groups    connected candidates (the edges fit in memory; the texts need not)
    texts     only those of grouped documents travel --by group--> verified, resolved --by shard--> decisions

A document's number is drawn from its scope and text, so pairs do not depend on how the corpus was cut into shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from finpile import shards
from finpile.config import CorpusConfig, NearConfig
from finpile.dedup import clusters, minhash, verify
from finpile.document import text_views
from finpile_pipelines.decisions import WriteDecisions, decision_table
from finpile_pipelines.dedup import num_partitions
from finpile_pipelines.engine import Engine, Gather, Tasks
from finpile_pipelines.exchange import ExchangeByPartition, Parcels, by_range, split_by_partition
from finpile_pipelines.local import report_progress
from finpile_pipelines.shardrefs import ShardRef
from finpile_pipelines.survivors import Survivors

_KEY_SCHEMA = pa.schema([("key", pa.uint64()), ("doc", pa.int64())])


def run_near(
    engine: Engine, config: CorpusConfig, refs: Sequence[ShardRef], clean: str, found: Sequence[str], folder: str
) -> dict[str, Any]:
    """Finds near duplicates among what the stages `found` left of the clean shards; returns counts."""
    near = config.dedup.near
    if near is None:
        return {"removed": 0}
    stage = _NearStage(engine, config, near, tuple(refs), clean, tuple(found), folder)
    num_pairs = stage.pair()
    num_grouped = stage.group()
    num_removed = stage.decide() if num_grouped else 0
    return {"candidate_pairs": num_pairs, "grouped_documents": num_grouped, "removed": num_removed}


class _NearStage:
    """The three steps and the files between them."""

    def __init__(
        self,
        engine: Engine,
        config: CorpusConfig,
        near: NearConfig,
        refs: tuple[ShardRef, ...],
        clean: str,
        found: tuple[str, ...],
        folder: str,
    ) -> None:
        self._engine = engine
        self._near = near
        self._refs = refs
        self._reader = Survivors(config, clean, found)
        self._folder = folder
        self._partitions = num_partitions(refs)
        self._scratch = shards.join(folder, "scratch")

    def pair(self) -> int:
        """Writes the candidate pairs of each key partition; returns how many."""
        near, partitions, reader, folder = self._near, self._partitions, self._reader, self._folder

        def send(ref: ShardRef) -> Parcels:
            table = _key_rows(reader, ref, near)
            keys = by_range(table["key"].to_numpy(), partitions)
            return Parcels(f"{ref.index:06d}", split_by_partition(table, keys))

        def write(group: tuple[int, pa.Table]) -> dict[str, Any]:
            pairs = clusters.candidate_pairs(group[1])
            shards.write_parquet(shards.join(folder, "pairs", f"{group[0]:06d}.parquet"), pairs)
            return {"partition": group[0], "pairs": pairs.num_rows}

        def construct(pipeline: beam.Pipeline) -> None:
            exchange = ExchangeByPartition(self._engine.exchange_carrier, self._scratch, "ByBandKey")
            outcomes = pipeline | Tasks(self._refs) | "Keys" >> beam.Map(send) | exchange | "Pairs" >> beam.Map(write)
            _ = outcomes | Gather(shards.join(folder, "pairs.json"))

        self._engine.run("near: keys", construct)
        return sum(outcome["pairs"] for outcome in shards.read_json(shards.join(folder, "pairs.json")))

    def group(self) -> int:
        """Writes `groups` (number, group) and the pairs of each group partition; returns the grouped documents."""
        folder = shards.join(self._folder, "pairs")
        tables = [shards.read_parquet(shards.join(folder, path)) for path in shards.list_files(folder)]
        if not tables:
            return 0
        pairs = pa.concat_tables(tables).group_by(["a", "b"]).aggregate([])
        pairs = pairs.sort_by([("a", "ascending"), ("b", "ascending")])
        groups = clusters.components(pairs)
        shards.write_parquet(shards.join(self._folder, "groups.parquet"), groups)
        at = np.searchsorted(groups["doc"].to_numpy(), pairs["a"].to_numpy())
        named = pairs.append_column("group", groups["group"].take(pa.array(at)))
        for partition, part in split_by_partition(named, named["group"].to_numpy() % self._partitions).items():
            shards.write_parquet(shards.join(self._folder, "grouped_pairs", f"{partition:06d}.parquet"), part)
        return int(groups.num_rows)

    def decide(self) -> int:
        """Brings each group's texts together and writes the decisions by shard; returns how many."""
        near, partitions, reader, folder = self._near, self._partitions, self._reader, self._folder

        def send(ref: ShardRef) -> Parcels:
            table = _grouped_rows(reader, ref, shards.read_parquet(shards.join(folder, "groups.parquet")))
            parts = split_by_partition(table, table["group"].to_numpy() % partitions) if table else {}
            return Parcels(f"{ref.index:06d}", parts)

        def decide(group: tuple[int, pa.Table]) -> pa.Table:
            pairs = shards.read_parquet(shards.join(folder, "grouped_pairs", f"{group[0]:06d}.parquet"))
            return decision_table(_resolve_partition(group[1], pairs, near), "near")

        def construct(pipeline: beam.Pipeline) -> None:
            exchange = ExchangeByPartition(self._engine.exchange_carrier, self._scratch, "ByGroup")
            decided = (
                pipeline | Tasks(self._refs) | "Texts" >> beam.Map(send) | exchange | "Resolve" >> beam.Map(decide)
            )
            _ = decided | WriteDecisions(self._engine, folder) | Gather(shards.join(folder, "tasks.json"))

        self._engine.run("near: verify", construct)
        return sum(outcome["removed"] for outcome in shards.read_json(shards.join(folder, "tasks.json")))


def _key_rows(reader: Survivors, ref: ShardRef, near: NearConfig) -> pa.Table:
    """One row (key, doc) for each band of each document that has words."""
    tables = [_KEY_SCHEMA.empty_table()]
    for table in reader.read(ref):
        keys = minhash.keys_in_scope(minhash.band_keys(table, near), reader.scope(ref)).ravel()
        docs = np.repeat(table["number"].to_numpy(), near.bands)
        worded = keys != minhash.NO_KEY
        tables.append(pa.table({"key": keys[worded], "doc": docs[worded]}, schema=_KEY_SCHEMA))
        report_progress(table.num_rows, table["text"].nbytes)
    return pa.concat_tables(tables)


def _grouped_rows(reader: Survivors, ref: ShardRef, groups: pa.Table) -> pa.Table | None:
    """The shard's documents that belong to a group; None for an empty shard."""
    known, group = groups["doc"].to_numpy(), groups["group"].to_numpy()
    tables = []
    for table in reader.read(ref):
        numbers = table["number"].to_numpy()
        at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        found = known[at] == numbers
        tables.append(table.filter(pa.array(found)).append_column("group", pa.array(group[at[found]])))
    return pa.concat_tables(tables) if tables else None


def _resolve_partition(table: pa.Table, pairs: pa.Table, near: NearConfig) -> pa.Table:
    """Decisions on all groups of one partition."""
    preferred = [("group", "ascending"), ("priority", "ascending"), ("timestamp", "ascending")]
    rows = table.sort_by([*preferred, ("digest", "ascending"), ("id", "ascending")])
    bounds = _named_bounds(rows["group"].to_numpy())
    edges = pairs.sort_by([("group", "ascending"), ("a", "ascending"), ("b", "ascending")])
    edge_bounds = dict(_named_bounds(edges["group"].to_numpy()))
    numbers = rows["number"].to_numpy()
    a, b = edges["a"].to_numpy(), edges["b"].to_numpy()
    found: list[dict[str, Any]] = []
    for group, (start, end) in bounds:
        low, high = edge_bounds[group]
        local = {int(number): index for index, number in enumerate(numbers[start:end])}
        linked = [(local[int(x)], local[int(y)]) for x, y in zip(a[low:high], b[low:high], strict=True)]
        members = rows.slice(start, end - start)
        texts = [bytes(view) for view in text_views(members)]
        found += [_decision(members, resolved) for resolved in verify.resolve_group(texts, linked, near)]
    return pa.Table.from_pylist(found, schema=_FOUND_SCHEMA)


_FOUND_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("shard", pa.int32()),
        ("row", pa.int32()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("duplicate_of", pa.string()),
        ("duplicate_offset", pa.int64()),
        ("kept_shard", pa.int32()),
        ("kept_row", pa.int32()),
    ]
)


def _decision(members: pa.Table, resolved: verify.NearDuplicate) -> dict[str, Any]:
    gone, stays = (
        members.select(["id", "shard", "row"]).slice(index, 1).to_pylist()[0]
        for index in (resolved.removed, resolved.kept)
    )
    detail = f"jaccard {resolved.jaccard:.3f}, edit similarity {resolved.edit_similarity:.3f}"
    return {
        **gone,
        "reason": verify.REASON,
        "detail": detail,
        "duplicate_of": stays["id"],
        "duplicate_offset": None,
        "kept_shard": stays["shard"],
        "kept_row": stays["row"],
    }


def _named_bounds(sorted_values: np.ndarray[Any, Any]) -> Iterator[tuple[int, tuple[int, int]]]:
    names, starts = np.unique(sorted_values, return_index=True)
    ends = np.append(starts[1:], len(sorted_values))
    for name, start, end in zip(names.tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield name, (start, end)
