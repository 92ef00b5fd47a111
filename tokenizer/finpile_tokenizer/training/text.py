"""The trainer's view of the text that a model is fitted to: two functions of a state.

`InMemoryText` computes them from lattices in memory. Results of parts of a text add up, so they can also be computed on
many machines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from finpile_tokenizer.arrays.buffers import Float64s, Int64s, lengths_of
from finpile_tokenizer.training.em import Expectation, expectation, nats_per_byte, scale_for
from finpile_tokenizer.training.lattice import Lattices
from finpile_tokenizer.training.prune import best_path_counts, removal_losses
from finpile_tokenizer.training.state import TrainingState

_Number = TypeVar("_Number", np.int64, np.float64)


class TrainingText(Protocol):
    """A text of `num_bytes`."""

    @property
    def num_bytes(self) -> int: ...

    def expectation(self, state: TrainingState) -> Expectation:
        """The expected number of uses of each of the state's pieces."""

    def removal_losses(self, state: TrainingState) -> Float64s:
        """The loss of the text's likelihood without each of the state's pieces: see `prune.removal_losses`."""


class InMemoryText:
    """A text whose lattices are in memory. States must be passed in the order of training: no dropped piece returns.

    `order` lists all pieces so that those with common prefixes are neighbours: the edges of a lattice are then near
    each other in memory.
    """

    def __init__(self, lattices: Lattices, places: Int64s, order: Int64s, num_threads: int = 1) -> None:
        self.num_bytes = lattices.num_bytes
        self._lattices = lattices.take(order, num_threads)
        self._places = places[order]
        self._numbers = order
        self._in_state = order
        """For each piece of the lattices, its place in the state."""
        self._num_threads = num_threads

    def expectation(self, state: TrainingState) -> Expectation:
        """See `TrainingText`."""
        log_probs = self._follow(state)
        tilt = nats_per_byte(state.log_probs, lengths_of(state.pieces)[state.numbers])
        scale = scale_for(self.num_bytes)
        found = expectation(self._lattices, log_probs, scale=scale, tilt=tilt, num_threads=self._num_threads)
        return replace(found, counts=self._as_in_state(found.counts))

    def removal_losses(self, state: TrainingState) -> Float64s:
        """See `TrainingText`."""
        log_probs = self._follow(state)
        path_counts = best_path_counts(self._lattices, log_probs, self._num_threads)
        losses = removal_losses(self._lattices, self._places, log_probs, path_counts, self._num_threads)
        return self._as_in_state(losses)

    def _follow(self, state: TrainingState) -> Float64s:
        """Drops the pieces that the state lacks; returns the log probabilities of those left."""
        if len(state.numbers) < len(self._numbers):
            places = np.full(len(state.pieces), -1)
            places[state.numbers] = np.arange(len(state.numbers))
            self._in_state = places[self._numbers]
            left = np.flatnonzero(self._in_state >= 0)
            self._lattices = self._lattices.take(left, self._num_threads)
            self._numbers, self._places = self._numbers[left], self._places[left]
            self._in_state = self._in_state[left]
        return state.log_probs[self._in_state]

    def _as_in_state(self, values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        ordered = np.empty_like(values)
        ordered[self._in_state] = values
        return ordered
