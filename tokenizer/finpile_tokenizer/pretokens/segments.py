"""Cuts texts into short segments that end at pretokens' ends, so that segments and whole texts have equal counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Int64s, binary_array, byte_buffers
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.pretokens._segment_kernels import segment_stops
from finpile_tokenizer.pretokens.counts import MAX_PRETOKEN_BYTES
from finpile_tokenizer.pretokens.pretokenizer import PRETOKEN_CLASSES


def cut_texts(texts: pa.Array, target_bytes: int) -> tuple[pa.LargeBinaryArray, Int64s]:
    """The segments of all texts, in order, and the number of segments of each text; an empty text has none.

    A segment has at least `target_bytes` bytes, the last one of a text excepted, and less than
    `2 * target_bytes + MAX_PRETOKEN_BYTES`. It ends at the first end of a paragraph that gives it `target_bytes` to
    `2 * target_bytes` bytes; if there is none, at the first end of a line; if there is none, of a pretoken. An end at
    which `count_pretokens` would not separate two pretokens does not count, such as a blank line before a bracket.
    Where a text is cut depends on that text alone.

    Raises:
        InputTypeError: not an array of texts, or one with nulls.
        TokenizerError: `target_bytes` is less than 1.
    """
    if target_bytes < 1:
        raise TokenizerError(f"target_bytes is {target_bytes}: expected 1 or more")
    offsets, data = byte_buffers(texts)
    num_segments = np.empty(len(texts), np.int64)
    edges = np.empty(1 + len(texts) + int(offsets[-1] - offsets[0]) // target_bytes, np.int64)
    edges[0] = offsets[0]
    total = segment_stops(offsets, data, PRETOKEN_CLASSES, target_bytes, MAX_PRETOKEN_BYTES, num_segments, edges[1:])
    return binary_array(edges[: total + 1].copy(), data), num_segments
