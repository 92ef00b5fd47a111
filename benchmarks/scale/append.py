"""Measures `finpile append` of 1% of new documents beside a build of all documents.

    python -m benchmarks.scale.append DATA FOLDER --megabytes 50 200 [--workers 2]

The documents are those of `benchmarks.scale.corpus`, in files of 99% and 1% of each size. Both runs end with documents
and ledger, and their documents are compared. FOLDER keeps nothing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.common.measure import TreeCost, run_tree
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.scale.corpus import write_corpus
from benchmarks.scale.sentences import read_material
from finpile import open_documents

_SEED, _NEW_SHARE = 1, 0.01
_ABOUT = (
    "Generated text with planted duplicates; exact and near (fast) deduplication, no tokenizer. Build and append are "
    "processes of their own, from start to end. Ids, texts, locators and splits of both results are equal."
)
_HEAD = ("text MB", "documents", "new", "run", "wall s", "CPU s", "peak MiB", "files added", "files rewritten")
_STAGE_HEAD = ("text MB", "run", "ingest", "clean", "exact", "near", "split")
#: What a measured process runs.
_BUILD, _APPEND = (
    "import sys; from finpile.config import load_config; from finpile_pipelines.runner.engine import Engine; "
    f"from {module} import {name}; "
    f"{name}(load_config(sys.argv[1]), sys.argv[2], Engine(num_workers=int(sys.argv[3])){more})"
    for module, name, more in (
        ("finpile_pipelines.build", "build", ', until="split"'),
        ("finpile_pipelines.snapshots.append", "append", ""),
    )
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, nargs="+", required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    report = Report(options.results, "append", "Appending 1% of new documents", ("apache-beam", "pyarrow", "numba"))
    report.add(_ABOUT)
    rows, stage_rows = [], []
    for megabytes in options.megabytes:
        measured, by_stage = _measure(options.data, options.folder / str(megabytes), megabytes, options.workers)
        rows += measured
        stage_rows += by_stage
    report.add("## Cost", table(_HEAD, rows), "## Wall seconds of stages", table(_STAGE_HEAD, stage_rows))


def _measure(data: Path, folder: Path, megabytes: int, workers: int) -> tuple[list[list[str]], list[list[str]]]:
    shutil.rmtree(folder, ignore_errors=True)
    say(f"generating {megabytes} MB")
    write_corpus(folder / "generated", read_material(data), megabytes * 10**6, _SEED)
    documents = pq.read_table(folder / "generated" / "documents", columns=["text"])
    num_new = int(documents.num_rows * _NEW_SHARE)
    num_old = documents.num_rows - num_new
    config = folder / "corpus.yaml"
    source = {"name": "Web", "dataset": "Generated", "format": "parquet", "paths": ["in/*.parquet"]}
    clean = {"clean": {"html": "never"}}
    config.write_text(yaml.safe_dump({"name": "append", "sources": [source | clean], "dedup": {"near": "fast"}}))
    (folder / "in").mkdir()
    _write(documents.slice(0, num_old), folder / "in" / "a.parquet")
    out, whole = folder / "out", folder / "whole"
    runs: dict[str, tuple[TreeCost, dict[str, Any]]] = {}
    runs["build of 99%"] = _run(_BUILD, config, out, workers)
    _write(documents.slice(num_old), folder / "in" / "b.parquet")
    runs["append of 1%"] = _run(_APPEND, config, out, workers)
    runs["build of all"] = _run(_BUILD, config, whole, workers)
    _compare(out, whole)
    shutil.rmtree(folder)
    rows, stage_rows = [], []
    for name, (cost, manifest) in runs.items():
        facts = manifest.get("snapshot", {"added": (), "rewritten": ()})
        files = [str(len(facts[kind])) if "snapshot" in manifest else "" for kind in ("added", "rewritten")]
        times = [f"{cost.wall_seconds:.1f}", f"{cost.cpu_seconds:.1f}", f"{cost.peak_mib:,.0f}"]
        rows.append([str(megabytes), f"{documents.num_rows:,}", f"{num_new:,}", name, *times, *files])
        seconds = {stage["stage"]: stage["wall_seconds"] for stage in manifest["stages"]}
        stage_rows.append([str(megabytes), name, *(f"{seconds[stage]:.1f}" for stage in _STAGE_HEAD[2:])])
    return rows, stage_rows


def _write(documents: pa.Table, path: Path) -> None:
    pq.write_table(documents, path, row_group_size=2048)


def _run(code: str, config: Path, out: Path, workers: int) -> tuple[TreeCost, dict[str, Any]]:
    say(f"{out.name}: {'append' if code is _APPEND else 'build'}")
    command = [sys.executable, "-c", code, str(config), str(out), str(workers)]
    cost = run_tree(command, out.parent / "log.txt", watched=out)
    return cost, json.loads((out / "manifest.json").read_text())


def _compare(out: Path, whole: Path) -> None:
    """Raises: ValueError if the documents of an appended build are not those of a build of all."""
    columns = ["id", "text", "locator", "split"]
    found, expected = (open_documents(str(path)).to_table(columns=columns).sort_by("id") for path in (out, whole))
    if not found.equals(expected):
        raise ValueError(f"{found.num_rows} documents after append are not the {expected.num_rows} of a build of all")


if __name__ == "__main__":
    main()
