"""Token shards as a dataset of PyTorch, for `torch.utils.data.DataLoader` and trainers of others."""

from __future__ import annotations

from torch import Tensor, from_numpy
from torch.utils.data import Dataset

from finpile.errors import ConfigError
from finpile.tokens.store import TokenStore


class TokenDataset(Dataset[dict[str, Tensor]]):
    """The sequences of a folder of token shards, in the order of the shards.

    An item is `{"input_ids": int64 [T], "labels": int64 [T]}`; labels equal the ids, as the models of transformers
    expect, and are -100, which is ignored, where a shard is padded: one of held-out documents, or of a snapshot. Shards
    are mapped into memory by each worker of a loader for itself.

    >>> loader = DataLoader(TokenDataset("out/tokens/split=train"), batch_size=4, shuffle=True)  # doctest: +SKIP
    """

    def __init__(self, folder: str, *, sequence_length: int | None = None) -> None:
        """`sequence_length` is a divisor of the stored length, to which stored sequences are cut.

        Raises: InputError if the folder has no token shards; ConfigError for another length.
        """
        self._folder = folder
        self._store: TokenStore | None = TokenStore.open(folder)
        stored = self._store.sequence_length
        self.sequence_length = stored if sequence_length is None else sequence_length
        if self.sequence_length < 2 or stored % self.sequence_length:
            raise ConfigError(f"sequence_length is {sequence_length}: expected {stored}, or a divisor")
        self._size = len(self._store) * (stored // self.sequence_length)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        if not -self._size <= index < self._size:
            raise IndexError(f"sequence {index} of {self._size}")
        if self._store is None:
            self._store = TokenStore.open(self._folder)
        [ids] = from_numpy(self._store.batch([index % self._size], self.sequence_length))
        [length] = self._store.lengths([index % self._size], self.sequence_length)
        labels = ids.clone()
        labels[length:] = -100
        return {"input_ids": ids, "labels": labels}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_store": None}
