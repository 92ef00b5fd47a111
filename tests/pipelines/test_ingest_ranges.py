"""A multistream dump of Wikipedia read by several tasks gives the tree that one task gives."""

from __future__ import annotations

import bz2
import random
from pathlib import Path

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.corpus import ingest
from finpile_pipelines.runner.engine import Engine

from finpile.config import CorpusConfig, SourceConfig
from finpile.sources.readers import multistream
from finpile.storage import sizes

NAME = "x-pages-articles-multistream.xml.bz2"


def page(number: int, choice: random.Random) -> str:
    text = " ".join(f"w{choice.randrange(3000)}" for _ in range(200)) if number % 7 else "#REDIRECT [[x]]"
    return (
        f"  <page>\n    <title>P{number}</title>\n    <ns>0</ns>\n    <id>{number}</id>\n    <revision>\n"
        f"      <timestamp>2022-03-04T05:06:07Z</timestamp>\n      <text>{text}</text>\n    </revision>\n  </page>\n"
    )


def write_dump(folder: Path) -> None:
    folder.mkdir(parents=True)
    choice = random.Random(1)
    data, lines = bz2.compress(b"<mediawiki>\n  <siteinfo>\n  </siteinfo>\n"), ""
    for first in range(0, 150, 5):
        lines += "".join(f"{len(data)}:{number}:P{number}\n" for number in range(first, first + 5))
        data += bz2.compress("".join(page(number, choice) for number in range(first, first + 5)).encode())
    (folder / NAME).write_bytes(data + bz2.compress(b"</mediawiki>\n"))
    (folder / str(multistream.index_of(NAME))).write_bytes(bz2.compress(lines.encode()))


def published(out: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(out)): path.read_bytes()
        for part in ("documents", "removed", "inputs")
        for path in sorted((out / part).rglob("*.parquet"))
    }


def test_build_in_ranges_publishes_the_same_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dump(tmp_path / "data")
    sources = tuple(
        SourceConfig(name=name, dataset="Wikipedia", format="wikipedia", paths=(paths,))
        for name, paths in (("All", "*.bz2"), ("Again", NAME))
    )
    config = CorpusConfig(name="c", root=str(tmp_path / "data"), sources=sources)
    trees = []
    for size in (1 << 30, 3_000):
        monkeypatch.setattr(sizes, "LEAST_TASK_BYTES", size)
        tasks = ingest.plan(config, ingest.find_inputs(config))
        assert (len(tasks) > 6) == (size < 1 << 30)
        out = tmp_path / f"out-{size}"
        build(config, str(out), Engine(num_workers=1), until="split")
        trees.append(published(out))
    assert len(trees[0]) >= 4 and trees[0] == trees[1]
