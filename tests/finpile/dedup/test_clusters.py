"""Candidate pairs and their groups against brute force."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.dedup import NO_KEY, candidate_pairs, components
from finpile.dedup.clusters import LARGE_BUCKETS, MAX_ALL_PAIRS

Pairs = list[tuple[int, int]]


def rows_of(pairs: Pairs) -> pa.Table:
    keys, docs = [key for key, _ in pairs], [doc for _, doc in pairs]
    return pa.table({"key": pa.array(keys, pa.uint64()), "doc": pa.array(docs, pa.int64())})


def pairs_of(table: pa.Table) -> Pairs:
    return list(zip(table["a"].to_pylist(), table["b"].to_pylist(), strict=True))


def brute_pairs(rows: Pairs) -> Pairs:
    buckets: dict[int, set[int]] = {}
    for key, doc in rows:
        buckets.setdefault(key, set()).add(doc)
    found: set[tuple[int, int]] = set()
    for key, bucket in buckets.items():
        docs = sorted(bucket)
        if key == NO_KEY:
            continue
        if len(docs) <= MAX_ALL_PAIRS:
            found |= set(combinations(docs, 2))
        else:
            found |= {(docs[0], doc) for doc in docs[1:]} | set(pairwise(docs))
    return sorted(found)


def brute_components(pairs: Pairs) -> dict[int, int]:
    label = {doc: doc for pair in pairs for doc in pair}
    changed = True
    while changed:
        changed = False
        for a, b in pairs:
            low = min(label[a], label[b])
            changed |= label[a] != low or label[b] != low
            label[a] = label[b] = low
    return dict(sorted(label.items()))


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 2**63, 2**64 - 1]), st.integers(0, 12)), max_size=40))
def test_pairs_equal_those_of_brute_force(rows: Pairs) -> None:
    assert pairs_of(candidate_pairs(rows_of(rows))) == brute_pairs(rows)


@pytest.mark.parametrize("size", [MAX_ALL_PAIRS, MAX_ALL_PAIRS + 1, 500])
def test_large_buckets_give_star_and_chain(size: int) -> None:
    docs = (np.random.default_rng(size).permutation(size) * 7 + 2**40).tolist()  # numbers beyond 32 bits
    rows = [(5, doc) for doc in docs] + [(6, doc) for doc in docs[:3]]
    table = candidate_pairs(rows_of(rows))
    assert pairs_of(table) == brute_pairs(rows)
    assert table.schema.metadata == {LARGE_BUCKETS: b"0" if size == MAX_ALL_PAIRS else b"1"}
    assert size > MAX_ALL_PAIRS or table.num_rows == size * (size - 1) // 2


def test_pairs_of_many_random_buckets_equal_those_of_brute_force() -> None:
    random = np.random.default_rng(0)
    rows = list(zip(random.integers(0, 300, 5000).tolist(), random.integers(0, 2000, 5000).tolist(), strict=True))
    expected = brute_pairs(rows)
    assert len(expected) > 20_000  # the set of pairs has grown several times
    assert pairs_of(candidate_pairs(rows_of(rows))) == expected
    assert pairs_of(candidate_pairs(rows_of(rows[::-1]))) == expected


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).filter(lambda pair: pair[0] < pair[1]), max_size=30))
def test_components_equal_those_of_brute_force(pairs: Pairs) -> None:
    for order in (pairs, pairs[::-1]):
        a, b = [pair[0] for pair in order], [pair[1] for pair in order]
        table = components(pa.table({"a": pa.array(a, pa.int64()), "b": pa.array(b, pa.int64())}))
        assert dict(zip(table["doc"].to_pylist(), table["group"].to_pylist(), strict=True)) == brute_components(pairs)
        assert table["doc"].to_pylist() == sorted(table["doc"].to_pylist())


def test_a_long_chain_in_any_order_is_one_component() -> None:
    links = np.random.default_rng(0).permutation(20_000)
    table = components(pa.table({"a": links * 3, "b": (links + 1) * 3}))
    assert table["doc"].to_pylist() == list(range(0, 60_001, 3))
    assert set(table["group"].to_pylist()) == {0}
