"""FinPile: repeated windows of bytes, on the benchmark's own interpreter.

python finpile_windows.py TEXTS.jsonl REMOVED.npy MIN_LENGTH

Saves what divsufsort_windows.py saves, cut to whole characters.
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import rounds

from finpile.config import SubstringConfig
from finpile.dedup.substring.repeats import find_repeats


def main() -> None:
    """Finds the bytes in each round."""
    texts = pa.array(rounds.read_texts(sys.argv[1]), pa.large_string())
    config = SubstringConfig(min_length=int(sys.argv[3]), snap="none")
    find_repeats(pa.array(["a" * config.min_length] * 2, pa.large_string()), config)  # compiles, or loads what was
    rounds.serve(lambda: find_repeats(texts, config), lambda spans: np.save(sys.argv[2], positions(texts, spans)))


def positions(texts: pa.LargeStringArray, spans: pa.Table) -> npt.NDArray[np.int64]:
    """Where the spans lie in the texts joined."""
    bounds = np.frombuffer(texts.buffers()[1], np.int64)
    places = bounds[spans["row"].to_numpy()]
    turns = np.zeros(bounds[-1] + 1, np.int64)
    np.add.at(turns, places + spans["start"].to_numpy(), 1)
    np.add.at(turns, places + spans["end"].to_numpy(), -1)
    return np.flatnonzero(np.cumsum(turns[:-1]) > 0)


if __name__ == "__main__":
    main()
