"""Our two hot loops against named peers, side by side in one run, one thread each.

    python benchmarks/peers.py OUT [--megabytes 16]

OUT is a finished build: its documents are the text, its tokenizer the pieces. Writes results/<date>_peers.md.

    encode    UnigramTokenizer against Hugging Face tokenizers, same tokenizer.json; the ids must be equal
    minhash   256 permutations over 5-word shingles, from text to signature, against datasketch's bulk interface
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # read when tokenizers is imported: one thread each

import pyarrow as pa
from datasketch import MinHash
from finpile_tokenizer import UnigramTokenizer
from tokenizers import Tokenizer

from finpile.dedup import FAST, band_keys
from finpile.report.documents import iter_texts

ROUNDS = 3
_WORD = re.compile(r"\w+")


def main() -> None:
    """Measures, prints and writes the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", help="a finished build")
    parser.add_argument("--megabytes", type=float, default=16)
    arguments = parser.parse_args()
    texts = _texts(arguments.out, int(arguments.megabytes * 1e6))
    size = texts.nbytes / 1e6
    rows = [_encode(texts, Path(arguments.out, "tokenizer"), size), _minhash(texts, size)]
    lines = [
        f"# Against peers, {date.today()}",
        "",
        f"Command: `python {' '.join(sys.argv)}`. {size:.1f} MB, {len(texts):,} documents, one thread each, median of "
        f"{ROUNDS} rounds, A B A B. {platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, numba {version('numba')}, tokenizers {version('tokenizers')}, "
        f"datasketch {version('datasketch')}.",
        "",
        "| what | ours MB/s | peer | peer MB/s | ratio |",
        "|---|---:|---|---:|---:|",
        *rows,
        "",
    ]
    report = Path(__file__).parent / "results" / f"{date.today()}_peers.md"
    report.write_text("\n".join(lines))
    print("\n".join(lines))


def _encode(texts: pa.Array, folder: Path, size: float) -> str:
    ours, theirs = UnigramTokenizer.load(folder), Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs.encode_special_tokens = True  # a literal <|endoftext|> in a text is text
    strings = texts.to_pylist()
    expected = [encoding.ids for encoding in theirs.encode_batch_fast(strings, add_special_tokens=False)]
    if ours.encode_array(texts).to_pylist() != expected:
        raise SystemExit("the ids differ: there is nothing to compare")
    mine, other = _race(
        lambda: ours.encode_array(texts), lambda: theirs.encode_batch_fast(strings, add_special_tokens=False)
    )
    return _row(f"encode, {ours.vocab_size:,} pieces", mine, "HF tokenizers", other, size)


def _minhash(texts: pa.Array, size: float) -> str:
    strings = texts.to_pylist()
    mine, other = _race(lambda: band_keys(texts, FAST), lambda: MinHash.bulk(map(_shingles, strings), num_perm=256))
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


def _row(what: str, ours: float, peer: str, theirs: float, size: float) -> str:
    return f"| {what} | {size / ours:.1f} | {peer} | {size / theirs:.2f} | {theirs / ours:.1f}x |"


def _texts(out: str, limit_bytes: int) -> pa.Array:
    per_source = limit_bytes // 5
    arrays = [array.cast(pa.large_string()) for _, _, array in iter_texts([out], per_source)]
    return pa.concat_arrays(arrays)


if __name__ == "__main__":
    main()
