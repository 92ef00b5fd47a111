"""Texts made to hurt exact substrings: does `finpile dedup` end, how soon, and how much memory does it take?

    python -m benchmarks.dedup.adversarial [SCALE] [CASE ...]

SCALE (1 by default) multiplies the number of documents, or the size of the one document. Results go to
benchmarks/results.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.measure import PeerFailedError, TreeCost, run_tree
from benchmarks.common.report import RESULTS, Report, say, table

NUM_WORKERS = 2
MIN_LENGTH = 200
#: Files in which the documents come.
_NUM_FILES = 8
_WORD_LETTERS = 5

_ABOUT = (
    f"`finpile dedup --near none --substring-min-length {MIN_LENGTH}` on {NUM_WORKERS} workers, one run each, start "
    "and imports counted. Words are five random letters. Peak: the highest sum over all processes, what they share "
    "counted once; "
    "the largest process is a worker or the one that starts them. A document is never parted: one of 200 MB is one "
    "shard, where others hold 16 MiB."
)
_HEAD = (
    "case",
    "docs",
    "MB",
    "wall s",
    "exact s",
    "substring s",
    "peak MiB",
    "largest process MiB",
    "exchanged",
    "cut",
)


def words(draw: np.random.Generator, size_bytes: int) -> bytes:
    """Text of random words, that many bytes."""
    letters = draw.integers(ord("a"), ord("z") + 1, size_bytes, np.uint8)
    letters[_WORD_LETTERS :: _WORD_LETTERS + 1] = ord(" ")
    return letters.tobytes()


def _boilerplate(draw: np.random.Generator, scale: float) -> Iterator[bytes]:
    paragraph = words(draw, 300)
    for _ in range(int(100_000 * scale)):
        yield b" ".join(words(draw, 100) + paragraph for _ in range(10))


def _distinct(draw: np.random.Generator, scale: float) -> Iterator[bytes]:
    for _ in range(int(100_000 * scale)):
        yield words(draw, 4_000)


def _short_of_a_window(draw: np.random.Generator, scale: float) -> Iterator[bytes]:
    shared = words(draw, 150)
    for _ in range(int(100_000 * scale)):
        yield words(draw, 450) + shared + words(draw, 400)


def _identical(draw: np.random.Generator, scale: float) -> Iterator[bytes]:
    text = words(draw, 4_000)
    for _ in range(int(10_000 * scale)):
        yield text


def _all_but_a_word(draw: np.random.Generator, scale: float) -> Iterator[bytes]:
    text = words(draw, 4_000)
    for number in range(int(10_000 * scale)):
        yield b"%d %s" % (number, text)


def _long(draw: np.random.Generator, scale: float) -> Iterator[bytes]:
    yield words(draw, int(200_000_000 * scale))


def _constant(draw: np.random.Generator, scale: float) -> Iterator[bytes]:
    del draw
    yield b"a" * int(200_000_000 * scale)


def _periodic(draw: np.random.Generator, scale: float) -> Iterator[bytes]:
    yield words(draw, 1_000) * int(200_000 * scale)


CASES: dict[str, tuple[str, Callable[[np.random.Generator, float], Iterator[bytes]]]] = {
    "distinct": ("all text distinct, 4 kB a document: what the others are to be compared with", _distinct),
    "boilerplate": ("a paragraph of 300 bytes, ten times in each document, between 100 bytes of its own", _boilerplate),
    "short": (f"150 bytes in each, short of the {MIN_LENGTH} that count, in 850 of its own", _short_of_a_window),
    "identical": ("the same 4 kB", _identical),
    "first-word": ("the same 4 kB after a first word of its own", _all_but_a_word),
    "long": ("one document of random words", _long),
    "constant": ("one document of one letter", _constant),
    "periodic": ("one document that repeats its first 1,000 bytes", _periodic),
}


def main(arguments: Sequence[str]) -> None:
    """Measures the cases named, or all."""
    scale = float(arguments[0]) if arguments else 1.0
    report = Report(RESULTS, "dedup_adversarial", "Adversarial texts", ("finpile", "numba", "pyarrow"))
    cases = "\n".join(f"- {name}: {CASES[name][0]}" for name in CASES)
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments[1:] or CASES:
            rows.append(measure(name, scale, Path(scratch)))
            print(" | ".join(rows[-1]), flush=True)
    report.add(_ABOUT, cases, table(_HEAD, rows))


def measure(name: str, scale: float, scratch: Path) -> list[str]:
    """One row of the table."""
    folder = scratch / name
    num_docs, num_bytes = _write(CASES[name][1](np.random.default_rng(20230330), scale), folder / "in")
    say(f"{name}: {num_docs} documents, {num_bytes / 1e6:.0f} MB")
    command = ["-m", "finpile_cli", "dedup", folder / "in", "-o", folder / "out", "--near", "none"]
    command += ["--substring-min-length", str(MIN_LENGTH), "--workers", str(NUM_WORKERS)]
    try:
        cost = run_tree([sys.executable, *command], scratch / "log.txt")
        return [name, f"{num_docs:,}", f"{num_bytes / 1e6:.1f}", *_cells(folder / "out", cost)]
    except PeerFailedError as error:
        return [f"{name} failed: {error}", f"{num_docs:,}", f"{num_bytes / 1e6:.1f}", *["-"] * (len(_HEAD) - 3)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(texts: Iterator[bytes], folder: Path) -> tuple[int, int]:
    """Texts of ASCII to JSON Lines; returns how many there are, and their bytes."""
    folder.mkdir(parents=True)
    num_docs = num_bytes = 0
    with ExitStack() as stack:
        files = [stack.enter_context((folder / f"{number:05}.jsonl").open("wb")) for number in range(_NUM_FILES)]
        for text in texts:
            files[num_docs % _NUM_FILES].write(b'{"text": "%s"}\n' % text)
            num_docs, num_bytes = num_docs + 1, num_bytes + len(text)
    return num_docs, num_bytes


def _cells(out: Path, cost: TreeCost) -> list[str]:
    stages: dict[str, dict[str, Any]] = {
        stage["stage"]: stage for stage in json.loads((out / "manifest.json").read_text())["stages"]
    }
    counts = stages["substring"]["counts"]
    seconds = [cost.wall_seconds, stages["exact"]["wall_seconds"], stages["substring"]["wall_seconds"]]
    memory = [f"{cost.peak_mib:,.0f}", f"{cost.largest_mib:,.0f}"]
    parts = [counts["exchanged_bytes"], sum(counts["cut_bytes"])]
    return [
        *(f"{each:.1f}" for each in seconds),
        *memory,
        *(f"{100 * part / max(counts['text_bytes'], 1):.2f} %" for part in parts),
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
