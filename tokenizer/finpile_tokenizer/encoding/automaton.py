"""The encoder's automaton: at each byte of a text, the pieces that can end a best segmentation there.

It is Aho and Corasick's over the trie of the pieces. Its state after a byte is the longest end of the pretoken so far
that begins some piece; all pieces that end here are ends of it, so a list per state has them all. One step a byte, or
two where the state falls back, takes the place of a walk down the trie from every position.

**Which pieces a list leaves out.** Piece p, which ends state u and begins at byte i > 0 of it, follows some piece q. If
`q p` as a text has a better segmentation than into q and p, then p after q is never the best end. Where that holds for
every q that can be best before p, p is left out. Such a q ends the state u[:i]: it is one of that state's list. Or it
is longer than u[:i]; where such a piece exists, p stays. (And a p that has itself a better segmentation is left out
everywhere.) On English text this leaves two pieces of three.

**Why that changes no id.** "Better" here means: by more than what rounding can do. A best score is a float64 sum of at
most one term a byte, so an addition errs by at most 2^-53 B S, where S is the largest score by magnitude and B the
pretoken's bytes. A choice compares sums that differ in at most 2 L terms, L being the longest piece's bytes; so with a
margin of 2^-53 B S (2 L + 4), what is left out loses in float64 too, and never by a tie. B is taken as 2^36.

A unit is 64 bits, see `_automaton_kernels`; what failure links are and how nodes find their slots, there and in `trie`.

Source: Aho and Corasick, Communications of the ACM 18 (1975), 333-340.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, UInt8s, UInt32s, UInt64s, lengths_of
from finpile_tokenizer.encoding import _automaton_kernels, _encoder_kernels
from finpile_tokenizer.encoding._automaton_kernels import CLASS_SHIFT, MAX_PIECE_BYTES, MAX_PIECES
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.pretokens.pretokenizer import PRETOKEN_CLASSES
from finpile_tokenizer.trie.double_array import Trie, build_trie

_NUM_BYTES = 256
#: B of the margin, in bytes: pretokens up to this length are encoded exactly.
_LONGEST_PRETOKEN = 1 << 36
_HALF_ULP = 2.0**-53
#: Positions whose best scores are remembered, at least: see `_NO_CHOICE_LENGTH` of the kernels.
_MIN_RING = 16

#: The class of each byte where a unit has that of its label.
KINDS: UInt64s = PRETOKEN_CLASSES.astype(np.uint64) << CLASS_SHIFT


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Automaton:
    """What the encoder reads, by slot and by choice."""

    units: UInt64s
    """By slot: base, fall-back, class and label."""
    firsts: UInt32s
    """By slot: where in `choices` its list of pieces begins; 0 is the empty list."""
    choices: Float64s
    """Two float64s for each choice: its score; its piece and the next choice. Pieces of one byte are in no list."""
    byte_scores: Float64s
    """The scores of the pieces of one byte, whose ids are their bytes."""
    longest: int
    """The bytes of the longest piece."""

    def encode(self, offsets: Int64s, data: UInt8s, first: int, last: int) -> tuple[Int32s, Int64s]:
        """The ids of the documents `first` to `last` of an Arrow array of texts, and how many each has."""
        ring = np.zeros(max(_MIN_RING, 1 << self.longest.bit_length()))
        ids, counts = _encoder_kernels.encode_documents(
            offsets,
            data,
            first,
            last,
            KINDS,
            self.units,
            self.firsts,
            self.choices,
            self.choices.view(np.uint32),
            self.byte_scores,
            ring,
            self.longest,
        )
        return ids, counts


def build_automaton(pieces: pa.LargeBinaryArray, log_probs: Float64s) -> Automaton:
    """The automaton of the pieces, whose ids are their positions in the array.

    Raises:
        TokenizerError: a piece is empty or stands twice, the first 256 are not the bytes, a log probability is not
            finite, or there are too many pieces, or too long ones, for the bits that there are.
    """
    lengths = lengths_of(pieces)
    _check(pieces, lengths, log_probs)
    scores = np.ascontiguousarray(log_probs, np.float64)
    trie = build_trie(pieces)
    order = _automaton_kernels.nodes_by_depth(trie.depths)
    fails = _automaton_kernels.link_suffixes(order, trie.parents, trie.labels, trie.slots, trie.bases, trie.num_slots)
    firsts, of_choice, following = _automaton_kernels.share_choices(
        *_winners(trie, order, fails, lengths, scores), lengths
    )
    by_slot = np.zeros(trie.num_slots, np.uint32)
    by_slot[trie.slots] = 2 * firsts
    return Automaton(
        units=_automaton_kernels.pack_units(
            order, trie.labels, trie.slots, trie.bases, fails, trie.num_slots, PRETOKEN_CLASSES
        ),
        firsts=by_slot,
        choices=_automaton_kernels.pack_choices(of_choice, following, lengths, scores),
        byte_scores=scores[:_NUM_BYTES].copy(),
        longest=int(lengths.max()),
    )


def _winners(trie: Trie, order: Int32s, fails: Int32s, lengths: Int64s, scores: Float64s) -> tuple[Int64s, Int32s]:
    longest, shorter, inside = _automaton_kernels.list_pieces(order, fails, trie.pieces, len(lengths))
    margin = _HALF_ULP * _LONGEST_PRETOKEN * float(np.abs(scores).max()) * (2 * int(lengths.max()) + 4)
    starts, winners = _automaton_kernels.find_winners(trie.depths, longest, shorter, inside, lengths, scores, margin)
    return starts, winners


def _check(pieces: pa.LargeBinaryArray, lengths: Int64s, log_probs: Float64s) -> None:
    if pieces[:_NUM_BYTES].to_pylist() != [bytes([value]) for value in range(_NUM_BYTES)]:
        raise TokenizerError(
            "a vocabulary must hold all 256 bytes, by value, as its first pieces, so that any text can be encoded"
        )
    if not np.isfinite(log_probs).all():
        bad = int(np.flatnonzero(~np.isfinite(log_probs))[0])
        raise TokenizerError(f"the log probability of id {bad} is {log_probs[bad]}: expected a finite number")
    if lengths.max() > MAX_PIECE_BYTES:
        raise TokenizerError(
            f"id {lengths.argmax()} has {lengths.max()} bytes: the encoder takes pieces of up to {MAX_PIECE_BYTES}"
        )
    if len(pieces) > MAX_PIECES:
        raise TokenizerError(f"there are {len(pieces)} pieces: the encoder takes up to {MAX_PIECES}")
