"""The pieces as a double-array trie: a table that the encoder walks byte by byte.

A slot is one 32-bit unit: 22 bits of base, a flag where a piece ends, a flag for "in use", the 8 bits of its label. The
child by byte c is slot `base ^ c` if that slot's label is c. Beside the units, for slots where a piece ends, stand the
piece's id and its log probability.

Source: Aoe, IEEE Trans. Software Eng. 15 (1989), 1066-1077 (double array); the XOR addressing and the packing into one
unit follow Yata's Darts-clone (https://github.com/s-yata/darts-clone).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from finpile_tokenizer import _kernels, _trie_kernels
from finpile_tokenizer._buffers import Float64s, Int32s, UInt32s, byte_buffers, order_by_bytes
from finpile_tokenizer.errors import TokenizerError


@dataclass(frozen=True, eq=False, slots=True)
class Trie:
    """The double array; all arrays have one entry for each slot."""

    units: UInt32s
    pieces: Int32s
    """The id of the piece that ends here, or -1."""
    scores: Float64s
    """Its log probability, 0.0 where none ends."""

    def prefixes(self, text: bytes) -> list[int]:
        """The ids of all pieces that `text` begins with, shortest first."""
        found: list[int] = []
        slot = 0
        for byte in text:
            slot = (int(self.units[slot]) >> int(_trie_kernels.BASE_SHIFT)) ^ byte
            if int(self.units[slot]) & int(_trie_kernels.LABEL_AND_USE) != byte | int(_trie_kernels.IN_USE):
                break
            if self.pieces[slot] >= 0:
                found.append(int(self.pieces[slot]))
        return found


def build_trie(pieces: pa.LargeBinaryArray, log_probs: Float64s) -> Trie:
    """The trie of the pieces, whose ids are their positions in the array.

    Raises:
        TokenizerError: a piece is empty or stands twice, or there are too many of them for 22 bits of base.
    """
    order = order_by_bytes(pieces)
    offsets, data = byte_buffers(pieces.take(pa.array(order)))
    if len(pieces) and np.diff(offsets).min() == 0:
        raise TokenizerError("a piece is empty: it would be found everywhere and move nothing on")
    _, firsts = _kernels.group_items(offsets, data)
    if len(firsts) != len(pieces):
        raise TokenizerError(f"{len(pieces) - len(firsts)} of {len(pieces)} pieces stand in the vocabulary twice")
    units, ids, fits = _trie_kernels.build_trie(offsets, data, order.astype(np.int32))
    if not fits:
        raise TokenizerError(f"{len(pieces)} pieces do not fit a trie of {_trie_kernels.MAX_SLOTS} slots: use fewer")
    scores = np.where(ids >= 0, log_probs[np.maximum(ids, 0)], 0.0) if len(pieces) else np.zeros(len(ids))
    return Trie(units, ids, scores)
