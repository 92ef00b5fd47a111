"""Ids as 16 bytes: half the memory of their 32 hex digits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ID = pa.binary(16)


def packed(ids: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Ids of 32 hex digits as 16 bytes; nulls stay null.

    >>> packed(pa.array(["00ff" * 8, None])).to_pylist() == [bytes([0, 255] * 8), None]
    True
    """
    whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    if not len(whole):
        return pa.array([], ID)
    filled = pc.fill_null(whole.cast(pa.large_string()), "0" * 32)
    offsets = np.frombuffer(filled.buffers()[1], np.int64)[filled.offset : filled.offset + len(filled) + 1]
    digits = np.frombuffer(filled.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    values = np.where(digits >= ord("a"), digits - ord("a") + 10, digits - ord("0")).astype(np.uint8)
    data = pa.py_buffer(((values[::2] << 4) | values[1::2]).tobytes())
    found = pa.Array.from_buffers(ID, len(filled), [None, data])
    return pc.if_else(pc.is_valid(whole), found, pa.scalar(None, ID)) if whole.null_count else found
