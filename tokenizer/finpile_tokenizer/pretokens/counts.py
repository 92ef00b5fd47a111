"""Distinct pretokens with their frequencies: the input of training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays import _hash_kernels
from finpile_tokenizer.arrays.buffers import Int64s, byte_buffers, chunks_of, concat, lengths_of, order_by_bytes
from finpile_tokenizer.arrays.groups import gather_ranges, group_items, sum_by_group
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.pretokens._pretoken_kernels import count_pretokens as count
from finpile_tokenizer.pretokens.pretokenizer import PRETOKEN_CLASSES

#: Longer pretokens (a page of whitespace, a base64 attachment) are *counted* in parts of this many bytes, so that one
#: entry stays small and a lattice short; pieces across such a cut are not learned. Encoding cuts nothing.
MAX_PRETOKEN_BYTES = 1024


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class PretokenCounts:
    """How often each pretoken occurs.

    A function of the set of texts alone: not of their order, nor of how they were split into arrays.
    """

    pretokens: pa.LargeBinaryArray
    """Distinct, in order of their bytes."""
    frequencies: Int64s
    """Occurrences of each, at least 1."""

    def __post_init__(self) -> None:
        if len(self.pretokens) != len(self.frequencies):
            raise TokenizerError(f"{len(self.pretokens)} pretokens have {len(self.frequencies)} frequencies")

    @property
    def num_bytes(self) -> int:
        """Bytes of the texts that were counted."""
        return int(np.dot(lengths_of(self.pretokens), self.frequencies))

    @property
    def num_pretokens(self) -> int:
        """Occurrences of pretokens."""
        return int(self.frequencies.sum())

    def distinct_bytes(self) -> bytes:
        """The byte values that occur, ascending."""
        offsets, data = byte_buffers(self.pretokens)
        return np.unique(data[offsets[0] : offsets[-1]]).tobytes()

    def merge(self, others: Iterable[PretokenCounts]) -> PretokenCounts:
        """The counts of all the texts together."""
        return _sum_up([self, *others])


def count_pretokens(texts: pa.Array | pa.ChunkedArray) -> PretokenCounts:
    """Counts the pretokens of an array of texts, of any length and of any Arrow string or binary type.

    Raises:
        InputTypeError: not an array of texts, or one with nulls.
    """
    parts = [_count_array(array) for array in chunks_of(texts)]
    return parts[0] if len(parts) == 1 else _sum_up(parts)


def _count_array(texts: pa.Array) -> PretokenCounts:
    offsets, data = byte_buffers(texts)
    slots = np.zeros(_hash_kernels.FIRST_SLOTS, np.uint64)
    room = np.empty(_hash_kernels.WIDTH * _hash_kernels.FIRST_SLOTS // 2, np.int64)
    filled, total = count(offsets, data, PRETOKEN_CLASSES, MAX_PRETOKEN_BYTES, slots, room)
    entries = filled[: _hash_kernels.WIDTH * total].reshape(total, _hash_kernels.WIDTH)
    pretokens = gather_ranges(data, entries[:, _hash_kernels.START], entries[:, _hash_kernels.LENGTH])
    return _sorted(pretokens, entries[:, _hash_kernels.COUNT])


def _sum_up(parts: list[PretokenCounts]) -> PretokenCounts:
    if not parts:
        return PretokenCounts(pretokens=pa.array([], pa.large_binary()), frequencies=np.zeros(0, np.int64))
    pretokens = concat([part.pretokens for part in parts])
    groups, firsts = group_items(*byte_buffers(pretokens))
    frequencies = np.concatenate([part.frequencies for part in parts])
    return _sorted(pretokens.take(pa.array(firsts)), sum_by_group(groups, frequencies, len(firsts)))


def _sorted(pretokens: pa.LargeBinaryArray, frequencies: Int64s) -> PretokenCounts:
    order = order_by_bytes(pretokens)
    return PretokenCounts(pretokens=pretokens.take(pa.array(order)), frequencies=frequencies[order])
