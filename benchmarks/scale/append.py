"""Measures `finpile append` of 1% of new documents beside a build of all documents.

    python -m benchmarks.scale.append DATA FOLDER --megabytes 100 1000 5000 [--workers 1]

The documents are those of `benchmarks.scale.corpus`, with timestamps in their order, in files of 98%, 1% and 1%. The
first append makes the index of keys, the second one uses it. All runs end with documents and ledger, and the documents
are compared. FOLDER keeps nothing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.common.measure import TreeCost, run_tree
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.scale.corpus import write_corpus
from benchmarks.scale.sentences import read_material
from finpile import open_documents

_SEED, _NEW_SHARE, _GROUP_ROWS = 1, 0.01, 2048
FIRST_SECOND = 946_684_800
_ABOUT = (
    "Generated text with planted duplicates; exact, near (fast) and substring deduplication in order of time, no "
    "tokenizer. Each run is a process of its own, from start to end. Bytes read are those of shards, index and "
    "published files that processes requested, whether the system had them in memory or not. Ids, texts, locators "
    "and splits of the appended corpus and of a build of all are equal."
)
_HEAD = (
    "text MB",
    "documents",
    "new",
    "run",
    "wall s",
    "CPU s",
    "peak MiB",
    "MB read",
    "files added",
    "files rewritten",
    "CPU ms a new document",
)
_STAGES = ("ingest", "clean", "exact", "near", "substring", "split")
#: What a measured process runs: it counts the bytes that it and its forks read.
_COUNTING = """
import multiprocessing, sys
from finpile import storage
from finpile.output import key_index, published_files, work_folder
from finpile.storage import file_systems
count = multiprocessing.Value("q")
def add(number):
    with count.get_lock():
        count.value += number
def counted(function, size):
    def call(*arguments, **named):
        found = function(*arguments, **named)
        add(size(found))
        return found
    return call
for module in (work_folder, published_files):
    module.read_buffer = counted(file_systems.read_buffer, lambda data: data.size)
from finpile_pipelines import batch_places
batch_places._range = counted(batch_places._range, lambda data: data.size)
storage.open_file = lambda url: Counting(file_systems.open_file(url))
class Counting:
    def __init__(self, stream):
        self._stream = stream
    def __getattr__(self, name):
        return getattr(self._stream, name)
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self._stream.close()
    def read(self, *arguments):
        data = self._stream.read(*arguments)
        add(len(data))
        return data
    def readinto(self, target):
        number = self._stream.readinto(target)
        add(number)
        return number
key_index.open_file = storage.open_file
published_files.open_in = lambda *arguments: Counting(file_systems.open_in(*arguments))
from finpile.config import load_config
from finpile_pipelines.runner.engine import Engine
"""
_BUILD, _APPEND = (
    f"{_COUNTING}from {module} import {name}\n"
    f"{name}(load_config(sys.argv[1]), sys.argv[2], Engine(num_workers=int(sys.argv[3])){more})\n"
    "print('read', count.value)\n"
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
    parser.add_argument("--workers", type=int, default=1, help="bytes read are counted in this process alone")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    report = Report(options.results, "append", "Appending 1% of new documents", ("apache-beam", "pyarrow", "numba"))
    report.add(_ABOUT)
    rows, stage_rows, index_rows = [], [], []
    for megabytes in options.megabytes:
        measured, by_stage, sizes = _measure(options.data, options.folder / str(megabytes), megabytes, options.workers)
        rows += measured
        stage_rows += by_stage
        index_rows += sizes
    report.add("## Cost", table(_HEAD, rows))
    report.add("## Wall seconds of stages", table(("text MB", "run", *_STAGES), stage_rows))
    report.add("## Index", table(("text MB", "index", "bytes", "bytes per document", "share of the text"), index_rows))


_Rows = list[list[str]]


def _measure(data: Path, folder: Path, megabytes: int, workers: int) -> tuple[_Rows, _Rows, _Rows]:
    shutil.rmtree(folder, ignore_errors=True)
    say(f"generating {megabytes} MB")
    write_corpus(folder / "generated", read_material(data), megabytes * 10**6, _SEED)
    files = sorted((folder / "generated" / "documents").glob("*.parquet"))
    total = sum(pq.read_metadata(file).num_rows for file in files)
    num_new = int(total * _NEW_SHARE)
    bounds = [0, total - 2 * num_new, total - num_new, total]
    config = folder / "corpus.yaml"
    source = {"name": "Web", "dataset": "Generated", "format": "parquet", "paths": ["in/*.parquet"]}
    dedup = {"order": "time", "near": "fast", "substring": {}}
    settings = {"name": "append", "sources": [source | {"clean": {"html": "never"}}], "dedup": dedup}
    config.write_text(yaml.safe_dump(settings))
    (folder / "in").mkdir()
    (folder / "later").mkdir()
    write_parts(files, folder, bounds)
    shutil.rmtree(folder / "generated")
    out, whole = folder / "out", folder / "whole"
    runs: dict[str, tuple[TreeCost, int, dict[str, Any]]] = {}
    runs["build of 98%"] = _run(_BUILD, config, out, workers)
    for number, name in enumerate(("append of 1%, makes the index", "append of 1%"), 1):
        shutil.move(folder / "later" / f"{number}.parquet", folder / "in" / f"z{number}.parquet")
        runs[name] = _run(_APPEND, config, out, workers)
    runs["build of all"] = _run(_BUILD, config, whole, workers)
    _compare(out, whole)
    rows, stage_rows = [], []
    for name, (cost, num_read, manifest) in runs.items():
        facts = manifest.get("snapshot", {"added": (), "rewritten": ()})
        counts = [str(len(facts[kind])) if "snapshot" in manifest else "" for kind in ("added", "rewritten")]
        times = [
            f"{cost.wall_seconds:.1f}",
            f"{cost.cpu_seconds:.1f}",
            f"{cost.peak_mib:,.0f}",
            f"{num_read / 1e6:,.0f}",
        ]
        each = f"{1000 * cost.cpu_seconds / num_new:.1f}" if "snapshot" in manifest else ""
        rows.append([str(megabytes), f"{total:,}", f"{num_new:,}", name, *times, *counts, each])
        seconds = {stage["stage"]: stage["wall_seconds"] for stage in manifest["stages"]}
        stage_rows.append([str(megabytes), name, *(f"{seconds[stage]:.1f}" for stage in _STAGES)])
    sizes = _index_sizes(out, megabytes, total)
    shutil.rmtree(folder)
    return rows, stage_rows, sizes


def write_parts(files: Sequence[Path], folder: Path, bounds: Sequence[int]) -> None:
    """The documents in their order, a minute apart: the first part by file, the others in one file each."""
    first, held = 0, [list[pa.Table]() for _ in bounds[1:]]
    for number, file in enumerate(files):
        documents = pq.read_table(file, columns=["text"])
        moments = FIRST_SECOND + 60 * np.arange(first, first + documents.num_rows)
        documents = documents.append_column("timestamp", pa.array(moments, pa.timestamp("s", "UTC")))
        for part, (begin, end) in enumerate(pairwise(bounds)):
            mine = documents.slice(
                max(0, begin - first), max(0, min(end - first, documents.num_rows) - max(0, begin - first))
            )
            if mine.num_rows and part == 0:
                pq.write_table(mine, folder / "in" / f"a{number:04d}.parquet", row_group_size=_GROUP_ROWS)
            elif mine.num_rows:
                held[part].append(mine)
        first += documents.num_rows
    for part, tables in enumerate(held[1:], 1):
        pq.write_table(pa.concat_tables(tables), folder / "later" / f"{part}.parquet", row_group_size=_GROUP_ROWS)


def _run(code: str, config: Path, out: Path, workers: int) -> tuple[TreeCost, int, dict[str, Any]]:
    say(f"{out.name}: {'append' if code is _APPEND else 'build'}")
    command = [sys.executable, "-c", code, str(config), str(out), str(workers)]
    log = out.parent / "log.txt"
    cost = run_tree(command, log, watched=out)
    num_read = int(log.read_text().rsplit("read ", 1)[1])
    return cost, num_read, json.loads((out / "manifest.json").read_text())


def _index_sizes(out: Path, megabytes: int, total: int) -> _Rows:
    rows = []
    for folder in sorted({path.parent.parent for path in (out / "index").rglob("index.json")}):
        size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
        name = folder.relative_to(out / "index").as_posix()
        rows.append([str(megabytes), name, f"{size:,}", f"{size / total:.0f}", f"{size / megabytes / 1e6:.1%}"])
    return rows


def _compare(out: Path, whole: Path) -> None:
    """Raises: ValueError if the documents of an appended build are not those of a build of all."""
    columns = ["id", "text", "locator", "split"]
    found, expected = (open_documents(str(path)).to_table(columns=columns).sort_by("id") for path in (out, whole))
    if not found.equals(expected):
        raise ValueError(f"{found.num_rows} documents after append are not the {expected.num_rows} of a build of all")


if __name__ == "__main__":
    main()
