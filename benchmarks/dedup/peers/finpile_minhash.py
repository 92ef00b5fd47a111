"""FinPile: band keys from text, which is in Arrow's memory as it is in a batch; on the benchmark's own interpreter.

python finpile_minhash.py TEXTS.jsonl KEYS.npy {256,paper}
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import rounds

from finpile.config import NearConfig
from finpile.dedup import PAPER, band_keys


def main() -> None:
    """Makes the keys of all texts in each round; saves them, of shape (documents, bands)."""
    config = {"256": NearConfig(ngram=5, bands=32, rows=8), "paper": PAPER}[sys.argv[3]]
    texts = pa.array(rounds.read_texts(sys.argv[1]), pa.large_string())
    band_keys(texts.slice(0, 1), config)  # compiles, or loads what was compiled
    rounds.serve(lambda: band_keys(texts, config), lambda keys: np.save(sys.argv[2], keys))


if __name__ == "__main__":
    main()
