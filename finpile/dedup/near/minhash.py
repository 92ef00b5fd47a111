"""MinHash: documents of similar shingles get equal band keys.

A shingle is a run of `ngram` words (what a word is: `hash_words` in `_kernels.py`; digits are never folded). Each of
`bands * rows` permutations of the shingles' hashes gives its minimum, each run of `rows` minima one key. Two documents
of Jaccard similarity J share at least one key with probability 1 - (1 - J^rows)^bands.

A permutation is x -> a x mod 2^32, a odd, on the upper half of a shingle's 64-bit hash made odd: 0, the fixed point
of them all, does not occur. The hashes being mixed already, no addend is needed, and estimates err as those of truly
random permutations do: sqrt(J (1 - J) / k) for k of them.

Source: Lee et al. 2022, Deduplicating Training Data Makes Language Models Better, section 4.2 and appendix A.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.config import NearConfig
from finpile.dedup import _hash_kernels
from finpile.dedup._hash_kernels import (
    U32,
    U64,
)
from finpile.document import text_arrays
from finpile.splitmix import GOLDEN, MIX_1, MIX_2

#: The key of no bucket: a document without any word has it in every band. Leave such keys out of the exchange.
NO_KEY = int(_hash_kernels.NO_KEY)

#: 9,000 hashes, as Lee et al. 2022: a candidate with probability .995 at J = .8, .30 at .7, .0004 at .5.
PAPER = NearConfig.named("paper")
#: 256 hashes: .997 at J = .8, .85 at .7, .12 at .5. As sure of what is similar, and 35 times cheaper to hash; verifying
#: meets more pairs that are none.
FAST = NearConfig.named("fast")

#: Seeds the permutations and the bands' factors; another seed is another, equally good, set of keys.
SEED = 0x46696E50696C65  # "FinPile"
_FACTOR_SEED = SEED + 1


def s_curve(config: NearConfig, jaccard: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The probability that documents of this Jaccard similarity become a candidate pair, same shape as `jaccard`.

    >>> s_curve(PAPER, [0.7, 0.8]).round(3).tolist()
    [0.302, 0.995]
    """
    agree = np.asarray(jaccard, dtype=np.float64) ** config.rows
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(config.bands * np.log1p(-agree)))


def band_keys(texts: pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray, config: NearConfig) -> U64:
    """Keys of shape (documents, bands). The band's number is part of its keys: compare them across bands freely.

    `texts` is an array of strings or binaries, or a batch with a column `text`. A row of `NO_KEY` stands for a document
    without any word.
    """
    data, offsets = text_arrays(texts)
    multipliers, factors = _constants(config.bands, config.rows)
    keys = np.empty((len(offsets) - 1, config.bands), dtype=np.uint64)
    _hash_kernels.hash_documents(data, offsets, config.ngram, multipliers, factors, keys)
    return keys


def signatures(texts: pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray, config: NearConfig) -> U32:
    """The minima themselves, of shape (documents, bands * rows); row r of band b stands at `r * bands + b`.

    The share of equal minima estimates the Jaccard similarity of two documents. `texts` are as for `band_keys`. No
    minimum is 0, which stands for a document without any word.
    """
    data, offsets = text_arrays(texts)
    multipliers, _ = _constants(config.bands, config.rows)
    minima = np.empty((len(offsets) - 1, len(multipliers)), dtype=np.uint32)
    _hash_kernels.sign_documents(data, offsets, config.ngram, multipliers, minima)
    return minima


def keys_in_scope(keys: U64, scope: str) -> U64:
    """The keys as they are within one scope (a dataset, or "" for all): different scopes share no key."""
    offset = np.frombuffer(hashlib.blake2b(scope.encode(), digest_size=8).digest(), dtype="<u8")[0]
    return np.where(keys == _hash_kernels.NO_KEY, keys, np.maximum(keys ^ offset, np.uint64(1)))


def split_mix(num: int, seed: int) -> U64:
    """The first `num` outputs of SplitMix64; a shorter list is the head of a longer one."""
    state = np.arange(1, num + 1, dtype=np.uint64) * GOLDEN + np.uint64(seed)
    state = (state ^ (state >> np.uint64(30))) * MIX_1
    state = (state ^ (state >> np.uint64(27))) * MIX_2
    return state ^ (state >> np.uint64(31))


@lru_cache(maxsize=8)
def _constants(bands: int, rows: int) -> tuple[U32, U64]:
    """Multipliers of the permutations, factors of a band's rows."""
    multipliers = (split_mix(bands * rows, SEED) >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    return multipliers, split_mix(rows, _FACTOR_SEED) | np.uint64(1)
