"""Builds candidate pairs from band keys, and groups of documents from the pairs.

Documents are identified by numbers. Pairs and groups are only candidates for comparison; `finpile.dedup.near.verify`
decides which documents are duplicates.

Groups are the connected components of the pairs, named by their smallest document. `components` finds them in one pass
if all pairs fit in memory. Otherwise `large_star` and `small_star` are applied in turn to parts of the pairs until
neither changes an edge. Each document of a group is then connected to the group's smallest document only, and
`star_groups` returns the groups.

Source: Kiveris et al. 2014, Connected Components in MapReduce and Beyond.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.dedup._hash_kernels import NO_KEY
from finpile.dedup.near import _pair_kernels

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

#: The largest bucket that gives all its pairs. A larger bucket of m documents gives 2m - 3 pairs: of each document with
#: the first (star) and with the next (chain). The documents are still connected, without m^2 pairs.
MAX_ALL_PAIRS = 32

#: Key in the metadata of `candidate_pairs`: the number of buckets larger than `MAX_ALL_PAIRS`.
LARGE_BUCKETS = b"large_buckets"

#: Two documents to compare, `a` < `b`; `large` if the pair is from a bucket larger than `MAX_ALL_PAIRS`.
PAIR_SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64(), nullable=False),
        pa.field("b", pa.int64(), nullable=False),
        pa.field("large", pa.bool_(), nullable=False),
    ]
)
#: The pairs of a group: `PAIR_SCHEMA` and the group's name; and their order for `near.groups.resolve_groups`.
GROUPED_PAIR_SCHEMA = PAIR_SCHEMA.append(pa.field("group", pa.int64(), nullable=False))
PAIR_ORDER = [(name, "ascending") for name in ("group", "a", "b")]
#: A document and the smallest document of its group.
GROUP_SCHEMA = pa.schema([pa.field("doc", pa.int64(), nullable=False), pa.field("group", pa.int64(), nullable=False)])
#: An edge from the view of one of its ends.
NEIGHBOUR_SCHEMA = pa.schema(
    [pa.field("node", pa.int64(), nullable=False), pa.field("neighbour", pa.int64(), nullable=False)]
)

_NUMBER_MASK = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Stars:
    """The result of a step for its part of the edges."""

    edges: pa.Table
    """`NEIGHBOUR_SCHEMA`; the node is the larger end. An edge may occur twice, and in other parts too."""
    num_changed: int
    """Number of edges that the step moved; if it is 0 in all parts of both steps, every component is a star."""


def document_numbers(scope: str, digests: pa.FixedSizeBinaryArray) -> pa.Int64Array:
    """Returns a 63-bit number for each document, a hash of its scope and the digest of its text.

    The numbers do not depend on how a corpus is divided into shards.
    """
    prefix = scope.encode() + b"\0"
    hashes = (hashlib.blake2b(prefix + digest, digest_size=8).digest() for digest in digests.to_pylist())
    return pa.array([int.from_bytes(value, "big") & _NUMBER_MASK for value in hashes], pa.int64())


def candidate_pairs(rows: pa.Table) -> pa.Table:
    """Returns the distinct pairs of documents that share a key, as `PAIR_SCHEMA`, ascending.

    `rows` has `key` (uint64) and `doc` (int64), one row for each document and band, in any order; rows may be repeated.
    The metadata `LARGE_BUCKETS` is the number of buckets that gave only the pairs of star and chain.
    """
    of_buckets, most = _pair_kernels.pair_buckets, MAX_ALL_PAIRS
    return bucket_pairs(rows, (), lambda starts, docs, _: of_buckets(starts, docs, most), most)


def bucket_pairs(rows: pa.Table, order: Sequence[str], pair: Callable[[I64, U64, bool], U64], most: int) -> pa.Table:
    """Returns the distinct pairs that `pair` gives of the documents that share a key, as `PAIR_SCHEMA`, ascending.

    `rows` are as for `candidate_pairs`. The documents of a bucket are in the order of the columns `order`, then of
    their numbers. `pair(starts, docs, is_large)` returns `first << 32 | second` for the buckets
    `docs[starts[b]:starts[b + 1]]`; of those with more than `most` documents it gives the pairs that are `large` if
    `is_large`. The metadata `LARGE_BUCKETS` is their number.
    """
    keys, docs = _shared(rows, order)
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1], True]) if len(keys) else np.zeros(1, np.int64)
    numbers, local = np.unique(docs, return_inverse=True)
    places = local.astype(np.uint64)
    packed = np.sort(pair(starts, places, False))
    sizes = np.diff(starts)
    is_large = sizes > most
    of_large = pair(np.r_[0, np.cumsum(sizes[is_large])], places[np.repeat(is_large, sizes)], True)
    columns = [
        pa.array(numbers[(packed >> np.uint64(32)).astype(np.int64)], pa.int64()),
        pa.array(numbers[(packed & np.uint64(0xFFFFFFFF)).astype(np.int64)], pa.int64()),
        pa.array(np.isin(packed, of_large), pa.bool_()),
    ]
    schema = PAIR_SCHEMA.with_metadata({LARGE_BUCKETS: str(np.count_nonzero(is_large))})
    return pa.Table.from_arrays(columns, schema=schema)


def distinct_pairs(pairs: pa.Table) -> pa.Table:
    """Returns the distinct pairs of `PAIR_SCHEMA`, ascending; `large` if any row of the pair is."""
    rows = pairs.group_by(["a", "b"], use_threads=False).aggregate([("large", "any")])
    rows = rows.rename_columns(["a", "b", "large"]).sort_by([("a", "ascending"), ("b", "ascending")])
    return pa.Table.from_arrays([rows[name].combine_chunks() for name in PAIR_SCHEMA.names], schema=PAIR_SCHEMA)


def components(pairs: pa.Table) -> pa.Table:
    """Returns the connected groups of a table of pairs, as `GROUP_SCHEMA`: each document once, ascending.

    A group is named by its smallest document, so the result does not depend on the order of the pairs.
    """
    a, b = pairs["a"].to_numpy(), pairs["b"].to_numpy()
    docs, local = np.unique(np.concatenate([a, b]), return_inverse=True)
    smallest = _pair_kernels.smallest_connected(len(docs), local[: len(a)], local[len(a) :])
    return _table(docs, docs[smallest], GROUP_SCHEMA)


def both_ends(edges: pa.Table) -> pa.Table:
    """Returns each edge (the first two columns of a row) twice, once for each end, as `NEIGHBOUR_SCHEMA`."""
    left, right = edges.column(0).to_numpy(), edges.column(1).to_numpy()
    return _table(np.concatenate([left, right]), np.concatenate([right, left]), NEIGHBOUR_SCHEMA)


def large_star(neighbours: pa.Table) -> Stars:
    """Connects the larger neighbours of each node to the smallest of the node and all its neighbours.

    `neighbours` (`NEIGHBOUR_SCHEMA`) must contain all rows of its nodes, in any order; rows may be repeated.
    """
    nodes, others, smallest = _with_smallest(neighbours)
    smallest = np.minimum(nodes, smallest)
    larger = others > nodes
    edges = _table(others[larger], smallest[larger], NEIGHBOUR_SCHEMA)
    return Stars(edges, int(np.count_nonzero(smallest[larger] != nodes[larger])))


def small_star(neighbours: pa.Table) -> Stars:
    """Connects each node and its neighbours, all smaller than the node, to the smallest of them.

    `neighbours` (`NEIGHBOUR_SCHEMA`) must contain all rows of its nodes with a smaller neighbour and no others, in any
    order; rows may be repeated.
    """
    nodes, others, smallest = _with_smallest(neighbours)
    moved = others != smallest
    edges = _table(np.where(moved, others, nodes), smallest, NEIGHBOUR_SCHEMA)
    return Stars(edges, int(np.count_nonzero(moved)))


def star_groups(stars: pa.Table) -> pa.Table:
    """Returns the groups of edges that form stars, as `GROUP_SCHEMA`: each document once, ascending.

    `stars` is of `NEIGHBOUR_SCHEMA`; the node is the larger end.
    """
    nodes, centres = stars["node"].to_numpy(), stars["neighbour"].to_numpy()
    return distinct_groups(_table(np.concatenate([nodes, centres]), np.concatenate([centres, centres]), GROUP_SCHEMA))


def distinct_groups(groups: pa.Table) -> pa.Table:
    """Returns the rows of `GROUP_SCHEMA` with each document once, ascending."""
    docs, first = np.unique(groups["doc"].to_numpy(), return_index=True)
    return _table(docs, groups["group"].to_numpy()[first], GROUP_SCHEMA)


def with_group(rows: pa.Table, column: str, groups: pa.Table) -> pa.Table:
    """Returns the rows whose document in `column` is in `groups`, with a column `group` appended.

    `groups` is of `GROUP_SCHEMA`, ascending by document.
    """
    numbers, grouped = rows[column].to_numpy(), groups["doc"].to_numpy()
    if len(grouped) == 0:
        return rows.slice(0, 0).append_column(GROUPED_PAIR_SCHEMA.field("group"), pa.array([], pa.int64()))
    at = np.minimum(np.searchsorted(grouped, numbers), len(grouped) - 1)
    found = grouped[at] == numbers
    names = pa.array(groups["group"].to_numpy()[at[found]], pa.int64())
    return rows.filter(pa.array(found)).append_column(GROUPED_PAIR_SCHEMA.field("group"), names)


def _with_smallest(neighbours: pa.Table) -> tuple[I64, I64, I64]:
    """Returns the distinct rows, sorted by node and neighbour, and for each row the smallest neighbour of its node."""
    nodes, others = neighbours["node"].to_numpy(), neighbours["neighbour"].to_numpy()
    order = np.lexsort((others, nodes))
    nodes, others = nodes[order], others[order]
    fresh = np.r_[True, (nodes[1:] != nodes[:-1]) | (others[1:] != others[:-1])][: len(nodes)]
    nodes, others = nodes[fresh], others[fresh]
    starts = np.flatnonzero(np.r_[True, nodes[1:] != nodes[:-1]][: len(nodes)])
    sizes = np.diff(np.r_[starts, len(nodes)])
    return nodes, others, np.repeat(others[starts], sizes)


def _table(left: I64, right: I64, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([pa.array(left, pa.int64()), pa.array(right, pa.int64())], schema=schema)


def _shared(rows: pa.Table, order: Sequence[str]) -> tuple[U64, I64]:
    """Returns the distinct keys and documents whose key at least two rows have, by key, `order` and document."""
    keys = rows["key"].to_numpy()
    by_key = np.argsort(keys)
    keys = keys[by_key]
    equal = keys[1:] == keys[:-1]
    several = (np.r_[False, equal] | np.r_[equal, False])[: len(keys)] & (keys != NO_KEY)
    keys, chosen = keys[several], by_key[several]  # few rows remain, so the second sort is cheap
    docs, *places = (rows[name].to_numpy()[chosen] for name in ("doc", *reversed(order)))
    sorted_rows = np.lexsort((docs, *places, keys))
    keys, docs = keys[sorted_rows], docs[sorted_rows]
    fresh = np.r_[True, (keys[1:] != keys[:-1]) | (docs[1:] != docs[:-1])][: len(keys)]
    return keys[fresh], docs[fresh]
