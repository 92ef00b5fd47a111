"""Compiles the kernels of near duplicates, in groups that can be compiled in parallel.

Each function runs its kernels on a few bytes, which compiles them, or loads them from Numba's cache on disk.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from finpile.dedup.near import _pair_kernels
from finpile.dedup.near.buckets import earlier_pairs
from finpile.dedup.near.clusters import candidate_pairs, components
from finpile.dedup.near.minhash import FAST, band_keys
from finpile.dedup.near.numbers import number_keys
from finpile.dedup.near.verify import resolve_group

#: Groups as `module:function`, the longest compilation first.
NEAR_GROUPS = ("finpile.dedup.near.warmup:compile_keys", "finpile.dedup.near.warmup:compile_pairs")

#: The further group under `order: time`.
EARLIER_GROUP = "finpile.dedup.near.warmup:compile_earlier"

_TEXTS = ("oil rose and gold fell on monday", "Oil rose and gold fell on Monday")


def compile_keys() -> None:
    """Compiles the kernels of band keys, of number sequences, and of comparisons, which hash words too."""
    band_keys(pa.array(_TEXTS), FAST)
    number_keys(pa.array(["\u0663"]))  # a digit that is hashed by `hash_bytes`
    resolve_group([text.encode() for text in _TEXTS], [(0, 1)], FAST)


def compile_pairs() -> None:
    """Compiles the kernels of candidate pairs and of connected components."""
    components(candidate_pairs(pa.table({"key": np.ones(2, np.uint64), "doc": np.arange(2)})))


def compile_earlier() -> None:
    """Compiles the kernel of candidate pairs under `order: time`."""
    ones = np.ones(2, np.uint64)
    earlier_pairs(pa.table({"key": ones, "doc": np.arange(2), "order_high": ones, "order_low": ones}))


def compile_alignment() -> None:
    """Compiles the alignment of documents of more than `LONG_WORDS` words.

    It is in no group: it compiles fast, and builds compile it if needed.
    """
    _pair_kernels.longest_increasing(np.arange(2))
