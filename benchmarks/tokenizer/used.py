"""Tokenizers that are used: the stage `tokens` of a build beside each library alone, on two threads.

    python -m benchmarks.tokenizer.used DATA [--megabytes MB] [--tiktoken FILE]

DATA is the folder with the archives and `tokenizers/`. The documents are those of common/mix.py, as much of each
domain, as four sources, built once up to `split`. Then each tokenizer takes turns: its library alone encodes the
published texts in batches on two threads, and the build is continued with it on two workers. The stage also reads the
documents, counts them, orders and joins their ids, counts what is lost, and writes shards and index. CPU time is of all
threads and processes. Writes results/<date>_used_tokenizers.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from benchmarks.common.mix import read_mix, sample, write_jsonl
from benchmarks.common.report import RESULTS, Report, say, table
from finpile.config import load_config
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.report.documents import iter_texts
from finpile.tokens.tokenizers.library import LibraryTokenizer
from finpile.tokens.tokenizers.opening import open_tokenizer
from finpile.tokens.tokenizers.used import UsedTokenizer

NUM_THREADS = 2
_PACKAGES = ("finpile", "tokenizers", "sentencepiece", "tiktoken", "numpy", "pyarrow")
_TOKENIZERS = {
    "GPT-2, tokenizers": "tokenizers/gpt2",
    "GPT-NeoX-20B, tokenizers": "tokenizers/gpt_neox/20B_tokenizer.json",
    "T5, sentencepiece": "tokenizers/t5/spiece.model",
}
#: Each has a quarter of the documents: tasks of the stage are files of documents.
_SOURCES = ("First", "Second", "Third", "Fourth")
#: Texts that a library is given at a time.
_BATCH = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Wall and CPU seconds of one run."""

    wall: float
    cpu: float


def main() -> None:
    """Measures, prints and writes the table."""
    arguments = _arguments()
    report = Report(arguments.results, "used_tokenizers", "Tokenizers that are used", _PACKAGES)
    places = {name: arguments.data / place for name, place in _TOKENIZERS.items()}
    if arguments.tiktoken:
        places["cl100k, tiktoken"] = arguments.tiktoken
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / f"{source}.jsonl" for source in _SOURCES]
        write_jsonl(sample(read_mix(arguments.data), arguments.megabytes), files)
        _build(folder, None)
        texts = pa.concat_arrays([texts for _, _, texts in iter_texts([folder / "out"])]).to_pylist()
        num_bytes = sum(len(text.encode()) for text in texts)
        rows = []
        for title, place in places.items():
            say(title)
            alone: list[Cost] = []
            stage: list[Cost] = []
            for _ in range(arguments.rounds):
                alone.append(_alone(place, texts))
                stage.append(_stage(folder, place))
            rows.append(_row(title, folder, num_bytes, min(alone, key=_cpu), min(stage, key=_cpu)))
        head = [
            "tokenizer",
            "tokens",
            "library MB/s",
            "stage MB/s",
            "library CPU s",
            "stage CPU s",
            "stage / library CPU",
        ]
        about = (
            f"{len(texts):,} documents of {num_bytes / 1e6:.1f} MB; the round with the least CPU time of "
            f"{arguments.rounds}, on {NUM_THREADS} threads. MB/s are of wall time, on a machine with a load average of "
            f"{os.getloadavg()[2]:.0f}: compare CPU times if that is more than its cores."
        )
        report.add(about, table([*head, "altered documents"], rows))
    say(f"written to {report.path}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tokenizer.used",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder with the archives and tokenizers")
    parser.add_argument("--megabytes", type=float, default=40, help="text")
    parser.add_argument("--tiktoken", type=Path, metavar="FILE", help="a rank file under its own name")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    return parser.parse_args()


def _build(folder: Path, place: Path | None) -> None:
    """Builds the documents, or continues with the tokenizer at a place."""
    sources = [
        {"name": name, "dataset": "Mix", "format": "jsonl", "paths": f"{name}.jsonl", "clean": {"filters": []}}
        for name in _SOURCES
    ]
    values = {"name": "mix", "sources": sources, "dedup": {"near": None}}
    tokenizer = {} if place is None else {"tokenizer": {"use": str(place.resolve())}}
    (folder / "corpus.yaml").write_text(yaml.safe_dump({**values, **tokenizer}, sort_keys=False))
    until = "split" if place is None else "tokens"
    engine = Engine(num_workers=NUM_THREADS)
    build(load_config(folder / "corpus.yaml"), str(folder / "out"), engine, until=until)


def _stage(folder: Path, place: Path) -> Cost:
    """The stage `tokens`, run again."""
    for stage in ("tokenizer", "tokens"):
        work = folder / "out" / ".work" / stage
        for path in sorted(work.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    _build(folder, place)
    [record] = [stage for stage in load_manifest(Layout(str(folder / "out")))["stages"] if stage["stage"] == "tokens"]
    return Cost(wall=record["wall_seconds"], cpu=record["cpu_seconds"])


def _alone(place: Path, texts: Sequence[str]) -> Cost:
    """The library, in batches on all threads; its ids are dropped."""
    tokenizer = open_tokenizer(place)
    if not isinstance(tokenizer, LibraryTokenizer):
        raise SystemExit(f"{place}: is a tokenizer of FinPile; expected one of a library")
    encode = tokenizer.encode_texts
    encode(texts[:_BATCH], NUM_THREADS)  # its first call makes tables
    wall, cpu = time.perf_counter(), _cpu_seconds()
    for batch in _batches(texts):
        encode(batch, NUM_THREADS)
    return Cost(wall=time.perf_counter() - wall, cpu=_cpu_seconds() - cpu)


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    yield from (texts[begin : begin + _BATCH] for begin in range(0, len(texts), _BATCH))


def _cpu_seconds() -> float:
    found = os.times()
    return found.user + found.system


_cpu: Callable[[Cost], float] = lambda cost: cost.cpu  # noqa: E731


def _row(title: str, folder: Path, num_bytes: int, alone: Cost, stage: Cost) -> list[str]:
    counts = {one["stage"]: one["counts"] for one in load_manifest(Layout(str(folder / "out")))["stages"]}
    used, made = UsedTokenizer.read(str(folder / "out" / "tokenizer")), counts["tokens"]
    altered = made.get("losses", {"num_altered": 0})["num_altered"]
    return [
        f"{title} ({used.vocab_size:,})",
        f"{made['stream_tokens']:,}",
        f"{num_bytes / 1e6 / alone.wall:.1f}",
        f"{num_bytes / 1e6 / stage.wall:.1f}",
        f"{alone.cpu:.1f}",
        f"{stage.cpu:.1f}",
        f"{stage.cpu / alone.cpu:.2f}",
        f"{altered:,}",
    ]


if __name__ == "__main__":
    main()
