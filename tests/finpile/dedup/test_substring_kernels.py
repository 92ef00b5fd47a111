"""Minimizers are those of a slow search, and kernels stay within bounds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import groupby

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.config import SubstringConfig
from finpile.dedup.substring import _minimizer_kernels as kernels
from finpile.dedup.substring import repeats as module
from finpile.dedup.substring import texts as parts
from finpile.splitmix import GOLDEN, mix
from tests.support.substrings import (
    Symbols,
    corpora,
    texts_of,
)


def minimizers_slowly(doc: Symbols, k: int, w: int) -> list[tuple[int, int]]:
    """The hashes of runs of one document and their entries: of each window the smallest hash, the leftmost of equal.

    Adjacent entries with the same hash, place in their windows and text are a run.
    """
    mask = (1 << 64) - 1

    def hash_of(gram: Symbols) -> int:
        state = 0
        for symbol in gram:
            state = (state * int(GOLDEN) + symbol + 1) & mask
        return int(mix(np.array([state], np.uint64))[0])

    hashes = [hash_of(doc[at : at + k]) for at in range(len(doc) - k + 1)]
    places = [
        min(range(first, first + w), key=lambda at: (hashes[at], at)) for first in range(max(0, len(hashes) - w + 1))
    ]
    found: list[tuple[int, int]] = []
    before: tuple[int, Symbols] | None = None
    for place, group in groupby(range(len(places)), key=places.__getitem__):
        firsts = list(group)
        text = (place - firsts[0], doc[firsts[0] : firsts[-1] + w + k - 1])
        if found and found[-1][0] == hashes[place] and text == before:
            found[-1] = (hashes[place], found[-1][1] + 1)
        else:
            found.append((hashes[place], 1))
        before = text
    return found


@given(st.data(), st.integers(2, 9), st.integers(2, 12))
@settings(max_examples=150)
def test_minimizers_are_the_leftmost_smallest_hashes_of_windows(data: st.DataObject, k: int, w: int) -> None:
    docs = data.draw(corpora(k + w - 1))
    texts = texts_of(docs, "bytes")
    keys, sizes, bounds = kernels.list_minimizers(texts.symbols, texts.offsets, k, w, np.uint64(0))
    for number, doc in enumerate(docs):
        some = slice(bounds[number], bounds[number + 1])
        assert list(zip(keys[some].tolist(), sizes[some].tolist(), strict=True)) == minimizers_slowly(doc, k, w)
    assert bounds[-1] == len(keys)


def test_minimizers_of_long_documents_of_any_period() -> None:
    draw = np.random.default_rng(2)
    for period in (1, 3, 30, 99, 5000):
        unit = draw.integers(0, 4, period).tolist()
        doc = tuple((unit * (4000 // period + 2))[:4000])
        texts = texts_of([doc], "bytes")
        keys, sizes, _ = kernels.list_minimizers(texts.symbols, texts.offsets, 20, 31, np.uint64(0))
        assert list(zip(keys.tolist(), sizes.tolist(), strict=True)) == minimizers_slowly(doc, 20, 31)


def test_no_hash_has_more_contexts_than_were_counted() -> None:
    """Else a hash is not divided whose contexts exceed the memory: those of runs of a symbol with other text after."""
    draw = random.Random(3)
    docs = ["".join("T" * 60 + "".join(draw.choices("abcdefgh", k=2)) for _ in range(200)), "T" * 500, "TTab" * 200]
    for min_length in (20, 50, 70, 110):
        texts = parts.Texts.of_bytes(pa.array([*docs, f"x{docs[0][:3000]}"]))
        config, rows = SubstringConfig(min_length=min_length), np.arange(4, dtype=np.int32)
        order = rows.astype(np.uint64)
        ids = pa.array(map(str, rows), pa.string())
        shard = parts.Shard(number=0, rows=rows, ids=ids, order_high=order, order_low=order)
        counted = module.minimizers(texts, config, "", 0)
        sent = module.contexts(texts, shard, module.shared_minimizers(counted, crowd=1 << 30), config, "")
        most = dict(zip(counted["hash"].to_pylist(), counted["contexts"].to_pylist(), strict=True))
        found = Counter(sent["hash"].to_pylist())
        assert found and all(number <= most[key] for key, number in found.items())


# --- ranks


numbers = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1))


@given(st.lists(st.tuples(numbers, numbers), max_size=20))
def test_dense_rank_counts_distinct_smaller_pairs(pairs: list[tuple[int, int]]) -> None:
    high, low = (np.array([pair[which] for pair in pairs], np.uint64) for which in (0, 1))
    assert parts.dense_rank(high, low).tolist() == [sorted(set(pairs)).index(pair) for pair in pairs]


# --- the kernels

PROGRAM = """
import numpy as np
import pyarrow as pa
from numba import config
from finpile_tokenizer.arrays.jit import Compiled
from finpile.config import SubstringConfig
from finpile.dedup.substring import _minimizer_kernels as kernels
from finpile.dedup.substring import _cover_kernels, _match_kernels, _minimizer_kernels, _snap_kernels
from finpile.dedup.substring import repeats as module, texts as parts, warmup

def compiled():
    modules = (_minimizer_kernels, _match_kernels, _cover_kernels, _snap_kernels)
    named = [item for module in modules for item in vars(module).items()]
    found = {name: one.dispatcher for name, one in named if isinstance(one, Compiled) and not one.is_inner}
    assert len(found) >= 8
    # A kernel that is a part of others may be in the cache alone.
    missing = [name for name, one in found.items() if not (one.signatures or one._cache._cache_file._load_index())]
    assert not missing, missing
    return {name: len(value.signatures) for name, value in found.items()}

def run(texts, asked, widths, crowd):
    size = len(texts.bounds) - 1
    rows, order = np.arange(size, dtype=np.int32), np.arange(size, dtype=np.uint64)
    ids = pa.array(list(map(str, rows)), pa.string())
    shard = parts.Shard(number=0, rows=rows, ids=ids, order_high=order, order_low=order)
    shared = module.shared_minimizers(module.minimizers(texts, asked, "", 0), crowd)
    matches = module.match_contexts(module.contexts(texts, shard, shared, asked, ""), asked, *widths)
    return module.cover(texts, shard, shared, matches, asked, "")

assert config.BOUNDSCHECK == 1
warmup.compile_kernels()
before = compiled()
draw = np.random.default_rng(0)
trials = []
for trial in range(150):
    docs = [bytes(draw.integers(97, 97 + draw.integers(1, 4), draw.integers(0, 90), np.uint8)) for _ in range(4)]
    docs += [docs[0], docs[1][3:], docs[2] * 3, "é漢😀 \\n".encode() * int(draw.integers(0, 9)), b"a" * trial]
    snap, crowd = ("none", "word", "line")[trial % 3], (1, 3, module.CROWD)[trial % 3]
    settings = {"min_length": int(draw.integers(2, 50)), "keep": ("first", "none")[trial % 2], "snap": snap}
    trials.append((pa.array(docs, pa.large_binary()).slice(trial % 2), settings, crowd))
long = [bytes(draw.integers(97, 99, 140_000, np.uint8)), b"ab" * 70_000]
trials.append((pa.array(long, pa.large_binary()), {"min_length": 60}, 2))
by_bytes = [
    run(parts.Texts.of_bytes(texts), SubstringConfig(**settings), [], crowd) for texts, settings, crowd in trials
]
assert sum(cover.num_windows for cover in by_bytes) > 1000
after = compiled()
assert after == before, (before, after)
for (texts, settings, crowd), expected in zip(trials, by_bytes):
    ids = pa.array([list(doc) for doc in texts.to_pylist()], pa.large_list(pa.uint32()))
    symbols = parts.Texts.of_tokens(texts, ids, np.ones(256, np.int64))
    found = run(symbols, SubstringConfig(unit="tokens", tokenizer="any", **settings), [np.ones(256, np.int64)], crowd)
    assert found.spans.equals(expected.spans)
print("within bounds")
"""


@pytest.mark.slow
def test_kernels_stay_within_bounds_and_are_compiled_for_bytes_at_once(
    run_with_bounds_checks: Callable[..., None],
) -> None:
    run_with_bounds_checks(PROGRAM)
