"""MosaicML streaming's MDS: shards of samples with an index; a sample is one training sequence.

A shard, in little-endian numbers: uint32 N; uint32[N + 1], where each sample begins, and the end; the description of
the columns as JSON; the samples. The one column, `tokens`, is an array of fixed type and length, so a sample is its
values alone. `index.json` repeats the description for each shard.

Source: streaming/base/format/mds of mosaicml-streaming.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from finpile import storage
from finpile.tokens.export import Export
from finpile.tokens.store import Ids, TokenStore

COLUMN = "tokens"
INDEX_NAME = "index.json"
#: Bytes of the samples of one shard, as the library's own writer cuts them.
SHARD_BYTES = 1 << 26


def write_mds(store: TokenStore, folder: str) -> tuple[list[str], int]:
    """Writes the shards and their index; returns the names and the number of sequences."""
    columns = _columns(store)
    about = json.dumps(columns, sort_keys=True).encode()
    entries: list[dict[str, Any]] = []
    for number, ids in enumerate(_blocks(store)):
        name = f"shard.{number:05d}.mds"
        data = _shard(ids.astype(ids.dtype.newbyteorder("<"), copy=False), about)
        storage.write_bytes(storage.join(folder, name), data)
        raw = {"basename": name, "bytes": len(data), "hashes": {}}
        entries.append({**columns, "samples": len(ids), "raw_data": raw, "zip_data": None})
    storage.write_json(storage.join(folder, INDEX_NAME), {"version": 2, "shards": entries})
    return [entry["raw_data"]["basename"] for entry in entries] + [INDEX_NAME], len(store)


def _columns(store: TokenStore) -> dict[str, Any]:
    dtype, length = store.meta.dtype, store.sequence_length
    return {
        "version": 2,
        "format": "mds",
        "column_names": [COLUMN],
        "column_encodings": [f"ndarray:{dtype.name}:{length}"],
        "column_sizes": [dtype.itemsize * length],
        "compression": None,
        "hashes": [],
        "size_limit": SHARD_BYTES,
    }


def _shard(ids: Ids, about: bytes) -> bytes:
    num_samples, sample_bytes = len(ids), ids.shape[1] * ids.itemsize
    begin = 4 + 4 * (num_samples + 1) + len(about)
    offsets = begin + sample_bytes * np.arange(num_samples + 1, dtype=np.int64)
    return b"".join([np.array([num_samples, *offsets], "<u4").tobytes(), about, ids.tobytes()])


def _blocks(store: TokenStore) -> Iterator[Ids]:
    """All sequences, [N, sequence_length], in blocks of at most `SHARD_BYTES`."""
    size = max(1, SHARD_BYTES // (store.meta.dtype.itemsize * store.sequence_length))
    for shard in store.shards():
        yield from (shard[begin : begin + size] for begin in range(0, len(shard), size))


EXPORT = Export(name="mds", write=write_mds, entries="sequences")
