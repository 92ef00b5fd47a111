"""Redirected duplicates: the launcher alone and a pipeline write the same."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from finpile_pipelines import graph
from finpile_pipelines.dedup.duplicate_chains import (
    RedirectDuplicates,
    Removals,
    read_copies,
    redirect_here,
)
from finpile_pipelines.dedup.removals import REMOVAL_SCHEMA, read_removals, write_removals
from finpile_pipelines.exchange.partition import Transport, split_by_partition
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef

from finpile.output.work_folder import WorkFolder
from finpile.plugins.stages import copy_stages, num_redirecting

Place = tuple[int, int]

_STAGES = ("exact", "near", "substring", "overlap", "contamination")
NUM_REDIRECTING = num_redirecting(_STAGES)
_NUM_SHARDS, _ROWS = 5, 40


def name(place: Place) -> str:
    return f"{place[0]:02d}-{place[1]:02d}"


def decide(folder: Path, stage: str, copies: dict[Place, Place | None]) -> WorkFolder:
    """Writes a stage's decisions: the removed documents and their kept copies."""
    rows = [
        {
            **dict.fromkeys(REMOVAL_SCHEMA.names),
            "shard": shard,
            "row": row,
            "id": name((shard, row)),
            "stage": stage,
            "reason": "any",
            "detail": "",
            "duplicate_of": name(kept) if kept else None,
            "kept_shard": kept[0] if kept else None,
            "kept_row": kept[1] if kept else None,
        }
        for (shard, row), kept in copies.items()
    ]
    table = pa.Table.from_pylist(rows, schema=REMOVAL_SCHEMA)
    for shard, part in split_by_partition(table, table["shard"].to_numpy()).items():
        write_removals(WorkFolder(str(folder)) / stage, shard, part)
    return WorkFolder(str(folder)) / stage


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[Place, Place | None]], list[WorkFolder]]:
    """Each stage removes some of what those before it left, exact and near for the sake of others."""
    draw, folder = random.Random(11), tmp_path_factory.mktemp("found")
    left = [(shard, row) for shard in range(_NUM_SHARDS) for row in range(_ROWS)]
    found: dict[str, dict[Place, Place | None]] = {}
    for stage in _STAGES:
        dropped = set(draw.sample(left[:60], 30))
        left = [place for place in left if place not in dropped]
        copies = {place: draw.choice(left[:60]) for place in sorted(dropped)}
        # Of what cuts leave little of, and of what holds evaluation items, no other document is kept.
        alone = {"substring": 0.5, "contamination": 1}.get(stage, 0)
        found[stage] = {place: None if draw.random() < alone else kept for place, kept in copies.items()}
    return found, [decide(folder, stage, copies) for stage, copies in found.items()]


def resolved(found: list[WorkFolder], folder: Path, transport: Transport | None = None) -> dict[str, bytes]:
    """The files that the launcher writes, or a pipeline with that transport."""
    refs = [ShardRef(index, 0, f"s{index}", WorkFolder("clean")) for index in range(_NUM_SHARDS)]
    removals = Removals(folders=tuple(found), number=150, copy_stages=copy_stages(), num_redirecting=NUM_REDIRECTING)
    engine = Engine(transport=transport)

    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | RedirectDuplicates(engine, refs, removals, WorkFolder(str(folder)))

    if transport is None:
        redirect_here(refs, removals, WorkFolder(str(folder)))
    else:
        engine.run("resolve", construct)
    files = sorted(path for part in ("decisions", "copies") for path in (folder / part).iterdir())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("transport", ["files", "shuffle"])
def test_a_pipeline_writes_the_output_of_the_launcher(
    transport: Transport, stages: tuple[dict[str, dict[Place, Place | None]], list[WorkFolder]], tmp_path: Path
) -> None:
    found = resolved(stages[1], tmp_path / "pipeline", transport)
    assert (tmp_path / "pipeline" / "decisions.json").exists()
    assert found == resolved(stages[1], tmp_path / "here")
    assert not (tmp_path / "here" / "decisions.json").exists()  # else both went the same way


def test_copies_are_passed_on_and_counted(
    stages: tuple[dict[str, dict[Place, Place | None]], list[WorkFolder]], tmp_path: Path
) -> None:
    """Against a walk along the copies, one document after the other."""
    removed, found = stages
    resolved(found, tmp_path)
    expected: dict[Place, Place | None] = {}
    counts: dict[Place, int] = {}
    all_kept = {place: kept for copies in removed.values() for place, kept in copies.items()}
    num_redirects = []
    for stage, copies in removed.items():
        for place, first in copies.items():
            kept, number = first, 0
            while kept and all_kept.get(kept):
                kept, number = all_kept[kept], number + 1
            num_redirects.append(number)
            expected[place] = kept
            if kept and stage in copy_stages():
                counts[kept] = counts.get(kept, 0) + 1
    assert max(num_redirects) == NUM_REDIRECTING - 1
    rows = [row for shard in range(_NUM_SHARDS) for row in read_removals(WorkFolder(str(tmp_path)), shard).to_pylist()]
    assert len(rows) == 150
    assert {row["id"]: row["duplicate_of"] for row in rows} == {
        name(place): name(kept) if kept else None for place, kept in expected.items()
    }
    assert sum(first != expected[place] for place, first in removed["exact"].items()) > 5
    reported = {
        (shard, row["row"]): row["num_copies"]
        for shard in range(_NUM_SHARDS)
        for row in read_copies(WorkFolder(str(tmp_path)), shard).to_pylist()
    }
    assert reported == counts
