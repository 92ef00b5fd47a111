"""Rows of band keys, and the candidate pairs of a bucket: the documents that share a key.

Under `order: priority`, a bucket gives all its pairs, or a star and a chain if it is large
(`finpile.dedup.near.clusters.candidate_pairs`). Which it is depends on documents that may be later than both of a pair.

Under `order: time`, each document is paired with the first `FIRST` documents of the bucket that come before it and with
its predecessor in the bucket. No later document changes these pairs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.dedup._hash_kernels import NO_KEY, U64
from finpile.dedup.near import _pair_kernels
from finpile.dedup.near.clusters import MAX_ALL_PAIRS, bucket_pairs, candidate_pairs
from finpile.dedup.order import Order

#: The first documents of a bucket that are paired with each later one.
FIRST = MAX_ALL_PAIRS
#: Documents before a document in its bucket up to which it is paired with all of them.
_ALL_PAIRED = FIRST + 1

KEY_SCHEMA = pa.schema([("key", pa.uint64()), ("doc", pa.int64())])
#: With the document's place in the order, as by `finpile.dedup.order.order_keys`.
ORDERED_KEY_SCHEMA = KEY_SCHEMA.append(pa.field("order_high", pa.uint64())).append(pa.field("order_low", pa.uint64()))


def key_schema(order: Order) -> pa.Schema:
    """The schema of the rows that `pairs` needs."""
    return ORDERED_KEY_SCHEMA if order == "time" else KEY_SCHEMA


def key_rows(keys: U64, numbers: npt.NDArray[np.int64], places: tuple[U64, U64] | None = None) -> pa.Table:
    """Returns a row for each band of each document that has words; `keys` has the shape (documents, bands).

    With the `places` of the documents in the order of time, rows are of `ORDERED_KEY_SCHEMA`, else of `KEY_SCHEMA`.
    """
    bands = keys.shape[1]
    flat = keys.ravel()
    worded = flat != NO_KEY
    columns = [numbers, *(places or ())]
    schema = KEY_SCHEMA if places is None else ORDERED_KEY_SCHEMA
    arrays = [flat[worded], *(np.repeat(column, bands)[worded] for column in columns)]
    return pa.Table.from_arrays([pa.array(array) for array in arrays], schema=schema)


def pairs(rows: pa.Table, order: Order) -> pa.Table:
    """Returns the distinct candidate pairs of all rows of some keys, as `PAIR_SCHEMA`, ascending.

    The metadata `LARGE_BUCKETS` is the number of buckets that did not give all their pairs.
    """
    return earlier_pairs(rows) if order == "time" else candidate_pairs(rows)


def earlier_pairs(rows: pa.Table) -> pa.Table:
    """Returns `pairs` of `ORDERED_KEY_SCHEMA`: those under `order: time`.

    `large` is true if the later document of the pair is not paired with all documents before it in a bucket.
    """
    earlier, most = _pair_kernels.pair_earlier, _ALL_PAIRED + 1
    order = ("order_high", "order_low")
    return bucket_pairs(
        rows, order, lambda starts, docs, is_large: earlier(starts, docs, FIRST, most if is_large else 1), most
    )
