"""rensa: 256 permutations from text, in one call of a batch interface, which its README names as the fastest.

python rensa_minhash.py TEXTS.jsonl SIGNATURES.npy {r,c,rho}

`r` is R-MinHash and `c` C-MinHash over all shingles; `rho` samples their positions, so it is not a MinHash of the set.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import rounds
from rensa import CMinHash, RMinHash
from shingles import NUM_PERMUTATIONS, shingles

_SEED = 42
_BATCH: dict[str, Callable[..., Any]] = {
    "r": RMinHash.digest_matrix_from_token_sets,
    "c": CMinHash.digests64_from_token_sets,
    "rho": RMinHash.digest_matrix_from_token_sets_rho,
}


def main() -> None:
    """Signs all texts in each round; saves hash values of shape (documents, permutations)."""
    texts = rounds.read_texts(sys.argv[1])
    sign = _BATCH[sys.argv[3]]
    rounds.serve(lambda: sign(map(shingles, texts), NUM_PERMUTATIONS, _SEED), _save)


def _save(signed: Any) -> None:
    np.save(sys.argv[2], np.array(signed if isinstance(signed, list) else signed.to_rows(), np.uint64))


if __name__ == "__main__":
    main()
