"""Held-out bits per byte, by source: BloombergGPT §5.2 and its figure 3.

The bits needed to predict a document's tokens one by one are divided by the UTF-8 bytes of its text, so models with
different tokenizers can be compared.

- A document begins as in training: after the `<|endoftext|>` of the previous document. That token is context and is not
  scored; neither is the token that would end the document, because it is not part of the text.
- A window is as long as a training sequence, W. A longer document is read in windows that overlap by half:
  the first window scores all of its tokens, each later window its second half. So every token after the first W is
  predicted from at least W/2 tokens.
- The whole held-out split is scored, or a sample: the N documents with the smallest ids of each source. Ids are hashes,
  so the sample is unbiased and does not depend on the shards.
"""

# ruff: noqa: N803, N806, N812 (names end in the axes of their tensors; torch's functional module is F)

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from torch import Tensor
from torch.nn import functional as F

from finpile import storage
from finpile.errors import ConfigError, InputError
from finpile.file_systems import open_file
from finpile.layout import Layout, row_of
from finpile.lm.model import Decoder

HELDOUT = "heldout"
#: Windows that go through the model at once.
WINDOWS_PER_BATCH = 8
#: Documents whose windows are sorted by length together, so that little is padded.
_DOCUMENTS_AT_ONCE = 64

Ids = npt.NDArray[np.int64]


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

    def to_json(self) -> dict[str, Any]:
        names = ("num_documents", "num_bytes", "num_tokens", "bits", "bits_per_byte", "bits_per_token")
        return {name: getattr(self, name) for name in names}


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

    def __init__(self, model: Decoder, tokenizer: Tokenizer, *, eot_id: int, window: int) -> None:
        if window < 2:
            raise ConfigError(f"window is {window}: expected at least 2 tokens")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.eot_id = eot_id
        self.window = window
        self._device = model.embedding.weight.device

    def score(self, texts: pa.Array) -> Score:
        """The sums over a column of texts."""
        documents = self._encode(texts)
        windows = [window for ids in documents for window in cut_windows(ids, self.eot_id, self.window)]
        order = sorted(range(len(windows)), key=lambda index: len(windows[index].inputs))
        bits = np.zeros(len(windows))
        for start in range(0, len(order), WINDOWS_PER_BATCH):
            chosen = order[start : start + WINDOWS_PER_BATCH]
            bits[chosen] = self._bits([windows[index] for index in chosen])
        num_bytes = pc.sum(pc.binary_length(texts)).as_py() or 0
        return Score(len(texts), num_bytes, sum(map(len, documents)), math.fsum(bits))

    def cost(self, texts: pa.Array) -> Cost:
        """The work of `score`; encodes the texts and does not run the model."""
        documents = self._encode(texts)
        read = sum(len(window.inputs) for ids in documents for window in cut_windows(ids, self.eot_id, self.window))
        num_bytes = pc.sum(pc.binary_length(texts)).as_py() or 0
        return Cost(num_documents=len(texts), num_bytes=num_bytes, num_tokens=sum(map(len, documents)), num_read=read)

    def measure_seconds(self, cost: Cost) -> float:
        """Estimates the time of scoring on this machine: times one batch of full windows, after one to warm up."""
        ids = np.full(self.window, self.eot_id)
        batch = [Window(ids, ids, 0)] * max(1, min(WINDOWS_PER_BATCH, cost.num_read // self.window))
        self._bits(batch)
        began = time.monotonic()
        self._bits(batch)
        return (time.monotonic() - began) * cost.num_read / (len(batch) * self.window)

    def _encode(self, texts: pa.Array) -> list[Ids]:
        """The ids of each text that is not empty."""
        encoded = self.tokenizer.encode_array(texts)
        flat = encoded.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        vocab_size = self.model.embedding.num_embeddings
        if flat.size and int(flat.max()) >= vocab_size:
            raise InputError(
                f"the tokenizer makes id {flat.max()}, the model has {vocab_size} ids: "
                "evaluate on the build whose token shards the model was trained on"
            )
        lengths = np.diff(encoded.offsets.to_numpy())
        return [ids for ids in np.split(flat, np.cumsum(lengths)[:-1]) if len(ids)]

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
        logits_BTV = self.model(inputs_BT)
        return F.cross_entropy(logits_BTV.float().transpose(1, 2), targets_BT, reduction="none")


def evaluate(
    scorer: Scorer,
    root: str,
    *,
    max_documents: int | None = None,
    on_bytes: Callable[[int], None] | None = None,
) -> dict[tuple[str, str], Score]:
    """The scores of the held-out documents of the build at `root`, by (dataset, source), in that order.

    `max_documents` limits the documents of each source; `on_bytes` is called with the bytes of each scored batch.

    Raises:
        InputError: the build has no held-out document.
    """
    scores: dict[tuple[str, str], Score] = {}
    for row, paths in document_files(root).items():
        score = Score()
        for texts in heldout_texts(root, paths, max_documents):
            part = scorer.score(texts)
            score.add(part)
            if on_bytes:
                on_bytes(part.num_bytes)
        if score.num_documents:
            scores[row] = score
    if not scores:
        raise InputError(
            f"{root}: no document is held out; build with `heldout: {{after: DATE, undated: drop}}`, where DATE is "
            "before the newest documents"
        )
    return scores


def evaluation_cost(scorer: Scorer, root: str, *, max_documents: int | None = None) -> Cost:
    """The work of `evaluate` with the same arguments."""
    costs = [
        scorer.cost(texts)
        for paths in document_files(root).values()
        for texts in heldout_texts(root, paths, max_documents)
    ]
    return Cost(**{name: sum(getattr(cost, name) for cost in costs) for name in Cost.__slots__})


def total(scores: dict[tuple[str, str], Score]) -> Score:
    """The sums over all sources: bits of all over bytes of all."""
    out = Score()
    for score in scores.values():
        out.add(score)
    return out


def document_files(root: str) -> dict[tuple[str, str], list[str]]:
    """The document shards of a build, relative to it, by (dataset, source).

    Raises:
        InputError: there are none.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for path in storage.list_files(Layout(root).documents):
        if path.endswith(".parquet"):
            found.setdefault(row_of(path), []).append(f"documents/{path}")
    if not found:
        raise InputError(f"{root}: has no documents/*.parquet; expected the output folder of `finpile build`")
    return dict(sorted(found.items()))


def heldout_texts(root: str, paths: Sequence[str], max_documents: int | None) -> Iterator[pa.Array]:
    """The texts of the held-out documents of one source, a few documents at a time."""
    chosen: pa.Array | None = None
    if max_documents is not None:
        ids = (batch.column("id").to_pylist() for batch in _heldout(root, paths, ["id"]))
        chosen = pa.array(heapq.nsmallest(max_documents, (value for batch in ids for value in batch)), pa.string())
    for batch in _heldout(root, paths, ["id", "text"]):
        kept = batch if chosen is None else batch.filter(pc.is_in(batch.column("id"), chosen))
        if kept.num_rows:
            yield kept.column("text")


def _heldout(root: str, paths: Sequence[str], columns: list[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with open_file(storage.join(root, path)) as stream:
            for batch in pq.ParquetFile(stream).iter_batches(_DOCUMENTS_AT_ONCE, columns=[*columns, "split"]):
                yield batch.filter(pc.equal(batch.column("split"), HELDOUT))
