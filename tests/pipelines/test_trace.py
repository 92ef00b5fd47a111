"""Every token of a build goes back to its bytes in its document, and every document to its tokens."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines import tokens
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage import Sizes

from finpile import storage
from finpile.config import load_config, to_dict
from finpile.documents.split import HELDOUT, TRAIN
from finpile.errors import ConfigError, FinpileError, InputError, IntegrityError
from finpile.history.trace import find_document, tokens_of
from finpile.output.layout import Layout, row_of
from finpile.tokens.provenance import Span, TokenProvenance
from finpile.tokens.store import TokenStore
from finpile.tokens.tokenizer_files import load_tokenizer
from finpile.verify import tokens as token_checks
from finpile.verify import verify
from finpile.verify.output import Output
from tests.support.trees import read_published, rows_below


def all_shards(out: Path) -> Iterator[TokenProvenance]:
    """The shards of training, and those of each source's held-out documents."""
    yield TokenProvenance(str(out))
    heldout = out / "tokens" / "split=heldout"
    for source in sorted({row_of(f"{path.relative_to(heldout)}") for path in heldout.rglob("*.arrow")}):
        yield TokenProvenance(str(out), source)


def read_texts(out: Path) -> dict[tuple[str, int], tuple[str, bytes]]:
    """The split and text of every document, by file and row."""
    texts = {}
    for path in sorted((out / "documents").rglob("*.parquet")):
        table = read_published(str(path), ["split", "text"])
        for row, (split, text) in enumerate(zip(*(table[name].to_pylist() for name in ("split", "text")), strict=True)):
            texts[path.relative_to(out).as_posix(), row] = split, text.encode()
    return texts


def check_every_token(out: Path) -> int:
    """Compares the bytes of each token with those of its document; returns the number of tokens."""
    texts = read_texts(out)
    tokenizer = load_tokenizer(f"{out}/tokenizer")
    pieces = [*tokenizer.vocabulary.pieces.to_pylist(), b""]
    total = 0
    for number, shards in enumerate(all_shards(out)):
        for sequence in range(len(shards.store)):
            ids = shards.store[sequence].tolist()
            position = 0
            for span in shards.spans(sequence):
                split, text = texts[span.location]
                assert (span.begin, split) == (position, HELDOUT if number else TRAIN)
                byte = span.first_byte
                for at in range(span.begin, span.end):
                    piece = pieces[ids[at]]
                    assert text[byte : byte + len(piece)] == piece
                    assert piece or byte == len(text), "the last token of a document is at the end of its text"
                    byte += len(piece)
                assert byte == span.last_byte
                position = span.end
            assert position == shards.store.length_of(sequence)
            total += position
    return total


def test_every_token_of_the_sample_is_its_bytes_in_its_document(sample_build: Path) -> None:
    assert check_every_token(sample_build) > 100_000
    for shards in all_shards(sample_build):
        sequence = len(shards.store) - 1
        for span in shards.spans(sequence)[-2:]:
            for at in range(span.begin, span.end):
                token = shards.token(sequence, at)
                assert (token.location, token.begin, token.end) == (span.location, at, at + 1)
                assert span.first_byte <= token.first_byte <= token.last_byte <= span.last_byte


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory, write_corpus: Callable[..., Path]) -> Path:
    """A build with a mixture, several files of documents, partitions of the stream, and shards of two sequences."""
    folder = tmp_path_factory.mktemp("mixed")
    mixture = {"News": 2.5, "Web": 0.5}
    config = load_config(write_corpus(folder, mixture=mixture))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "STREAM_BYTES", 4_000)
        patch.setattr(tokens, "SHARD_TOKENS", 128)
        build(config, str(folder / "out"), Engine(num_workers=1), sizes=Sizes(part_bytes=6_000))
    return folder / "out"


def test_every_token_of_a_mixture_is_its_bytes_in_its_document(mixed: Path) -> None:
    assert len(list((mixed / "tokens").rglob("split=train/*.arrow"))) > 10, "documents are in several shards"
    assert check_every_token(mixed) > 1_000
    assert [check for check in verify(str(mixed)) if not check.ok] == []
    index = [pq.read_table(path) for path in sorted((mixed / "tokens/index/split=train").glob("*.parquet"))]
    assert any(table["first_token"][0].as_py() for table in index), "a shard begins within a document"


@pytest.mark.parametrize("size", [1, 50])
def test_tokens_are_verified_in_parts_of_any_size(mixed: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = verify(str(mixed), groups=[token_checks.checks])
    monkeypatch.setattr(token_checks, "_PART_TOKENS", size)
    assert verify(str(mixed), groups=[token_checks.checks]) == expected
    assert all(check.ok for check in expected)


def test_documents_have_all_their_places(mixed: Path) -> None:
    shards = TokenProvenance(str(mixed))
    by_document: dict[Any, list[Span]] = {}
    for sequence in range(len(shards.store)):
        for span in shards.spans(sequence):
            by_document.setdefault(span.location, []).append(span)
    for location, spans in by_document.items():
        assert list(shards.spans_of(location)) == spans
    tokens_of = Counter({location: len({span.first_byte for span in spans}) for location, spans in by_document.items()})
    assert max(len(spans) for spans in by_document.values()) > max(tokens_of.values()), "copies have equal spans"


@pytest.mark.parametrize("threads", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_index_does_not_depend_on_partitions_and_workers(
    mixed: Path, tmp_path: Path, snapshot: Callable[[Path], dict[str, bytes]], threads: bool
) -> None:
    config = load_config(mixed.parent / "corpus.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "STREAM_BYTES", 700)
        patch.setattr(tokens, "SHARD_BYTES", 500)
        patch.setattr(tokens, "SHARD_TOKENS", 128)
        build(config, str(tmp_path / "out"), Engine(num_workers=2, threads=threads), sizes=Sizes(part_bytes=6_000))
    assert snapshot(tmp_path / "out") == snapshot(mixed)


@pytest.mark.parametrize("change", ["row", "file", "first_byte", "first_token", "num_tokens"])
def test_verify_finds_an_index_of_other_documents(mixed: Path, change: str) -> None:
    paths = sorted((mixed / "tokens/index/split=train").glob("*.parquet"))
    path = next(path for path in paths if change != "first_byte" or pq.read_table(path)["first_byte"][0].as_py())
    before = path.read_bytes()
    table = pq.read_table(path)
    rows = table.to_pylist()
    if change == "file":
        files = (each.relative_to(mixed).as_posix() for each in sorted((mixed / "documents").rglob("*.parquet")))
        rows[0]["file"] = next(file for file in files if file != rows[0]["file"])
    else:
        rows[0][change] += 1
    storage.write_parquet(str(path), type(table).from_pylist(rows, schema=table.schema))
    try:
        manifest = json.loads((mixed / "manifest.json").read_text())
        found = token_checks.checks(Output(Layout(str(mixed)), manifest))
        assert [check.name for check in found if not check.ok]
    except IndexError:  # `verify` reports it as a file that cannot be read
        assert change == "num_tokens"
    finally:
        path.write_bytes(before)


def trace(out: object, *arguments: object) -> dict[str, Any]:
    done = CliRunner().invoke(finpile, ["trace", *map(str, (out, *arguments)), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_trace_of_a_sequence_and_of_its_documents_agree(sample_build: Path) -> None:
    found = trace(sample_build, "--sequence", 7)
    assert found["documents"]
    for document in found["documents"]:
        back = trace(sample_build, "--document", document["id"][:12])
        assert back["id"] == document["id"]
        for place in document["places"]:
            assert {"snapshot": 0, **{name: place[name] for name in ("sequence", "tokens", "bytes")}} in back["places"]
        assert back["in_corpus"]
    (document,) = trace(sample_build, "--sequence", "7:3")["documents"]
    assert document["places"][0]["tokens"] == [3, 4]


def test_trace_has_what_the_ledger_has(sample_build: Path) -> None:
    ledger = rows_below(sample_build / "removed")
    shards = TokenProvenance(str(sample_build))
    seen = {"cuts": 0, "copies": 0}
    for sequence in range(0, len(shards.store), 4):
        for document in trace(sample_build, "--sequence", sequence)["documents"]:
            cut = [row for row in ledger if row["id"] == document["id"] and row["start"] is not None]
            assert sum(entry["bytes"] for entry in document["cuts"]) == sum(row["end"] - row["start"] for row in cut)
            copies = [row for row in ledger if row["duplicate_of"] == document["id"] and row["start"] is None]
            assert sum(entry["documents"] for entry in document["copies"]) == len(copies)
            seen["cuts"] += bool(cut)
            seen["copies"] += bool(copies)
    assert all(seen.values()), seen


def test_trace_of_held_out_sequences(sample_build: Path) -> None:
    (first, *_) = trace(
        sample_build, "--sequence", 0, "--split", "heldout", "--dataset", "FinPile", "--source", "News"
    )["documents"]
    assert (first["source"], first["split"]) == ("News", HELDOUT)
    back = trace(sample_build, "--document", first["id"])
    assert back["places"][0]["sequence"] == 0


def test_trace_of_steps_is_the_batch_of_the_trainer(mixed: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from finpile_trainer.model.config import ModelChanges
    from finpile_trainer.train import TrainConfig, train
    from finpile_trainer.training.data import TrainingData

    folder, run = str(mixed / "tokens" / "split=train"), str(tmp_path / "run")
    config = TrainConfig(
        tokens=folder,
        out=run,
        steps=6,
        batch_size=3,
        sequence_length=32,
        learning_rate=1e-3,
        warmup_steps=2,
        model=ModelChanges(num_layers=1, num_heads=3, hidden_size=24),
        threads=1,
    )
    train(config, stop_at=5)
    store = TokenStore.open(folder)
    data = TrainingData(store, config.batch_config(), 32, config.seed)
    steps: dict[str, set[int]] = {}
    for step in range(1, 6):
        found = trace(mixed, "--step", step, "--run", run)
        windows = [(entry["sequence"], *entry["tokens"]) for entry in found["sequences"]]
        np.testing.assert_array_equal([store[row][low:high] for row, low, high in windows], data.batch(step - 1))
        halves = [trace(mixed, "--step", step, "--run", run, "--rank", f"{rank}/2")["sequences"] for rank in (0, 1)]
        assert halves[0] + halves[1] == found["sequences"]
        covered = [place for document in found["documents"] for place in document["places"]]
        assert sum(place["tokens"][1] - place["tokens"][0] for place in covered) == 3 * 32
        for document in found["documents"]:
            steps.setdefault(document["id"], set()).add(step)
    for name, expected in list(steps.items())[:5]:
        assert trace(mixed, "--document", name, "--run", run)["steps"] == sorted(expected)
    with pytest.raises(InputError, match="no step 6: it has made 5"):
        trace(mixed, "--step", 6, "--run", run)


def test_run_over_other_shards_is_refused(mixed: Path, sample_build: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    settings = {"batch.size": 2, "batch.ramp": [], "sequence_length": 64, "seed": 1, "tokens.vocab_size": 7}
    storage.write_json(str(tmp_path / "config.json"), {"train": {"tokens": "x"}, "resolved": settings})
    with pytest.raises(InputError, match=r"was trained on other token shards"):
        trace(sample_build, "--step", 1, "--run", tmp_path)
    store = TokenStore.open(str(sample_build / "tokens" / "split=train"))
    settings |= {f"tokens.{name}": value for name, value in to_dict(store.meta).items()}
    settings |= {"tokens.num_sequences": len(store), "tokens.shards": "other ids"}
    storage.write_json(str(tmp_path / "config.json"), {"train": {"tokens": "x"}, "resolved": settings})
    with pytest.raises(InputError, match=r"other token shards \(tokens\.shards is other ids, here \w{32}\)"):
        trace(sample_build, "--step", 1, "--run", tmp_path)
    with pytest.raises(InputError, match="is not a training run"):
        trace(sample_build, "--step", 1, "--run", tmp_path / "none")


OTHER = ("--split", "heldout", "--dataset", "FinPile", "--source", "Other")
REFUSALS = [
    ([], ConfigError, "say one of --sequence, --step and --document"),
    (["--sequence", "1", "--document", "abcd"], ConfigError, "say one of"),
    (["--sequence", "x"], ConfigError, "expected N, or N:POS"),
    (["--sequence", "99999"], InputError, r"no sequence 99999 of \d+"),
    (["--sequence", "0:512"], InputError, "no token 512 of 512 of sequence 0"),
    (["--sequence", "0", "--split", "heldout", "--source", "News"], ConfigError, "needs --dataset and --source"),
    (["--sequence", "0", "--source", "News"], ConfigError, "add --split heldout"),
    (["--document", "abcd", "--split", "heldout"], ConfigError, "needs --sequence"),
    (["--sequence", "0", *OTHER], InputError, "does not exist"),
    (["--step", "1"], ConfigError, "--step needs --run"),
    (["--step", "1", "--run", "x", "--rank", "2/2"], ConfigError, "expected R/N with R below N"),
    (["--document", "abc"], InputError, "no kept document of .+ has the id, locator or file 'abc'"),
    (["--document", "zzzz"], InputError, "no kept document"),
    (["--document", "wire-00000.jsonl.zst"], InputError, "kept documents of .+ are called 'wire-00000.jsonl.zst': "),
]


@pytest.mark.parametrize(("arguments", "error", "message"), REFUSALS)
def test_what_cannot_be_traced_is_refused(
    sample_build: Path, arguments: list[str], error: type[FinpileError], message: str
) -> None:
    with pytest.raises(error, match=message):
        trace(sample_build, *arguments)


def test_document_is_traced_by_its_locator_and_its_file(sample_build: Path) -> None:
    files = sorted(sample_build.glob("documents/dataset=FinPile/source=Bloomberg/train-*.parquet"))
    row = next(row for row in read_published(str(files[0])).to_pylist() if row["split"] == TRAIN)
    expected = trace(sample_build, "--document", row["id"])
    for name in (row["locator"], row["locator"].rpartition("/")[2]):
        assert trace(sample_build, "--document", name) == expected


def test_missing_index_is_named_with_the_remedy(copy_of_sample: Path) -> None:
    storage.remove_tree(str(copy_of_sample / "tokens" / "index"))
    with pytest.raises(IntegrityError, match=r"tokens/index/.* is missing: .* run the build's command again"):
        trace(copy_of_sample, "--sequence", 0)


def test_trace_reads_an_object_store(copy_of_sample: Path) -> None:
    url = "memory://trace-test"
    try:
        for name in storage.list_files(str(copy_of_sample)):
            storage.write_bytes(f"{url}/{name}", (copy_of_sample / name).read_bytes())
        found = trace(url, "--sequence", 3)
        assert found["documents"] == trace(copy_of_sample, "--sequence", 3)["documents"]
        name = find_document(url, found["documents"][0]["id"][:8])
        (tokens,) = tokens_of(url, [name])
        assert (name, tokens.location.file.split("/")[0]) == (found["documents"][0]["id"], "documents")
    finally:
        storage.remove_tree(url)
