"""Near-duplicate signatures against a named peer, side by side in one run, one thread each.

    python -m benchmarks.dedup.signatures OUT [--megabytes 16]

OUT is a finished build: its documents are the text. Writes results/<date>_dedup_signatures.md.

    minhash   256 permutations over 5-word shingles, from text to signature, against datasketch's bulk interface
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from datasketch import MinHash

from benchmarks.common.report import RESULTS, Report, table
from finpile.config import NearConfig
from finpile.dedup import band_keys
from finpile.report.documents import iter_texts

ROUNDS = 3
_SIGNED = NearConfig(ngram=5, bands=32, rows=8)
_WORD = re.compile(r"\w+")


def main() -> None:
    """Measures, prints and writes the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="a finished build")
    parser.add_argument("--megabytes", type=float, default=16)
    arguments = parser.parse_args()
    texts = _texts(arguments.out, int(arguments.megabytes * 1e6))
    size = texts.nbytes / 1e6
    report = Report(RESULTS, "dedup_signatures", "Signatures against peers", ("numba", "datasketch"))
    report.add(
        f"{size:.1f} MB, {len(texts):,} documents, one thread each, median of {ROUNDS} rounds, A B A B.",
        table(["what", "ours MB/s", "peer", "peer MB/s", "ratio"], [_minhash(texts, size)]),
    )


def _minhash(texts: pa.Array, size: float) -> list[str]:
    strings = texts.to_pylist()
    mine, other = _race(lambda: band_keys(texts, _SIGNED), lambda: MinHash.bulk(map(_shingles, strings), num_perm=256))
    return _row("MinHash, 256 permutations", mine, "datasketch", other, size)


def _shingles(text: str) -> list[bytes]:
    words = _WORD.findall(text.lower())
    return [" ".join(words[at : at + 5]).encode() for at in range(max(1, len(words) - 4))]


def _race(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """Median seconds of each, run in turn after one round of warm-up of ours (compilation)."""
    ours()
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for times, run in zip(seconds, (ours, theirs), strict=True):
            began = time.perf_counter()
            run()
            times.append(time.perf_counter() - began)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def _row(what: str, ours: float, peer: str, theirs: float, size: float) -> list[str]:
    return [what, f"{size / ours:.1f}", peer, f"{size / theirs:.2f}", f"{theirs / ours:.1f}x"]


def _texts(out: str, limit_bytes: int) -> pa.Array:
    per_source = limit_bytes // 5
    arrays = [array.cast(pa.large_string()) for _, _, array in iter_texts([out], per_source)]
    return pa.concat_arrays(arrays)


if __name__ == "__main__":
    main()
