"""Packing of documents into sequences: documents are joined by `<|endoftext|>`, and the stream is cut.

The stream is the concatenation of pieces written by different workers; a sequence can span several pieces.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ids = npt.NDArray[np.integer[Any]]
I64 = npt.NDArray[np.int64]
_NONE = np.zeros(0, np.int64)


class Runs(NamedTuple):
    """Runs of tokens of one source in a stream, or in the sequences of a shard."""

    sources: I64
    """The number of each run's source."""
    lengths: I64
    """Its tokens."""


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


def cut_runs(runs: Runs, begin: int, end: int) -> Runs:
    """The runs of the tokens `begin` to `end` of a stream.

    >>> cut_runs(Runs(np.array([7, 8, 9]), np.array([5, 2, 5])), 3, 8).lengths.tolist()
    [2, 2, 1]
    """
    ends = np.cumsum(runs.lengths)
    lengths = np.minimum(ends, end) - np.maximum(ends - runs.lengths, begin)
    is_inside = lengths > 0
    return Runs(runs.sources[is_inside], lengths[is_inside])


def runs_of_sequences(runs: Runs, sequence_length: int) -> tuple[I64, Runs]:
    """The runs of each sequence of a stream that is cut: offsets as of an Arrow list, and the runs of all sequences.

    Neighbours of one source in a sequence are one run.

    >>> offsets, cut = runs_of_sequences(Runs(np.array([1, 1, 2]), np.array([2, 5, 1])), 4)
    >>> offsets.tolist(), cut.sources.tolist(), cut.lengths.tolist()
    ([0, 1, 3], [1, 1, 2], [4, 3, 1])
    """
    changes = np.append(np.flatnonzero(np.diff(runs.sources)), len(runs.sources) - 1)
    ends, sources = np.cumsum(runs.lengths)[changes], runs.sources[changes]
    cuts = np.arange(sequence_length, int(ends[-1]) + 1, sequence_length)
    edges = np.union1d(ends, cuts)
    offsets = np.concatenate([[0], np.searchsorted(edges, cuts) + 1])
    return offsets, Runs(sources[np.searchsorted(ends, edges)], np.diff(edges, prepend=0))
