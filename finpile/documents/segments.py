"""Parts of documents of about one paragraph, which chunks and samples of the tokenizer's training text consist of.

Documents are cut into segments of about `SEGMENT_BYTES` at ends of paragraphs. A segment has a key: a hash of its
document's digest and its number in the document. The high bits of the key are its bucket; the bits below them decide
whether it is in a sample of a share of all text, so each bucket has its share. So a sample is a function of the set of
texts, a part of every document with several segments, and no more of a large document than of many small ones.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from finpile_tokenizer.pretokens.segments import cut_texts

from finpile.documents.document import digest_bits
from finpile.splitmix import GOLDEN, mix

Int64s: TypeAlias = npt.NDArray[np.int64]

#: Least bytes of a segment, a paragraph or two. With 256 chunks, a domain of 5 MB has about 30 segments a chunk.
SEGMENT_BYTES = 512
#: 1,024 buckets for each of 256 chunks: a bucket is a small part of a chunk.
BUCKET_BITS = 18


def share_of(total_bytes: int, sample_bytes: int | None) -> float:
    """The share of all text that a sample of `sample_bytes` has; 1 without such a limit, or if the text is smaller."""
    return 1.0 if sample_bytes is None or total_bytes <= sample_bytes else sample_bytes / total_bytes


def segments_of(
    texts: pa.ChunkedArray, digests: pa.FixedSizeBinaryArray, share: float = 1.0
) -> tuple[pa.LargeBinaryArray, Int64s]:
    """The segments of all texts that are in a sample of this share, in order, and the bucket of each.

    `digests` are those of the texts.
    """
    segments, num_segments = cut_texts(texts.combine_chunks(), SEGMENT_BYTES)
    firsts = np.cumsum(num_segments) - num_segments
    numbers = np.arange(len(segments)) - np.repeat(firsts, num_segments)
    keys = mix(np.repeat(digest_bits(digests), num_segments) + numbers.astype(np.uint64) * GOLDEN)
    if share < 1:
        chosen = keys << np.uint64(BUCKET_BITS) < np.uint64(share * 2.0**64)
        segments, keys = segments.filter(pa.array(chosen)), keys[chosen]
    return segments, (keys >> np.uint64(64 - BUCKET_BITS)).astype(np.int64)
