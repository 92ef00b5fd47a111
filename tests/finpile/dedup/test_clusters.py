"""Candidate pairs and their groups against brute force."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.dedup import NO_KEY, candidate_pairs, components
from finpile.dedup.near import clusters
from finpile.dedup.near.clusters import LARGE_BUCKETS, MAX_ALL_PAIRS, NEIGHBOUR_SCHEMA, PAIR_SCHEMA, Stars

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
    first, second = sorted(docs[:3])[:2]
    alone = [pair for pair in brute_pairs(rows) if pair not in brute_pairs(rows[:-3])]
    large = {pair for pair, flag in zip(pairs_of(table), table["large"].to_pylist(), strict=True) if flag}
    assert large == (set() if size == MAX_ALL_PAIRS else set(pairs_of(table)) - set(alone))
    assert (first, second) in pairs_of(table)


def test_distinct_pairs_keep_the_word_of_a_large_bucket() -> None:
    rows = [(3, 4, False), (1, 2, False), (3, 4, True), (1, 2, False), (1, 3, True)]
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = clusters.distinct_pairs(pa.table(columns, schema=PAIR_SCHEMA))
    assert table.to_pylist() == [
        {"a": 1, "b": 2, "large": False},
        {"a": 1, "b": 3, "large": True},
        {"a": 3, "b": 4, "large": True},
    ]
    assert clusters.distinct_pairs(PAIR_SCHEMA.empty_table()).equals(PAIR_SCHEMA.empty_table())


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


def neighbours_of(edges: Pairs) -> pa.Table:
    nodes, others = [edge[0] for edge in edges], [edge[1] for edge in edges]
    return pa.table([pa.array(nodes, pa.int64()), pa.array(others, pa.int64())], schema=NEIGHBOUR_SCHEMA)


def edges_of(stars: Stars) -> set[tuple[int, int]]:
    return set(zip(stars.edges["node"].to_pylist(), stars.edges["neighbour"].to_pylist(), strict=True))


def brute_star(pairs: Pairs, is_large: bool) -> set[tuple[int, int]]:
    """As the paper has it, node by node: (larger end, smaller end)."""
    made = set()
    for node in {doc for pair in pairs for doc in pair}:
        around = {a + b - node for a, b in pairs if node in (a, b)}
        smaller = {other for other in around if other < node}
        smallest = min(smaller | {node})
        made |= {(other, smallest) for other in (around - smaller if is_large else smaller | {node})}
    return {(node, other) for node, other in made if node != other}


EDGES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).filter(lambda pair: pair[0] < pair[1]), max_size=30)


@given(EDGES)
def test_star_steps_equal_those_of_a_slow_reference(pairs: Pairs) -> None:
    large = clusters.large_star(clusters.both_ends(neighbours_of(pairs)))
    assert edges_of(large) == brute_star(pairs, is_large=True)
    assert (large.num_changed == 0) == (edges_of(large) == {(b, a) for a, b in pairs})
    small = clusters.small_star(neighbours_of([(b, a) for a, b in pairs]))
    assert edges_of(small) == brute_star(pairs, is_large=False)
    assert (small.num_changed == 0) == (edges_of(small) == {(b, a) for a, b in pairs})


def parts_of(table: pa.Table, num_parts: int) -> list[pa.Table]:
    """The rows by their first column, as an exchange brings them together."""
    part = table.column(0).to_numpy() % num_parts
    return [table.filter(pa.array(part == number)) for number in range(num_parts)]


def starred_groups(pairs: pa.Table, num_parts: int) -> tuple[pa.Table, int]:
    """The groups by star rounds over parts, and how many rounds that took."""
    parts, rounds, changed = parts_of(pairs, num_parts), 0, 1
    while changed:
        ends = pa.concat_tables([clusters.both_ends(part) for part in parts])
        large = [clusters.large_star(part) for part in parts_of(ends, num_parts)]
        larger = pa.concat_tables([stars.edges for stars in large])
        small = [clusters.small_star(part) for part in parts_of(larger, num_parts)]
        assert sum(stars.edges.num_rows for stars in small) <= len(pairs)  # never more edges than there were
        parts, rounds = [stars.edges for stars in small], rounds + 1
        changed = sum(stars.num_changed for stars in [*large, *small])
    found = pa.concat_tables([clusters.star_groups(part) for part in parts])
    return clusters.distinct_groups(found), rounds


def joined(pairs: Pairs) -> pa.Table:
    a, b = ([pair[side] for pair in pairs] for side in (0, 1))
    return pa.table({"a": pa.array(a, pa.int64()), "b": pa.array(b, pa.int64())})


@given(EDGES, st.integers(1, 4))
def test_star_rounds_give_the_components_of_any_graph(pairs: Pairs, num_parts: int) -> None:
    table = joined(pairs)
    assert starred_groups(table, num_parts)[0].equals(components(table))


NUMBERS = (np.random.default_rng(1).permutation(4096) * 2**50 + 5).tolist()
SHAPES = {
    "path": list(pairwise(NUMBERS)),
    "path in order": list(pairwise(sorted(NUMBERS))),
    "star at the smallest": [(min(NUMBERS), other) for other in NUMBERS if other != min(NUMBERS)],
    "star at the largest": [(max(NUMBERS), other) for other in NUMBERS if other != max(NUMBERS)],
    "cliques": [pair for first in range(0, 400, 20) for pair in combinations(NUMBERS[first : first + 20], 2)],
    "tree": [(NUMBERS[at], NUMBERS[(at - 1) // 2]) for at in range(1, 4096)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_star_rounds_give_the_components_of_large_shapes_in_few_rounds(shape: str) -> None:
    table = joined([(min(pair), max(pair)) for pair in SHAPES[shape]])
    groups, rounds = starred_groups(table, 3)
    assert groups.equals(components(table))
    assert rounds <= 13  # 1 + log2 of 4,096 nodes
