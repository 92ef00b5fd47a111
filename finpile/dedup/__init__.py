"""Deduplication: which documents go, and for which copy. Pure functions; `finpile_pipelines.dedup` distributes them.

exact.py       equal texts
minhash.py     near duplicates: band keys, which similar documents share
clusters.py    pairs of documents that share a key, and the groups they make
verify.py      pairs compared; one copy kept of each verified group
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from finpile.dedup import _kernels
from finpile.dedup.clusters import candidate_pairs, components
from finpile.dedup.exact import document_digests, find_duplicates
from finpile.dedup.minhash import FAST, NO_KEY, PAPER, band_keys, keys_in_scope, s_curve
from finpile.dedup.verify import NearDuplicate, find_near_duplicates, resolve_group

__all__ = [
    "FAST",
    "NO_KEY",
    "PAPER",
    "NearDuplicate",
    "band_keys",
    "candidate_pairs",
    "compile_kernels",
    "components",
    "document_digests",
    "find_duplicates",
    "find_near_duplicates",
    "keys_in_scope",
    "resolve_group",
    "s_curve",
]


def compile_kernels() -> None:
    """Compiles every kernel, or loads it from Numba's cache on disk: call it once before workers start."""
    find_near_duplicates(pa.array(["oil rose and gold fell on monday", "Oil rose and gold fell on Monday"]), FAST)
    _kernels.longest_increasing(np.arange(2))  # the one that only long documents need
