"""Deduplication: which documents are removed, and of which copy. Pure functions, without Beam.

exact.py        equal texts
near/           near duplicates: MinHash keys, candidate pairs, verified clusters
substring/      repeated text inside documents, in steps that a cluster can take
contamination/  documents that contain items of evaluation sets
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from finpile.dedup.contamination import evaluation_index
from finpile.dedup.exact import document_digests, find_duplicates
from finpile.dedup.in_memory import Deduplicated, deduplicate
from finpile.dedup.near import _pair_kernels
from finpile.dedup.near.clusters import (
    candidate_pairs,
    components,
)
from finpile.dedup.near.minhash import (
    FAST,
    NO_KEY,
    PAPER,
    band_keys,
    keys_in_scope,
    s_curve,
    signatures,
)
from finpile.dedup.near.verify import (
    NearDuplicate,
    Resolution,
    find_near_duplicates,
    resolve_group,
)
from finpile.dedup.substring import repeats
from finpile.dedup.substring.repeats import find_repeats

__all__ = [
    "FAST",
    "NO_KEY",
    "PAPER",
    "Deduplicated",
    "NearDuplicate",
    "Resolution",
    "band_keys",
    "candidate_pairs",
    "compile_kernels",
    "components",
    "deduplicate",
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
    repeats.compile_kernels()
    evaluation_index.compile_kernels()
    _pair_kernels.longest_increasing(np.arange(2))  # the one that only long documents need
