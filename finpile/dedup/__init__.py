"""Deduplication: which documents go, and for which copy. Pure functions; `finpile_pipelines.dedup` distributes them.

exact.py       equal texts
minhash.py     near duplicates: band keys, which similar documents share
numbers.py     band keys parted by the numbers of a text
clusters.py    pairs of documents that share a key, and the groups they make
verify.py      pairs compared; one copy kept of each verified group
substrings.py  text that stands elsewhere too, by minimizers, in steps that a cluster can take
suffix_array.py  the same by a suffix array, in one process
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from finpile.dedup import _pair_kernels, contamination, substrings
from finpile.dedup.clusters import candidate_pairs, components
from finpile.dedup.exact import document_digests, find_duplicates
from finpile.dedup.minhash import FAST, NO_KEY, PAPER, band_keys, keys_in_scope, s_curve, signatures
from finpile.dedup.substrings import find_repeats
from finpile.dedup.verify import NearDuplicate, Resolution, find_near_duplicates, resolve_group

__all__ = [
    "FAST",
    "NO_KEY",
    "PAPER",
    "NearDuplicate",
    "Resolution",
    "band_keys",
    "candidate_pairs",
    "compile_kernels",
    "components",
    "document_digests",
    "find_duplicates",
    "find_near_duplicates",
    "find_repeats",
    "keys_in_scope",
    "resolve_group",
    "s_curve",
    "signatures",
]


def compile_kernels() -> None:
    """Compiles every kernel, or loads it from Numba's cache on disk: call it once before workers start."""
    texts = pa.array(["oil rose and gold fell on monday", "Oil rose and gold fell on Monday", "½"])
    find_near_duplicates(texts, FAST)
    signatures(texts, FAST)
    substrings.compile_kernels()
    contamination.compile_kernels()
    _pair_kernels.longest_increasing(np.arange(2))  # the one that only long documents need
