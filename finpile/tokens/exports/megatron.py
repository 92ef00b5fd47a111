"""Megatron's indexed dataset, which GPT-NeoX reads, too: all tokens in one file, and an index of the documents.

The index, in little-endian numbers:

    9 bytes    MMIDIDX\\0\\0
    uint64     1, the version
    uint8      type of the tokens: 8 is uint16, 4 is int32
    uint64     N, the number of sequences
    uint64     M, the number of document boundaries, N + 1
    int32[N]   tokens of each sequence
    int64[N]   place of each sequence in the other file, in bytes
    int64[M]   the first sequence of each document, and N

A sequence is a document with its `<|endoftext|>`. The last one may have lost its end, where the token shards drop an
incomplete sequence.

Source: megatron/core/datasets/indexed_dataset.py of Megatron-LM.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from finpile import storage
from finpile.tokens.export import Export
from finpile.tokens.store import TokenStore

BIN_NAME, IDX_NAME = "tokens.bin", "tokens.idx"
_MAGIC, _VERSION = b"MMIDIDX\x00\x00", 1
_TYPE_CODES = {"uint16": 8, "int32": 4}


def write_megatron(store: TokenStore, folder: str) -> tuple[list[str], int]:
    """Writes both files; returns their names and the number of documents."""
    dtype = np.dtype(np.uint16 if store.meta.dtype == np.uint16 else np.int32)
    with storage.write_atomically(storage.join(folder, BIN_NAME)) as stream:
        lengths = _lengths(_written(store, stream, dtype), store.eot_id)
    places = (np.cumsum(lengths, dtype=np.int64) - lengths) * dtype.itemsize
    with storage.write_atomically(storage.join(folder, IDX_NAME)) as stream:
        stream.write(_MAGIC + struct.pack("<QBQQ", _VERSION, _TYPE_CODES[dtype.name], len(lengths), len(lengths) + 1))
        for values, kind in ((lengths, "<i4"), (places, "<i8"), (np.arange(len(lengths) + 1), "<i8")):
            stream.write(values.astype(kind).tobytes())
    return [BIN_NAME, IDX_NAME], len(lengths)


def _written(store: TokenStore, stream: object, dtype: np.dtype[np.generic]) -> Iterator[npt.NDArray[np.integer]]:
    """The tokens of each shard, after they have been written."""
    for ids in store.tokens():
        stream.write(ids.astype(dtype.newbyteorder("<"), copy=False).tobytes())  # type: ignore[attr-defined]
        yield ids


def _lengths(blocks: Iterator[npt.NDArray[np.integer]], eot_id: int) -> npt.NDArray[np.int64]:
    """Tokens of each document of a stream that comes in blocks; documents may continue in the next block."""
    found: list[npt.NDArray[np.int64]] = []
    rest = 0
    for ids in blocks:
        ends = np.flatnonzero(ids == eot_id) + 1
        lengths = np.diff(ends, prepend=0)
        if len(lengths):
            lengths[0] += rest
            found.append(lengths)
            rest = len(ids) - int(ends[-1])
        else:
            rest += len(ids)
    if rest:
        found.append(np.array([rest]))
    return np.concatenate(found) if found else np.zeros(0, np.int64)


EXPORT = Export(name="megatron", write=write_megatron, entries="documents")
