"""From band keys to groups: which documents to compare, and which to bring together for it.

Documents go by numbers. Nothing here proves a duplicate: a bucket or a group only says what is worth comparing;
`finpile.dedup.near.verify` decides.

Groups are the connected components of the pairs, named by their smallest document. `components` finds them at once
where all pairs fit in memory. Else `large_star` and `small_star`, applied in turn to parts of the pairs until neither
changes one, leave each document but the smallest joined to the smallest alone; `star_groups` reads that.

Source: Kiveris et al. 2014, Connected Components in MapReduce and Beyond.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from finpile.dedup._hash_kernels import (
    I64,
    NO_KEY,
    U64,
)
from finpile.dedup.near import _pair_kernels

#: The largest bucket that gives all its pairs. A larger one of m documents gives 2m - 3: each with the first (star) and
#: each with its next (chain). All of them stay connected, and m^2 stays out of reach.
MAX_ALL_PAIRS = 32

#: Key in the metadata of `candidate_pairs`: how many buckets were larger than that.
LARGE_BUCKETS = b"large_buckets"

#: Two documents to compare, `a` < `b`; `large` where a bucket gave the pair that did not give all of its pairs.
PAIR_SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64(), nullable=False),
        pa.field("b", pa.int64(), nullable=False),
        pa.field("large", pa.bool_(), nullable=False),
    ]
)
#: A document and the smallest of its group.
GROUP_SCHEMA = pa.schema([pa.field("doc", pa.int64(), nullable=False), pa.field("group", pa.int64(), nullable=False)])
#: An edge as one of its ends sees it.
NEIGHBOUR_SCHEMA = pa.schema(
    [pa.field("node", pa.int64(), nullable=False), pa.field("neighbour", pa.int64(), nullable=False)]
)

_NUMBER_MASK = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Stars:
    """What a step made of its part of the edges."""

    edges: pa.Table
    """`NEIGHBOUR_SCHEMA`, the node being the larger end. An edge may stand there twice, and in other parts too."""
    num_changed: int
    """Edges that the step moved; 0 in all parts of both steps means that every component is a star."""


def document_numbers(scope: str, digests: pa.FixedSizeBinaryArray) -> pa.Int64Array:
    """63 bits for each document, drawn from its scope and the digest of its text: the same however a corpus is cut."""
    prefix = scope.encode() + b"\0"
    hashes = (hashlib.blake2b(prefix + digest, digest_size=8).digest() for digest in digests.to_pylist())
    return pa.array([int.from_bytes(value, "big") & _NUMBER_MASK for value in hashes], pa.int64())


def candidate_pairs(rows: pa.Table) -> pa.Table:
    """The pairs of documents that share a key, each once, as `PAIR_SCHEMA`, ascending.

    `rows` has `key` (uint64) and `doc` (int64), one row for each document and band, of all bands together, in any
    order; a row may stand there twice. Metadata `LARGE_BUCKETS` counts the buckets that gave star and chain only.
    """
    keys, docs = _shared(rows["key"].to_numpy(), rows["doc"].to_numpy())
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1], True]) if len(keys) else np.zeros(1, np.int64)
    numbers, local = np.unique(docs, return_inverse=True)
    places = local.astype(np.uint64)
    packed = np.sort(_pair_kernels.pair_buckets(starts, places, MAX_ALL_PAIRS))
    a = numbers[(packed >> np.uint64(32)).astype(np.int64)]
    b = numbers[(packed & np.uint64(0xFFFFFFFF)).astype(np.int64)]
    sizes = np.diff(starts)
    is_large = sizes > MAX_ALL_PAIRS
    in_large = places[np.repeat(is_large, sizes)]
    of_large = _pair_kernels.pair_buckets(np.r_[0, np.cumsum(sizes[is_large])], in_large, MAX_ALL_PAIRS)
    schema = PAIR_SCHEMA.with_metadata({LARGE_BUCKETS: str(np.count_nonzero(is_large))})
    columns = [pa.array(a, pa.int64()), pa.array(b, pa.int64()), pa.array(np.isin(packed, of_large), pa.bool_())]
    return pa.Table.from_arrays(columns, schema=schema)


def distinct_pairs(pairs: pa.Table) -> pa.Table:
    """Each pair of `PAIR_SCHEMA` once, ascending; `large` where one of its rows is."""
    rows = pairs.group_by(["a", "b"], use_threads=False).aggregate([("large", "any")])
    rows = rows.rename_columns(["a", "b", "large"]).sort_by([("a", "ascending"), ("b", "ascending")])
    return pa.Table.from_arrays([rows[name].combine_chunks() for name in PAIR_SCHEMA.names], schema=PAIR_SCHEMA)


def components(pairs: pa.Table) -> pa.Table:
    """The connected groups of a pair table: columns `doc` (ascending, each document of a pair once) and `group`.

    A group is named by its smallest document, hence the same for any order of the pairs.
    """
    a, b = pairs["a"].to_numpy(), pairs["b"].to_numpy()
    docs, local = np.unique(np.concatenate([a, b]), return_inverse=True)
    smallest = _pair_kernels.smallest_connected(len(docs), local[: len(a)], local[len(a) :])
    return _table(docs, docs[smallest], GROUP_SCHEMA)


def both_ends(edges: pa.Table) -> pa.Table:
    """Each edge, the first two columns of a row, twice: as either end sees it, `NEIGHBOUR_SCHEMA`."""
    left, right = edges.column(0).to_numpy(), edges.column(1).to_numpy()
    return _table(np.concatenate([left, right]), np.concatenate([right, left]), NEIGHBOUR_SCHEMA)


def large_star(neighbours: pa.Table) -> Stars:
    """Joins a node's larger neighbours to the smallest of the node and all its neighbours.

    `neighbours` has all rows of its nodes, `NEIGHBOUR_SCHEMA`, in any order and as often as may be.
    """
    nodes, others, smallest = _with_smallest(neighbours)
    smallest = np.minimum(nodes, smallest)
    larger = others > nodes
    edges = _table(others[larger], smallest[larger], NEIGHBOUR_SCHEMA)
    return Stars(edges, int(np.count_nonzero(smallest[larger] != nodes[larger])))


def small_star(neighbours: pa.Table) -> Stars:
    """Joins a node and its smaller neighbours to the smallest of them; every neighbour here is smaller than its node.

    `neighbours` has all such rows of its nodes, `NEIGHBOUR_SCHEMA`, in any order and as often as may be.
    """
    nodes, others, smallest = _with_smallest(neighbours)
    moved = others != smallest
    edges = _table(np.where(moved, others, nodes), smallest, NEIGHBOUR_SCHEMA)
    return Stars(edges, int(np.count_nonzero(moved)))


def star_groups(stars: pa.Table) -> pa.Table:
    """`GROUP_SCHEMA`, ascending, each document once, of edges that are stars (`NEIGHBOUR_SCHEMA`, larger end first)."""
    nodes, centres = stars["node"].to_numpy(), stars["neighbour"].to_numpy()
    return distinct_groups(_table(np.concatenate([nodes, centres]), np.concatenate([centres, centres]), GROUP_SCHEMA))


def distinct_groups(groups: pa.Table) -> pa.Table:
    """Each document of `GROUP_SCHEMA` once, ascending."""
    docs, first = np.unique(groups["doc"].to_numpy(), return_index=True)
    return _table(docs, groups["group"].to_numpy()[first], GROUP_SCHEMA)


def _with_smallest(neighbours: pa.Table) -> tuple[I64, I64, I64]:
    """The distinct rows by node, then neighbour, and for each the smallest neighbour of its node."""
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


def _shared(keys: U64, docs: I64) -> tuple[U64, I64]:
    """The rows whose key at least two documents have, sorted by key and document, each once."""
    order = np.argsort(keys)
    keys, docs = keys[order], docs[order]
    equal = keys[1:] == keys[:-1]
    several = (np.r_[False, equal] | np.r_[equal, False])[: len(keys)] & (keys != NO_KEY)
    keys, docs = keys[several], docs[several]  # most rows are gone: the exact order is cheap now
    order = np.lexsort((docs, keys))
    keys, docs = keys[order], docs[order]
    fresh = np.r_[True, (keys[1:] != keys[:-1]) | (docs[1:] != docs[:-1])][: len(keys)]
    return keys[fresh], docs[fresh]
