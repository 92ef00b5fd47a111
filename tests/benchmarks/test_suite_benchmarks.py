"""Benchmarks of growth and of large groups run, at sizes that say nothing about speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]


def _run(module: str, *arguments: str | Path) -> str:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_growth_counts_shards_tables_and_removals(tmp_path: Path) -> None:
    texts = [f"Bank number {number % 50} lent gold to port {number % 50}. " * 20 for number in range(60)]
    (tmp_path / "corpus/documents").mkdir(parents=True)
    pq.write_table(pa.table({"text": texts}), tmp_path / "corpus/documents/0.parquet")
    (tmp_path / "corpus/truth.json").write_text(json.dumps({"text_bytes": sum(map(len, texts))}))
    options = ("--one", "--kib", "8", "--stages", "exact", "near")
    found = json.loads(_run("benchmarks.suite.growth", tmp_path, tmp_path / "corpus", *options).splitlines()[-1])
    assert found["shards"] > 4
    assert found["stages"]["exact"]["removed"] == 10
    for stage in ("exact", "near"):
        assert found["stages"][stage]["tables"] >= found["stages"][stage]["segments"] > 0


def test_large_groups_are_decided_and_measured(tmp_path: Path) -> None:
    command = ("benchmarks.suite.large_groups", tmp_path / "groups", "--documents", "70", "--results", tmp_path)
    row = _run(*command).rstrip().splitlines()[-1].split("|")
    assert [row[1].strip(), row[7].strip()] == ["70", "69"]
