"""Deduplication: which documents are removed, and which copies are kept. Pure functions, without Beam.

in_memory.py    deduplicate(), for one table in memory
exact.py        equal texts
templates/      lines and paragraphs that earlier documents of a group have
near/           near duplicates: MinHash keys, candidate pairs, verified clusters
substring/      repeated text inside documents, in steps that a cluster can take
contamination/  documents that contain items of evaluation sets
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from finpile_tokenizer.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from finpile.dedup.exact import document_digests, find_duplicates
    from finpile.dedup.in_memory import Deduplicated, deduplicate
    from finpile.dedup.near.clusters import candidate_pairs, components
    from finpile.dedup.near.minhash import FAST, NO_KEY, PAPER, band_keys, keys_in_scope, s_curve, signatures
    from finpile.dedup.near.verify import NearDuplicate, Resolution, find_near_duplicates, resolve_group
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

__getattr__, __dir__ = lazy_exports(__name__)


def compile_kernels() -> None:
    """Compiles every kernel, or loads it from Numba's cache on disk, for example while an image is built.

    A build compiles less: the groups that its enabled stages name, such as those in `finpile.dedup.near.warmup`.
    """
    import pyarrow as pa

    from finpile.dedup.contamination import evaluation_index
    from finpile.dedup.near import minhash
    from finpile.dedup.near import warmup as near
    from finpile.dedup.substring import warmup as substring
    from finpile.dedup.templates import blocks

    minhash.signatures(pa.array(["oil rose"]), minhash.FAST)
    for compile_group in (near.compile_keys, near.compile_pairs, near.compile_earlier, near.compile_alignment):
        compile_group()
    substring.compile_kernels()
    evaluation_index.compile_kernels()
    blocks.compile_kernels()
