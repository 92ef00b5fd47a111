"""datasketch: 256 permutations from text by `MinHash.bulk`.

python datasketch_minhash.py TEXTS.jsonl SIGNATURES.npy {farmhash,default}

`farmhash` is the hash function that its documentation advises for speed; its default is SHA-1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import farmhash
import numpy as np
import rounds
from datasketch import MinHash
from shingles import NUM_PERMUTATIONS, shingles

Sign = Callable[[Iterable[str]], list[MinHash]]


def main() -> None:
    """Signs all texts in each round; saves hash values of shape (documents, permutations)."""
    texts, sign = rounds.read_texts(sys.argv[1]), _SIGN[sys.argv[3]]
    rounds.serve(
        lambda: sign(texts), lambda signed: np.save(sys.argv[2], np.stack([each.hashvalues for each in signed]))
    )


def _with_farmhash(texts: Iterable[str]) -> list[MinHash]:
    return MinHash.bulk(map(shingles, texts), num_perm=NUM_PERMUTATIONS, hashfunc=farmhash.hash32)


def _as_it_comes(texts: Iterable[str]) -> list[MinHash]:
    return MinHash.bulk(([each.encode() for each in shingles(text)] for text in texts), num_perm=NUM_PERMUTATIONS)


_SIGN: dict[str, Sign] = {"farmhash": _with_farmhash, "default": _as_it_comes}

if __name__ == "__main__":
    main()
