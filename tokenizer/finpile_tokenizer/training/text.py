"""The trainer's view of the text that a model is fitted to: two functions of a state.

`InMemoryText` computes them from lattices in memory. Results of parts of a text add up, so they can also be computed on
many machines.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from finpile_tokenizer.arrays.buffers import Float64s, Int64s
from finpile_tokenizer.training.em import Expectation, expectation, scale_for
from finpile_tokenizer.training.lattice import Lattices
from finpile_tokenizer.training.prune import best_path_counts, removal_losses
from finpile_tokenizer.training.state import TrainingState


class TrainingText(Protocol):
    """A text of `num_bytes`."""

    @property
    def num_bytes(self) -> int: ...

    def expectation(self, state: TrainingState) -> Expectation:
        """The expected number of uses of each of the state's pieces."""

    def removal_losses(self, state: TrainingState) -> Float64s:
        """The loss of the text's likelihood without each of the state's pieces: see `prune.removal_losses`."""


class InMemoryText:
    """A text whose lattices are in memory. States must be passed in the order of training: no dropped piece returns."""

    def __init__(self, lattices: Lattices, places: Int64s, num_threads: int = 1) -> None:
        self.num_bytes = lattices.num_bytes
        self._lattices = lattices
        self._places = places
        self._numbers = np.arange(len(lattices.prefix_links))
        self._num_threads = num_threads

    def expectation(self, state: TrainingState) -> Expectation:
        """See `TrainingText`."""
        self._follow(state)
        scale = scale_for(self.num_bytes)
        return expectation(self._lattices, state.log_probs, scale=scale, num_threads=self._num_threads)

    def removal_losses(self, state: TrainingState) -> Float64s:
        """See `TrainingText`."""
        self._follow(state)
        path_counts = best_path_counts(self._lattices, state.log_probs, self._num_threads)
        return removal_losses(self._lattices, self._places, state.log_probs, path_counts, self._num_threads)

    def _follow(self, state: TrainingState) -> None:
        """Drops the pieces that the state lacks."""
        if len(state.numbers) == len(self._numbers):
            return
        kept = np.isin(self._numbers, state.numbers, assume_unique=True)
        self._lattices = self._lattices.keep(kept, self._num_threads)
        self._numbers, self._places = self._numbers[kept], self._places[kept]
