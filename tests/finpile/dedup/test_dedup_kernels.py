"""The kernels are all compiled at once, and stay within their arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import random
import pyarrow as pa
from numba import config
from finpile_tokenizer.arrays.jit import Compiled
from finpile.config import NearConfig
from finpile.dedup import _hash_kernels, compile_kernels, deduplicate
from finpile.dedup.near import _pair_kernels, verify
from finpile.dedup.near.minhash import FAST, band_keys
from finpile.dedup.near.verify import find_near_duplicates

def compiled():
    kernels = {**vars(_hash_kernels), **vars(_pair_kernels)}
    kernels = {name: one for name, one in kernels.items() if isinstance(one, Compiled) and not one.is_inner}
    found = {name: one.dispatcher for name, one in kernels.items()}
    assert len(found) > 10 and "smallest_connected" in found
    # A kernel that is a part of others may be in the cache alone.
    missing = [name for name, one in found.items() if not (one.signatures or one._cache._cache_file._load_index())]
    assert not missing, missing
    return {name: len(value.signatures) for name, value in found.items()}

assert config.BOUNDSCHECK == 1
compile_kernels()
before = compiled()
rng = random.Random(0)
alphabet = "abC1 .,é\\u2019\\u2080漢。😀"
texts = ["".join(rng.choices(alphabet, k=rng.randrange(40))) for _ in range(300)]
texts += [text[:3] + text for text in texts] + ["", "a", "漢" * 50, "a " * 5000, "\\u2019" * 9]
for cut in range(1, 4):  # characters broken off at the end: never valid, never out of bounds
    verify.word_hashes("漢é\\u2019😀".encode()[:-cut])
    for text in ("é", "漢", "\\u2019", "\\u3002"):
        verify.word_hashes(text.encode()[:cut])
find_near_duplicates(pa.array(texts, pa.large_string()), NearConfig(ngram=2, bands=30, rows=1, edit_similarity=0.5))
undated = pa.nulls(len(texts), pa.timestamp("s", "UTC"))
many = pa.table({"text": pa.array(texts, pa.large_string()), "timestamp": undated})
deduplicate(many, near=NearConfig(ngram=1, bands=4, rows=1, edit_similarity=0.5), order="time")
band_keys(pa.array([], pa.large_string()), FAST)
band_keys(pa.array(["", ""]).slice(1), FAST)
verify.LONG_WORDS = 4
verify.resolve_group([text.encode() for text in texts[:60]], [(0, i) for i in range(60)], FAST)
after = compiled()
assert after == before, (before, after)
print("within bounds")
"""


def test_kernels_stay_within_bounds_and_are_compiled_at_once(run_with_bounds_checks: Callable[..., None]) -> None:
    run_with_bounds_checks(PROGRAM)
