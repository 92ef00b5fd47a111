"""Where our ids and SentencePiece's differ, and whether its sums of 32 bits decide it.

SentencePiece searches as we do, but adds a text's log probabilities as float32, from the text's beginning on. Some ten
thousand bytes in, the sum's last bit is worth more than many a difference between two segmentations. So for each
pretoken that came out different, two questions follow. Is ours no worse, its log probabilities added as float64? And
does the same search, adding as float32 to the sum that SentencePiece had reached there, end in what SentencePiece gave?
With two yes the difference is explained.

Source: SentencePiece 0.2.3, `Model::EncodeOptimized` in unigram_model.cc: the order of trial, float32, and a sum that
begins anew once it is beyond 100,000.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from finpile_tokenizer import Vocabulary
from finpile_tokenizer.arrays.buffers import Int64s, lengths_of

Float32s: TypeAlias = npt.NDArray[np.float32]

_LEAST_SUM = -100_000
"""A sum below is subtracted from all sums that the search still needs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Differences:
    """Counts; they add up."""

    num_units: int
    num_units_differ: int
    """Texts that SentencePiece was given one by one, of which some pretoken differs."""
    num_pretokens: int
    num_differ: int
    num_explained: int
    """Differing pretokens of which its sums decide."""
    num_ties: int
    """Among those, pretokens whose two segmentations have equal float64 sums."""

    def __add__(self, other: Differences) -> Differences:
        names = self.__dataclass_fields__
        return Differences(**{name: a + b for name, a, b in zip(names, astuple(self), astuple(other), strict=True)})


class Float32Search:
    """SentencePiece's search, slow and with its arithmetic."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.piece_bytes = lengths_of(vocabulary.pieces)
        self.log_probs = vocabulary.log_probs
        self.scores: Float32s = vocabulary.log_probs.astype(np.float32)
        self.pieces: list[bytes] = vocabulary.pieces.to_pylist()
        self._ids = {piece: index for index, piece in enumerate(self.pieces)}
        self._longest = int(self.piece_bytes.max())
        # No place that a piece can reach lies further below the best path than single bytes up to there would.
        self._far_from_least = _LEAST_SUM - self._longest * float(self.scores.min())

    def run(self, pretoken: bytes, score: np.float32) -> tuple[list[int], np.float32, bool]:
        """The ids, the sum at the end, and whether sums began anew, if `score` was reached at the pretoken's start."""
        sums = np.full(len(pretoken) + 1, -np.inf, np.float32)
        sums[0], last, anew = score, [-1] * len(sums), False
        for start in range(len(pretoken)):
            if sums[start] < _LEAST_SUM:  # finite: every byte is a piece, so every place is reached before it is left
                sums[start:] -= sums[start]
                anew = True
            for stop in range(start + 1, min(start + self._longest, len(pretoken)) + 1):
                index = self._ids.get(pretoken[start:stop])
                if index is not None and sums[start] + self.scores[index] > sums[stop]:
                    sums[stop], last[stop] = sums[start] + self.scores[index], index
        return self._way_back(last), sums[-1], anew

    def sums_before(self, pretokens: list[bytes], ids: Int64s, first_ids: Int64s) -> Float32s:
        """The sum that SentencePiece has reached at each pretoken of a text to which it gave `ids`.

        `first_ids` says which of the ids is each pretoken's first. Sums along the ids are all there is to it, but for
        the places where they begin anew, which need not be places between ids: there, the search is run.
        """
        reached = np.zeros(len(pretokens), np.float32)
        pretoken, score = 0, np.float32(0)
        while pretoken < len(pretokens):
            origin = first_ids[pretoken]
            along = np.cumsum(np.concatenate([[score], self.scores[ids[origin:]]]), dtype=np.float32)
            at_edges = along[np.append(first_ids[pretoken:], len(ids)) - origin]
            near = np.flatnonzero(at_edges[1:] < self._far_from_least)
            num_far = int(near[0]) if len(near) else len(at_edges) - 1
            reached[pretoken : pretoken + num_far] = at_edges[:num_far]
            pretoken, score, anew = pretoken + num_far, at_edges[num_far], False
            while pretoken < len(pretokens) and not anew:
                reached[pretoken] = score
                _, score, anew = self.run(pretokens[pretoken], score)
                pretoken += 1
        return reached

    def _way_back(self, last: list[int]) -> list[int]:
        ids: list[int] = []
        stop = len(last) - 1
        while stop > 0:
            ids.append(last[stop])
            stop -= len(self.pieces[last[stop]])
        return ids[::-1]


def differences(
    search: Float32Search, text: bytes, ours: Int64s, theirs: Int64s, pretoken_starts: Int64s, unit_starts: Int64s
) -> Differences:
    """Compares two segmentations of `text`, which is a text after the other.

    The starts are byte positions, ascending from 0; `unit_starts` are those of the texts that SentencePiece was given
    one by one, each also a pretoken's.
    """
    our_firsts = _first_ids(ours, search.piece_bytes, pretoken_starts)
    their_firsts = _first_ids(theirs, search.piece_bytes, pretoken_starts)
    differing = _differing(search, ours, theirs, pretoken_starts)
    first_pretokens = np.append(np.searchsorted(pretoken_starts, unit_starts), len(pretoken_starts))
    units = np.searchsorted(first_pretokens, differing, side="right") - 1
    edges = np.append(pretoken_starts, len(text))
    explained = ties = 0
    for unit in np.unique(units).tolist():
        low, high = first_pretokens[unit : unit + 2].tolist()
        pretokens = [text[edges[at] : edges[at + 1]] for at in range(low, high)]
        begin, end = their_firsts[[low, high]]
        before = search.sums_before(pretokens, theirs[begin:end], their_firsts[low:high] - begin)
        for at in differing[units == unit].tolist():
            mine, other = ours[slice(*our_firsts[at : at + 2])], theirs[slice(*their_firsts[at : at + 2])]
            advantage = _sum(search.log_probs[mine]) - _sum(search.log_probs[other])
            found, _, _ = search.run(pretokens[at - low], before[at - low])
            explained += advantage >= 0 and found == other.tolist()
            ties += advantage == 0 and found == other.tolist()
    return Differences(
        num_units=len(unit_starts),
        num_units_differ=len(np.unique(units)),
        num_pretokens=len(pretoken_starts),
        num_differ=len(differing),
        num_explained=explained,
        num_ties=ties,
    )


def _differing(search: Float32Search, ours: Int64s, theirs: Int64s, pretoken_starts: Int64s) -> Int64s:
    """The pretokens in which one side has an id at a place where the other has not."""
    num_ids = len(search.pieces)
    keys = [_starts(ids, search.piece_bytes) * num_ids + ids for ids in (ours, theirs)]
    places = np.setxor1d(*keys, assume_unique=True) // num_ids
    found: Int64s = np.unique(np.searchsorted(pretoken_starts, places, side="right") - 1)
    return found


def _first_ids(ids: Int64s, piece_bytes: Int64s, pretoken_starts: Int64s) -> Int64s:
    """Which id is the first of each pretoken, and the number of ids."""
    return np.append(np.searchsorted(_starts(ids, piece_bytes), pretoken_starts), len(ids))


def _starts(ids: Int64s, piece_bytes: Int64s) -> Int64s:
    lengths = piece_bytes[ids]
    starts: Int64s = np.cumsum(lengths) - lengths
    return starts


def _sum(log_probs: npt.NDArray[np.float64]) -> float:
    """From left to right, as our encoder adds."""
    return float(np.cumsum(log_probs)[-1])
