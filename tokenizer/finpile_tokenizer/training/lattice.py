"""The lattices of all pretokens: which pieces begin at each position.

A position stores one number: the longest piece that begins there. The others are prefixes of it, each the longest
proper prefix of the one before, down to the single byte; so a table with one entry a piece, its length and its longest
prefix, gives all edges of all lattices. If pieces are dropped, these numbers are replaced; no text is searched again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Int32s, Int64s, UInt32s, byte_buffers, lengths_of, ranges_of
from finpile_tokenizer.arrays.threads import map_threads
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.pretokens.counts import PretokenCounts
from finpile_tokenizer.training import _lattice_kernels
from finpile_tokenizer.trie.hashed import hashed_trie

NO_PIECE = -1
#: A link has 8 bits for a length.
_LONGEST = 255

#: A block's size is fixed, so that sums over blocks do not depend on the threads that share them.
_BLOCK_BYTES = 1 << 18


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Lattices:
    """The lattices of `len(frequencies)` pretokens over `len(prefix_links)` pieces, which are numbered from 0.

    Every byte of the pretokens is a piece.
    """

    offsets: Int64s
    """The start of each pretoken, and the end of the last; the first is 0."""
    frequencies: Int64s
    longest_piece_at: Int32s
    """For each position, the longest piece that begins there and ends within the pretoken."""
    prefix_links: Int32s
    """For each piece, `parent << 8 | length`: its longest proper prefix among the pieces, or -1, and its bytes."""

    @property
    def num_bytes(self) -> int:
        """Bytes of the text that was counted."""
        return int(np.dot(np.diff(self.offsets), self.frequencies))

    @property
    def lengths(self) -> Int32s:
        """The bytes of each piece."""
        return self.prefix_links & 255

    @property
    def chains(self) -> UInt32s:
        """`prefix_links` for kernels that read on behind the end of a chain: that end is a piece too, the number
        `len(prefix_links)`, which has no bytes and follows itself."""
        end = len(self.prefix_links)
        parents = self.prefix_links >> 8
        parents[parents == NO_PIECE] = end
        return np.append(packed_links(parents, self.lengths), end << 8).astype(np.uint32)

    def take(self, pieces: Int64s, num_threads: int = 1) -> Lattices:
        """The lattices over these pieces, which are numbered as they are listed. The arrays of this object are reused.

        All single bytes must be among the pieces.
        """
        nearest = np.full(len(self.prefix_links), -2, np.int32)
        _lattice_kernels.nearest_taken(self.prefix_links, pieces, nearest)
        spans = [self.longest_piece_at[self.offsets[first] : self.offsets[last]] for first, last in self.blocks()]
        map_threads(lambda span: _lattice_kernels.renumber(span, nearest), spans, num_threads)
        parents = (self.prefix_links >> 8)[pieces]
        parents = np.where(parents < 0, NO_PIECE, nearest[np.maximum(parents, 0)])
        prefix_links = packed_links(parents, self.lengths[pieces])
        return Lattices(
            offsets=self.offsets,
            frequencies=self.frequencies,
            longest_piece_at=self.longest_piece_at,
            prefix_links=prefix_links,
        )

    @property
    def longest_pretoken(self) -> int:
        """The bytes of the longest pretoken."""
        return int(np.diff(self.offsets).max(initial=0))

    def blocks(self) -> list[tuple[int, int]]:
        """Consecutive ranges `(first, last)` of pretokens, of about `_BLOCK_BYTES` each."""
        return ranges_of(self.offsets, _BLOCK_BYTES)


def find_lattices(counts: PretokenCounts, pieces: pa.LargeBinaryArray, num_threads: int = 1) -> Lattices:
    """The lattices of counted pretokens over any distinct `pieces`, found by a trie; each piece within one pretoken.

    Raises:
        TokenizerError: a byte of the pretokens is not a piece, or a piece has more than 255 bytes.
    """
    longest = int(lengths_of(pieces).max(initial=0))
    if longest > _LONGEST:
        raise TokenizerError(f"a piece has {longest} bytes: a lattice holds pieces of at most {_LONGEST}")
    offsets, data = byte_buffers(counts.pretokens)
    data, offsets = data[offsets[0] : offsets[-1]], offsets - offsets[0]
    units, slot_pieces = hashed_trie(pieces)
    longest_piece_at = np.empty(len(data), np.int32)
    parents = np.full(len(pieces), NO_PIECE, np.int32)
    _lattice_kernels.longest_prefixes(*byte_buffers(pieces), units, slot_pieces, parents)
    lattices = Lattices(
        offsets=offsets,
        frequencies=counts.frequencies,
        longest_piece_at=longest_piece_at,
        prefix_links=packed_links(parents, lengths_of(pieces)),
    )
    map_threads(
        lambda block: _lattice_kernels.longest_pieces(offsets, data, *block, units, slot_pieces, longest_piece_at),
        lattices.blocks(),
        num_threads,
    )
    if len(longest_piece_at) and longest_piece_at.min() == NO_PIECE:
        value = int(data[np.argmin(longest_piece_at)])
        raise TokenizerError(
            f"byte {value} occurs in the text and is not a piece: add it, so that the text has a lattice"
        )
    return lattices


def packed_links(parents: Int32s, lengths: Int32s | Int64s) -> Int32s:
    """`Lattices.prefix_links` of pieces with these longest prefixes (`NO_PIECE` if there is none) and lengths."""
    prefix_links: Int32s = parents.astype(np.int32) << 8 | lengths.astype(np.int32)
    return prefix_links
