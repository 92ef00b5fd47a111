"""Fixtures of the benchmark tests: a corpus of kilobytes, and a reader of the written tables."""

from __future__ import annotations

import gzip
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import zstandard

from tests.support.archives import tar_of

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
_WORDS = "oil rose fell bank rate net profit share the of and lemma 3 1987, é".split()  # noqa: SIM905


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The repository root on the import path, as with `python -m benchmarks.PACKAGE`."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(ROOT))
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCHMARKS)):
            del sys.modules[name]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the four archives; 42 documents in each, one of them not UTF-8."""
    folder = tmp_path_factory.mktemp("data")
    stories = b"".join(b"<REUTERS OLDID=%d>%b</REUTERS>\n" % (number, _text(number)) for number in range(41))
    _archive(folder / "fin_news/reuters21578.tar.gz", {"reut2-000.sgm": stories, "README.txt": b"\xff latin"})
    for name in ("fin_centralbank/fed_speeches_txt", "arxiv/stacks_project_tex", "ubuntu_irc/ubuntu_irc_raw"):
        members = {f"{number:02}.txt": _text(number) + name.encode() for number in range(42)}
        _archive(folder / f"{name}.tar.zst", members)
    return folder


@pytest.fixture
def benchmarks() -> Path:
    """The folder of benchmarks."""
    return BENCHMARKS


@pytest.fixture
def text() -> Callable[[int], str]:
    """The text of a number: 120 words."""
    return lambda number: _text(number).decode()


@pytest.fixture
def write_archive() -> Callable[[Path, Mapping[str, bytes]], None]:
    """Writes a tar of these members, with the compression of its suffix."""
    return _archive


@pytest.fixture
def tables() -> Callable[[str], dict[str, list[list[str]]]]:
    """The rows of each table of a report, by the head of its first column; of several with the same, the last."""
    return _tables


def _text(number: int) -> bytes:
    return " ".join(random.Random(number).choices(_WORDS, k=120)).encode()


def _archive(path: Path, members: Mapping[str, bytes]) -> None:
    pack = gzip.compress if path.suffix == ".gz" else zstandard.ZstdCompressor().compress
    path.parent.mkdir()
    path.write_bytes(pack(tar_of(members)))


def _tables(report: str) -> dict[str, list[list[str]]]:
    tables: dict[str, list[list[str]]] = {}
    for block in re.findall(r"(?:^\|.*\n)+", report + "\n", re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        tables[head[0]] = rows
    return tables
