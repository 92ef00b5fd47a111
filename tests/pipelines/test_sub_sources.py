"""Sub-sources: from a rule of the source to a column of the shards, counts, and lines of Table 1."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config
from finpile.errors import ConfigError
from finpile.output.published import open_documents
from finpile.report.from_manifest import sub_source_statistics
from finpile.report.statistics import CorpusStatistics, SourceStatistics, SubSourceStatistics
from finpile.report.table import RowKind
from finpile.report.table1 import MAX_PARTS, table1
from finpile.tokens.tokenizer_files import load_tokenizer
from finpile.verify import verify
from tests.support.trees import read_published, rows_below

Snapshot = Callable[[Path], dict[str, bytes]]
_HOSTS = ("www.north.example", "south.example", "north.example", None)


def write(folder: Path, **web: Any) -> Path:
    """A corpus of web pages and of news with an outlet in `meta`."""
    pages = [
        {
            "text": f"Page {number} tells of {number * 17} ships and of wheat.",
            "url": host and f"https://{host}/{number}",
        }
        for number, host in enumerate(_HOSTS * 6)
    ]
    news = [
        {"text": f"Story {number} is of gold, {number * 13} bars.", "outlet": "ab"[number % 2]} for number in range(8)
    ]
    folder.mkdir(exist_ok=True)
    for name, rows in (("web", pages), ("news", news)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    common = {"dataset": "FinPile", "format": "jsonl", "clean": {"html": "never"}}
    config = {
        "name": "parts",
        "sources": [
            {"name": "Web", "paths": ["web.jsonl"], "fields": {"url": "url"}, **common, **web},
            {"name": "News", "paths": ["news.jsonl"], **common},
        ],
        "dedup": {"near": None},
        "tokenizer": {"vocab_size": 300, "chunk_vocab_size": 300},
        "tokens": {"sequence_length": 16},
    }
    path = folder / "corpus.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    build(load_config(write(folder, sub_source="host")), str(folder / "out"), Engine())
    return folder / "out"


def test_documents_have_the_column(out: Path) -> None:
    found = Counter()
    for path in sorted((out / "documents").rglob("*.parquet")):
        table = read_published(str(path))
        assert "sub_source" in pq.read_schema(path).names, "all files of a build have the same columns"
        found.update(zip(table["source"].to_pylist(), table["sub_source"].to_pylist(), strict=True))
    expected = {("Web", "north.example"): 12, ("Web", "south.example"): 6, ("Web", None): 6, ("News", None): 8}
    assert found == expected
    dataset = open_documents(str(out)).to_table(["source", "sub_source"])
    assert Counter(zip(*(dataset[name].to_pylist() for name in dataset.column_names), strict=True)) == expected


def test_counts_are_those_of_the_documents_and_the_build_verifies(out: Path) -> None:
    assert [check for check in verify(str(out)) if not check.ok] == []
    statistics = json.loads((out / "reports" / "statistics.json").read_text())
    tokenizer = load_tokenizer(str(out / "tokenizer"))
    for part in statistics["sub_sources"]:
        rows = [
            row
            for row in rows_below(out / "documents")
            if (row["source"], row["sub_source"]) == (part["source"], part["sub_source"])
        ]
        assert part["num_docs"] == len(rows)
        assert part["num_bytes"] == sum(len(row["text"].encode()) for row in rows)
        assert part["num_tokens"] == sum(len(tokenizer.encode(row["text"])) for row in rows)
    assert {part["source"] for part in statistics["sub_sources"]} == {"Web"}, "a source without parts has no lines"
    (web,) = (row for row in statistics["sources"] if row["source"] == "Web")
    assert sum(part["num_tokens"] for part in statistics["sub_sources"]) == web["num_tokens"]


def test_table_1_has_a_line_for_each(out: Path) -> None:
    table = json.loads((out / "reports" / "table1.json").read_text())
    names = [row["shown"][0] for row in table["rows"]]
    start = names.index("Web")
    assert names[start + 1 : start + 4] == ["north.example", "south.example", "none"]
    assert [row["kind"] for row in table["rows"][start + 1 : start + 4]] == ["part"] * 3
    shares = [row["values"]["source_token_percent"] for row in table["rows"][start + 1 : start + 4]]
    assert sum(shares) == pytest.approx(100)
    for name in ("index.html", "table1.md", "table1.tex", "table1.csv"):
        assert "north.example" in (out / "reports" / name).read_text()


def test_corpora_without_a_rule_have_neither_column_nor_lines(tmp_path: Path) -> None:
    build(load_config(write(tmp_path)), str(tmp_path / "out"), Engine())
    for path in (tmp_path / "out" / "documents").rglob("*.parquet"):
        assert "sub_source" not in pq.read_schema(path).names
    assert "sub_source" not in (tmp_path / "out" / "reports" / "statistics.json").read_text()
    assert "R%" not in (tmp_path / "out" / "reports" / "table1.md").read_text()
    assert open_documents(str(tmp_path / "out")).count_rows() == 32


def test_a_change_of_the_rule_publishes_again(tmp_path: Path) -> None:
    config, ran = write(tmp_path, sub_source="host"), []

    def run() -> list[str]:
        ran.clear()
        listen = lambda event: ran.append(event.stage) if event.state == "done" else None  # noqa: E731
        build(load_config(config), str(tmp_path / "out"), Engine(), until="split", listen=listen)
        return list(ran)

    assert "split" in run()
    config.write_text(config.read_text().replace("sub_source: host", "sub_source: source"))
    assert run() == ["split"]


def test_a_rule_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sub_source of source 'Web': 'hosts' is not known; did you mean `host`\?"):
        load_config(write(tmp_path, sub_source="hosts"))


def test_small_parts_are_one_line() -> None:
    parts = [
        SubSourceStatistics(
            dataset="A", source="B", sub_source=None, num_docs=1, num_chars=1, num_tokens=1, num_bytes=1
        )
    ]
    for number in range(MAX_PARTS + 3):
        counts = dict.fromkeys(("num_docs", "num_chars", "num_bytes"), 1)
        parts.append(
            SubSourceStatistics(dataset="A", source="B", sub_source=f"s{number}", num_tokens=100 - number, **counts)
        )
    total = sum(part.num_tokens for part in parts)
    source = SourceStatistics(
        dataset="A", source="B", num_docs=len(parts), num_chars=len(parts), num_tokens=total, num_bytes=len(parts)
    )
    table = table1(CorpusStatistics(sources=(source,), sub_sources=tuple(parts)))
    lines = [row for row in table.rows if row.kind is RowKind.PART]
    assert [row.cells[0].text for row in lines] == [*(f"s{number}" for number in range(MAX_PARTS)), "3 others", "none"]
    assert sum(row.cells[5].value or 0 for row in lines if isinstance(row.cells[5].value, int)) == total


def test_counts_of_files_are_summed() -> None:
    entry = {"num_docs": 1, "num_chars": 2, "num_bytes": 3, "num_tokens": 4}
    files = [
        {"dataset": "A", "source": "B", "sub_sources": [{"sub_source": "x", **entry}, {"sub_source": None, **entry}]},
        {"dataset": "A", "source": "B", "sub_sources": [{"sub_source": "x", **entry}]},
        {"dataset": "A", "source": "C", "sub_sources": [{"sub_source": None, **entry}]},
        {"dataset": "A", "source": "D"},
    ]
    found = {(row.source, row.sub_source): row.num_docs for row in sub_source_statistics(files)}
    assert found == {("B", "x"): 2, ("B", None): 1}
