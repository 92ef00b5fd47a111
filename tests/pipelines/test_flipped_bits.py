"""A bit that flips in a published file changes no result: a command ends in an error that names the file."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove
from made_days import CORPUS, documents_of, make_days, write_batch

from finpile.as_of import Cut, write_cut
from finpile.config import load_config
from finpile.errors import FinpileError, IntegrityError
from finpile.history import document_history
from finpile.layout import Layout
from finpile.lm.train import load_train_config, train
from finpile.manifest import load_manifest
from finpile.snapshots import load_snapshot, read_copies, read_snapshot
from finpile.takedowns import Wanted, read_takedowns
from finpile.tokens import build_shards
from finpile.tokens.export import export_tokens
from finpile.tokens.tokenizer_files import load_build_tokenizer
from finpile.trace import documents_of as trace_documents
from finpile.trace import find_document, tokens_of
from finpile.verify import record, verify

TOKENS: dict[str, Any] = {
    "tokenizer": {"vocab_size": 300, "chunk_vocab_size": 300},
    "tokens": {"sequence_length": 16},
}
TRAINING = """
tokens: out/tokens/split=train
out: run
steps: 1
batch_size: 2
learning_rate: 0.01
model: {num_layers: 1, num_heads: 2, hidden_size: 16}
threads: 1
"""
#: A file of each kind, as a pattern below OUT.
KINDS = {
    "documents": "documents/*/*/*.parquet",
    "ledger": "removed/stage=near/*.parquet",
    "early ledger": "removed/stage=clean/*.parquet",
    "inputs": "inputs/*.parquet",
    "token shard": "tokens/split=train/*.arrow",
    "held-out token shard": "tokens/split=heldout/*/*/*.arrow",
    "token index": "tokens/index/split=train/*.parquet",
    "token shard of a snapshot": "snapshots/000001/tokens/split=train/*.arrow",
    "tokenizer": "tokenizer/tokenizer.json",
    "vocabulary": "tokenizer/vocabulary.parquet",
    "merged model": "tokenizer/merged.parquet",
    "training": "tokenizer/training.json",
    "manifest": "manifest.json",
    "manifest of the build": "snapshots/000000.json",
    "manifest of the current snapshot": "snapshots/000002.json",
    "copies": "snapshots/000002-copies.parquet",
    "takedowns": "snapshots/000002-takedowns.parquet",
    "earlier documents": "versions/documents/*/*/*.parquet",
    "report": "reports/table1.json",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus file, its build in `build` with a training run, and in `out` the same build, to which
    files were appended and from which some were removed. `later` has further files."""
    folder = tmp_path_factory.mktemp("corpus")
    days, out, config = make_days(6, 12), folder / "out", folder / "corpus.yaml"
    story = {"text": "Oil rose 2 percent on Monday after the ministers met in the port.", "timestamp": "2021-01-04"}
    late = {"text": "Gold fell 1 percent on Tuesday in a week of thin trade.", "timestamp": "2021-01-04"}
    days[3] += [("News", story), ("Mail", story), ("News", late)]
    days[0] += [("News", {**story, "timestamp": "2021-01-01"}), ("Mail", story)]
    dedup = {**CORPUS["dedup"], "order": "time"}
    config.write_text(yaml.safe_dump({**CORPUS, **TOKENS, "dedup": dedup}, sort_keys=False))
    write_batch(folder, "1", [document for day in days[2:9] for document in day])
    build(load_config(config), str(out), Engine())
    shutil.copytree(out, folder / "build")
    (folder / "train.yaml").write_text(TRAINING)
    train(load_train_config(str(folder / "train.yaml")))
    write_batch(folder, "2", [document for day in (*days[:2], *days[9:11]) for document in day])
    append(load_config(config), str(out), Engine())
    gone = frozenset(documents_of(out)["id"].to_pylist()[:4])
    remove(str(out), Wanted(ids=gone), "they asked", Engine())
    (folder / "shown").write_text(documents_of(out)["id"][0].as_py())
    (folder / "traced").write_text(documents_of(out, 0)["id"][0].as_py())
    (folder / "later").mkdir()
    write_batch(folder / "later", "3", [*days[11], ("News", {**late, "timestamp": "2020-12-31"})])
    return folder


def file_of(out: Path, kind: str) -> Path:
    return sorted(out.glob(KINDS[kind]))[0]


@contextmanager
def flipped(path: Path, draw: random.Random) -> Iterator[None]:
    """A file in which one bit is another."""
    whole = path.read_bytes()
    damaged, place = bytearray(whole), draw.randrange(8 * len(whole))
    damaged[place // 8] ^= 1 << place % 8
    path.write_bytes(damaged)
    build_shards._checked.clear()  # as in a new process
    try:
        yield
    finally:
        path.write_bytes(whole)


def as_of(out: Path, scratch: Path) -> Any:
    layout = Layout(str(out))
    counts = write_cut(layout, Layout(str(scratch)), load_snapshot(layout), Cut(date(2021, 1, 7)))
    return counts, {path.name: path.read_bytes() for path in scratch.rglob("*.parquet")}


def show(out: Path, scratch: Path) -> Any:
    """The command prints the warnings, and ends with 1."""
    history = document_history(str(out), (out.parent / "shown").read_text())
    if history.warnings:
        raise IntegrityError("; ".join(history.warnings))
    return history


def trace(out: Path, scratch: Path) -> Any:
    identifier = find_document(str(out), (out.parent / "traced").read_text()[:8])
    found = tokens_of(str(out), [identifier])
    return found, [trace_documents(str(out), one.spans, one.snapshot) for one in found]


def exported(split: str, snapshot: int = 0) -> Callable[[Path, Path], Any]:
    def export(out: Path, scratch: Path) -> Any:
        folder = Layout(str(out)).snapshot_tokens(snapshot).tokens
        for side in sorted(path.parent for path in Path(folder, f"split={split}").rglob("*.arrow")):
            export_tokens(build_shards.open_shards(str(side)), str(scratch), "npy")
        return {path.name: path.read_bytes() for path in scratch.iterdir()}

    return export


def verified(out: Path, scratch: Path) -> Any:
    checks = verify(str(out), groups=(record.checks,))
    if wrong := [check.detail for check in checks if not check.ok]:
        raise IntegrityError("; ".join(wrong))
    return checks


def loaded(out: Path, scratch: Path) -> Any:
    layout = Layout(str(out))
    manifest = load_manifest(layout)
    snapshots = [read_snapshot(layout, number) for number in (0, 1, 2)]
    return manifest, snapshots, read_copies(layout, manifest), read_takedowns(layout, manifest)


def tokenizer_of(out: Path, scratch: Path) -> Any:
    return load_build_tokenizer(Layout(str(out))).vocabulary.pieces


#: What reads a file of a kind to make something of it; the others are read by `verify` alone.
READS: dict[str, list[Callable[[Path, Path], Any]]] = {
    "documents": [as_of, show, trace],
    "ledger": [as_of, show],
    "token shard": [exported("train"), trace],
    "held-out token shard": [exported("heldout")],
    "token index": [trace],
    "token shard of a snapshot": [exported("train", 1)],
    "tokenizer": [tokenizer_of],
    "vocabulary": [tokenizer_of],
    "manifest": [loaded, as_of, show, verified],
    "manifest of the build": [loaded],
    "manifest of the current snapshot": [loaded],
    "copies": [loaded, show],
    "takedowns": [loaded],
    "earlier documents": [trace],
}


#: These read some pages of most files.
PARTLY = (show, trace)


@pytest.mark.parametrize("num_flips", [6, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_an_error_that_names_the_file_or_changes_nothing(
    corpus: Path, tmp_path: Path, kind: str, num_flips: int
) -> None:
    out, draw = corpus / "out", random.Random(f"{kind} {num_flips}")
    path = file_of(out, kind)
    for read in READS.get(kind, [verified]):
        expected, _ = result_of(read, out, tmp_path / "expected")
        num_errors = 0
        for number in range(num_flips):
            with flipped(path, draw):
                found, message = result_of(read, out, tmp_path / f"{number}")
            assert path.name in message if message else found == expected, message
            num_errors += message is not None
            shutil.rmtree(tmp_path / f"{number}", ignore_errors=True)
        assert expected and (num_errors or read in PARTLY)
        shutil.rmtree(tmp_path / "expected", ignore_errors=True)


def result_of(read: Callable[[Path, Path], Any], out: Path, scratch: Path) -> tuple[str | None, str | None]:
    """What it returns, or the message of its error."""
    try:
        return repr(read(out, scratch)), None
    except FinpileError as error:
        return None, str(error)


#: Commands, each with the kinds of files that it reads to make others. `{n}` is a new folder.
COMMANDS: list[tuple[str, tuple[str, ...]]] = [
    ("as-of {out} 2021-01-07 -o {new} --until split", ("manifest", "documents", "ledger")),
    ("append {folder}/corpus.yaml -o {out}", ("manifest", "takedowns", "copies", "tokenizer", "documents")),
    ("remove {out} --source Web --why test", ("manifest", "takedowns", "token shard", "token index", "early ledger")),
    ("vacuum {out}", ("manifest", "manifest of the build", "takedowns", "earlier documents")),
    ("report {out}", ("manifest", "manifest of the build")),
    ("report {folder}/build --compare gpt2={folder}/build/tokenizer", ("documents", "tokenizer", "manifest")),
    ("export-tokens {out} -o {new} --to npy", ("token shard", "manifest of the build")),
    ("train {folder}/train.yaml", ("token shard", "manifest of the build")),
    ("evaluate {folder}/run --on {folder}/build", ("manifest", "documents", "tokenizer")),
    ("tokenizer train {folder}/build -o {new} --vocab-size 300", ("manifest", "documents")),
]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        pytest.param(
            line, kind, marks=[pytest.mark.slow] if kind in kinds[:-1] else [], id=f"{line.split()[0]}, {kind}"
        )
        for line, kinds in COMMANDS
        for kind in kinds
    ],
)
def test_a_command_that_writes_ends_in_an_error(corpus: Path, tmp_path: Path, command: str, kind: str) -> None:
    folder = Path(shutil.copytree(corpus, tmp_path / "corpus"))
    for path in (folder / "later").iterdir():
        path.rename(folder / path.name)
    damaged = sorted((folder / ("build" if "build" in command else "out")).glob(KINDS[kind]))
    for path in damaged:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(data)
    words = command.format(out=folder / "out", folder=folder, new=tmp_path / "new").split()
    result = CliRunner().invoke(finpile, words)
    assert isinstance(result.exception, FinpileError), result.output
    assert any(path.name in str(result.exception) for path in damaged)
    assert not (tmp_path / "new" / "manifest.json").exists()
