"""Same input, same bytes: nothing that is published shows how the work was cut, carried or scheduled."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from finpile_pipelines.build import Sizes, build
from finpile_pipelines.corpus import split
from finpile_pipelines.corpus.split import plan_parts
from finpile_pipelines.exchange import held_tables
from finpile_pipelines.runner.engine import Engine

from finpile.config import CorpusConfig, load_config
from finpile.output.layout import CARD_FILES
from finpile.storage import sizes as storage_sizes
from tests.support.trees import assert_same
from tests.support.work_folders import files_of_stage

Snapshot = Callable[[Path], dict[str, bytes]]
PATIENCE_SECONDS = 300
#: Keys of a stage's record that tell of the machine, not of the result.
_OF_THE_MACHINE = ("wall_seconds", "cpu_seconds", "peak_memory_bytes")


@pytest.fixture
def config(sample_config: Path) -> CorpusConfig:
    return load_config(sample_config)


def manifest_of(out: Path) -> dict[str, Any]:
    """The manifest without the fields that depend on the machine."""
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    stages = [{k: v for k, v in stage.items() if k not in _OF_THE_MACHINE} for stage in manifest["stages"]]
    return {**manifest, "stages": stages, "checksum": None}  # it covers the times too


def listed_backwards(config: CorpusConfig) -> CorpusConfig:
    """Each entry names its files one by one, last first."""
    sources = []
    for source in config.sources:
        files = [path for pattern in source.paths for path in Path(config.root).glob(pattern)]
        names = tuple(path.relative_to(config.root).as_posix() for path in sorted(files, reverse=True))
        sources.append(dataclasses.replace(source, paths=names))
    return dataclasses.replace(config, sources=tuple(sources))


def test_two_workers_publish_the_output_of_one(
    config: CorpusConfig, sample_build: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    build(config, str(tmp_path / "out"), Engine(num_workers=2))
    assert_same(snapshot(tmp_path / "out"), snapshot(sample_build))
    assert manifest_of(tmp_path / "out") == manifest_of(sample_build)


def test_output_does_not_depend_on_shards_threads_transport_or_file_order(
    config: CorpusConfig, sample_build: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    """All at once; if this fails, the slow tests below name the one that shows."""
    engine, sizes = Engine(num_workers=3, threads=True, transport="shuffle"), Sizes(shard_bytes=20_000)
    build(listed_backwards(config), str(tmp_path / "out"), engine, sizes=sizes)
    shards = list((files_of_stage(tmp_path / "out", "ingest") / "documents").iterdir())
    assert len(shards) > 2 * len(list((files_of_stage(sample_build, "ingest") / "documents").iterdir()))
    assert_same(snapshot(tmp_path / "out"), snapshot(sample_build))


@pytest.mark.slow
def test_threads_publish_the_output_of_one(
    config: CorpusConfig, sample_build: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    engine, sizes = Engine(num_workers=3, threads=True), Sizes(shard_bytes=20_000)
    build(config, str(tmp_path / "out"), engine, sizes=sizes)
    assert_same(snapshot(tmp_path / "out"), snapshot(sample_build))


@pytest.mark.slow
@pytest.mark.parametrize("shard_bytes", [1, 20_000, 200_000])
@pytest.mark.parametrize("num_workers", [1, 2])
def test_output_does_not_depend_on_the_size_of_shards(
    shard_bytes: int, num_workers: int, config: CorpusConfig, sample_build: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    build(config, str(tmp_path / "out"), Engine(num_workers=num_workers), sizes=Sizes(shard_bytes=shard_bytes))
    assert_same(snapshot(tmp_path / "out"), snapshot(sample_build))


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [1, 2])
def test_output_does_not_depend_on_the_transport(
    num_workers: int, config: CorpusConfig, sample_build: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    build(config, str(tmp_path / "out"), Engine(num_workers=num_workers, transport="shuffle"))
    assert_same(snapshot(tmp_path / "out"), snapshot(sample_build))


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["files", "shuffle"])
@pytest.mark.parametrize("threads", [False, True])
def test_every_stage_filters_with_files_and_a_mixture_publish_the_output_of_one_worker(
    threads: bool, transport: Any, full_build: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    engine = Engine(num_workers=2, threads=threads, transport=transport)
    build(load_config(full_build / "sample.yaml"), str(tmp_path / "out"), engine, sizes=Sizes(shard_bytes=20_000))
    assert_same(snapshot(tmp_path / "out"), snapshot(full_build / "out"))


@pytest.mark.slow
def test_the_corpus_of_every_stage_leaves_something_for_each(full_build: Path) -> None:
    """A stage, filter or weight without effect could not differ between engines."""
    manifest = manifest_of(full_build / "out")
    counts = {stage["stage"]: stage["counts"] for stage in manifest["stages"]}
    removed = pa.concat_tables(
        pq.read_table(path, columns=["reason"], partitioning=None)
        for path in (full_build / "out/removed").rglob("*.parquet")
    )
    assert {"url_listed", "fasttext_low", "pii_email", "pii_phone", "template"} <= set(removed["reason"].to_pylist())
    assert {"exact", "near", "substring", "templates", "contamination"} <= {
        path.name.removeprefix("stage=") for path in (full_build / "out/removed").iterdir()
    }
    weights = {entry["source"]: entry["weight"] for entry in counts["tokens"]["mixture"] if entry["least"] == 1}
    assert weights["News"] == "3/2"
    assert weights["FreeLaw"] == "2"
    assert "/" in weights["Notices"], "of a share"
    parts = {part["source"]: part["sub_sources"] for part in counts["tokens"]["statistics"] if "sub_sources" in part}
    assert {entry["sub_source"] for entry in parts["Notices"]} == {"UK", "Asia-Pac", None}


@pytest.mark.slow
def test_output_does_not_depend_on_the_order_of_files(
    config: CorpusConfig, sample_build: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    build(listed_backwards(config), str(tmp_path / "out"), Engine())
    assert_same(snapshot(tmp_path / "out"), snapshot(sample_build))


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "1"])
def test_output_does_not_depend_on_the_hash_seed(
    seed: str,
    sample_config: Path,
    sample_build: Path,
    snapshot: Snapshot,
    start_python: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    command = ["-m", "finpile_cli", "build", sample_config, "-o", tmp_path / "out", "--workers", "1"]
    process = start_python(*command, PYTHONHASHSEED=seed, TZ="Pacific/Auckland", LC_ALL="C")
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, err
    assert_same(snapshot(tmp_path / "out"), snapshot(sample_build))


def test_size_of_parts_changes_only_the_split_into_files(
    config: CorpusConfig, sample_build: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(sample_build, tmp_path / "out"))
    ran: list[str] = []
    build(
        config,
        str(out),
        Engine(),
        sizes=Sizes(part_bytes=30_000),
        listen=lambda event: ran.append(event.stage) if event.state == "done" else None,
    )
    assert ran[0] == "split"  # the first stage that has parts
    found, expected = snapshot(out), snapshot(sample_build)
    divided = ("documents/", "removed/")
    naming = ("delta/", "tokens/index/", *CARD_FILES)  # name files of documents
    whole = [path for path in expected if not path.startswith((*divided, *naming))]
    assert_same({path: found.get(path, b"") for path in whole}, {path: expected[path] for path in whole})
    folders = {path.rpartition("/")[0] for path in expected if path.startswith(divided)}
    parts, few = (len(list((folder / "documents").rglob("train-*"))) for folder in (out, sample_build))
    assert parts > 2 * few
    for folder in sorted(folders):
        assert joined(out / folder).equals(joined(sample_build / folder), check_metadata=True), folder


def test_ranges_of_files_are_published_as_single_files_are(
    config: CorpusConfig, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard has two segments of documents, and two of the ledger, whose receivers split them in files."""
    found = []
    for most in (None, 2):
        out = tmp_path / str(most)
        if most is not None:
            monkeypatch.setattr(split, "most_document_segments", lambda shard_bytes, most=most: most)
            monkeypatch.setattr(storage_sizes, "RANGE_BYTES", 4_000)
            monkeypatch.setattr(held_tables, "HELD_BYTES", 0)
        build(config, str(out), Engine(), sizes=Sizes(part_bytes=10_000), until="split")
        found.append(snapshot(out))
    assert_same(*found)


def test_a_small_source_is_cut_smaller_so_that_several_workers_have_some() -> None:
    sizes = {0: 1, 16: 1, 17: 2, 80: 5, 512: 32, 1024: 32, 4096: 32, 4097: 33, 8192: 64}  # MiB: files
    for size, expected in sizes.items():
        parts = plan_parts({("FinPile", "News"): size << 20}, {}, 128 << 20, ["train"])
        assert len(parts.documents["FinPile", "News", "train"]) == expected, size


def joined(folder: Path) -> pa.Table:
    """Documents files end to end; the ledger, which is cut by id, in the order that each of its files has."""
    table = pa.concat_tables([pq.ParquetFile(path).read() for path in sorted(folder.iterdir())])
    if "reason" not in table.column_names:
        return table.combine_chunks()
    order: Iterable[str] = ("dataset", "source", "locator", "id", "start", "end", "reason")
    return table.sort_by([(name, "ascending") for name in order]).combine_chunks()
