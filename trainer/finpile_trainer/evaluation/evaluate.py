"""Bits per byte of documents: BloombergGPT §5.2.

The bits needed to predict a document's tokens one by one are divided by the UTF-8 bytes of its text, so models with
different tokenizers can be compared.

- A document begins as in training: after the `<|endoftext|>` of the previous document. That token is context and is not
  scored; neither is the token that would end the document, because it is not part of the text.
- A window is as long as a training sequence, W. A longer document is read in windows that overlap by half:
  the first window scores all of its tokens, each later window its second half. So every token after the first W is
  predicted from at least W/2 tokens.
"""

# ruff: noqa: N803, N806, N812 (names end in the axes of their tensors; torch's functional module is F)

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor
from torch.nn import functional as F

from finpile.errors import ConfigError, InputError
from finpile_trainer.training.checkpoint import HasModel, restore_model

#: Windows that go through the model at once.
WINDOWS_PER_BATCH = 8

Ids = npt.NDArray[np.int64]
#: The logits [B, T, V] of ids [B, T].
Logits = Callable[[Tensor], Tensor]


class Tokenizer(Protocol):
    """The method of a tokenizer that scoring needs; `finpile_tokenizer.UnigramTokenizer` has it."""

    def encode_array(self, texts: pa.Array) -> pa.LargeListArray:
        """The ids of each text."""


@dataclass(slots=True)
class Score:
    """Sums over documents."""

    num_documents: int = 0
    num_bytes: int = 0
    """UTF-8 bytes of the texts."""
    num_tokens: int = 0
    """Tokens scored: all of the texts'."""
    bits: float = 0.0
    num_unknown: int = 0
    """Tokens that replace text which the tokenizer cannot encode: their bits say nothing about that text."""

    @property
    def bits_per_byte(self) -> float:
        return self.bits / self.num_bytes if self.num_bytes else math.nan

    @property
    def bits_per_token(self) -> float:
        return self.bits / self.num_tokens if self.num_tokens else math.nan

    def add(self, other: Score) -> None:
        self.num_documents += other.num_documents
        self.num_bytes += other.num_bytes
        self.num_tokens += other.num_tokens
        self.bits += other.bits
        self.num_unknown += other.num_unknown

    def to_json(self) -> dict[str, Any]:
        """All sums and ratios; a ratio without a denominator is null."""
        sums = {
            name: getattr(self, name) for name in ("num_documents", "num_bytes", "num_tokens", "num_unknown", "bits")
        }
        per_byte = self.bits_per_byte if self.num_bytes else None
        return {**sums, "bits_per_byte": per_byte, "bits_per_token": self.bits_per_token if self.num_tokens else None}


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a document that is input to the model, and the part of its predictions that is scored."""

    inputs: Ids
    targets: Ids
    """targets[t] is the token to be predicted from inputs[0 .. t]."""
    scored_from: int
    """Earlier predictions are scored in the previous window."""


def cut_windows(ids: Ids, eot_id: int, size: int) -> Iterator[Window]:
    """The windows of one document of at least one token; each of its tokens is scored in exactly one of them.

    >>> [(w.inputs.tolist(), w.targets[w.scored_from:].tolist()) for w in cut_windows(np.arange(1, 8), 0, 4)]
    [([0, 1, 2, 3], [1, 2, 3, 4]), ([2, 3, 4, 5], [5, 6]), ([4, 5, 6], [7])]
    """
    inputs = np.concatenate([[eot_id], ids[:-1]])
    stride = max(1, size // 2)
    for start in range(0, max(1, len(ids) - size + stride), stride):
        end = start + size
        yield Window(inputs[start:end], ids[start:end], size - stride if start else 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """The work of an evaluation, counted before it begins."""

    num_documents: int = 0
    num_bytes: int = 0
    """UTF-8 bytes of the texts."""
    num_tokens: int = 0
    """Tokens to be scored."""
    num_read: int = 0
    """Tokens that are input to the model: the scored ones, and in later windows their context."""


class Scorer:
    """Counts the bits that a model needs for texts."""

    def __init__(
        self,
        logits: Logits,
        tokenizer: Tokenizer,
        *,
        eot_id: int,
        window: int,
        num_ids: int,
        unknown_id: int | None = None,
        device: torch.device | None = None,
    ) -> None:
        """`num_ids` is V; `unknown_id` the token of text that the tokenizer cannot encode, if it has one.

        Raises: ConfigError for a window of less than 2 tokens.
        """
        if window < 2:
            raise ConfigError(f"window is {window}: expected at least 2 tokens")
        self.tokenizer = tokenizer
        self.eot_id = eot_id
        self.window = window
        self._logits, self._num_ids, self._unknown_id = logits, num_ids, unknown_id
        self._device = device or torch.device("cpu")

    @classmethod
    def of_run(cls, saved: HasModel, tokenizer: Tokenizer, window: int | None = None) -> Scorer:
        """The model of a run, on the CPU; `window` is by default a training sequence."""
        meta = saved.meta
        return cls(
            restore_model(saved),
            tokenizer,
            eot_id=meta.eot_id,
            window=meta.sequence_length if window is None else window,
            num_ids=meta.vocab_size,
            unknown_id=getattr(tokenizer, "unknown_id", None),
        )

    def score(self, texts: pa.Array) -> Score:
        """The sums over a column of texts."""
        out = Score()
        for score in self.score_each(texts):
            out.add(score)
        return out

    def score_each(self, texts: pa.Array) -> list[Score]:
        """The score of each text of a column."""
        documents = self._encode(texts)
        owners, windows = self._windows(documents)
        order = sorted(range(len(windows)), key=lambda index: len(windows[index].inputs))
        bits = np.zeros(len(windows))
        for start in range(0, len(order), WINDOWS_PER_BATCH):
            chosen = order[start : start + WINDOWS_PER_BATCH]
            bits[chosen] = self._bits([windows[index] for index in chosen])
        sums = np.bincount(np.array(owners, np.int64), weights=bits, minlength=len(documents))
        sizes = pc.binary_length(texts).to_pylist()
        return [
            Score(1, num_bytes, len(ids), float(total), self._num_unknown(ids))
            for num_bytes, ids, total in zip(sizes, documents, sums, strict=True)
        ]

    def cost(self, texts: pa.Array) -> Cost:
        """The work of `score`; encodes the texts and does not run the model."""
        documents = self._encode(texts)
        read = sum(len(window.inputs) for window in self._windows(documents)[1])
        num_bytes = pc.sum(pc.binary_length(texts)).as_py() or 0
        return Cost(num_documents=len(texts), num_bytes=num_bytes, num_tokens=sum(map(len, documents)), num_read=read)

    def _windows(self, documents: Sequence[Ids]) -> tuple[list[int], list[Window]]:
        """The windows of all documents that are not empty, and the number of the document of each."""
        cut = [
            (number, window)
            for number, ids in enumerate(documents)
            if len(ids)
            for window in cut_windows(ids, self.eot_id, self.window)
        ]
        return [number for number, _ in cut], [window for _, window in cut]

    def _num_unknown(self, ids: Ids) -> int:
        return 0 if self._unknown_id is None else int((ids == self._unknown_id).sum())

    def measure_seconds(self, cost: Cost) -> float:
        """Estimates the time of scoring on this machine: times one batch of full windows, after one to warm up."""
        ids = np.full(self.window, self.eot_id)
        batch = [Window(ids, ids, 0)] * max(1, min(WINDOWS_PER_BATCH, cost.num_read // self.window))
        self._bits(batch)
        began = time.monotonic()
        self._bits(batch)
        return (time.monotonic() - began) * cost.num_read / (len(batch) * self.window)

    def _encode(self, texts: pa.Array) -> list[Ids]:
        """The ids of each text."""
        encoded = self.tokenizer.encode_array(texts)
        flat = encoded.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        if flat.size and int(flat.max()) >= self._num_ids:
            raise InputError(
                f"the tokenizer makes id {flat.max()}, the model has {self._num_ids} ids: "
                "evaluate with the tokenizer that the model was trained with"
            )
        lengths = np.diff(encoded.offsets.to_numpy())
        return np.split(flat, np.cumsum(lengths)[:-1]) if len(lengths) else []

    @torch.inference_mode()
    def _bits(self, windows: Sequence[Window]) -> npt.NDArray[np.float64]:
        """The bits of each window's scored tokens. Padding is at the end, which causal attention ignores."""
        length = max(len(window.inputs) for window in windows)
        inputs, targets = (np.full((len(windows), length), self.eot_id) for _ in range(2))
        weights = np.zeros((len(windows), length))
        for row, window in enumerate(windows):
            size = len(window.inputs)
            inputs[row, :size], targets[row, :size] = window.inputs, window.targets
            weights[row, window.scored_from : size] = 1 / math.log(2)
        nats_BT = self._nats(torch.from_numpy(inputs).to(self._device), torch.from_numpy(targets).to(self._device))
        out: npt.NDArray[np.float64] = (nats_BT.double().cpu().numpy() * weights).sum(axis=1)
        return out

    def _nats(self, inputs_BT: Tensor, targets_BT: Tensor) -> Tensor:
        logits_BTV = self._logits(inputs_BT)
        return F.cross_entropy(logits_BTV.float().transpose(1, 2), targets_BT, reduction="none")
