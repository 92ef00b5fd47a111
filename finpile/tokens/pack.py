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


def join_documents(documents: pa.LargeListArray | pa.ListArray, eot_id: int) -> Ids:
    """All ids in order, with `eot_id` after each document: `num_ids + num_documents` ids."""
    offsets = np.asarray(documents.offsets, dtype=np.int64)
    values = np.asarray(documents.values)[offsets[0] : offsets[-1]]
    ends = offsets[1:] - offsets[0]
    return np.insert(values, ends, eot_id)


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
