"""The laws of a corpus in order of time, on 20,359 documents: as of days, appended in parts, and taken down.

    python -m benchmarks.suite.law DATA FOLDER [--dates 25] [--parts 30] [--removals 3] [--workers 2]

The documents are those of `benchmarks.common.dated_mix`, in one file for each source and day. Stories with topics are a
source of their own, and preferred. All dedup stages are on: exact, templates, near (fast), substring, overlap.

    as of     `finpile as-of` of a build of all documents, beside a build of the files up to that day; some with tokens
    append    the files in parts, in order of delivery and shuffled, beside a build of all
    remove    1% of the documents at random, one removal after the other, beside a build without them

FOLDER keeps nothing.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove

from benchmarks.common.dated_mix import read_dated_mix
from benchmarks.common.report import RESULTS, Report, say, table
from finpile.as_of import Cut
from finpile.config import load_config
from finpile.documents.document import document_id
from finpile.output.layout import Layout
from finpile.output.snapshots import load_snapshot, published_files, read_copies, with_copies
from finpile.output.takedowns import Wanted

_SEED = 1
_SHARE = 0.01
_UNDATED = "undated"
_CORPUS: dict[str, Any] = {
    "name": "law",
    "dedup": {
        "order": "time",
        "near": "fast",
        "substring": {"min_length": 100},
        "templates": {"min_documents": 5},
    },
    "heldout": {"after": date(2008, 1, 1), "undated": "drop", "overlap": {"min_length": 100}},
    "tokenizer": {"vocab_size": 2048, "chunks": 2, "chunk_vocab_size": 2048, "max_piece_bytes": 16},
    "tokens": {"sequence_length": 2048},
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dates", type=int, default=25)
    parser.add_argument("--tokens-every", type=int, default=1, help="compare tokenizer and tokens at every Nth date")
    parser.add_argument("--parts", type=int, default=30)
    parser.add_argument("--removals", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    shutil.rmtree(options.folder, ignore_errors=True)
    files = Files(options.data, options.folder)
    engine = Engine(num_workers=options.workers)
    say("building all documents")
    whole = options.folder / "whole"
    build(load_config(files.write("all", files.days)), str(whole), engine)
    report = Report(options.results, "law", "The laws of the order of time", ("apache-beam", "pyarrow", "numba"))
    report.add(
        f"{files.num_documents:,} documents of {len(files.days):,} days; exact, templates, near (fast), substring and "
        "overlap. `other rows` are documents and rows of the ledger that are in one of both corpora only."
    )
    if options.dates:
        head = (
            "as of",
            "documents",
            "ledger rows",
            "other rows",
            "tokenizer and tokens",
            "as-of s",
            "build s",
        )
        rows = list(_as_of(files, whole, options.dates, options.tokens_every, engine))
        report.add("## As of days, and builds of the documents up to them", table(head, rows))
    if options.parts:
        head = ("delivery", "parts", "documents", "ledger rows", "other rows", "rewritten files", "append s", "build s")
        rows = list(_append(files, whole, options.parts, engine))
        report.add("## Appended in parts, and built at once", table(head, rows))
    if options.removals:
        head = (
            "removal",
            "taken down",
            "documents",
            "ledger rows",
            "other rows",
            "rewritten files",
            "remove s",
            "build s",
        )
        rows = list(_remove(files, whole, options.removals, engine))
        report.add("## 1% taken down, and built without them", table(head, rows))
    shutil.rmtree(options.folder)


class Files:
    """The files of the mix, by source and day, of which corpora are made."""

    def __init__(self, data: Path, folder: Path) -> None:
        self._folder = folder
        documents = read_dated_mix(data).to_pylist()
        self.num_documents = len(documents)
        found: dict[str, dict[str, list[str]]] = {}
        for row in documents:
            moment = row["timestamp"]
            source = "Topics" if row["is_indexed"] else row["domain"]
            record = {"text": row["text"], "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None}
            day = moment.date().isoformat() if moment else _UNDATED
            found.setdefault(day, {}).setdefault(source, []).append(json.dumps(record) + "\n")
        self.days = sorted(found)
        self._lines = found

    def write(self, name: str, days: Sequence[str]) -> Path:
        """Writes the files of the days below a folder of that name; returns the corpus file."""
        folder = self._folder / name
        self.add(folder, days)
        labels = sorted({source for by_source in self._lines.values() for source in by_source}, key=_rank)
        sources = [
            {
                "name": label,
                "dataset": "Mix",
                "format": "jsonl",
                "paths": [f"{label}/*.jsonl"],
                "template_group": "source",
                "clean": {"html": "never"},
            }
            for label in labels
            if (folder / label).exists()
        ]
        (folder / "corpus.yaml").write_text(yaml.safe_dump({**_CORPUS, "sources": sources}, sort_keys=False))
        return folder / "corpus.yaml"

    def add(self, folder: Path, days: Sequence[str]) -> None:
        for day in days:
            for source, lines in self._lines[day].items():
                (folder / source).mkdir(parents=True, exist_ok=True)
                (folder / source / f"{day}.jsonl").write_text("".join(lines))

    def choose(self, share: float, draw: random.Random) -> list[tuple[str, str, int]]:
        """Documents at random: source, day and line."""
        every = [
            (source, day, line)
            for day, by_source in sorted(self._lines.items())
            for source, lines in sorted(by_source.items())
            for line in range(len(lines))
        ]
        return draw.sample(every, round(share * len(every)))

    def blank(self, source: str, day: str, line: int) -> str:
        """Makes a record white space of the same length, so that others keep their place; returns its document's id."""
        lines = self._lines[day][source]
        place = sum(len(each.encode()) for each in lines[:line])
        lines[line] = "\n" * len(lines[line].encode())
        return document_id(source, f"{source}/{day}.jsonl#{place}")

    def first_days(self) -> list[str]:
        """Days on which each source has documents."""
        found = {source: day for day in reversed(self.days) for source in self._lines[day]}
        return sorted(set(found.values()))

    def dated(self) -> list[str]:
        return [day for day in self.days if day != _UNDATED]


def _rank(label: str) -> tuple[bool, str]:
    return label != "Topics", label


def _as_of(files: Files, whole: Path, num_dates: int, tokens_every: int, engine: Engine) -> Iterator[tuple[str, ...]]:
    """A row for each of the dates, which divide the documents' days evenly."""
    days = files.dated()
    chosen = [days[round((number + 1) * len(days) / (num_dates + 1))] for number in range(num_dates)]
    for number, day in enumerate(chosen):
        say(f"as of {day}")
        has_tokens = number % tokens_every == tokens_every - 1
        early = [each for each in days if each <= day]
        folder = files.write("early", early).parent
        began = time.monotonic()
        until = {} if has_tokens else {"until": "split"}
        build(load_config(folder / "corpus.yaml"), str(folder / "out"), engine, **until)  # type: ignore[arg-type]
        built = time.monotonic()
        as_of(str(whole), Cut(date.fromisoformat(day)), str(folder / "as-of"), engine, **until)  # type: ignore[arg-type]
        filtered = time.monotonic()
        found, expected = _rows(folder / "as-of"), _rows(folder / "out")
        same = "not compared"
        if has_tokens:
            same = "equal" if _bytes(folder / "as-of") == _bytes(folder / "out") else "DIFFERENT"
        sizes = [f"{sum(kind == wanted for kind, _ in expected):,}" for wanted in ("documents", "removed")]
        other = len(found ^ expected)
        yield day, *sizes, str(other), same, f"{filtered - built:.1f}", f"{built - began:.1f}"
        shutil.rmtree(folder)


def _append(files: Files, whole: Path, num_parts: int, engine: Engine) -> Iterator[tuple[str, ...]]:
    expected = _rows(whole)
    for delivery in ("in order", "shuffled"):
        days = list(files.days)
        if delivery == "shuffled":
            random.Random(_SEED).shuffle(days)
        first = files.first_days()
        days = [*first, *(day for day in days if day not in first)]  # a pattern has to match a file
        bounds = [round(part * len(days) / num_parts) for part in range(num_parts + 1)]
        say(f"appending {num_parts} parts {delivery}")
        folder = files.write("parts", days[: bounds[1]]).parent
        config = files.write("parts", days[: bounds[1]])
        text = yaml.safe_load((whole.parent / "all" / "corpus.yaml").read_text())
        config.write_text(yaml.safe_dump(text, sort_keys=False))
        seconds, rewritten = [], 0
        for part, (begin, end) in enumerate(pairwise(bounds)):
            files.add(folder, days[begin:end])
            began = time.monotonic()
            if part:
                manifest = append(load_config(config), str(folder / "out"), engine)
                rewritten += len(manifest["snapshot"]["rewritten"])
            else:
                build(load_config(config), str(folder / "out"), engine, until="split")
            seconds.append(time.monotonic() - began)
        began = time.monotonic()
        build(load_config(config), str(folder / "again"), engine, until="split")
        build_seconds = time.monotonic() - began
        found = _rows(folder / "out")
        sizes = [f"{sum(kind == wanted for kind, _ in found):,}" for wanted in ("documents", "removed")]
        mean = sum(seconds[1:]) / len(seconds[1:])
        other = len(found ^ expected)
        yield delivery, str(num_parts), *sizes, str(other), str(rewritten), f"{mean:.1f}", f"{build_seconds:.1f}"
        shutil.rmtree(folder)


def _remove(files: Files, whole: Path, num_removals: int, engine: Engine) -> Iterator[tuple[str, ...]]:
    draw = random.Random(_SEED)
    for number in range(1, num_removals + 1):
        say(f"removal {number}")
        ids = frozenset(files.blank(*one) for one in files.choose(_SHARE, draw))
        began = time.monotonic()
        manifest = remove(str(whole), Wanted(ids=ids), "at random", engine)
        removed = time.monotonic()
        folder = files.write("without", files.days).parent
        build(load_config(folder / "corpus.yaml"), str(folder / "out"), engine, until="split")
        built = time.monotonic()
        found, expected = _rows(whole), _rows(folder / "out")
        stones = {row for row in found if "('stage', 'takedown')" in row[1]}
        sizes = [f"{sum(kind == wanted for kind, _ in expected):,}" for wanted in ("documents", "removed")]
        other = len((found - stones) ^ expected)
        rewritten = str(len(manifest["snapshot"]["rewritten"]))
        times = f"{removed - began:.1f}", f"{built - removed:.1f}"
        yield str(number), f"{len(ids):,}", *sizes, str(other), rewritten, *times
        shutil.rmtree(folder)


def _rows(out: Path) -> set[tuple[str, str]]:
    """The documents and rows of the ledger of the current snapshot, each as text."""
    layout = Layout(str(out))
    copies = read_copies(layout, load_snapshot(layout))
    found: list[tuple[str, str]] = []
    for kind in ("documents", "removed"):
        for file in published_files(layout).below(kind):
            rows = file.table()
            rows = with_copies(rows, copies) if kind == "documents" else rows
            found += [(kind, _text(row)) for row in rows.to_pylist()]
    return {(kind, f"{row} {number}") for (kind, row), number in _numbered(found)}


def _numbered(rows: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], int]]:
    """Equal rows with different numbers."""
    seen: dict[tuple[str, str], int] = {}
    for row in rows:
        seen[row] = seen.get(row, 0) + 1
        yield row, seen[row]


def _text(row: Mapping[str, Any]) -> str:
    return repr(sorted((name, str(value)) for name, value in row.items()))


def _bytes(out: Path) -> dict[str, bytes]:
    """The tokenizer and the token shards."""
    paths = [*(out / "tokenizer").rglob("*"), *(out / "tokens").rglob("*.arrow")]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in paths if path.is_file()}


if __name__ == "__main__":
    main()
