"""MinHash band keys: documents with similar sets of shingles are likely to share a key.

A shingle is a run of `ngram` words; `finpile.dedup._hash_kernels.hash_words` defines words. Digits are not folded. Each
of `bands * rows` permutations of the shingles' hashes has a minimum; each run of `rows` minima gives one key. Two
documents of Jaccard similarity J share at least one key with probability 1 - (1 - J^rows)^bands.

A permutation is x -> a x mod 2^32 with odd a, applied to the upper half of a shingle's 64-bit hash with the lowest bit
set. Therefore 0, the fixed point of all permutations, does not occur. The hashes are already mixed, so no addend is
needed, and the standard error of estimates is that of random permutations: sqrt(J (1 - J) / k) for k permutations.

Source: Lee et al. 2022, Deduplicating Training Data Makes Language Models Better, section 4.2 and appendix A.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile import splitmix
from finpile.config import NearConfig
from finpile.dedup import _hash_kernels
from finpile.dedup._hash_kernels import U32, U64
from finpile.dedup.plan import scope_bits
from finpile.documents.document import text_arrays

#: Marks a document without words: all its keys have this value. Exclude such keys from the exchange.
NO_KEY = int(_hash_kernels.NO_KEY)

#: 480 hashes of words: a pair is a candidate with probability .046 at J = .5, .75 at .7, .996 at .8. Two documents of
#: edit similarity .8 have at least about .67 of their words in common, and of their shingles of five often a fifth.
FAST = NearConfig.named("fast")
#: 9,000 hashes of shingles of five words, as in Lee et al. 2022: .0004 at J = .5, .30 at .7, .995 at .8.
PAPER = NearConfig.named("paper")

#: Seed of the permutations and of the factors of the bands. It determines all keys; no seed is better than another.
SEED = 0x46696E50696C65  # "FinPile"
_FACTOR_SEED = SEED + 1


def s_curve(config: NearConfig, jaccard: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Returns the probability that documents of Jaccard similarity `jaccard` are a candidate pair; same shape.

    >>> s_curve(PAPER, [0.7, 0.8]).round(3).tolist()
    [0.302, 0.995]
    """
    agree = np.asarray(jaccard, dtype=np.float64) ** config.rows
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(config.bands * np.log1p(-agree)))


def band_keys(texts: pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray, config: NearConfig) -> U64:
    """Returns the band keys of documents, of shape (documents, bands).

    Keys of different bands never need to be separated, because the number of the band is hashed into the key. `texts`
    is an array of strings or binaries, or a batch with a column `text`. All keys of a document without words are
    `NO_KEY`.
    """
    data, offsets = text_arrays(texts)
    multipliers, factors = _constants(config.bands, config.rows)
    keys = np.empty((len(offsets) - 1, config.bands), dtype=np.uint64)
    _hash_kernels.hash_documents(data, offsets, config.ngram, multipliers, factors, keys)
    return keys


def signatures(texts: pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray, config: NearConfig) -> U32:
    """Returns the minima of documents, of shape (documents, bands * rows); row r of band b is at `r * bands + b`.

    The fraction of equal minima estimates the Jaccard similarity of two documents. `texts` is as for `band_keys`. All
    entries of a document without words are 0; no minimum is 0.
    """
    data, offsets = text_arrays(texts)
    multipliers, _ = _constants(config.bands, config.rows)
    minima = np.empty((len(offsets) - 1, len(multipliers)), dtype=np.uint32)
    _hash_kernels.sign_documents(data, offsets, config.ngram, multipliers, minima)
    return minima


def keys_in_scope(keys: U64, scope: str) -> U64:
    """Returns the keys of one scope (a dataset, or "" for all), so that different scopes share no key."""
    return np.where(keys == _hash_kernels.NO_KEY, keys, np.maximum(keys ^ scope_bits(scope), np.uint64(1)))


@lru_cache(maxsize=8)
def _constants(bands: int, rows: int) -> tuple[U32, U64]:
    """Returns the multipliers of the permutations and the factors of a band's rows."""
    multipliers = (splitmix.outputs(bands * rows, SEED) >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    return multipliers, splitmix.outputs(rows, _FACTOR_SEED) | np.uint64(1)
