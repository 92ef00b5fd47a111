"""Input of the search for repeated substrings: the texts of a shard as symbols, and the preference of its documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.dedup._hash_kernels import I64, U8, U64
from finpile.dedup.order import Order
from finpile.dedup.plan import Part
from finpile.documents.document import text_arrays


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    """Documents of one shard, as bytes and as symbols."""

    data: U8
    bounds: I64
    """Shape (documents + 1,): where each document starts and ends in `data`."""
    symbols: npt.NDArray[Any]
    """uint8 or uint32."""
    offsets: I64
    """Shape (documents + 1,): where each document starts and ends in `symbols`."""
    byte_of: I64
    """Shape (symbols + 1,): where each symbol starts in `data`; empty if symbols are bytes."""

    @classmethod
    def of_bytes(cls, texts: pa.Array | pa.ChunkedArray) -> Texts:
        """Texts whose symbols are their bytes. An array of large_string is not copied."""
        data, bounds = text_arrays(texts)
        return cls(data=data, bounds=bounds, symbols=data, offsets=bounds, byte_of=np.empty(0, np.int64))

    @classmethod
    def of_tokens(cls, texts: pa.Array | pa.ChunkedArray, ids: pa.LargeListArray, widths: I64) -> Texts:
        """Texts whose symbols are token ids. The tokens of a text concatenate to it; id `i` is `widths[i]` bytes."""
        data, bounds = text_arrays(texts)
        symbols = ids.flatten().to_numpy().astype(np.uint32)
        offsets = (ids.offsets.to_numpy() - ids.offsets[0].as_py()).astype(np.int64)
        byte_of = bounds[0] + np.r_[0, np.cumsum(widths[symbols])].astype(np.int64)
        return cls(data=data, bounds=bounds, symbols=symbols, offsets=offsets, byte_of=byte_of)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """Attributes of the documents of one shard, without the texts; one entry per document."""

    number: int
    rows: npt.NDArray[np.int32]
    ids: pa.Array
    order_high: U64
    order_low: U64

    @property
    def rank(self) -> I64:
        """Each document's position in the order of preference."""
        return dense_rank(self.order_high, self.order_low)


def shard_of(part: Part, order: Order) -> Shard:
    """Returns the documents of a part as a `Shard`."""
    high, low = part.places(order)
    documents = part.documents
    rows, ids = documents["row"].to_numpy(), documents["id"].combine_chunks()
    return Shard(number=part.number, rows=rows, ids=ids, order_high=high, order_low=low)


def dense_rank(high: U64, low: U64) -> I64:
    """Returns the dense rank of each pair (`high`, `low`): 0 for the smallest; equal pairs have equal ranks."""
    order = np.lexsort((low, high))
    steps = (high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.r_[0, np.cumsum(steps)][: len(order)]
    return rank
