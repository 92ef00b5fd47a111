"""Measures what the comparison of published files with the manifest costs the commands that read them.

    python -m benchmarks.suite.checks DATA FOLDER --megabytes 200 [--repeats 3]

The documents are those of `benchmarks.scale.corpus`, with timestamps in their order. Each command runs on a copy of one
build, in a process of its own, with the comparison and without it in turn; of the repeats the smallest times count.
Without it, no BLAKE2b of a file is computed and no checksum of a page is compared. FOLDER keeps nothing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from benchmarks.common.measure import TreeCost, run_tree
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.scale.append import FIRST_SECOND, write_parts
from benchmarks.scale.corpus import write_corpus
from benchmarks.scale.sentences import read_material
from finpile.config import load_config
from finpile.output.layout import Layout
from finpile.output.published_files import PublishedFile
from finpile.output.snapshots import published_files

_SEED, _NEW_SHARE = 1, 0.01
_WITHOUT = """
import pyarrow.parquet as pq
from finpile import storage
from finpile.output import published_files
published_files.PublishedFile.buffer = lambda self: self._found(published_files.read_buffer)
storage.checked_parquet = pq.ParquetFile
"""
_BEFORE = """
import sys
from datetime import date
from finpile_pipelines.runner.engine import Engine
"""
_COMMANDS = {
    "as-of half of the time": "from finpile.as_of import Cut\nfrom finpile_pipelines.as_of import as_of\n"
    "as_of(out, Cut(date.fromisoformat(day)), out + '-as-of', engine, until='split')",
    "append of 1%": "from finpile.config import load_config\nfrom finpile_pipelines.snapshots.append import append\n"
    "append(load_config(config), out, engine)",
    "remove of a document": "from finpile.output.takedowns import Wanted\n"
    "from finpile_pipelines.snapshots.remove import remove\n"
    "remove(out, Wanted(ids=frozenset({identifier})), 'benchmark', engine)",
    "report": "from finpile_cli.main import finpile\nfinpile.main(['report', out], standalone_mode=False)",
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    config, day = _build(options.data, options.folder, options.megabytes)
    report = Report(options.results, "checks", "The cost of comparing published files", ("pyarrow", "numpy"))
    report.add(
        f"{options.megabytes} MB of generated text; exact deduplication in order of time, a small tokenizer and token "
        f"shards; one process. The smallest of {options.repeats} runs. `report` reads manifests alone."
    )
    head = ("command", "CPU s, compared", "CPU s, not compared", "wall s, compared", "wall s, not compared")
    rows = []
    for name, code in _COMMANDS.items():
        with_it, without = _costs(name, code, config, day, options.repeats)
        costs = [
            f"{getattr(cost, unit):.1f}" for unit in ("cpu_seconds", "wall_seconds") for cost in (with_it, without)
        ]
        rows.append((name, *costs))
    report.add("## Commands", table(head, rows), "## Files", _rates(options.folder / "base"))
    shutil.rmtree(options.folder)


def _build(data: Path, folder: Path, megabytes: int) -> tuple[Path, str]:
    """Builds all but 1% of the documents in `base`; returns the corpus file, and the day of half of them."""
    say(f"generating {megabytes} MB")
    write_corpus(folder / "generated", read_material(data), megabytes * 10**6, _SEED)
    files = sorted((folder / "generated" / "documents").glob("*.parquet"))
    total = sum(pq.read_metadata(file).num_rows for file in files)
    for name in ("in", "later"):
        (folder / name).mkdir()
    write_parts(files, folder, [0, total - int(total * _NEW_SHARE), total])
    shutil.rmtree(folder / "generated")
    source = {"name": "Web", "dataset": "Generated", "format": "parquet", "paths": ["in/*.parquet"]}
    settings = {
        "name": "checks",
        "sources": [source | {"clean": {"html": "never"}}],
        "dedup": {"order": "time"},
        "tokenizer": {"vocab_size": 2000, "chunk_vocab_size": 1500, "chunks": 1},
        "tokens": {"sequence_length": 512},
    }
    config = folder / "corpus.yaml"
    config.write_text(yaml.safe_dump(settings))
    say("building")
    build(load_config(config), str(folder / "base"), Engine(num_workers=1))
    for path in (folder / "later").iterdir():
        path.rename(folder / "in" / f"z{path.name}")
    return config, f"{datetime.fromtimestamp(FIRST_SECOND + 30 * total, UTC).date()}"


def _costs(name: str, code: str, config: Path, day: str, repeats: int) -> list[TreeCost]:
    """Those of the command with the comparison and without it."""
    base, found = config.parent / "base", dict[bool, list[TreeCost]]()
    identifier = published_files(Layout(str(base))).below("documents")[0].pages(["id"])["id"][0].as_py()
    for number in range(2 * repeats):
        is_compared = number % 2 == 0
        say(f"{name}, {'compared' if is_compared else 'not compared'}")
        out = Path(shutil.copytree(base, config.parent / "out"))
        names = f"out, config, day, identifier = {str(out)!r}, {str(config)!r}, {day!r}, {identifier!r}\n"
        script = f"{_BEFORE}{'' if is_compared else _WITHOUT}{names}engine = Engine(num_workers=1)\n{code}\n"
        cost = run_tree([sys.executable, "-c", script], config.parent / "log.txt")
        found.setdefault(is_compared, []).append(cost)
        for path in config.parent.glob("out*"):
            shutil.rmtree(path)
    return [min(found[kind], key=lambda cost: cost.cpu_seconds) for kind in (True, False)]


def _rates(out: Path) -> str:
    """The bytes of published files that are compared in a second of CPU time."""
    rows = []
    for folder in ("documents", "tokens/split=train"):
        files: list[PublishedFile] = published_files(Layout(str(out))).below(folder)
        size = sum(file.record.size_bytes for file in files)
        seconds = min(_seconds(files) for _ in range(5))
        rows.append((folder, f"{len(files)}", f"{size / 1e6:,.1f}", f"{size / 1e9 / seconds:.2f}"))
    return table(("files", "number", "MB", "GB compared a CPU second"), rows)


def _seconds(files: Sequence[PublishedFile]) -> float:
    began = time.process_time()
    for file in files:
        file.check()
    return time.process_time() - began


if __name__ == "__main__":
    main()
