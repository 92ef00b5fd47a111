"""Packing of documents into sequences: documents are joined by `<|endoftext|>`, and the stream is cut.

The stream is the concatenation of pieces written by different workers; a sequence can span several pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ids = npt.NDArray[np.integer[Any]]


def join_documents(documents: pa.LargeListArray | pa.ListArray, eot_id: int, order: npt.ArrayLike | None = None) -> Ids:
    """All ids of the documents, with `eot_id` after each one: `num_ids + num_documents` ids.

    `order` has the places of the documents in their new order; by default they stay in theirs.

    Each document is copied once, which takes less time than Arrow's `take` of lists and an insertion after it.
    """
    offsets = np.asarray(documents.offsets, dtype=np.int64)
    values = np.asarray(documents.values)
    places = np.arange(len(documents)) if order is None else np.asarray(order)
    starts, ends = offsets[:-1][places], offsets[1:][places]
    joined = np.full(int((ends - starts).sum()) + len(places), eot_id, dtype=values.dtype)
    at = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        joined[at : at + end - start] = values[start:end]
        at += end - start + 1
    return joined


def cut_points(stream_lengths: Sequence[int], sequence_length: int, per_shard: int) -> list[tuple[int, int]]:
    """The token ranges (begin, end) of the shards over the whole stream; an incomplete last sequence is dropped."""
    num_sequences = sum(stream_lengths) // sequence_length
    step = per_shard * sequence_length
    whole = num_sequences * sequence_length
    return [(begin, min(begin + step, whole)) for begin in range(0, whole, step)]


def overlaps(stream_lengths: Sequence[int], begin: int, end: int) -> list[tuple[int, int, int]]:
    """(piece, from, to) for each piece of the stream that overlaps the token range [begin, end).

    >>> overlaps([10, 5, 20], 8, 17)
    [(0, 8, 10), (1, 0, 5), (2, 0, 2)]
    """
    found = []
    start = 0
    for index, length in enumerate(stream_lengths):
        low, high = max(begin, start), min(end, start + length)
        if low < high:
            found.append((index, low - start, high - start))
        start += length
    return found
