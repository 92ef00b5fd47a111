"""Packing of documents into sequences: documents are joined by `<|endoftext|>`, and the stream is cut.

The stream is the concatenation of pieces written by different workers; a sequence can span several pieces.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ids = npt.NDArray[np.integer[Any]]
_NONE = np.zeros(0, np.int64)


def join_documents(
    documents: pa.LargeListArray | pa.ListArray | pa.ChunkedArray, eot_id: int, order: npt.ArrayLike | None = None
) -> Ids:
    """All ids of the documents, with `eot_id` after each one: `num_ids + num_documents` ids.

    `order` has the places of the documents in their new order; by default they stay in theirs.

    Each document is copied once, which takes less time and memory than Arrow's `take` of lists and an insertion after
    it; chunks are not joined before.
    """
    chunks = documents.chunks if isinstance(documents, pa.ChunkedArray) else [documents]
    offsets = [np.asarray(chunk.offsets, dtype=np.int64) for chunk in chunks]
    values = [np.asarray(chunk.values) for chunk in chunks]
    places = np.arange(len(documents)) if order is None else np.asarray(order)
    starts = np.concatenate([_NONE, *(edges[:-1] for edges in offsets)])[places]
    ends = np.concatenate([_NONE, *(edges[1:] for edges in offsets)])[places]
    of_chunk = np.repeat(np.arange(len(chunks)), [len(chunk) for chunk in chunks])[places]
    dtype = values[0].dtype if values else np.int32
    joined = np.full(int((ends - starts).sum()) + len(places), eot_id, dtype=dtype)
    at = 0
    for chunk, start, end in zip(of_chunk.tolist(), starts.tolist(), ends.tolist(), strict=True):
        joined[at : at + end - start] = values[chunk][start:end]
        at += end - start + 1
    return joined


def cut_points(stream_lengths: Sequence[int], sequence_length: int, per_shard: int) -> list[tuple[int, int]]:
    """The token ranges (begin, end) of the shards over the whole stream; an incomplete last sequence is dropped."""
    num_sequences = sum(stream_lengths) // sequence_length
    step = per_shard * sequence_length
    whole = num_sequences * sequence_length
    return [(begin, min(begin + step, whole)) for begin in range(0, whole, step)]


def overlaps(starts: Sequence[int], begin: int, end: int) -> list[tuple[int, int, int]]:
    """(piece, from, to) for each piece of the stream that overlaps the token range [begin, end).

    `starts` has the start of each piece in the stream, and the end of the stream.

    >>> overlaps([0, 10, 15, 35], 8, 17)
    [(0, 8, 10), (1, 0, 5), (2, 0, 2)]
    """
    first, last = bisect_right(starts, begin) - 1, min(bisect_left(starts, end), len(starts) - 1)
    edges = [(index, max(begin, starts[index]), min(end, starts[index + 1])) for index in range(first, last)]
    return [(index, low - starts[index], high - starts[index]) for index, low, high in edges if low < high]
