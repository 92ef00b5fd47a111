"""The three training modes: equality with reference computations, and independence of the execution."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.unigram import partitions as partitions_module
from finpile_pipelines.unigram.counting import chunk_file, count_texts, read_counts
from finpile_pipelines.unigram.partitioned_text import PartitionedText, write_lattices
from finpile_pipelines.unigram.partitions import Partition, partition_counts, partition_file
from finpile_pipelines.unigram.run import TrainingRun
from finpile_pipelines.unigram.seeds import find_all_seeds
from finpile_pipelines.unigram.split_merge import read_model
from finpile_pipelines.unigram.texts import find_files, measure_texts
from finpile_pipelines.unigram.tokenizer import OUTPUTS
from finpile_pipelines.unigram.train_folder import train_folder
from finpile_pipelines.unigram.whole_text import NUM_REFIT_UPDATES, train_globally
from finpile_tokenizer import PretokenCounts, UnigramTokenizer, UnigramTrainer, count_pretokens
from finpile_tokenizer.arrays.buffers import order_by_bytes
from finpile_tokenizer.training.em import LEAST_EXPECTED
from finpile_tokenizer.training.lattice import find_lattices
from finpile_tokenizer.training.seed import find_seeds
from finpile_tokenizer.training.state import TrainingState
from finpile_tokenizer.training.text import InMemoryText

from finpile.config import TokenizerConfig, load_config
from finpile.dedup.exact import document_digests
from finpile.documents.segments import segments_of
from finpile.output.work_folder import WorkFolder
from finpile.report.documents import iter_texts
from finpile.verify import verify
from tests.support.json_lines import json_lines
from tests.support.trees import assert_same

ROOT = Path(__file__).resolve().parents[2]
MODES = ("split-merge", "refit", "global")
SETTINGS: dict[str, Any] = {"vocab_size": 700, "chunks": 2, "chunk_vocab_size": 600}
#: Bound on the loss of an update in nats per piece: see `test_loss_of_a_refit_update_is_bounded`.
NATS_A_PIECE = 0.636

Record = dict[str, str]
Outputs = dict[str, bytes]


@pytest.fixture(scope="module")
def documents() -> list[Record]:
    """About 40 kB of natural language in two domains, in random order."""
    texts = [text for *_, some in iter_texts([ROOT / "data_samples" / "stackexchange"]) for text in some.to_pylist()]
    rows = [{"text": text, "dataset": "Forum", "source": "AB"[index % 2]} for index, text in enumerate(texts)]
    return random.Random(7).sample(rows, len(rows))


def write_files(folder: Path, documents: list[Record], num_files: int = 1) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(num_files):
        (folder / f"{index}.jsonl").write_bytes(json_lines(documents[index::num_files]))
    return folder


def trained(docs: Path | str, out: Path, mode: str, engine: Engine | None = None, **changes: Any) -> Outputs:
    """The bytes of all files that a training writes."""
    config = TokenizerConfig(mode=mode, **{**SETTINGS, **changes})  # type: ignore[arg-type]
    train_folder([str(docs)], str(out), config, engine or Engine())
    return outputs_of(out)


def outputs_of(out: Path) -> Outputs:
    assert {path.name for path in out.iterdir()} == {".work", *OUTPUTS}
    return {name: (out / name).read_bytes() for name in OUTPUTS}


@pytest.fixture(scope="module")
def place(documents: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the documents in one file, and one subfolder per mode with its tokenizer."""
    folder = tmp_path_factory.mktemp("modes")
    write_files(folder / "docs", documents)
    for mode in MODES:
        trained(folder / "docs", folder / mode, mode)
    return folder


def about(place: Path, mode: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / mode / "training.json").read_text())
    return found


# --- output does not depend on the execution -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [pytest.param("split-merge", marks=pytest.mark.slow), "refit", "global"])
def test_output_does_not_depend_on_files_order_or_transport(
    mode: str, documents: list[Record], place: Path, tmp_path: Path
) -> None:
    shuffled = random.Random(8).sample(documents, len(documents))
    docs = write_files(tmp_path / "docs", shuffled, num_files=3)
    assert_same(trained(docs, tmp_path / "out", mode, Engine(transport="shuffle")), outputs_of(place / mode))


@pytest.mark.parametrize("mode", ["split-merge", "global"])
def test_a_sample_does_not_depend_on_files_order_or_transport(
    mode: str, documents: list[Record], place: Path, tmp_path: Path
) -> None:
    shuffled = random.Random(9).sample(documents, len(documents))
    docs = write_files(tmp_path / "docs", shuffled, num_files=3)
    expected = trained(place / "docs", tmp_path / "expected", mode, sample="20 KB")
    assert_same(trained(docs, tmp_path / "out", mode, Engine(transport="shuffle"), sample="20 KB"), expected)
    whole, found = about(place, mode), json.loads(expected["training.json"])
    assert found["share_of_text"] == 20_000 / whole["trained_bytes"]
    assert abs(found["trained_bytes"] - 20_000) < 4_000


def test_a_sample_as_large_as_the_text_is_the_text(place: Path, tmp_path: Path) -> None:
    size = about(place, "global")["trained_bytes"]
    assert_same(trained(place / "docs", tmp_path / "out", "global", sample=size), outputs_of(place / "global"))


def test_global_equals_the_trainer_on_the_sample(documents: list[Record], place: Path, tmp_path: Path) -> None:
    trained(place / "docs", tmp_path / "out", "global", sample="20 KB")
    share = about(tmp_path, "out")["share_of_text"]
    texts = pa.chunked_array([pa.array([row["text"] for row in documents], pa.large_string())])
    segments, _ = segments_of(texts, document_digests(pa.table({"text": texts})), share)
    expected = UnigramTrainer(vocab_size=SETTINGS["vocab_size"]).train(count_pretokens(segments))
    found = read_model(str(tmp_path / "out" / "merged.parquet"))
    assert found.to_table().equals(expected.to_table(), check_metadata=True)


def test_output_does_not_depend_on_the_file_system(place: Path) -> None:
    out = f"memory://{uuid.uuid4().hex}/out"
    config = TokenizerConfig(mode="refit", **SETTINGS)
    for _ in range(2):
        trained_folder = train_folder([str(place / "docs")], out, config, Engine())
    assert not trained_folder.ran
    memory, expected = fsspec.filesystem("memory"), outputs_of(place / "refit")
    assert_same({name: memory.cat(f"{out}/{name}") for name in OUTPUTS}, expected)


@pytest.mark.parametrize(
    ("mode", "transport"),
    [
        pytest.param("global", "shuffle"),
        pytest.param("global", "files", marks=pytest.mark.slow),
        pytest.param("split-merge", "shuffle", marks=pytest.mark.slow),
        pytest.param("refit", "files", marks=pytest.mark.slow),
        pytest.param("refit", "shuffle", marks=pytest.mark.slow),
    ],
)
def test_two_workers_write_the_output_of_one(mode: str, transport: Any, place: Path, tmp_path: Path) -> None:
    found = trained(place / "docs", tmp_path / "out", mode, Engine(num_workers=2, transport=transport))
    assert_same(found, outputs_of(place / mode))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["refit", "global"])
def test_two_workers_share_several_partitions(
    mode: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions_module, "PARTITION_BYTES", 10_000)
    one = trained(place / "docs", tmp_path / "one", mode)
    assert_same(trained(place / "docs", tmp_path / "two", mode, Engine(num_workers=2, transport="shuffle")), one)


def test_refit_does_not_depend_on_partitions(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions_module, "PARTITION_BYTES", 10_000)
    found, expected = trained(place / "docs", tmp_path / "out", "refit"), outputs_of(place / "refit")
    (record,), (expected_record,) = ([json.loads(some.pop("training.json"))] for some in (found, expected))
    assert_same(found, expected)
    assert record.pop("objective") == pytest.approx(expected_record.pop("objective"), rel=1e-12)  # a sum of floats
    assert record == expected_record


def test_training_a_build_again_gives_its_tokenizer(sample_build: Path, tmp_path: Path) -> None:
    """`train_folder` has the training documents, settings and chunks of the build."""
    found = trained(sample_build, tmp_path / "out", "split-merge", vocab_size=4096, chunk_vocab_size=3000)
    assert_same(found, {path.name: path.read_bytes() for path in (sample_build / "tokenizer").iterdir()})


@pytest.mark.parametrize("mode", ["refit", pytest.param("global", marks=pytest.mark.slow)])
def test_build_trains_in_the_mode_of_its_config(
    mode: Any, sample_config: Path, sample_build: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(sample_build, tmp_path / "out"))
    config = load_config(sample_config)
    config = dataclasses.replace(config, tokenizer=dataclasses.replace(config.tokenizer, mode=mode))
    ran: list[str] = []
    build(config, str(out), Engine(), listen=lambda event: ran.append(event.stage) if event.state == "done" else None)
    assert ran == ["tokenizer", "tokens", "reports"]
    assert [check for check in verify(str(out)) if not check.ok] == []
    assert json.loads((out / "tokenizer" / "training.json").read_text())["mode"] == mode
    texts = [text for *_, some in iter_texts([sample_build]) for text in some.to_pylist()]
    tokenizers = [UnigramTokenizer.load(folder / "tokenizer") for folder in (sample_build, out)]
    before, after = (tokenizer.log_likelihood(pa.array(texts)).sum() for tokenizer in tokenizers)
    assert after > before  # this mode is fitted to all text at once


# --- equality with reference computations ----------------------------------------------------------------------------


def test_global_equals_the_trainer_on_all_text(documents: list[Record], place: Path) -> None:
    counts = count_pretokens(pa.array([row["text"] for row in documents]))
    expected = UnigramTrainer(vocab_size=SETTINGS["vocab_size"]).train(counts)
    found = read_model(str(place / "global" / "merged.parquet"))
    assert len(expected.objective) >= 4  # it was pruned at least once
    assert found.to_table().equals(expected.to_table(), check_metadata=True)
    assert about(place, "global")["objective"] == list(expected.objective)


def test_split_and_merge_is_the_average_of_the_chunks(documents: list[Record], place: Path) -> None:
    found = read_model(str(place / "split-merge" / "merged.parquet"))
    chunks = about(place, "split-merge")["chunks"]
    assert [(chunk["source"], chunk["chunk"]) for chunk in chunks] == [("A", 0), ("A", 1), ("B", 2), ("B", 3)]
    assert sum(chunk["bytes"] for chunk in chunks) == sum(len(row["text"].encode()) for row in documents)
    assert found.num_bytes == sum(chunk["bytes"] for chunk in chunks)
    assert math.fsum(np.exp(found.log_probs)) == pytest.approx(1, abs=1e-12)
    assert found.num_models.max() == len(chunks)
    refit = read_model(str(place / "refit" / "merged.parquet"))
    assert refit.to_table().equals(found.to_table(), check_metadata=True)


def test_split_and_merge_of_one_chunk_equals_the_trainer(documents: list[Record], tmp_path: Path) -> None:
    docs = write_files(tmp_path / "docs", [{**row, "source": "A"} for row in documents])
    trained(docs, tmp_path / "out", "split-merge", chunks=1)
    counts = count_pretokens(pa.array([row["text"] for row in documents]))
    expected = UnigramTrainer(vocab_size=SETTINGS["chunk_vocab_size"]).train(counts)
    found = read_model(str(tmp_path / "out" / "merged.parquet"))
    assert found.pieces.equals(expected.pieces)
    np.testing.assert_allclose(found.log_probs, expected.log_probs, rtol=0, atol=1e-12)


def test_refit_keeps_merged_pieces_and_fits_them_better(documents: list[Record], place: Path) -> None:
    merged = read_model(str(place / "split-merge" / "merged.parquet"))
    num_models = dict(zip(merged.pieces.to_pylist(), merged.num_models.tolist(), strict=True))
    tokenizers = {mode: UnigramTokenizer.load(place / mode) for mode in MODES}
    refitted = tokenizers["refit"].vocabulary
    assert refitted.num_models is not None
    pieces = refitted.pieces.to_pylist()
    assert set(pieces[256:]) <= num_models.keys()
    assert refitted.num_models.tolist() == [num_models.get(piece, 0) for piece in pieces]
    texts = pa.array([row["text"] for row in documents])
    fits = {mode: float(tokenizer.log_likelihood(texts).sum()) for mode, tokenizer in tokenizers.items()}
    assert fits["split-merge"] < fits["refit"]
    assert fits["split-merge"] < fits["global"]


def test_loss_of_a_refit_update_is_bounded(place: Path) -> None:
    """Gibbs' inequality bounds the loss of an update relative to an update by plain ratios, which has no loss.

    The M-step's digamma gives a piece of expected count c the weight exp(digamma(c)), less than c by a factor whose
    logarithm, times c, is at most 0.636 if c is at least `LEAST_EXPECTED`, and mostly near 0.5. The loss of the few
    dropped pieces is additional; here it is less than that slack.
    """
    record = about(place, "refit")
    objective = record["objective"]
    assert len(objective) == NUM_REFIT_UPDATES
    rise = NATS_A_PIECE * 1.1 * SETTINGS["vocab_size"] / record["trained_bytes"] / math.log(2)
    assert all(after <= before + rise for before, after in pairwise(objective))
    assert objective[1:] == sorted(objective[1:], reverse=True)  # the digamma's loss comes with the first update
    assert LEAST_EXPECTED == 0.5


# --- the parts -------------------------------------------------------------------------------------------------------


@pytest.fixture
def run_of(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], tuple[TrainingRun, Any]]:
    """Starts a run in global mode up to the partitions, which have about `partition_bytes` bytes each."""

    def start(partition_bytes: int) -> tuple[TrainingRun, list[Partition]]:
        monkeypatch.setattr(partitions_module, "PARTITION_BYTES", partition_bytes)
        config = TokenizerConfig(mode="global", **SETTINGS)
        run = TrainingRun(engine=Engine(), config=config, folder=WorkFolder(str(tmp_path / "run")))
        texts, _ = measure_texts(run, find_files([str(place / "docs")]))
        return run, partition_counts(run, count_texts(run, texts))

    return start


def all_counts(documents: Iterable[Record]) -> PretokenCounts:
    return count_pretokens(pa.array([row["text"] for row in documents]))


def as_dict(counts: PretokenCounts) -> dict[bytes, int]:
    return dict(zip(counts.pretokens.to_pylist(), counts.frequencies.tolist(), strict=True))


def test_each_pretoken_is_in_one_partition_with_its_whole_frequency(
    documents: list[Record], run_of: Callable[[int], Any]
) -> None:
    run, partitions = run_of(10_000)
    parts = [as_dict(read_counts(partition_file(run.folder, partition.number))) for partition in partitions]
    assert len(parts) == 5
    assert min(map(len, parts)) > 0.5 * max(map(len, parts))
    whole = as_dict(all_counts(documents))
    assert sum(map(len, parts)) == len(whole)
    assert {pretoken: count for part in parts for pretoken, count in part.items()} == whole
    chunks = [Counter(as_dict(read_counts(chunk_file(run.folder, number)))) for number in range(4)]
    assert sum(chunks, Counter()) == whole
    assert sum(partition.num_bytes for partition in partitions) == all_counts(documents).num_bytes


def test_global_over_partitions_is_the_trainer_from_the_same_seeds(
    documents: list[Record], run_of: Callable[[int], Any]
) -> None:
    run, partitions = run_of(10_000)
    found = train_globally(run, partitions)
    first = find_all_seeds(run, partitions)
    counts = all_counts(documents)
    lattices = find_lattices(counts, first.pieces)
    text = InMemoryText(lattices, places_of(first.pieces, counts), order_by_bytes(first.pieces))
    (expected,) = UnigramTrainer().models_along(text, first, [SETTINGS["vocab_size"]])
    assert len(partitions) > 1
    assert found.pieces.equals(expected.pieces)
    assert found.log_probs.tolist() == expected.log_probs.tolist()
    assert found.objective == pytest.approx(expected.objective, rel=1e-12)


def places_of(pieces: pa.LargeBinaryArray, counts: PretokenCounts) -> Any:
    """A position of each piece in the joined pretokens, within one of them."""
    pretokens = counts.pretokens.to_pylist()
    joined = b"\xff\xff".join(pretokens)  # UTF-8 never contains this byte
    before = np.array([2 * joined.count(b"\xff\xff", 0, joined.find(piece)) for piece in pieces.to_pylist()])
    return np.array([joined.find(piece) for piece in pieces.to_pylist()]) - before


def test_seeds_are_the_best_sums_of_the_partitions_lists(run_of: Callable[[int], Any]) -> None:
    run, partitions = run_of(10_000)
    wanted = 500
    state = find_all_seeds(run, partitions, seed_size=wanted)
    sums: Counter[bytes] = Counter()
    for partition in partitions:
        counts = read_counts(partition_file(run.folder, partition.number))
        seeds = find_seeds(counts, max_piece_bytes=run.config.max_piece_bytes, seed_size=2 * wanted)
        sums.update(dict(zip(seeds.pieces.to_pylist(), map(int, seeds.scores), strict=True)))
    singles = sorted(piece for piece in sums if len(piece) == 1)
    best = sorted((piece for piece in sums if len(piece) > 1), key=lambda piece: (-sums[piece], piece))[:wanted]
    assert state.pieces.to_pylist() == [*singles, *best]
    total = sum(sums[piece] for piece in [*singles, *best])
    expected = [math.log(sums[piece] / total) for piece in [*singles, *best]]
    np.testing.assert_allclose(state.log_probs, expected, rtol=0, atol=1e-12)


def test_em_by_plain_ratios_never_raises_the_objective(run_of: Callable[[int], Any]) -> None:
    """EM with maximum likelihood updates never raises the objective; this holds for a partitioned text."""
    run, partitions = run_of(20_000)
    state = find_all_seeds(run, partitions, seed_size=300)
    write_lattices(run, partitions, state.pieces)
    text = PartitionedText(run, partitions, state.pieces, lambda state: 4 - state.num_updates)
    objective = []
    for _ in range(4):
        expected = text.expectation(state)
        objective.append(expected.bits_per_byte)
        state = by_plain_ratios(state, expected.counts)
    assert len(partitions) > 1
    assert all(after < before for before, after in pairwise(objective))


def by_plain_ratios(state: TrainingState, counts: Any) -> TrainingState:
    kept = counts > 0
    log_probs = np.log(counts[kept] / counts.sum())
    return dataclasses.replace(state, numbers=state.numbers[kept], log_probs=log_probs)
