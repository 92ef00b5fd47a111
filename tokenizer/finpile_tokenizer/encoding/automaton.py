"""The encoder's automaton: at each byte of a text, the pieces that can end a best segmentation there.

It is Aho and Corasick's over the trie of the pieces. Its state after a byte is the longest suffix of the pretoken so
far that is a prefix of some piece; all pieces that end here are suffixes of it, so one list per state has them all. One
step per byte, or two if the state falls back, replaces a walk down the trie from every position.

**Which pieces a list leaves out.** Piece p, which ends state u and begins at byte i > 0 of it, follows some piece q. If
`q p` as a text has a better segmentation than into q and p, then p after q is never the best end. If this is true for
every q that can be best before p, p is left out. Such a q ends the state u[:i]: it is one of that state's list. Or it
is longer than u[:i]; if such a piece exists, p is kept. (And a p that has itself a better segmentation is left out
everywhere.) On English text this leaves two pieces of three.

**Why this changes no id.** "Better" means: by more than any rounding. A best score is a float64 sum of at
most one term a byte, so an addition errs by at most 2^-53 B S, where S is the largest score by magnitude and B the
pretoken's bytes. A choice compares sums that differ in at most 2 L terms, L being the longest piece's bytes; so with a
margin of 2^-53 B S (2 L + 4), a piece left out loses in float64 too, and never by a tie. B is taken as 2^36.

`_automaton_kernels` describes the 64 bits of a unit and the failure links; `trie.double_array` the slots of nodes.

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
#: Choice 0 ends every list and is never chosen. Any length serves that does not depend on the last best score.
_NO_CHOICE_LENGTH = 8
#: Positions whose best scores are kept, at least: more than `_NO_CHOICE_LENGTH`.
_MIN_RING = 16

#: The class of each byte, at the bits that hold the class of a unit's label.
KINDS: UInt64s = PRETOKEN_CLASSES.astype(np.uint64) << CLASS_SHIFT


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Automaton:
    """The tables that the encoder reads, by slot and by choice."""

    units: UInt64s
    """By slot: base, fall-back, class and label."""
    firsts: UInt32s
    """By slot: the start in `choices` of its list of pieces; 0 is the empty list."""
    choices: Float64s
    """Two float64s for each choice: its score; its piece and the next choice. Pieces of one byte are in no list."""
    byte_scores: Float64s
    """The scores of the pieces of one byte, whose ids are their bytes."""
    longest: int
    """The bytes of the longest piece."""

    def encode(self, offsets: Int64s, data: UInt8s, first: int, last: int) -> tuple[Int32s, Int64s]:
        """The ids of the documents `first` to `last` of an Arrow array of texts, and how many each has."""
        ring = np.zeros(max(_MIN_RING, 1 << self.longest.bit_length()))
        edges = np.empty(_encoder_kernels.BLOCK_BYTES + _encoder_kernels.NUM_LANES + 1, np.int64)
        counts = np.zeros(last - first, np.int64)
        ids = np.empty(offsets[last] - offsets[first], np.int32)
        total = _encoder_kernels.encode_documents(
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
            edges,
            np.empty(len(edges), np.uint64),
            np.empty(_encoder_kernels.LANE_NUMBERS, np.uint64),
            np.zeros(1, np.uint32),
            counts,
            ids,
        )
        return ids[:total].copy(), counts  # a view would keep four bytes for each byte of text


def build_automaton(pieces: pa.LargeBinaryArray, log_probs: Float64s) -> Automaton:
    """The automaton of the pieces, whose ids are their positions in the array.

    Raises:
        TokenizerError: a piece is empty or occurs twice, the first 256 are not the bytes, a log probability is not
            finite, or there are too many pieces, or too long ones, for the bits that there are.
    """
    lengths = lengths_of(pieces)
    _check(pieces, lengths, log_probs)
    return automaton_of_trie(build_trie(pieces), lengths, np.ascontiguousarray(log_probs, np.float64))


def automaton_of_trie(trie: Trie, lengths: Int64s, scores: Float64s) -> Automaton:
    """The automaton of the pieces of a trie, which have these lengths and log probabilities."""
    # Depths fit 16 bits, for which NumPy's stable sort is a radix sort.
    order = np.argsort(trie.depths.astype(np.uint16), kind="stable").astype(np.int32)
    nodes = np.zeros(trie.num_slots, np.int32)
    nodes[trie.slots] = np.arange(len(trie.slots), dtype=np.int32)
    fails = np.zeros(len(order), np.int32)
    _automaton_kernels.link_suffixes(order, trie.parents, trie.labels, nodes, trie.bases, fails)
    firsts, of_choice, following = _shared_choices(*_winners(trie, order, fails, lengths, scores), lengths)
    units = np.zeros(trie.num_slots, np.uint64)
    _automaton_kernels.pack_units(order, trie.labels, trie.slots, trie.bases, fails, PRETOKEN_CLASSES, units)
    by_slot = np.zeros(trie.num_slots, np.uint32)
    by_slot[trie.slots] = 2 * firsts
    return Automaton(
        units=units,
        firsts=by_slot,
        choices=_packed_choices(of_choice, following, lengths, scores),
        byte_scores=scores[:_NUM_BYTES].copy(),
        longest=int(lengths.max()),
    )


def _winners(trie: Trie, order: Int32s, fails: Int32s, lengths: Int64s, scores: Float64s) -> tuple[Int64s, Int32s]:
    longest, shorter = np.full(len(order), -1, np.int32), np.full(len(lengths), -1, np.int32)
    inside = np.zeros(len(order), np.uint8)
    _automaton_kernels.list_pieces(order, fails, trie.pieces, longest, shorter, inside)
    margin = _HALF_ULP * _LONGEST_PRETOKEN * float(np.abs(scores).max()) * (2 * int(lengths.max()) + 4)
    depth_limit = int(trie.depths.max()) + 1
    starts = np.zeros(len(order) + 1, np.int64)
    winners = _automaton_kernels.find_winners(
        trie.depths,
        longest,
        shorter,
        inside,
        lengths,
        scores,
        margin,
        np.zeros((depth_limit, depth_limit)),
        np.zeros(depth_limit, np.int32),
        starts,
        np.zeros(2 * len(order) + depth_limit, np.int32),
    )
    return starts, winners[: starts[-1]].copy()


def _shared_choices(starts: Int64s, winners: Int32s, lengths: Int64s) -> tuple[Int32s, Int32s, Int32s]:
    """`(first choice of each node, piece of each choice, next choice of each)`: equal ends of lists are shared.

    Choice 0 is the end of every list.
    """
    table = np.zeros(max(2, 1 << (2 * len(winners) - 1).bit_length()), np.int32)
    pieces, following = np.zeros(len(winners) + 1, np.int32), np.zeros(len(winners) + 1, np.int32)
    firsts = np.zeros(len(starts) - 1, np.int32)
    total = _automaton_kernels.share_choices(starts, winners, lengths, table, firsts, pieces, following)
    return firsts, pieces[:total].copy(), following[:total].copy()


def _packed_choices(pieces: Int32s, following: Int32s, lengths: Int64s, scores: Float64s) -> Float64s:
    """The table of choices, two float64s each: see `_automaton_kernels.LENGTH_SHIFT`."""
    table = np.zeros((len(pieces), 2), np.float64)
    words = table.view(np.uint32)
    table[:, 0] = scores[pieces]
    words[:, 2] = lengths[pieces].astype(np.uint32) << _automaton_kernels.LENGTH_SHIFT | pieces.astype(np.uint32)
    words[:, 3] = 2 * following
    table[0, 0] = -np.inf
    words[0, 2] = _NO_CHOICE_LENGTH << _automaton_kernels.LENGTH_SHIFT
    words[0, 3] = 0
    return table.reshape(-1)


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
