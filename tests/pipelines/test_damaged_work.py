"""A flipped bit below `.work` never reaches published files: the stage runs again, or the run names the file."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from finpile_pipelines.build import build
from finpile_pipelines.exchange.partition import PartitionedTables, _directories, _ReceiveFiles, _SendFiles
from finpile_pipelines.exchange.segments import Segments
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage_runner import StageEvent

from finpile.config import load_config
from finpile.errors import IntegrityError, RunError
from finpile.output.work_folder import SEAL_BYTES, WorkFolder
from finpile.verify import verify
from tests.support.required_stages import required
from tests.support.work_folders import files_of_stage

Snapshot = Callable[[Path], dict[str, bytes]]
WriteCorpus = Callable[..., Path]
NUM_FLIPS = 60


@pytest.fixture
def out(built: Path, tmp_path: Path) -> Path:
    """A copy of the finished build, to be damaged."""
    return Path(shutil.copytree(built, tmp_path / "out"))


def flip(path: Path, draw: random.Random) -> None:
    """Flips one bit."""
    data = bytearray(path.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def run(config: Path, out: Path, engine: Engine | None = None) -> list[tuple[str, str]]:
    """Builds; returns the stages that were damaged or ran."""
    events: list[StageEvent] = []
    build(load_config(config), str(out), engine or Engine(), listen=events.append)
    return [(event.stage, event.state) for event in events if event.state in ("damaged", "done")]


def flips(out: Path, count: int | None) -> Iterator[tuple[str, Path]]:
    """Files to damage, with their stage: one of each kind of each stage, or `count` drawn from all of them."""
    files = sorted(path for path in (out / ".work").rglob("*") if path.is_file() and path.name != "build.json")
    if count is None:
        kinds = {(path.relative_to(out).parts[1], path.suffix, path.parent.name): path for path in files}
        files = [path for (_, suffix, _), path in sorted(kinds.items()) if suffix != ".json"]
    else:
        files = random.Random(1).choices(files, k=count)
    return ((path.relative_to(out).parts[1], path) for path in files)


@pytest.mark.parametrize("count", [None, pytest.param(NUM_FLIPS, marks=pytest.mark.slow)], ids=["kinds", "many"])
def test_flipped_bit_runs_its_stage_again_and_changes_nothing(
    count: int | None, corpus: Path, out: Path, snapshot: Snapshot
) -> None:
    before = snapshot(out)
    draw = random.Random(20230330)
    damaged = set()
    for stage, path in flips(out, count):
        flip(path, draw)
        (out / ".work" / "reports" / "stage.json").unlink()  # the last stage has to run: all others are checked first
        found = run(corpus, out)
        if path.name == "stage.json":
            assert found == [(name, "done") for name in required() if name in (stage, "reports")]
        elif path.name == "started.json":  # read by no finished stage
            assert found == [("reports", "done")]
        else:
            assert found == [(stage, "damaged"), (stage, "done"), ("reports", "done")]
            damaged.add(stage)
        assert snapshot(out) == before
    assert damaged >= {"ingest", "clean", "exact", "near", "split", "tokens"}
    assert [check for check in verify(str(out)) if not check.ok] == []


def test_missing_decisions_are_noticed(corpus: Path, out: Path, snapshot: Snapshot) -> None:
    """Without its decisions a stage would have removed nothing from a shard."""
    before = snapshot(out)
    for path in (files_of_stage(out, "exact") / "equal" / "decisions").iterdir():
        path.unlink()
    (out / ".work" / "split" / "stage.json").unlink()
    assert run(corpus, out) == [("exact", "damaged"), ("exact", "done"), ("split", "done")]
    assert snapshot(out) == before


def test_published_files_that_later_stages_read_are_checked_too(corpus: Path, out: Path, snapshot: Snapshot) -> None:
    before = snapshot(out)
    flip(next((out / "documents").rglob("*.parquet")), random.Random(1))
    (out / ".work" / "tokens" / "stage.json").unlink()
    assert run(corpus, out) == [("split", "damaged"), ("split", "done"), ("tokens", "done")]
    assert snapshot(out) == before


@pytest.mark.parametrize("num_workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_bit_that_flips_while_a_build_runs_ends_it_with_the_file_and_the_remedy(
    num_workers: int, corpus: Path, built: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def shards() -> Path:
        return files_of_stage(out, "clean") / "documents"

    def damage(event: StageEvent) -> None:
        if (event.stage, event.state) == ("clean", "done"):
            flip(min(shards().iterdir()), random.Random(1))

    with pytest.raises(RunError, match="is damaged") as caught:
        build(load_config(corpus), str(out), Engine(num_workers=num_workers), listen=damage)
    assert f"{min(shards().iterdir())} is damaged" in str(caught.value)
    assert "run the same command again" in str(caught.value)
    assert run(corpus, out)[:2] == [("clean", "damaged"), ("clean", "done")]
    assert snapshot(out) == snapshot(built)


@pytest.mark.parametrize("schema", [None, pa.schema([("n", pa.int64()), ("t", pa.string())])], ids=["ipc", "packed"])
def test_every_flipped_bit_of_an_exchanged_file_is_noticed(schema: pa.Schema | None, tmp_path: Path) -> None:
    """These files live as long as one pipeline, and each of their readers reads a part."""
    tables = {name: pa.table({"n": list(range(name, name + 40)), "t": ["x"] * 40}) for name in (3, 5)}
    segments = Segments(schema)
    sent = list(
        _SendFiles(segments, WorkFolder(str(tmp_path)), holds_tables=False).send(PartitionedTables("a", tables))
    )
    directories = dict(_directories((0, [block for _, block in sent])))
    receive = _ReceiveFiles(segments, WorkFolder(str(tmp_path)))

    def received(name: int) -> dict[int, pa.Table]:
        return dict(receive((name, [directories[name]])))

    assert {name: received(name) for name in tables} == {name: {name: table} for name, table in tables.items()}
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for place in range(0, len(whole) - SEAL_BYTES, 7):
        damaged = bytearray(whole)
        damaged[place] ^= 16
        path.write_bytes(damaged)
        noticed = 0
        for name in tables:
            try:
                assert received(name) == {name: tables[name]}
            except IntegrityError:
                noticed += 1
        assert noticed == 1
    path.write_bytes(whole[: -SEAL_BYTES - 1])
    with pytest.raises(IntegrityError):
        received(5)
