"""The numbers of a text. Under `numbers: keep` only documents with the same sequence of numbers are ever candidates.

In financial text the numbers are the content: ten thousand notices of one form share most bands, and only those of the
same amount may be duplicates. In one bucket they would be too many for all pairs, the few true ones would be missed,
and all texts would meet in one group. So a band's key is parted by the numbers before documents meet. That drops no
pair that could be verified.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from finpile.config import NearConfig
from finpile.dedup._hash_kernels import U64
from finpile.dedup.near import (
    _number_kernels,
    minhash,
)
from finpile.document import text_arrays

#: Decimal digits of any script, and the fractions that are one character.
_NUMBER = re.compile(r"\d+|[\u00bc-\u00be\u2150-\u215f\u2189]")


def number_sequence(text: bytes) -> bytes:
    """The numbers in order, joined by blanks.

    >>> number_sequence("Rose 1½ pct to 64.".encode()).decode()
    '1 ½ 64'
    """
    return " ".join(_NUMBER.findall(text.decode(errors="replace"))).encode()


def number_keys(texts: pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray) -> U64:
    """64 bits that stand for each text's sequence of numbers."""
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
    """Band keys (documents, bands) that only documents of the same numbers share; as they are under `numbers: any`."""
    if config.numbers == "any":
        return keys
    parted = np.maximum(keys ^ number_keys(texts)[:, np.newaxis], np.uint64(1))
    return np.where(keys == minhash.NO_KEY, keys, parted)
