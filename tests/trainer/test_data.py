"""Every epoch shows each sequence once, in an order that (seed, step) alone decide."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from finpile_trainer.training.data import TrainingData, permutation
from finpile_trainer.training.presets import BatchConfig
from hypothesis import given
from hypothesis import strategies as st

from finpile.errors import ConfigError, InputError
from finpile.tokens.store import TokenStore, write_token_shard

#: The order of seed 0, epoch 0, ten sequences. A change of it would make checkpoints resume on other data.
GOLDEN = [2, 9, 6, 1, 8, 7, 4, 3, 0, 5]


def store(folder: Path, count: int, length: int = 8) -> TokenStore:
    """Sequence s holds the ids length * s, length * s + 1, ..."""
    ids = np.arange(count * length).reshape(count, length)
    write_token_shard(f"{folder}/a.arrow", ids, vocab_size=5000, eot_id=4999, tokenizer="")
    return TokenStore.open(str(folder))


@given(size=st.integers(1, 600), seed=st.integers(0, 2**63 - 1), epoch=st.integers(0, 10**6))
def test_an_epoch_is_a_permutation(size: int, seed: int, epoch: int) -> None:
    order = permutation(np.arange(size), size, seed=seed, epoch=epoch)
    assert sorted(order.tolist()) == list(range(size))


def test_positions_are_mapped_one_by_one_however_many_there_are() -> None:
    huge = 346_000_000  # sequences of 709 B tokens
    positions = np.array([0, 1, huge - 1])
    together = permutation(positions, huge, seed=3, epoch=1)
    alone = [permutation(positions[i : i + 1], huge, seed=3, epoch=1)[0] for i in range(3)]
    assert together.tolist() == alone
    assert len(set(alone)) == 3
    assert max(alone) < huge


def test_every_place_is_equally_likely() -> None:
    size, epochs = 7, 1500
    counts = np.zeros((size, size))
    for epoch in range(epochs):
        counts[np.arange(size), permutation(np.arange(size), size, seed=11, epoch=epoch)] += 1
    expected = epochs / size
    assert ((counts - expected) ** 2 / expected).sum() < 80  # chi-square of 36 degrees of freedom: 80 at p = 3e-5


def test_the_order_never_changes_between_versions() -> None:
    assert permutation(np.arange(10), 10, seed=0, epoch=0).tolist() == GOLDEN
    assert permutation(np.arange(10), 10, seed=1, epoch=0).tolist() != GOLDEN
    assert permutation(np.arange(10), 10, seed=0, epoch=1).tolist() != GOLDEN


def test_batches_of_an_epoch_hold_every_sequence_once(tmp_path: Path) -> None:
    schedule = BatchConfig(size=4, ramp=((3, 2),))  # 2 2 2 4 4 4 4 ...: ends inside a step
    data = TrainingData(store(tmp_path, 11), schedule, 8, seed=5)
    seen = np.concatenate([data.indices(step) for step in range(8)])
    assert [len(data.indices(step)) for step in range(5)] == [2, 2, 2, 4, 4]
    assert sorted(seen[:11]) == sorted(seen[11:22]) == list(range(11))
    assert seen[:11].tolist() != seen[11:22].tolist()


def test_cut_sequences_cover_the_stored_ones(tmp_path: Path) -> None:
    data = TrainingData(store(tmp_path, 6, length=8), BatchConfig(size=3), 4, seed=0)
    assert data.num_sequences == 12
    rows = [tuple(row) for step in range(4) for row in data.batch(step).tolist()]
    assert Counter(rows) == Counter(tuple(range(start, start + 4)) for start in range(0, 48, 4))


def test_wrong_lengths_and_empty_stores_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="sequence_length is 5: expected 8"):
        TrainingData(store(tmp_path / "a", 2), BatchConfig(size=1), 5, seed=0)
    with pytest.raises(InputError, match="have no sequence"):
        TrainingData(store(tmp_path / "b", 0), BatchConfig(size=1), 8, seed=0)
    with pytest.raises(ConfigError, match="seed is -1"):
        TrainingData(store(tmp_path / "c", 2), BatchConfig(size=1), 8, seed=-1)
