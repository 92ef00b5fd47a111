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
from click.testing import CliRunner
from finpile_cli.main import finpile

from finpile.as_of import Cut, write_cut
from finpile.errors import FinpileError, IntegrityError
from finpile.history.document import document_history
from finpile.history.trace import documents_of as trace_documents
from finpile.history.trace import find_document, tokens_of
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.output.snapshots import load_snapshot, read_copies, read_snapshot
from finpile.output.takedowns import read_takedowns
from finpile.tokens import build_shards
from finpile.tokens.export import export_tokens
from finpile.tokens.tokenizers.kinds.finpile import OwnTokenizer
from finpile.tokens.tokenizers.opening import open_build_tokenizer
from finpile.verify import record, verify

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
def corpus(snapshots_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of `snapshots_build`: bits are flipped in it."""
    return Path(shutil.copytree(snapshots_build, tmp_path_factory.mktemp("corpus") / "corpus"))


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
    tokenizer = open_build_tokenizer(Layout(str(out)), is_checked=True)
    assert isinstance(tokenizer, OwnTokenizer)
    return tokenizer.vocabulary.pieces


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
    ("append {out} {folder}/corpus.yaml", ("manifest", "takedowns", "copies", "tokenizer", "documents")),
    ("remove {out} --source Web --why test", ("manifest", "takedowns", "token shard", "token index", "early ledger")),
    ("vacuum {out}", ("manifest", "manifest of the build", "takedowns", "earlier documents")),
    ("report {out}", ("manifest", "manifest of the build")),
    ("report {folder}/build --compare gpt2={folder}/build/tokenizer", ("documents", "tokenizer", "manifest")),
    ("export tokens {out} -o {new} --format npy", ("token shard", "manifest of the build")),
    ("model train {folder}/train.yaml", ("token shard", "manifest of the build")),
    ("model evaluate {folder}/build {folder}/run", ("manifest", "documents", "tokenizer")),
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
