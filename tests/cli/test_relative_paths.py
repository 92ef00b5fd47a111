"""Commands with relative paths, while the workers are in another folder than the launcher, as on a cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import chdir
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.runner.engine import Engine

_TEXT = "shares bond yield oil gold rate bank court trade profit loss market wheat port ship steel index fund"


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The current folder of workers; commands run in `tmp_path`."""
    folder, run = tmp_path / "elsewhere", Engine.run
    folder.mkdir()

    def run_there(engine: Engine, label: str, construct: Callable[[Any], None]) -> None:
        with chdir(folder):
            run(engine, label, construct)

    monkeypatch.setattr(Engine, "run", run_there)
    monkeypatch.chdir(tmp_path)
    return folder


def write_texts(name: str, first: int, number: int) -> None:
    words = _TEXT.split()
    rows = [
        {
            "text": " ".join(words[(at * step) % len(words)] for step in range(2, 40)) + f" {at}.",
            "date": f"2020-01-{at + 1:02d}",
        }
        for at in range(first, first + number)
    ]
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def succeed(*arguments: str) -> str:
    done = CliRunner().invoke(finpile, [*arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_relative_paths_of_commands_are_those_of_the_launcher(elsewhere: Path) -> None:
    os.mkdir("in")
    write_texts("in/a.jsonl", 0, 12)
    source = {"name": "News", "dataset": "FinPile", "format": "jsonl", "paths": "*.jsonl", "clean": {"filters": []}}
    corpus = {
        "name": "mini",
        "root": "in",
        "sources": [{**source, "fields": {"timestamp": "date"}}],
        "dedup": {"order": "time", "near": "fast", "substring": {"min_length": 60}},
        "heldout": {"after": date(2020, 1, 10), "undated": "drop"},
        "tokenizer": {"vocab_size": 300, "chunks": 1, "chunk_vocab_size": 290},
        "tokens": {"sequence_length": 32},
    }
    Path("corpus.yaml").write_text(yaml.safe_dump(corpus, sort_keys=False))
    one = ("--workers", "1")
    assert "report: out/reports/index.html" in succeed("build", "corpus.yaml", "-o", "out", *one)
    succeed("dedup", "in", "-o", "unique", "--substring-min-length", "100", *one)
    options = ("--vocab-size", "300", "--chunks", "1", "--heldout", "out")
    succeed("tokenizer", "train", "out", "in", "-o", "tokenizer", *options, *one)
    write_texts("in/b.jsonl", 20, 3)
    succeed("append", "out", "corpus.yaml", *one)
    found = [json.loads(line) for line in Path("in/b.jsonl").read_text().splitlines()]
    assert len(found) == 3
    succeed("remove", "out", "--where", "locator=b.jsonl*", "--why", "asked", *one)
    succeed("as-of", "out", "2020-01-15", "-o", "before", *one)
    succeed("vacuum", "out", *one)
    for folder in ("out", "unique", "before"):
        succeed("verify", folder)
    assert sorted(os.listdir(elsewhere)) == []
