"""Cuts bytes into pretokens, the runs that no piece may cross.

The rule is `[A-Za-z ]+|[0-9]|[^A-Za-z0-9 ]+` over bytes: spaces belong to the alphabetic runs, so a piece may span
words; each digit is a pretoken; all else, every byte of a multi-byte character included, forms runs of its own. The
rule looks at one byte at a time, so it is a table of 256 classes and not a regular expression.

Source: Wu et al., BloombergGPT (arXiv:2303.17564), section 2.3.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Int64s, UInt8s, byte_buffers
from finpile_tokenizer.pretokens import _pretoken_kernels

#: The same rule as a regular expression over characters; equal on UTF-8, whose multi-byte characters are all `other`.
PRETOKEN_PATTERN = "[A-Za-z ]+|[0-9]|[^A-Za-z0-9 ]+"


def _class_table() -> UInt8s:
    table = np.full(256, _pretoken_kernels.OTHER, np.uint8)
    table[[ord(" "), *range(ord("A"), ord("Z") + 1), *range(ord("a"), ord("z") + 1)]] = _pretoken_kernels.ALPHABETIC
    table[range(ord("0"), ord("9") + 1)] = _pretoken_kernels.DIGIT
    table.flags.writeable = False
    return table


#: The class of each byte; see `_pretoken_kernels.OTHER`, `ALPHABETIC`, `DIGIT`.
PRETOKEN_CLASSES = _class_table()


def pretoken_starts(texts: pa.Array) -> tuple[Int64s, Int64s]:
    """Where the pretokens of an array of texts begin.

    Returns the starts, in bytes from the beginning of the array's data buffer, of all pretokens of all documents, and
    the number of pretokens of each document. A pretoken ends where the next one starts, or at its document's end.
    """
    offsets, data = byte_buffers(texts)
    num_pretokens, starts = np.empty(len(texts), np.int64), np.empty(offsets[-1] - offsets[0], np.int64)
    total = _pretoken_kernels.pretoken_starts(offsets, data, PRETOKEN_CLASSES, num_pretokens, starts)
    return starts[:total].copy(), num_pretokens


def pretokenize(text: bytes) -> list[bytes]:
    """The pretokens of one text; joined they are the text.

    >>> pretokenize(b"Oil rose 12%.")
    [b'Oil rose ', b'1', b'2', b'%.']
    """
    starts, _ = pretoken_starts(pa.array([text], pa.large_binary()))
    edges = [*starts.tolist(), len(text)]
    return [text[start:stop] for start, stop in pairwise(edges)]
