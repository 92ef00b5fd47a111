"""Progress: the reports of a pipeline's tasks grow, and add up to all of its work."""

from __future__ import annotations

import dataclasses
import gzip
import random
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import date
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from finpile_pipelines import graph, progress
from finpile_pipelines.build import build
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import Progress, counted, report_part, shares_of
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.unigram import split_merge
from finpile_pipelines.unigram.counting import Chunk
from finpile_tokenizer import UnigramTrainer, count_pretokens
from finpile_tokenizer.training.state import TrainingState

from finpile import storage
from finpile.config import SourceConfig, load_config
from finpile.sources.readers.finding import list_inputs
from finpile.sources.readers.reading import read_file
from tests.support.json_lines import json_lines
from tests.support.required_stages import required

_NEAR = {"bands": 32, "rows": 8, "numbers": "any"}
_DEDUP = {"exact": True, "near": _NEAR, "substring": {"min_length": 20, "rounds": 2}}
_HELDOUT = {"after": date(2022, 7, 31), "undated": "train", "overlap": {"min_length": 40, "near": _NEAR}}


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The shares that tasks of this process report."""
    found: list[float] = []
    monkeypatch.setattr(progress, "_report_share", found.append)
    return found


# --- tasks -----------------------------------------------------------------------------------------------------------


def test_share_of_an_element_counts_when_its_consumer_is_done_with_it(reported: list[float]) -> None:
    elements = counted(0.5, ["a"])
    next(elements)
    assert reported == []
    assert next(elements, None) is None
    assert reported == [0.5]


def test_parts_of_a_task_count_once_and_never_backwards(reported: list[float]) -> None:
    for part in counted(0.8, [(0.25, 0.1, 0.25, 0.5, 7.0)]):
        for step in part:
            report_part(step)
    assert reported == pytest.approx([0.2, 0.2, 0.4, 0.0])
    assert sum(reported) == pytest.approx(0.8)


def test_calls_that_advance_less_than_a_hundredth_of_a_task_report_nothing(reported: list[float]) -> None:
    """Readers call after each record: what they write is bounded by the task, not by its records."""
    num_calls = 100_000
    for _ in counted(1.0, [None]):
        for call in range(num_calls):
            report_part(call / num_calls)
    assert 50 < len(reported) <= 101
    assert sum(reported) == pytest.approx(1.0)


def test_part_outside_of_a_task_is_of_no_consequence(reported: list[float]) -> None:
    report_part(0.5)
    assert reported == []


def test_task_within_a_task_leaves_the_outer_one_as_it_was(reported: list[float]) -> None:
    for _ in counted(0.6, ["outer"]):
        for _ in counted(0.4, ["inner"]):
            report_part(0.5)
        report_part(0.5)
    assert reported == pytest.approx([0.2, 0.2, 0.3, 0.3])


def test_shares_are_in_proportion_to_sizes() -> None:
    assert shares_of([1, 2, 5], 0.8) == pytest.approx([0.1, 0.2, 0.5])
    assert shares_of([0, 0]) == [0.5, 0.5]
    assert shares_of([]) == []


@pytest.mark.parametrize("works", [(1,), (1, 1), (9, 1), (3, 17, 0)])
def test_parts_of_an_engine_follow_each_other_and_cover_its_span(works: tuple[float, ...]) -> None:
    spans = [engine.span for engine in Engine().part(0.5, 0.75).parts(*works)]
    assert spans[0][0] == 0.5
    assert spans[-1][1] == 0.75
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    assert [(end - begin) * 4 * sum(works) for begin, end in spans] == pytest.approx(works)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_share_grows_task_by_task_from_all_workers(num_workers: int, tmp_path: Path) -> None:
    """Each task waits until the watcher has seen the share of those before it."""
    seen: list[Progress] = []

    def watch(label: str, progress: Progress) -> None:
        seen.append(progress)
        (tmp_path / f"{round(progress.pass_share * 8)}").touch()

    def work(folder: Path) -> dict[str, int]:
        import time

        from finpile_pipelines.progress import report_part

        report_part(0.5, "half of it")
        waits = 0
        while not (folder / "4").exists() and waits < 3000:  # both tasks have reported half of their shares
            waits += 1
            time.sleep(0.01)
        return {"waits": waits}

    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | Tasks([tmp_path] * num_workers, sizes=[3, 5][:num_workers]) | graph.Map(work) | Gather(url)

    url = str(tmp_path / "out.json")
    Engine(num_workers=num_workers, watch=watch).part(0.2, 0.6).run("counting", construct)
    assert all(row["waits"] < 3000 for row in storage.read_json(url))
    assert all(before.pass_share <= after.pass_share for before, after in pairwise(seen))
    assert seen[-1].pass_share == 1.0
    assert all(progress.share == pytest.approx(0.2 + 0.4 * progress.pass_share) for progress in seen)
    assert seen[-1].note == "half of it"


# --- the pipelines of a build ----------------------------------------------------------------------------------------


class Watched:
    """The progress passed to the watcher of a build, and the shares that tasks reported during each pipeline."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, Progress]] = []
        self.sums: defaultdict[str, list[float]] = defaultdict(list)
        self._run = Engine.run
        self._report = progress._report_share
        self._running = ""
        monkeypatch.setattr(Engine, "run", lambda engine, label, construct: self._named(engine, label, construct))
        monkeypatch.setattr(progress, "_report_share", self._add)

    def watch(self, label: str, progress: Progress) -> None:
        self.seen.append((label, progress))

    def _named(self, engine: Engine, label: str, construct: Any) -> None:
        self._running = label
        self.sums[label].append(0.0)
        self._run(engine, label, construct)

    def _add(self, share: float) -> None:
        self.sums[self._running][-1] += share
        self._report(share)


def stages(seen: Iterable[tuple[str, Progress]]) -> dict[str, list[Progress]]:
    """Progress by stage: the pipelines of a stage follow each other."""
    named = ((label.partition(": ")[0], progress) for label, progress in seen)
    return {name: [progress for _, progress in some] for name, some in groupby(named, key=lambda pair: pair[0])}


@pytest.fixture(scope="module", params=["refit", pytest.param("global", marks=pytest.mark.slow)])
def watched(
    request: pytest.FixtureRequest, write_corpus: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Watched:
    folder = tmp_path_factory.mktemp(request.param)
    config = load_config(write_corpus(folder, dedup=_DEDUP, heldout=_HELDOUT))
    config = dataclasses.replace(config, tokenizer=dataclasses.replace(config.tokenizer, mode=request.param))
    with pytest.MonkeyPatch.context() as patch:
        found = Watched(patch)
        build(config, str(folder / "out"), Engine(watch=found.watch))
    return found


def test_every_stage_reports_its_progress(watched: Watched) -> None:
    """Shares of each stage never fall; its last pipeline ends at 1, but where a round may or may not be followed."""
    found = stages(watched.seen)
    assert set(found) == set(required()) - {"contamination", "reports"}
    for stage, told in found.items():
        assert all(before.share <= after.share + 1e-12 for before, after in pairwise(told)), stage
        assert told[-1].share == pytest.approx(1.0) or (stage == "substring" and told[-1].share > 0.5), stage
        assert all(0 <= progress.share <= 1 for progress in told)


def test_tasks_and_partitions_of_each_pipeline_are_all_of_its_work(watched: Watched) -> None:
    """By themselves, before the end is rounded up: less only by partitions that received nothing."""
    assert len(watched.sums) > 7
    for label, sums in watched.sums.items():
        for told in sums:
            assert 0.09 < told < 1 + 1e-9, label
    for label in ("ingest", "clean", "tokenizer: count", "tokenizer: train", "tokens"):
        for told in watched.sums.get(label, []):
            assert told == pytest.approx(1.0), label


def test_training_of_one_chunk_reports_each_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chunk one saw no share and `0 B/s` until it was done."""
    rng = random.Random(3)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(900)]
    counts = count_pretokens(pa.array([" ".join(rng.choices(words, k=4000))], pa.large_string()))
    calls: list[tuple[str, float]] = []
    monkeypatch.setattr(split_merge, "report_part", lambda part, note="": calls.append((note, part)))
    sizes: list[int] = []
    monkeypatch.setattr(split_merge, "report_progress", lambda documents, size: sizes.append(size))
    trainer = UnigramTrainer(vocab_size=200)
    chunk = Chunk(4, ("D", "S"), counts.num_bytes, counts.num_pretokens, len(counts.pretokens))
    chunk_progress = split_merge._ChunkProgress(trainer, chunk)
    states: list[TrainingState] = []

    def listen(state: TrainingState) -> None:
        states.append(state)
        chunk_progress.passed(state)

    trainer.train(counts, listen=listen)
    assert calls[-1][1] == 1.0
    assert trainer.steps_left(states[-1]) == 0
    left = [trainer.steps_left(state) for state in states]
    assert all(before > after for before, after in pairwise(left)), "updates may drop pieces, and save a pruning"
    assert calls[0] == ("chunk 4: seeds", 0.0)
    assert {note.partition(": ")[2].partition(",")[0] for note, _ in calls[1:]} == {"update 1", "update 2", "pruning"}
    parts = [part for _, part in calls]
    assert all(before < after for before, after in pairwise(parts))
    assert len(parts) == len(states) + 1 > 10
    assert sum(sizes) == counts.num_bytes
    assert max(sizes) < counts.num_bytes / 2


# --- ingest ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "parquet", "zip"])
def test_one_large_file_is_read_in_parts_of_its_stored_size(kind: str, tmp_path: Path) -> None:
    """A task may be one file of many gigabytes: its share grows with the position in the file."""
    rng = random.Random(5)
    texts = ["".join(rng.choices("abcdefgh ", k=3000)) for _ in range(400)]
    lines = json_lines({"text": text} for text in texts)
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for part in range(4):
                archive.writestr(f"{part}.jsonl", lines)
    elif kind == "parquet":
        pq.write_table(pa.table({"text": texts}), path, row_group_size=50)
    else:
        path.write_bytes(gzip.compress(lines) if kind.endswith("gz") else lines)
    source = SourceConfig(name="S", dataset="D", format="parquet" if kind == "parquet" else "jsonl", paths=(path.name,))
    (file,) = list_inputs(source, str(tmp_path))
    positions: list[int] = []
    documents = list(read_file(file, source, reached=positions.append))
    assert len(documents) >= 400
    assert positions == sorted(positions)
    assert len(set(positions)) >= 4
    assert 0 < positions[0] < file.size_bytes / 2
    assert positions[-1] <= file.size_bytes


def test_posts_of_a_worker_replace_those_before_them_on_each_board(tmp_path: Path) -> None:
    """A worker outlives a pipeline, and with it a board; its next posts are on the board of the next one."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    program = """
import os, sys
from finpile_pipelines.progress import report_note, report_progress
for folder in sys.argv[1:]:
    os.environ["FINPILE_PROGRESS_DIR"] = folder
    report_note("a long step")
    report_progress(1, 10)
    report_note("step")
    report_progress(2, 5)
"""
    subprocess.run([sys.executable, "-c", program, *map(str, folders)], check=True)
    seen = [progress.Board(str(folder), lambda: 0).progress() for folder in folders]
    assert [(one.num_documents, one.size_bytes, one.note) for one in seen] == [(3, 15, "step"), (6, 30, "step")]
