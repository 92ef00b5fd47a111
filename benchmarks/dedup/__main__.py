"""Deduplication against named peers, side by side in one run on real corpora.

    python -m benchmarks.dedup DATA [PART ...] [options]

DATA is the folder that holds the archives (see common/pinned_corpus.py and common/mix.py). Without a part,
all run. `benchmarks.dedup.scoreboard` compares whole programs, from files to files. Writes
results/<date>_dedup.md, or <date>_dedup_PART_... if only some run.

    minhash      from text to signature on one thread: datasketch, rensa; and which similar pairs the signatures find
    substrings   repeated windows of bytes on one thread: pydivsufsort; and whether the same bytes go
    growth       FinPile alone, 1x to 16x the data: time per byte, memory, exchanged bytes

Each peer has a virtual environment of its own, made with pip below --venvs on first use from the pins in peers/
(2.5 GB in all, from the package index).
The result names a peer that cannot be installed or fails, and the others continue. Linux only.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.common.mix import Mix, read_mix, sample
from benchmarks.common.report import RESULTS, Report, say
from benchmarks.dedup.growth import SIZES_MB, measure_growth
from benchmarks.dedup.minhash import compare_minhash
from benchmarks.dedup.substrings import PEER, compare_substrings
from benchmarks.dedup.truth import LEAST_JACCARD, SimilarPairs, shingles_of, similar_pairs
from benchmarks.dedup.venvs import Venv, describe, prepare

PEERS = {
    "minhash": ("datasketch", "rensa"),
    "substrings": (PEER,),
    "growth": (),
}
PACKAGES = ("numpy", "numba", "pyarrow", "apache-beam", "rapidfuzz")
_SIMILAR = 0.5
_VENVS = Path("~/.cache/finpile/peers")


def main() -> None:
    """Measures, prints and writes the tables."""
    arguments = _arguments()
    parts = [part for part in PEERS if part in (arguments.parts or PEERS)]
    name = "_".join(["dedup", *(parts if len(parts) < len(PEERS) else [])])
    report = Report(arguments.results, name, "Deduplication against peers", PACKAGES)
    say("reading the corpus")
    mix = read_mix(arguments.data)
    if arguments.corpus_megabytes:
        mix = sample(mix, arguments.corpus_megabytes)
    venvs = prepare(arguments.venvs.expanduser(), [peer for part in parts for peer in PEERS[part]])
    report.add(f"The corpus: {mix.num_bytes / 1e6:.1f} MB of text in {len(mix.ids):,} documents.")
    if venvs:
        report.add(describe(venvs.values()))
    with tempfile.TemporaryDirectory() as folder:
        _measure(report, parts, mix, venvs, arguments, Path(folder))
    say(f"written to {report.path}")


def _measure(
    report: Report, parts: list[str], mix: Mix, venvs: dict[str, Venv], arguments: argparse.Namespace, folder: Path
) -> None:
    if "minhash" in parts:
        truth = _truth(mix)
        similar = np.unique(truth.pairs[truth.jaccard >= _SIMILAR])
        texts = sample(mix, arguments.megabytes, also=similar.tolist())
        report.add(compare_minhash(texts, arguments.rounds, venvs, folder / "minhash"))
    if "substrings" in parts:
        texts = sample(mix, arguments.megabytes)
        report.add(compare_substrings(texts, arguments.rounds, venvs, folder / "substrings"))
    if "growth" in parts:
        report.add(measure_growth(mix, arguments.sizes, folder / "growth"))


def _truth(mix: Mix) -> SimilarPairs:
    say("finding the pairs of similar documents")
    return similar_pairs(mix.texts, LEAST_JACCARD, shingles_of)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.dedup", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder with the archives")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PEERS)}; all by default")
    parser.add_argument("--venvs", type=Path, default=_VENVS, help=f"the peers' environments; by default {_VENVS}")
    parser.add_argument("--megabytes", type=float, default=16, help="of text for minhash and substrings")
    parser.add_argument("--corpus-megabytes", type=float, help="take about so much of the corpus, not all")
    parser.add_argument("--rounds", type=int, default=5, help="of minhash and substrings")
    parser.add_argument("--sizes", type=float, nargs="+", default=list(SIZES_MB), help="megabytes of text for growth")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PEERS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}: expected {', '.join(PEERS)}")
    return arguments


if __name__ == "__main__":
    main()
