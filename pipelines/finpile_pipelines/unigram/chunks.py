"""Divides the text of a domain into chunks of nearly equal size, whatever the sizes of its documents.

Documents are cut into segments of about `SEGMENT_BYTES` at ends of paragraphs. A segment has a bucket: the high bits of
a hash of its document's digest and its number in the document. A chunk is a range of buckets. The first pass over the
text adds up the bytes of each bucket; the ranges are then chosen so that their sizes are as equal as whole buckets
allow: a chunk differs from the mean by at most the largest bucket, which has a few segments. (A text that occurs n
times has each of its segments n times in one bucket.)

Hence a chunk is a function of the set of texts alone, and a sample of its domain in parts of one paragraph.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from finpile_tokenizer.pretokens.segments import cut_texts

from finpile.dedup import exact
from finpile.documents.document import digest_bits
from finpile.splitmix import GOLDEN, mix
from finpile_pipelines.unigram.texts import Domain, Label

Int64s: TypeAlias = npt.NDArray[np.int64]
BucketSizes: TypeAlias = tuple[Int64s, Int64s]
"""Buckets, and the bytes of each."""
Edges: TypeAlias = Mapping[Label, Int64s]
"""The first bucket of each chunk of a domain but its first chunk."""

#: Least bytes of a segment, a paragraph or two. With 256 chunks, a domain of 5 MB has about 30 segments a chunk.
SEGMENT_BYTES = 512
#: 1,024 buckets for each of 256 chunks: a bucket is a small part of a chunk.
BUCKET_BITS = 18


def segments_of(texts: pa.ChunkedArray) -> tuple[pa.LargeBinaryArray, Int64s]:
    """The segments of all texts, in order, and the bucket of each."""
    whole = texts.combine_chunks()
    digests = digest_bits(exact.document_digests(pa.table({"text": whole})))
    segments, num_segments = cut_texts(whole, SEGMENT_BYTES)
    firsts = np.cumsum(num_segments) - num_segments
    numbers = np.arange(len(segments)) - np.repeat(firsts, num_segments)
    keys = mix(np.repeat(digests, num_segments) + numbers.astype(np.uint64) * GOLDEN)
    return segments, (keys >> np.uint64(64 - BUCKET_BITS)).astype(np.int64)


def bucket_sizes(texts: pa.ChunkedArray) -> BucketSizes:
    """The buckets of the segments of these texts, and the bytes that each has of them."""
    segments, buckets = segments_of(texts)
    sizes = np.diff(np.frombuffer(segments.buffers()[1], np.int64)[: len(segments) + 1])
    found, places = np.unique(buckets, return_inverse=True)
    return found, np.bincount(places, weights=sizes, minlength=len(found)).astype(np.int64)


class AddBucketSizes(beam.CombineFn):
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
    return {(row["dataset"], row["source"]): np.array(row["edges"], np.int64) for row in outcomes}


def split_to_chunks(texts: pa.ChunkedArray, edges: Int64s) -> tuple[pa.Table, Int64s]:
    """A table of the segments of these texts, and the number of each one's chunk in its domain."""
    segments, buckets = segments_of(texts)
    return pa.table({"text": segments}), np.searchsorted(edges, buckets, side="right")
