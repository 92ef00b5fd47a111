"""The sequences of each training step, as a function of (seed, step): a resumed run needs no saved state for them.

A batch is the same for any number of processes: each takes a run of its sequences.

Every epoch is a permutation of all sequences. A Feistel network, keyed by seed and epoch, maps each position to its
sequence in constant memory for any number of sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from finpile import splitmix
from finpile.errors import ConfigError, InputError
from finpile.tokens.store import TokenStore
from finpile_trainer.training.presets import BatchConfig

#: Rounds of the network; four give a pseudo-random permutation (Luby and Rackoff 1988), two more cost almost nothing.
_ROUNDS = 6
_WORD = (1 << 64) - 1

#: Positions of an epoch whose sequences are computed together, and kept for the steps that follow.
_BLOCK = 1 << 14

Words = npt.NDArray[np.uint64]


def permutation(positions: npt.NDArray[np.int64], size: int, *, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """The image of each of `positions` (0 .. size-1) under the epoch's permutation of 0 .. size-1.

    >>> sorted(permutation(np.arange(5), 5, seed=1, epoch=0).tolist())
    [0, 1, 2, 3, 4]
    """
    half_bits = max(1, ((size - 1).bit_length() + 1) // 2)
    values = _feistel(positions.astype(np.uint64), half_bits, seed, epoch)
    while (outside := values >= size).any():  # follow the cycle until it is inside; the domain is below 4 * size
        values[outside] = _feistel(values[outside], half_bits, seed, epoch)
    return values.astype(np.int64)


def _feistel(values: Words, half_bits: int, seed: int, epoch: int) -> Words:
    """A permutation of the numbers with 2 * half_bits bits."""
    mask = np.uint64((1 << half_bits) - 1)
    left, right = values >> np.uint64(half_bits), values & mask
    for number in range(_ROUNDS):
        key = _mix(_mix(np.array([seed], np.uint64)) + np.uint64(epoch * _ROUNDS + number & _WORD))
        left, right = right, left ^ (_mix(right ^ key) & mask)
    return left << np.uint64(half_bits) | right


def _mix(words: Words) -> Words:
    """The output of SplitMix64 after each state; arithmetic wraps."""
    return splitmix.mix(words + splitmix.GOLDEN)


@lru_cache(maxsize=4)
def _order(size: int, seed: int, epoch: int, block: int) -> npt.NDArray[np.int64]:
    """The sequences at the positions of a block of an epoch."""
    positions = np.arange(block * _BLOCK, min((block + 1) * _BLOCK, size), dtype=np.int64)
    return permutation(positions, size, seed=seed, epoch=epoch)


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The batches of a run over a token store."""

    store: TokenStore
    schedule: BatchConfig
    sequence_length: int
    """Tokens of a training sequence; a divisor of the stored length, to which stored sequences are cut."""
    seed: int
    skips: tuple[tuple[int, int], ...] = ()
    """Pairs of a step and the sequences that are skipped before its batch."""

    def __post_init__(self) -> None:
        stored = self.store.sequence_length
        if self.sequence_length < 2 or stored % self.sequence_length:
            raise ConfigError(
                f"sequence_length is {self.sequence_length}: expected {stored}, as in the token shards, or a divisor"
            )
        if not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed is {self.seed}: expected 0 to 2^63 - 1")
        if not len(self.store):
            raise InputError("the token shards have no sequence: the corpus is shorter than one sequence_length")

    @property
    def num_sequences(self) -> int:
        """Training sequences of one epoch."""
        return len(self.store) * (self.store.sequence_length // self.sequence_length)

    def indices(self, step: int, rank: int = 0, world_size: int = 1) -> npt.NDArray[np.int64]:
        """The training sequences of step 0, 1, ..., in order; an epoch can end within a step.

        Of `world_size` processes, process `rank` takes its part: as many as the others or one less.
        """
        start = self.schedule.before(step) + sum(count for first, count in self.skips if first <= step)
        size = self.schedule.at(step)
        position, end = start + size * rank // world_size, start + size * (rank + 1) // world_size
        parts = [np.empty(0, np.int64)]
        while position < end:
            epoch, within = divmod(position, self.num_sequences)
            block, first = divmod(within, _BLOCK)
            parts.append(_order(self.num_sequences, self.seed, epoch, block)[first : first + end - position])
            position += len(parts[-1])
        return np.concatenate(parts)

    def batch(self, step: int, rank: int = 0, world_size: int = 1) -> Tensor:
        """The tokens of a step, or the part of one process, int64 [B, sequence_length]."""
        return torch.from_numpy(self.store.batch(self.indices(step, rank, world_size), self.sequence_length))

    def padding(self, step: int, rank: int = 0, world_size: int = 1) -> Tensor:
        """Whether a token of `batch` is padding, as at the end of the shards of a snapshot; bool, as `batch`."""
        lengths = self.store.lengths(self.indices(step, rank, world_size), self.sequence_length)
        return torch.from_numpy(np.arange(self.sequence_length) >= lengths[:, None])
