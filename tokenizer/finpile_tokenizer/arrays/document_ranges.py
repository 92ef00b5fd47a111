"""An Arrow array of texts as ranges of documents, large beside the cost of a call and small beside memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Int64s, UInt8s, byte_buffers, chunks_of, ranges_of
from finpile_tokenizer.arrays.threads import map_threads
from finpile_tokenizer.errors import TokenizerError

_RANGE_BYTES = 1 << 20

_Result = TypeVar("_Result")


class DocumentRange(NamedTuple):
    """Documents `first` to `last` of one chunk; document i is `data[offsets[i]:offsets[i + 1]]`."""

    offsets: Int64s
    data: UInt8s
    first: int
    last: int
    number: int
    """How many documents of the whole array come before `first`."""


def map_ranges(
    work: Callable[[DocumentRange], _Result], texts: pa.Array | pa.ChunkedArray, num_threads: int
) -> list[_Result]:
    """`work` of ranges that together are all the texts, in order; a document is never split.

    Raises:
        InputTypeError: not an array of texts, or one with nulls.
        TokenizerError: `num_threads` is less than 1.
    """
    if num_threads < 1:
        raise TokenizerError(f"num_threads is {num_threads}: expected 1 or more")
    ranges: list[DocumentRange] = []
    number = 0
    for offsets, data in map(byte_buffers, chunks_of(texts)):
        ranges += [
            DocumentRange(offsets, data, *edges, number + edges[0]) for edges in ranges_of(offsets, _RANGE_BYTES)
        ]
        number += len(offsets) - 1
    return map_threads(work, ranges, num_threads)
