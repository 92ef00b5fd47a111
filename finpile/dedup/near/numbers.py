"""The sequence of numbers of a text. With `numbers: keep`, only documents with equal sequences are candidates.

In financial text the numbers are the content: ten thousand notices of one form share most band keys, but only those
with equal amounts can be duplicates. One bucket of all notices would be too large for all pairs, would miss the few
true ones, and would put all notices into one group. Therefore the numbers are hashed into the band keys. This removes
no pair that could be verified.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from finpile.config import NearConfig
from finpile.dedup._hash_kernels import U64
from finpile.dedup.near import _number_kernels, minhash
from finpile.documents.document import text_arrays

#: Decimal digits of any script, superscript ones, and the fractions that are one character.
_NUMBER = re.compile(r"\d+|[\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u00bc-\u00be\u2150-\u215f\u2189]")


def number_sequence(text: bytes) -> bytes:
    """Returns the numbers of a text in order, joined by spaces.

    >>> number_sequence("Rose 1½ pct to 64 m².".encode()).decode()
    '1 ½ 64 ²'
    """
    return " ".join(_NUMBER.findall(text.decode(errors="replace"))).encode()


def number_keys(texts: pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray) -> U64:
    """Returns a 64-bit hash of each text's sequence of numbers."""
    data, offsets = text_arrays(texts)
    keys = np.empty(len(offsets) - 1, dtype=np.uint64)
    plain = np.empty(len(keys), dtype=np.uint8)
    _number_kernels.hash_numbers(data, offsets, keys, plain)
    for doc in np.flatnonzero(plain == 0).tolist():
        numbers = number_sequence(data[offsets[doc] : offsets[doc + 1]].tobytes())
        keys[doc] = _number_kernels.hash_bytes(np.frombuffer(numbers, np.uint8))
    return keys


def part_by_numbers(
    keys: U64, texts: pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray, config: NearConfig
) -> U64:
    """Returns band keys, of shape (documents, bands), that only documents with equal sequences of numbers share.

    With `numbers: any` the keys are returned unchanged.
    """
    if config.numbers == "any":
        return keys
    parted = np.maximum(keys ^ number_keys(texts)[:, np.newaxis], np.uint64(1))
    return np.where(keys == minhash.NO_KEY, keys, parted)
