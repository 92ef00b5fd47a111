"""Bytes of text of the three filing archives, and CPU seconds to read and clean them, for checkouts that take turns.

    python -m benchmarks.sources.filing_texts DATA [CHECKOUT ...] [--rounds 3] [--results FOLDER]

Each checkout has an environment of its own (CHECKOUT/.venv/bin/finpile); without arguments this checkout is measured.
A build of each archive, in both forms of `tables`, with one worker and without deduplication. Bytes
are those of the texts that pass `clean`. CPU seconds are those of the records of `ingest` and `clean`, with what a
stage takes to start, for each MB that `ingest` reads: of filings as they are in the archives.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.common.report import RESULTS, ROOT, Report, say, table
from benchmarks.sources.archives import members_of

_PAGES: dict[str, Any] = {"format": "text", "encoding": ["utf-8", "latin-1"]}
_ARCHIVES: dict[str, tuple[str, dict[str, Any]]] = {
    "full submissions": ("edgar_full_submission_sgml.tar.zst", {"format": "edgar"}),
    "Forms 8-K": ("edgar_crawler/RAW_8-K.zip", {**_PAGES, "clean": {"html": "always"}}),
    "reports in Inline XBRL": ("edgar_10k10q_ixbrl_html.tar.zst", {**_PAGES, "clean": {"html": "always"}}),
}
_FORMS = ("lines", "markdown")
_STAGES = ("ingest", "clean")

Found = tuple[int, float]
"""Bytes of text, and CPU seconds."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Builds, prints and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (file, source) in _ARCHIVES.items():
            size = _bytes_of(options.data / "fin_filings" / file) / 1e6
            for tables in _FORMS:
                config = _config(options.data, file, source, tables, Path(folder))
                found: list[list[Found]] = [[] for _ in options.checkouts]
                for number in range(options.rounds):
                    for checkout, mine in zip(options.checkouts, found, strict=True):
                        say(f"{name}, {tables}, round {number + 1} of {options.rounds}")
                        mine.append(_build(checkout, config, Path(folder) / "out"))
                texts = [f"{mine[0][0]:,}" for mine in found]
                costs = [f"{statistics.median(seconds for _, seconds in mine) / size:.3f}" for mine in found]
                rows.append([name, tables, f"{size:.1f}", *texts, *costs])
    names = ["before", "after"] if len(options.checkouts) == 2 else [path.name for path in options.checkouts]
    head = [
        "archive",
        "tables",
        "MB",
        *(f"bytes of text {name}" for name in names),
        *(f"CPU s/MB {name}" for name in names),
    ]
    report = Report(options.results, "filing_texts", "Texts of filings", ("resiliparse", "pyarrow"))
    report.add(f"One worker, the median of {options.rounds} rounds.", table(head, rows))


def _bytes_of(archive: Path) -> int:
    return sum(len(content) for _, content in members_of(archive))


def _config(data: Path, file: str, source: dict[str, Any], tables: str, folder: Path) -> Path:
    clean = {**source.get("clean", {}), "tables": tables}
    entry = {"name": "Filings", "dataset": "FinPile", "paths": [f"fin_filings/{file}"], **source, "clean": clean}
    path = folder / "corpus.yaml"
    config: dict[str, Any] = {
        "name": "filings",
        "root": str(data),
        "sources": [entry],
        "dedup": {"exact": False, "near": None},
    }
    config["tokenizer"] = {"vocab_size": 2048}
    path.write_text(yaml.safe_dump(config))
    return path


def _build(checkout: Path, config: Path, out: Path) -> Found:
    """Raises: CalledProcessError if the build fails."""
    shutil.rmtree(out, ignore_errors=True)
    command = [str(checkout / ".venv/bin/finpile"), "build", str(config), "-o", str(out), "--workers", "1"]
    subprocess.run(command, check=True, capture_output=True, cwd=checkout)
    stages = {stage["stage"]: stage for stage in json.loads((out / "manifest.json").read_text())["stages"]}
    texts = sum(row["text_bytes"] for row in stages["clean"]["counts"]["sources"])
    return texts, sum(stages[name]["cpu_seconds"] for name in _STAGES)


if __name__ == "__main__":
    main()
