"""Compiles the kernels of repeated substrings, in groups of similar compilation time that can be compiled in parallel.

Each function runs its kernels on a few bytes, which compiles them, or loads them from Numba's cache on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from finpile.config import SubstringConfig
from finpile.dedup.substring import _cover_kernels, _snap_kernels, repeats
from finpile.dedup.substring.texts import Shard, Texts

#: Groups as `module:function`, the longest compilation first.
SUBSTRING_GROUPS = (
    "finpile.dedup.substring.warmup:compile_contexts",
    "finpile.dedup.substring.warmup:compile_cover",
    "finpile.dedup.substring.warmup:compile_matches",
)

_CONFIG = SubstringConfig(min_length=8)
_TEXTS = ("oil rose on monday", "gold rose on monday")


def compile_contexts() -> None:
    """Compiles the kernels of minimizers and of their contexts."""
    texts, shard = _texts(), _shard()
    shared = repeats.shared_minimizers(repeats.minimizers(texts, _CONFIG, "", 0))
    repeats.contexts(texts, shard, shared, _CONFIG, "")


def compile_keys() -> None:
    """Compiles the kernel that lists minimizers by document. It is in no group: only snapshots need it."""
    repeats.minimizers_by_document(_texts(), _CONFIG, "")


def compile_matches() -> None:
    """Compiles the comparison of contexts."""
    row: dict[str, Any] = dict.fromkeys(repeats.CONTEXT_SCHEMA.names, 0)
    row |= {"content": _TEXTS[0].encode(), "id": "0"}
    repeats.match_contexts(pa.Table.from_pylist([row], schema=repeats.CONTEXT_SCHEMA), _CONFIG)


def compile_cover() -> None:
    """Compiles the kernels that join matches to spans and shorten spans to words or lines."""
    texts = _texts()
    nothing = np.empty(0, np.int64)
    spans, _ = _cover_kernels.cover(
        texts.offsets,
        texts.byte_of,
        _CONFIG.min_length,
        np.empty((0, 4), np.int64),
        np.zeros(1, np.int64),
        np.empty((0, 4), np.int64),
        nothing,
        True,
    )
    _snap_kernels.trim(texts.data, texts.bounds, spans, _snap_kernels.SNAPS[_CONFIG.snap])


def compile_pieces() -> None:
    """Compiles the kernels that divide crowded keys. It is in no group: few corpora have crowded keys."""
    texts = _texts()
    shared = repeats.shared_minimizers(repeats.minimizers(texts, _CONFIG, "", 0), crowd=2)
    repeats.refined(texts, shared, repeats.SLICES[0], _CONFIG, "", 0)


def compile_kernels() -> None:
    """Compiles all kernels of this package, for symbols that are bytes."""
    for compile_group in (compile_contexts, compile_cover, compile_matches, compile_pieces, compile_keys):
        compile_group()


def _texts() -> Texts:
    return Texts.of_bytes(pa.array(_TEXTS))


def _shard() -> Shard:
    numbers = np.arange(len(_TEXTS), dtype=np.int32)
    order = numbers.astype(np.uint64)
    return Shard(number=0, rows=numbers, ids=pa.array(["0", "1"]), order_high=np.zeros_like(order), order_low=order)
