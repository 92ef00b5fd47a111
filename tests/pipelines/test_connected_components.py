"""Connected components in memory and by star rounds give the same decisions, byte for byte."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from finpile_pipelines.exchange.partition import Transport, split_by_partition
from finpile_pipelines.exchange.tasks import sum_of
from finpile_pipelines.executors.connected_components import (
    ConnectedComponents,
    by_number,
    connect_in_memory,
    write_partition,
)
from finpile_pipelines.executors.shard_documents import ShardDocuments
from finpile_pipelines.executors.shards import PlanOverShards
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef, write_clean
from finpile_pipelines.stage import PAIRS_IN_MEMORY, Sizes

from finpile import storage
from finpile.clean.stage.document_rows import as_clean
from finpile.config import DedupConfig, NearConfig
from finpile.dedup import components
from finpile.dedup.near import clusters
from finpile.dedup.near.plan import plan as near_plan
from finpile.dedup.plan import Inputs, Settings
from finpile.documents.document import DOCUMENT_SCHEMA, DocumentBuilder, RawDocument
from finpile.output.work_folder import WorkFolder
from tests.support.trees import assert_same

_WORDS = [f"{first}{second}" for first in "abcdefgh" for second in "klmnopqrst"]
_NEAR = NearConfig.named("fast")
_LARGE = "bucket of more than 32"
Decisions = dict[str, tuple[str, str]]


def edited(words: list[str], draw: random.Random, num: int) -> list[str]:
    words = words[:]
    for _ in range(num):
        words[draw.randrange(len(words))] = draw.choice(_WORDS)
    return words


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Ninety copies of one text, eight of each of ten, a chain of forty in which far ends are far apart, and others."""
    draw = random.Random(4)
    found = []
    base = draw.choices(_WORDS, k=60)
    found += [[*edited(base, draw, 1), f"copy{'xy'[i % 2]}" * (i // 2 + 1)] for i in range(90)]
    for _ in range(10):
        base = draw.choices(_WORDS, k=80)
        found += [edited(base, draw, 3) for _ in range(8)]
    link = draw.choices(_WORDS, k=80)
    for _ in range(40):
        link = edited(link, draw, 2)
        found.append(link)
    found += [draw.choices(_WORDS, k=50) for _ in range(30)]
    lines = sorted({" ".join(words) for words in found})
    draw.shuffle(lines)
    return lines


def write_shards(texts: list[str], num_shards: int, folder: WorkFolder) -> list[ShardRef]:
    refs = []
    for index in range(num_shards):
        builder = DocumentBuilder("FinPile", "News")
        for number in range(index, len(texts), num_shards):
            builder.append(RawDocument(locator=str(number), text=texts[number]))
        batch = as_clean(builder.flush().select(DOCUMENT_SCHEMA.names))
        refs.append(ShardRef(index, 0, f"s{index:03d}", folder))
        write_clean(refs[-1].file, [batch.slice(0, 5), batch.slice(5)])
    return refs


@pytest.fixture(scope="module")
def decide(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, dict[str, Any]]]:
    plan = near_plan(Settings(dedup=DedupConfig(near=_NEAR)))
    assert plan is not None

    def run(transport: Transport, pairs: int, num_shards: int = 5) -> tuple[Path, dict[str, Any]]:
        folder = tmp_path_factory.mktemp("near")
        refs = write_shards(texts, num_shards, WorkFolder(str(folder)) / "clean")
        over_shards = PlanOverShards(
            stage="near",
            plan=plan,
            inputs=Inputs(),
            refs=tuple(refs),
            documents=ShardDocuments(scopes=("FinPile",), removals=()),
            folder=WorkFolder(str(folder)) / "near",
            engine=Engine(transport=transport),
            sizes=Sizes(pairs_in_memory=pairs),
        )
        return folder / "near" / "groups", over_shards.run()

    return run


@pytest.fixture(scope="module")
def in_memory(decide: Callable[..., tuple[Path, dict[str, Any]]]) -> tuple[Path, dict[str, Any]]:
    return decide("files", PAIRS_IN_MEMORY)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for name in ("groups", "members", "named_pairs", "decisions")
        for path in sorted((folder / name).iterdir())
    }


@pytest.mark.parametrize("transport", ["files", "shuffle"])
def test_star_rounds_give_the_bytes_of_the_way_in_memory(
    transport: Transport,
    decide: Callable[..., tuple[Path, dict[str, Any]]],
    in_memory: tuple[Path, dict[str, Any]],
) -> None:
    folder, counts = decide(transport, 0)
    assert (folder / "changed.json").exists()
    assert not (in_memory[0] / "changed.json").exists()  # else both went the same way
    assert counts == in_memory[1]
    assert_same(contents(folder), contents(in_memory[0]))


def decisions_of(folder: Path) -> Decisions:
    files = WorkFolder(str(folder)) / "decisions"
    rows = [row for name in files.names() for row in storage.read_parquet(files.file(name)).to_pylist()]
    return {row["id"]: (row["duplicate_of"], row["detail"]) for row in rows}


@pytest.mark.parametrize(("num_shards", "pairs"), [(17, PAIRS_IN_MEMORY), pytest.param(1, 0, marks=pytest.mark.slow)])
def test_output_does_not_depend_on_the_number_of_shards(
    num_shards: int,
    pairs: int,
    decide: Callable[..., tuple[Path, dict[str, Any]]],
    in_memory: tuple[Path, dict[str, Any]],
) -> None:
    folder, counts = decide("files", pairs, num_shards)
    assert counts == in_memory[1]
    assert decisions_of(folder) == decisions_of(in_memory[0])


def test_counts_and_details_report_large_buckets(in_memory: tuple[Path, dict[str, Any]], texts: list[str]) -> None:
    folder, counts = in_memory
    decisions = decisions_of(folder)
    assert counts["removed"] == len(decisions) > 150
    assert counts["large_buckets"] > 0
    assert counts["candidate_pairs"] > counts["compared_pairs"] >= counts["verified_pairs"] >= len(decisions)
    assert counts["grouped_documents"] < len(texts)
    reported = {removed for removed, (_, detail) in decisions.items() if _LARGE in detail}
    assert 32 < len(reported) < 90  # the ninety copies of one text; no document of the groups of eight


def test_no_pairs_make_no_groups(tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path))
    assert ConnectedComponents(Engine(), folder, 3, "near").run() == 0
    assert connect_in_memory(folder, 3) == 0
    assert (folder / "groups").names() == []


def test_rounds_over_exchanges_join_a_long_chain(tmp_path: Path) -> None:
    draw, folder = random.Random(0), WorkFolder(str(tmp_path))
    numbers = [draw.getrandbits(63) for _ in range(300)]
    ends = sorted((min(pair), max(pair), False) for pair in pairwise(numbers))
    columns = [list(column) for column in zip(*ends, strict=True)]
    pairs = pa.table(columns, schema=clusters.PAIR_SCHEMA)
    for partition, part in split_by_partition(pairs, by_number(pairs["a"].to_numpy(), 4)).items():
        write_partition(folder / "pairs", partition, part)
    assert ConnectedComponents(Engine(), folder, 4, "near").run() == 300
    groups = folder / "groups"
    found = [storage.read_parquet(groups.file(name)) for name in groups.names()]
    assert len(found) == 4
    assert pa.concat_tables(found).equals(components(pairs))  # ranges in order make the whole in order
    assert sum_of("changed")(storage.read_json(folder.file("changed.json"))) == 0
    assert not (tmp_path / "rounds").exists()
