"""Runs `finpile dedup` and `finpile build` on generated corpora of growing size.

    python -m benchmarks.scale.run DATA FOLDER --gigabytes 1 3 10 [--parts exact near substring build] [--workers 2]

FOLDER keeps the corpora (`benchmarks.scale.corpus`, seed 1) and one JSON file for each run; a run that has its file is
not repeated. The output of a run is deleted when it is measured. Each call writes the page of all runs in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from benchmarks.common.measure import run_tree
from benchmarks.common.report import RESULTS, Report, say
from benchmarks.scale.corpus import write_corpus
from benchmarks.scale.found import compare
from benchmarks.scale.page import sections
from benchmarks.scale.sentences import read_material

#: Options of `finpile dedup`, by part. The part `build` is a build without deduplication.
PARTS = {
    "exact": ("--near", "none"),
    "near": ("--near", "fast"),
    "substring": ("--near", "none", "--substring-min-length", "200"),
    "build": (),
}
_SEED = 1
#: Text on which the tokenizer of a build is trained: its time does not grow with the corpus.
_TRAINING_BYTES = 4_000_000
_LOOK_SECONDS = 1.0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gigabytes", type=float, nargs="+", required=True)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=tuple(PARTS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    for gigabytes in options.gigabytes:
        corpus = corpus_of(options.data, options.folder, gigabytes)
        for part in options.parts:
            _measure(corpus, part, gigabytes, options)
    found = sorted(options.folder.glob("*.json"), key=lambda path: float(path.stem.partition("-")[0]))
    runs = [json.loads(path.read_text()) for path in found]
    report = Report(options.results, "scale", "Cost and memory as a corpus grows", ("apache-beam", "pyarrow", "numba"))
    for section in sections(runs):
        report.add(section)


def corpus_of(data: Path, folder: Path, gigabytes: float) -> Path:
    """The corpus of this size, with `training/` for the tokenizer; made if it is not there."""
    corpus = folder / f"corpus-{gigabytes:g}"
    if not (corpus / "training").exists():
        say(f"generating {gigabytes:g} GB")
        shutil.rmtree(corpus, ignore_errors=True)
        material = read_material(data)
        write_corpus(corpus, material, int(gigabytes * 1e9), _SEED)
        write_corpus(corpus / "training", material, _TRAINING_BYTES, _SEED + 1)
    return corpus


def _measure(corpus: Path, part: str, gigabytes: float, options: argparse.Namespace) -> None:
    name = f"{gigabytes:g}-{part}"
    result, out = options.folder / f"{name}.json", options.folder / f"out-{name}"
    if result.exists():
        return
    say(f"{part}, {gigabytes:g} GB")
    shutil.rmtree(out, ignore_errors=True)
    log = options.folder / f"{name}.log"
    command = [sys.executable, "-m", "finpile_cli", *_command(corpus, part, out), "--workers", str(options.workers)]
    cost = run_tree(command, log, watched=out, look_seconds=_LOOK_SECONDS)
    manifest = json.loads((out / "manifest.json").read_text())
    facts = json.loads((corpus / "truth.json").read_text())
    measured: dict[str, Any] = {
        "gigabytes": gigabytes,
        "part": part,
        "workers": options.workers,
        "documents": facts["documents"],
        "text_bytes": facts["text_bytes"],
        "cost": asdict(cost),
        "stages": [_stage(stage) for stage in manifest["stages"]],
        "found": asdict(compare(corpus, out)) if part != "build" else None,
    }
    result.write_text(json.dumps(measured, indent=1))
    shutil.rmtree(out)


def _command(corpus: Path, part: str, out: Path) -> list[str]:
    if part != "build":
        return ["dedup", str(corpus / "documents"), "-o", str(out), *PARTS[part]]
    config = corpus / "corpus.yaml"
    config.write_text(yaml.safe_dump(build_config(corpus, {"exact": False, "near": None})))
    return ["build", str(config), "-o", str(out)]


def build_config(corpus: Path, dedup: Mapping[str, Any], only: str = "") -> dict[str, Any]:
    """A corpus file with a tokenizer of a few MB of other text of the same kind; `only` names one of its datasets."""
    source = {"format": "parquet", "clean": {"html": "never"}}
    sources = [
        {"name": "Web", "dataset": "Generated", "paths": ["documents/*.parquet"], **source},
        {"name": "Web", "dataset": "Training", "paths": ["training/documents/*.parquet"], **source},
    ]
    return {
        "name": "scale",
        "root": str(corpus),
        "sources": [one for one in sources if only in ("", one["dataset"])],
        "dedup": dict(dedup),
        "tokenizer": {"vocab_size": 32768, "chunk_vocab_size": 32768, "train_on": ["Training"]},
    }


def _stage(stage: dict[str, Any]) -> dict[str, Any]:
    """Time and memory, and the counts that are numbers."""
    kept = {name: stage[name] for name in ("stage", "wall_seconds", "cpu_seconds", "peak_memory_bytes")}
    counts = {name: count for name, count in stage["counts"].items() if isinstance(count, int)}
    return {**kept, "counts": counts, "published_bytes": sum(file["size_bytes"] for file in stage["files"])}


if __name__ == "__main__":
    main()
