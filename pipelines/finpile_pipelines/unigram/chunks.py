"""Divides the text of a domain into chunks of nearly equal size, whatever the sizes of its documents.

A chunk is a range of buckets of segments (`finpile.documents.segments`). The first pass over the text adds up the bytes
of each bucket; the ranges are then chosen so that their sizes are as equal as whole buckets allow: a chunk differs from
the mean by at most the largest bucket, which has a few segments. (A text that occurs n times has each of its segments n
times in one bucket.)

Hence a chunk is a function of the set of texts alone, and a sample of its domain in parts of one paragraph.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from finpile.dedup import exact
from finpile.documents.document import Label, label_of
from finpile.documents.segments import BUCKET_BITS, Int64s, segments_of
from finpile_pipelines.unigram.texts import Domain

BucketSizes: TypeAlias = tuple[Int64s, Int64s]
"""Buckets, and the bytes of each."""
Edges: TypeAlias = Mapping[Label, Int64s]
"""The first bucket of each chunk of a domain but its first chunk."""


def _segments(texts: pa.ChunkedArray, share: float) -> tuple[pa.LargeBinaryArray, Int64s]:
    whole = texts.combine_chunks()
    return segments_of(texts, exact.document_digests(pa.table({"text": whole})), share)


def bucket_sizes(texts: pa.ChunkedArray, share: float = 1.0) -> BucketSizes:
    """The buckets of the segments of a sample of these texts, and the bytes that each has of them."""
    segments, buckets = _segments(texts, share)
    sizes = np.diff(np.frombuffer(segments.buffers()[1], np.int64)[: len(segments) + 1])
    found, places = np.unique(buckets, return_inverse=True)
    return found, np.bincount(places, weights=sizes, minlength=len(found)).astype(np.int64)


class AddBucketSizes:
    """The bytes of all buckets, from the buckets of parts of a text."""

    def create_accumulator(self) -> Int64s:
        return np.zeros(1 << BUCKET_BITS, np.int64)

    def add_input(self, total: Int64s, found: BucketSizes) -> Int64s:
        total[found[0]] += found[1]
        return total

    def merge_accumulators(self, accumulators: Iterable[Int64s]) -> Int64s:
        return sum(accumulators, start=self.create_accumulator())

    def extract_output(self, total: Int64s) -> Int64s:
        return total


def choose_edges(sizes: Int64s, num_chunks: int) -> Int64s:
    """The first bucket of each chunk but the first, such that the chunks are as equal as whole buckets allow."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    total = int(ends[-1])
    targets = np.array([total * number // num_chunks for number in range(1, num_chunks)], np.int64)
    after = np.searchsorted(ends, targets)
    before = np.maximum(after - 1, 0)
    edges: Int64s = np.where(targets - ends[before] < ends[after] - targets, before, after)
    return edges


def edges_to_json(labelled: tuple[Label, Int64s], domains: Mapping[Label, Domain]) -> dict[str, Any]:
    """The outcome of the first pass for one domain, from the bytes of its buckets."""
    label, sizes = labelled
    edges = choose_edges(sizes, domains[label].num_chunks)
    return {"dataset": label[0], "source": label[1], "edges": edges.tolist()}


def edges_from_json(outcomes: Iterable[Mapping[str, Any]]) -> Edges:
    """The edges of all domains, from the outcomes of the first pass."""
    return {label_of(row): np.array(row["edges"], np.int64) for row in outcomes}


def split_to_chunks(texts: pa.ChunkedArray, edges: Int64s, share: float = 1.0) -> tuple[pa.Table, Int64s]:
    """A table of the segments of a sample of these texts, and the number of each one's chunk in its domain."""
    segments, buckets = _segments(texts, share)
    return pa.table({"text": segments}), np.searchsorted(edges, buckets, side="right")
