"""The loss on the whole held-out set, by source: the validation curve of BloombergGPT §4.

A sequence is cut as in training, and each of its tokens but the first is predicted, so the loss compares with that of
training. Padding at the end of a source is not scored.
"""

# ruff: noqa: N806, N812 (names end in the axes of their tensors; torch's functional module is F)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from finpile import storage
from finpile.errors import InputError
from finpile.layout import row_of
from finpile.lm.model import Decoder
from finpile.tokens.store import SHARD_SUFFIX, TokenMeta, TokenStore


@dataclass(frozen=True, slots=True)
class HeldoutRecord:
    """The held-out loss after a step. Has no time, so that equal runs write equal logs."""

    step: int
    tokens: int
    """Training tokens so far."""
    loss: float
    """Nats per token, over all sources."""
    num_tokens: int
    """Held-out tokens that were predicted."""
    sources: dict[str, float]
    """Nats per token by `dataset/source`."""


@dataclass(frozen=True, slots=True)
class HeldoutSet:
    """The held-out token shards of a build, as sequences of one length."""

    stores: dict[str, TokenStore]
    """By `dataset/source`."""
    sequence_length: int

    @classmethod
    def open(cls, folder: str, training: TokenMeta, sequence_length: int) -> HeldoutSet:
        """Opens the shards of each source.

        Raises: InputError if there are none, or if they are of another tokenizer or length than the training shards.
        """
        shards = [path for path in storage.list_files(folder) if path.endswith(SHARD_SUFFIX)]
        folders = sorted({path.rpartition("/")[0] for path in shards})
        if not folders or not all("source=" in path for path in folders):
            raise InputError(f"{folder}: expected held-out token shards by source: OUT/tokens/split=heldout of a build")
        stores = {}
        for path in folders:
            store = TokenStore.open(storage.join(folder, path))
            if store.meta != training:
                raise InputError(
                    f"{folder}/{path}: shards of {store.meta}, those of training are {training}; take both of one build"
                )
            stores["/".join(row_of(f"{path}/"))] = store
        return cls(stores, sequence_length)

    def sums(
        self, model: Decoder, *, batch_size: int, bfloat16: bool = False, rank: int = 0, world_size: int = 1
    ) -> dict[str, tuple[float, int]]:
        """The sum of nats and the number of predicted tokens of each source, over the sequences of one rank.

        Leaves the model in evaluation mode. Equal for any number of ranks up to the rounding of sums.
        """
        model.eval()
        return {
            name: self._sums(model, store, batch_size, bfloat16, range(rank, self._num_sequences(store), world_size))
            for name, store in self.stores.items()
        }

    def _num_sequences(self, store: TokenStore) -> int:
        return len(store) * (store.sequence_length // self.sequence_length)

    @torch.no_grad()
    def _sums(
        self, model: Decoder, store: TokenStore, batch_size: int, bfloat16: bool, sequences: range
    ) -> tuple[float, int]:
        nats, count = 0.0, 0
        device = model.embedding.weight.device
        for start in range(0, len(sequences), batch_size):
            ids, lengths = self._batch(store, sequences[start : start + batch_size])
            ids_BT = torch.from_numpy(ids).to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
                logits_BTV = model(ids_BT)
            nats_BT = F.cross_entropy(logits_BTV[:, :-1].float().transpose(1, 2), ids_BT[:, 1:], reduction="none")
            scored_BT = np.arange(1, ids.shape[1])[None, :] < lengths[:, None]
            nats += float((nats_BT.double().cpu().numpy() * scored_BT).sum())
            count += int(scored_BT.sum())
        return nats, count

    def _batch(self, store: TokenStore, sequences: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Ids [B, sequence_length] and the tokens of each sequence that are no padding [B]."""
        num_pieces = store.sequence_length // self.sequence_length
        rows, pieces = np.divmod(np.asarray(sequences), num_pieces)
        ids = store.batch(sequences, self.sequence_length)
        lengths = np.array([store.length_of(int(row)) for row in rows]) - pieces * self.sequence_length
        return ids, lengths


def heldout_record(step: int, tokens: int, sums: dict[str, tuple[float, int]]) -> HeldoutRecord:
    """The record of these sums; a source of which no token is predicted is left out."""
    counted = {name: (nats, count) for name, (nats, count) in sums.items() if count}
    total = sum(count for _, count in counted.values())
    if not total:
        raise InputError("the held-out token shards have no token to predict: hold out more, or leave `heldout` out")
    losses = {name: nats / count for name, (nats, count) in counted.items()}
    return HeldoutRecord(step, tokens, sum(nats for nats, _ in counted.values()) / total, total, losses)


def source_names(records: Sequence[HeldoutRecord]) -> Iterator[str]:
    """All sources of the records, once each, in order."""
    return iter(dict.fromkeys(name for record in records for name in record.sources))
