"""The dataset of PyTorch has each sequence once, in any loader."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from finpile_trainer.model.model import Decoder, ModelConfig, next_token_loss
from finpile_trainer.training.dataset import TokenDataset
from torch.utils.data import DataLoader, DistributedSampler

from finpile.errors import ConfigError
from finpile.tokens.store import write_token_shard


@pytest.fixture
def folder(tmp_path: Path) -> str:
    for number, padding in enumerate((0, 5)):
        ids = np.arange(number * 32, number * 32 + 32).reshape(4, 8)
        write_token_shard(f"{tmp_path}/{number}.arrow", ids, vocab_size=99, eot_id=98, tokenizer="", padding=padding)
    return str(tmp_path)


@pytest.mark.parametrize(("length", "num_workers"), [(8, 0), (4, 0), (4, 2)])
def test_a_loader_gives_each_sequence_once(folder: str, length: int, num_workers: int) -> None:
    dataset = TokenDataset(folder, sequence_length=length)
    # Not a fork: this process has threads of gRPC if it ran tests of Beam before, and gRPC ends such a fork.
    context = "spawn" if num_workers else None
    loader = DataLoader(dataset, batch_size=3, shuffle=True, num_workers=num_workers, multiprocessing_context=context)
    seen = [tuple(row) for batch in loader for row in batch["input_ids"].tolist()]
    assert len(dataset) == 64 // length
    assert Counter(seen) == Counter(tuple(range(begin, begin + length)) for begin in range(0, 64, length))


def test_ranks_share_the_sequences(folder: str) -> None:
    dataset = TokenDataset(folder)
    samplers = [DistributedSampler(dataset, num_replicas=2, rank=rank, seed=4) for rank in range(2)]
    assert sorted(index for sampler in samplers for index in sampler) == list(range(8))


def test_padding_is_no_label(folder: str) -> None:
    whole, cut = TokenDataset(folder), TokenDataset(folder, sequence_length=4)
    assert whole[7]["labels"].tolist() == [56, 57, 58, *[-100] * 5]
    assert cut[14]["labels"].tolist() == [56, 57, 58, -100]
    assert cut[15]["labels"].tolist() == [-100] * 4
    for dataset in (whole, cut):
        assert all(torch.equal(dataset[index]["labels"], dataset[index]["input_ids"]) for index in range(7))


def test_labels_give_the_loss_of_training(folder: str) -> None:
    """With the shift by one that models of transformers apply to labels."""
    batch = next(iter(DataLoader(TokenDataset(folder), batch_size=2)))
    logits = Decoder(ModelConfig(num_layers=1, num_heads=2, hidden_size=8), 99)(batch["input_ids"])
    shifted = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten())
    assert torch.allclose(shifted, next_token_loss(logits, batch["input_ids"]))


def test_wrong_lengths_and_places_are_errors(folder: str) -> None:
    with pytest.raises(ConfigError, match="sequence_length is 3: expected 8"):
        TokenDataset(folder, sequence_length=3)
    with pytest.raises(ConfigError, match="sequence_length is 0: expected 8"):
        TokenDataset(folder, sequence_length=0)
    with pytest.raises(IndexError, match="sequence 8 of 8"):
        TokenDataset(folder)[8]
