"""The loss on the whole held-out set, by source: the validation curve of BloombergGPT §4.

A sequence is cut as in training, and each of its tokens but the first is predicted, so the loss compares with that of
training. Padding at the end of a source is not scored.
"""

# ruff: noqa: N806, N812 (names end in the axes of their tensors; torch's functional module is F)

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from torch.nn import functional as F

from finpile import storage
from finpile.errors import ConfigError, InputError
from finpile.output.layout import row_of
from finpile.tokens.store import SHARD_SUFFIX, TokenMeta, TokenStore
from finpile_trainer.model.model import Decoder


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
class HeldoutProgress:
    """How far a measurement of the held-out loss is."""

    step: int
    """The training step after which it is made."""
    num_done: int
    """Tokens that have been read, about."""
    num_tokens: int
    """Tokens of the measurement."""


@dataclass(frozen=True, slots=True)
class HeldoutSet:
    """The held-out token shards of a build, as sequences of one length, or a sample of these sequences."""

    stores: dict[str, TokenStore]
    """By `dataset/source`."""
    sequence_length: int
    chosen: dict[str, Sequence[int]]
    """The sequences of each store that are measured."""

    @classmethod
    def open(cls, folder: str, training: TokenMeta, sequence_length: int, num_tokens: int | None = None) -> HeldoutSet:
        """Opens the shards of each source; with `num_tokens`, for a sample of about that many tokens.

        The sample has a share of the sequences of each source, at least one, at equal distances from the first to the
        last. It depends on the shards and on `num_tokens` alone.

        Raises: InputError if there are none, or if they are of another tokenizer or length than the training shards.
        """
        shards = [path for path in storage.list_files(folder) if path.endswith(SHARD_SUFFIX)]
        folders = sorted({path.rpartition("/")[0] for path in shards})
        if not folders or not all("source=" in path for path in folders):
            raise InputError(f"{folder}: expected held-out token shards by source: OUT/tokens/split=heldout of a build")
        stores = {}
        training = replace(training, sources=())  # shards of one source do not name it
        for path in folders:
            store = TokenStore.open(storage.join(folder, path))
            if store.meta != training:
                theirs, ours = (asdict(meta) for meta in (store.meta, training))
                other = (f"{key} {theirs[key]} instead of {ours[key]}" for key in ours if theirs[key] != ours[key])
                raise InputError(
                    f"{folder}/{path}: shards with {', '.join(other)}, those of training: take both of one build"
                )
            stores["/".join(row_of(f"{path}/"))] = store
        counts = {name: len(store) * (store.sequence_length // sequence_length) for name, store in stores.items()}
        share = 1.0 if num_tokens is None else num_tokens / sequence_length / max(1, sum(counts.values()))
        return cls(stores, sequence_length, {name: _evenly(count, share) for name, count in counts.items()})

    @property
    def num_tokens(self) -> int:
        """Tokens of the chosen sequences, padding included."""
        return sum(map(len, self.chosen.values())) * self.sequence_length

    def check_same(self, record: HeldoutRecord, where: str) -> None:
        """Raises: ConfigError if a record of the run in `where` was measured on other tokens."""
        counts = {
            name: int(np.maximum(store.lengths(self.chosen[name], self.sequence_length) - 1, 0).sum())
            for name, store in self.stores.items()
        }
        num_tokens, names = sum(counts.values()), {name for name, count in counts.items() if count}
        if (record.num_tokens, set(record.sources)) != (num_tokens, names):
            raise ConfigError(
                f"{where}: its held-out loss was measured on {record.num_tokens:,} tokens of {len(record.sources)} "
                f"sources, and would be on {num_tokens:,} of {len(names)}: set `heldout` and `heldout_tokens` back, or "
                "name another `out`"
            )

    def sums(
        self,
        model: Decoder,
        *,
        batch_size: int,
        bfloat16: bool = False,
        rank: int = 0,
        world_size: int = 1,
        on_sequences: Callable[[int], None] | None = None,
    ) -> dict[str, tuple[float, int]]:
        """The sum of nats and the number of predicted tokens of each source, over the sequences of one rank.

        Calls `on_sequences` with the number of sequences of each batch. Leaves the model in evaluation mode. Equal for
        any number of ranks up to the rounding of sums.
        """
        model.eval()
        found: dict[str, tuple[float, int]] = {}
        for name, store in self.stores.items():
            nats, count = 0.0, 0
            mine = self.chosen[name][rank::world_size]
            for start in range(0, len(mine), batch_size):
                sequences = mine[start : start + batch_size]
                more_nats, more = self._sums(model, store, bfloat16, sequences)
                nats, count = nats + more_nats, count + more
                if on_sequences:
                    on_sequences(len(sequences))
            found[name] = nats, count
        return found

    @torch.no_grad()
    def _sums(self, model: Decoder, store: TokenStore, bfloat16: bool, sequences: Sequence[int]) -> tuple[float, int]:
        """The sum and the number of one batch."""
        device = model.embedding.weight.device
        ids = store.batch(sequences, self.sequence_length)
        lengths = store.lengths(sequences, self.sequence_length)
        ids_BT = torch.from_numpy(ids).to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
            logits_BTV = model(ids_BT)
        nats_BT = F.cross_entropy(logits_BTV[:, :-1].float().transpose(1, 2), ids_BT[:, 1:], reduction="none")
        scored_BT = np.arange(1, ids.shape[1])[None, :] < lengths[:, None]
        return float((nats_BT.double().cpu().numpy() * scored_BT).sum()), int(scored_BT.sum())


def _evenly(count: int, share: float) -> Sequence[int]:
    """A share of `count` sequences, at least one if there is one, at equal distances.

    >>> _evenly(10, 0.3), _evenly(10, 1.0), _evenly(3, 0.01)
    ([1, 5, 8], range(0, 10), [1])
    """
    size = max(1, round(count * share))
    return range(count) if size >= count else [(2 * index + 1) * count // (2 * size) for index in range(size)]


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
