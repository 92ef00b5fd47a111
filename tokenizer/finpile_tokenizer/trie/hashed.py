"""The pieces as a hashed trie, which lattices, n-best, sampling and likelihood walk byte by byte.

A node is a slot of one open-addressing table, and the node's number is the slot. The slot holds its parent's number,
its label and a flag for the end of a piece, 32 bits in all; so the child by a byte is found by hashing `(parent,
byte)`, and the result is certain, not probable. Only the table and the piece of each slot are stored.

Source: Darragh, Cleary and Witten, Software: Practice and Experience 23 (1993), 277-291 (a trie within a hash table).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, UInt32s, byte_buffers, lengths_of, order_by_bytes
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.model import Vocabulary
from finpile_tokenizer.trie import _hashed_kernels

#: A slot's number has to fit the 23 bits that its children store it in.
_MAX_SLOTS = 1 << 23
#: The table is at most this full, the largest one 3/4: short runs of taken slots make a search fast.
_SLOTS_PER_NODE = 2
_FULLEST = 0.75


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class PieceIndex:
    """The pieces of a vocabulary, to be found at any place of a text. Ids are positions in the vocabulary."""

    units: UInt32s
    """The hashed trie: see `_hashed_kernels.next_slot`."""
    pieces: Int32s
    """For each slot, the id of the piece that ends there."""
    log_probs: Float64s
    """For each id, its log probability."""
    piece_bytes: Int64s
    """For each id, its length."""

    @property
    def longest(self) -> int:
        """The bytes of the longest piece."""
        return int(self.piece_bytes.max())


def build_piece_index(vocabulary: Vocabulary) -> PieceIndex:
    """The index of the vocabulary's pieces, which are distinct and not empty, with finite log probabilities.

    Raises:
        TokenizerError: the pieces have too many distinct beginnings.
    """
    log_probs = np.ascontiguousarray(vocabulary.log_probs, np.float64)
    units, pieces = hashed_trie(vocabulary.pieces)
    return PieceIndex(units=units, pieces=pieces, log_probs=log_probs, piece_bytes=lengths_of(vocabulary.pieces))


def hashed_trie(pieces: pa.LargeBinaryArray) -> tuple[UInt32s, Int32s]:
    """`PieceIndex.units` and `PieceIndex.pieces` of distinct pieces, which are not empty.

    Raises:
        TokenizerError: the pieces have too many distinct beginnings.
    """
    in_order = pieces.take(pa.array(order_by_bytes(pieces)))
    num_nodes = _hashed_kernels.count_nodes(*byte_buffers(in_order)) + _hashed_kernels.NUM_RESERVED
    if num_nodes > _FULLEST * _MAX_SLOTS:
        raise TokenizerError(
            f"{len(pieces)} pieces have {num_nodes} distinct beginnings; at most "
            f"{int(_FULLEST * _MAX_SLOTS)} can be indexed: use fewer or shorter pieces"
        )
    num_slots = min(_MAX_SLOTS, 1 << (_SLOTS_PER_NODE * num_nodes - 1).bit_length())
    units, of_slot = np.zeros(num_slots, np.uint32), np.full(num_slots, -1, np.int32)
    _hashed_kernels.fill_index(*byte_buffers(pieces), units, of_slot)
    return units, of_slot
