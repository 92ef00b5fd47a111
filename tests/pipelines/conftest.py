"""Fixtures of the build tests: a corpus small enough for many builds, and the comparison of two trees."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import yaml

from finpile.output.layout import CARD_FILES
from finpile.plugins import stages
from tests.support.forks import Forks
from tests.support.json_lines import json_lines

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ("inputs", "documents", "removed", "delta", "tokenizer", "tokens", "reports")
_WORDS = "shares bond yield oil gold rate bank court trade profit loss market wheat port ship steel index fund"
_NUM_DISTINCT = 22
_MINI: dict[str, Any] = {
    "name": "mini",
    "sources": [
        {
            "name": name,
            "dataset": "FinPile",
            "format": "jsonl",
            "paths": [f"{name}*"],
            "fields": {"timestamp": "date"},
            "clean": {"filters": []},
        }
        for name in ("News", "Web")
    ],
    "heldout": {"after": date(2022, 7, 31), "undated": "train"},
    "tokenizer": {"vocab_size": 400, "chunks": 2, "chunk_vocab_size": 350},
    "tokens": {"sequence_length": 64},
}

Record = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def _worker_processes() -> Iterator[None]:
    """Small corpora use worker processes too: else no test of several workers would start one.

    Commands in the test process have one worker unless they say how many: a build with worker processes takes ten times
    the CPU seconds of one without.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FINPILE_SMALL_BYTES", "0")
        patch.setattr("finpile_cli.engine.os", SimpleNamespace(cpu_count=lambda: 1))
        yield


@pytest.fixture(scope="session")
def snapshot() -> Callable[[Path], dict[str, bytes]]:
    """All published files of a tree by path, including leftovers, without the manifest, which contains times."""

    def take(out: Path) -> dict[str, bytes]:
        files = [path for folder in PUBLISHED for path in (out / folder).rglob("*") if path.is_file()]
        files += [out / name for name in CARD_FILES if (out / name).is_file()]
        return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}

    return take


@pytest.fixture(scope="session")
def records() -> list[Record]:
    """Thirty-six documents: twelve exact copies and two near ones among them, some late, one without a date."""
    draw = random.Random(20230330)
    texts = [
        "\n".join(
            " ".join(draw.choices(_WORDS.split(), k=12)).capitalize() + f" {draw.randrange(10**6)}." for _ in range(14)
        )
        for _ in range(_NUM_DISTINCT)
    ]
    texts[4] += "\n<b>& €uro – Zürich</b>"
    texts += [*texts[:12], texts[0] + " Bank bank.", texts[1] + " Fund fund."]
    days = [f"{2018 + index % 6}-{1 + index % 12:02d}-{1 + index % 28:02d}T08:00:00Z" for index in range(len(texts))]
    found: list[Record] = [{"text": text, "date": day} for text, day in zip(texts, days, strict=True)]
    found[3]["date"] = None
    found[-1]["date"] = "2017-01-01"  # the first of its near copies, and so the one that is kept for all of them
    return found


@pytest.fixture(scope="session")
def write_corpus(records: list[Record]) -> Callable[..., Path]:
    """Writes the small corpus: its files by default, and its YAML, whose keys may be replaced."""

    def write(folder: Path, files: Mapping[str, bytes] | None = None, **changes: Any) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        halves = {"News.jsonl": records[::2], "Web.jsonl": records[1::2]}
        lines = {name: json_lines(rows) for name, rows in halves.items()}
        for name, data in (lines if files is None else files).items():
            (folder / name).write_bytes(data)
        path = folder / "corpus.yaml"
        path.write_text(yaml.safe_dump({**_MINI, **changes}, sort_keys=False))
        return path

    return write


@pytest.fixture(scope="session")
def small_build(share: Callable[..., Path], write_corpus: Callable[..., Path]) -> Path:
    """The folder of the small corpus, `corpus.yaml`, with its finished build in `out`. Read only: see `copy_small`."""

    def make(folder: Path) -> None:
        from finpile_pipelines.build import build
        from finpile_pipelines.runner.engine import Engine

        from finpile.config import load_config

        build(load_config(write_corpus(folder)), str(folder / "out"), Engine())

    return share("small", make)


@pytest.fixture(scope="session")
def full_build(share: Callable[..., Path]) -> Path:
    """The folder of the sample corpus with every stage and a mixture, `sample.yaml`, with its build in `out`."""

    def make(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(ROOT))
            config = import_module("benchmarks.engines.corpora").write_sample(folder)
        from finpile_pipelines.build import build
        from finpile_pipelines.runner.engine import Engine

        from finpile.config import load_config

        build(load_config(config), str(folder / "out"), Engine(num_workers=1))

    return share("full", make)


@pytest.fixture(scope="session")
def snapshots_build(share: Callable[..., Path]) -> Path:
    """The folder of `tests.support.snapshots_build`. Read only."""

    def make(folder: Path) -> None:
        from tests.support.snapshots_build import make_snapshots_build

        make_snapshots_build(folder)

    return share("snapshots", make)


@pytest.fixture(scope="session")
def copy_small(small_build: Path) -> Callable[[Path], Path]:
    """Copies the small corpus and its build into a new folder, and returns the path of the corpus file.

    Inputs keep their times, so that a build in the copy finds all its stages done.
    """

    def copy(folder: Path) -> Path:
        return Path(shutil.copytree(small_build, folder)) / "corpus.yaml"

    return copy


@pytest.fixture(scope="module")
def corpus(copy_small: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus file of a copy of the small corpus that a module has for itself, with its build."""
    return copy_small(tmp_path_factory.mktemp("corpus") / "small")


@pytest.fixture(scope="module")
def built(corpus: Path) -> Path:
    """That build."""
    return corpus.parent / "out"


@pytest.fixture(scope="session")
def forks(start_python: Callable[..., subprocess.Popen[str]]) -> Iterator[Forks]:
    """Runs builds, snapshots and corpora as of days that are killed at a file operation."""
    forks = Forks(start_python)
    yield forks
    forks.close()


@pytest.fixture(scope="session")
def members() -> Callable[[int], list[psutil.Process]]:
    """The live processes of a session except its leader. Workers stay in the session of a launcher that has ended."""

    def living(session: int) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                is_member = os.getsid(process.pid) == session != process.pid
                if is_member and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (ProcessLookupError, psutil.Error):
                continue
        return found

    return living


@pytest.fixture
def stage_packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Has the packages with stages installed: their modules and entry points can be found."""
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent / "packages"))
        stages.table.cache_clear()
        yield
    stages.table.cache_clear()
