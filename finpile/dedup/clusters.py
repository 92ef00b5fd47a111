"""From band keys to groups: which documents to compare, and which to bring together for it.

Documents are numbered so that the smaller number is the copy to keep. Nothing here proves a duplicate: a bucket or a
group only says what is worth comparing; `finpile.dedup.verify` decides.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from finpile.dedup import _kernels
from finpile.dedup._kernels import I64, U64

#: The largest bucket that gives all its pairs. A larger one of m documents gives 2m - 3: each with the first (star) and
#: each with its next (chain). Copies of one text then meet the copy to keep, and m^2 stays out of reach.
MAX_ALL_PAIRS = 32

#: Key in the metadata of `candidate_pairs`: how many buckets were larger than that.
LARGE_BUCKETS = b"large_buckets"

_PAIR_SCHEMA = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64(), nullable=False)])
_GROUP_SCHEMA = pa.schema([pa.field("doc", pa.int64(), nullable=False), pa.field("group", pa.int64(), nullable=False)])


def candidate_pairs(rows: pa.Table) -> pa.Table:
    """The pairs of documents that share a key, each once, as columns `a` < `b`, ascending.

    `rows` has `key` (uint64) and `doc` (int64), one row for each document and band, of all bands together, in any
    order; a row may stand there twice. Metadata `LARGE_BUCKETS` counts the buckets that gave star and chain only.
    """
    keys, docs = _shared(rows["key"].to_numpy(), rows["doc"].to_numpy())
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1], True]) if len(keys) else np.zeros(1, np.int64)
    numbers, local = np.unique(docs, return_inverse=True)
    packed = np.sort(_kernels.pair_buckets(starts, local.astype(np.uint64), MAX_ALL_PAIRS))
    a = numbers[(packed >> np.uint64(32)).astype(np.int64)]
    b = numbers[(packed & np.uint64(0xFFFFFFFF)).astype(np.int64)]
    num_large = int(np.count_nonzero(np.diff(starts) > MAX_ALL_PAIRS))
    schema = _PAIR_SCHEMA.with_metadata({LARGE_BUCKETS: str(num_large)})
    return pa.Table.from_arrays([pa.array(a, pa.int64()), pa.array(b, pa.int64())], schema=schema)


def components(pairs: pa.Table) -> pa.Table:
    """The connected groups of a pair table: columns `doc` (ascending, each document of a pair once) and `group`.

    A group is named by its smallest document, hence the same for any order of the pairs.
    """
    a, b = pairs["a"].to_numpy(), pairs["b"].to_numpy()
    docs, local = np.unique(np.concatenate([a, b]), return_inverse=True)
    smallest = _kernels.smallest_connected(len(docs), local[: len(a)], local[len(a) :])
    return pa.Table.from_arrays(
        [pa.array(docs, pa.int64()), pa.array(docs[smallest], pa.int64())], schema=_GROUP_SCHEMA
    )


def _shared(keys: U64, docs: I64) -> tuple[U64, I64]:
    """The rows whose key at least two documents have, sorted by key and document, each once."""
    order = np.argsort(keys)
    keys, docs = keys[order], docs[order]
    equal = keys[1:] == keys[:-1]
    several = (np.r_[False, equal] | np.r_[equal, False])[: len(keys)] & (keys != _kernels.NO_KEY)
    keys, docs = keys[several], docs[several]  # most rows are gone: the exact order is cheap now
    order = np.lexsort((docs, keys))
    keys, docs = keys[order], docs[order]
    fresh = np.r_[True, (keys[1:] != keys[:-1]) | (docs[1:] != docs[:-1])][: len(keys)]
    return keys[fresh], docs[fresh]
