"""What a pass of a snapshot is given that it was not given in the snapshot before.

New documents are those of the new shards. A document of an earlier shard is changed if the stages before this one
remove it now and did not before, or the reverse, or cut other spans from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from finpile.output.stage_record import StageRecord
from finpile.output.takedowns import TAKEDOWN
from finpile_pipelines.dedup.removals import Mark, marks_by_shard, read_removals, read_spans
from finpile_pipelines.shard_refs import REMOVAL_KINDS, RemovalFolder

_I32 = npt.NDArray[np.int32]
Records = Mapping[str, StageRecord]


@dataclass(frozen=True, slots=True)
class ChangedInputs:
    """The changed documents of earlier shards, by shard: rows, ascending."""

    now: Mapping[int, _I32]
    """Those that the stage is given: documents that have come back, or have another text."""
    before: Mapping[int, _I32]
    """Those that it was given before: documents that are gone, or have another text. Documents that were taken down are
    among them, whatever removed them before: `templates` counts those that `exact` removes."""


def changed_inputs(
    before: Sequence[RemovalFolder], after: Sequence[RemovalFolder], shards: Iterable[int]
) -> ChangedInputs:
    """The documents of earlier `shards` that a stage is given otherwise than in the snapshot before.

    `before` and `after` are the folders of what earlier stages, or steps, removed in the two snapshots.
    """
    now: dict[int, _I32] = {}
    gone: dict[int, _I32] = {}
    for shard in sorted(shards):
        (removed_before, taken_down_before), (removed, taken_down) = _removed(before, shard), _removed(after, shard)
        spans = _spans(before, shard), _spans(after, shard)
        recut = {row for row in spans[0].keys() | spans[1].keys() if spans[0].get(row) != spans[1].get(row)}
        changed = (removed_before ^ removed) | recut
        _put(now, shard, changed - removed)
        _put(gone, shard, changed - removed_before | taken_down - taken_down_before)
    return ChangedInputs(now, gone)


def shards_to_compare(before: Records, after: Records, stages: Collection[str], num_shards: int) -> set[int]:
    """The shards up to a number whose files of removals and spans, by these stages, have other checksums now."""
    marks = _marks(before, stages), _marks(after, stages)
    return {shard for shard in range(num_shards) if marks[0].get(shard) != marks[1].get(shard)}


def _marks(records: Records, stages: Collection[str]) -> dict[int, set[Mark]]:
    """The files of removals and spans of each shard."""
    seals = {stage: records[stage].seals for stage in stages if stage in records}
    return marks_by_shard(seals, dict.fromkeys(seals, REMOVAL_KINDS))


def _removed(folders: Sequence[RemovalFolder], shard: int) -> tuple[set[int], set[int]]:
    """The rows that are removed, and those of them that were taken down."""
    removed, taken_down = set[int](), set[int]()
    for folder in folders:
        table = read_removals(folder, shard).select(["row", "stage"])
        removed.update(table["row"].to_pylist())
        taken_down.update(table.filter(pc.equal(table["stage"], TAKEDOWN))["row"].to_pylist())
    return removed, taken_down


def _spans(folders: Sequence[RemovalFolder], shard: int) -> dict[int, list[list[tuple[int, int]]]]:
    """The spans of each row, in lists for the stages that cut it."""
    found: dict[int, list[list[tuple[int, int]]]] = {}
    for folder in folders:
        of_stage: dict[int, list[tuple[int, int]]] = {}
        for span in read_spans(folder, shard).select(["row", "start", "end"]).to_pylist():
            of_stage.setdefault(span["row"], []).append((span["start"], span["end"]))
        for row, spans in of_stage.items():
            found.setdefault(row, []).append(sorted(spans))
    return found


def _put(rows: dict[int, _I32], shard: int, found: set[int]) -> None:
    if found:
        rows[shard] = np.array(sorted(found), np.int32)
