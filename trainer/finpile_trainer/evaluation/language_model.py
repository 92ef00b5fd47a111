"""Likelihoods and greedy continuations under a trained run or a causal model of Hugging Face transformers.

Conventions are those of lm-evaluation-harness: context and continuation are encoded together, and the tokens after
those of the context alone are the continuation's; white space at the end of the context belongs to the continuation; an
empty context is the token that begins a document; what is too long is cut from the left. Before a generation, the
context keeps as many tokens as leave room for those to be generated.

lm-evaluation-harness ends with an error at a continuation that is longer than the model reads; here it is cut, too, and
its last tokens are scored.
"""

# ruff: noqa: N803, N806 (names end in the axes of their tensors)

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import torch
from torch import Tensor

from finpile.errors import InputError
from finpile_trainer.evaluation.evaluate import Logits, Tokenizer
from finpile_trainer.evaluation.peers import begin_id, load_peer, longest_input
from finpile_trainer.model.model import KeyValueCache
from finpile_trainer.training.checkpoint import HasModel, restore_model

#: As `Logits`, of ids that follow those of its calls before.
Reader = Logits
#: Sequences that go through the model at once.
BATCH_SIZE = 8


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The log-likelihood of a continuation."""

    nats: float
    num_tokens: int
    is_greedy: bool
    """Whether each of its tokens is the likeliest."""
    is_cut: bool = False
    """Whether context and continuation are longer than the model reads, and were cut from the left."""


class RunTokenizer(Tokenizer, Protocol):
    """The methods of the tokenizer of a build that this module needs."""

    def decode(self, ids: Sequence[int]) -> bytes: ...


class _Rereader:
    """Reads all tokens again at each call."""

    def __init__(self, logits: Logits) -> None:
        self._logits = logits
        self._ids_BT: Tensor | None = None

    def __call__(self, ids_BT: Tensor) -> Tensor:
        self._ids_BT = ids_BT if self._ids_BT is None else torch.cat([self._ids_BT, ids_BT], dim=1)
        return self._logits(self._ids_BT)


class _CachedTransformer:
    """A model of transformers, with the cache that it returns."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._cache: Any = None

    def __call__(self, ids_BT: Tensor) -> Tensor:
        out = self._model(ids_BT, past_key_values=self._cache, use_cache=True)
        self._cache = out.past_key_values
        logits_BTV: Tensor = out.logits
        return logits_BTV


class LanguageModel:
    """A model with its tokenizer."""

    def __init__(
        self,
        logits: Logits,
        encode: Callable[[str], Sequence[int]],
        decode: Callable[[Sequence[int]], str],
        *,
        begin_id: int,
        max_length: int,
        name: str,
        end_id: int | None = None,
        new_reader: Callable[[], Reader] | None = None,
        device: torch.device | None = None,
        step: int | None = None,
    ) -> None:
        """`begin_id` begins a document, `end_id` ends it, the same by default; `max_length` is the longest T.

        `new_reader` begins a sequence whose keys and values are kept; without it, every step reads all tokens again.
        `step` is that of the run whose model it is.
        """
        self._logits, self._encode, self._decode = logits, encode, decode
        self._end_id = begin_id if end_id is None else end_id
        self._new_reader = new_reader or (lambda: _Rereader(logits))
        self.begin_id, self.max_length, self.name, self.step = begin_id, max_length, name, step
        self._device = device or torch.device("cpu")

    @classmethod
    def of_run(cls, saved: HasModel, tokenizer: RunTokenizer, name: str) -> LanguageModel:
        """The model of a run, on the CPU, with the tokenizer of its build."""
        meta, model = saved.meta, restore_model(saved)

        def encode(text: str) -> Sequence[int]:
            ids: list[int] = tokenizer.encode_array(pa.array([text], pa.large_string())).values.to_pylist()
            return ids

        def decode(ids: Sequence[int]) -> str:
            return bytes(tokenizer.decode(ids)).decode("utf-8", "replace")

        return cls(
            model,
            encode,
            decode,
            begin_id=meta.eot_id,
            max_length=meta.sequence_length,
            name=name,
            new_reader=lambda: partial(model, cache=KeyValueCache()),
            step=saved.step,
        )

    @classmethod
    def of_hugging_face(cls, folder: str) -> LanguageModel:
        """The causal model of a local folder, on the CPU.

        Raises: ConfigError if transformers is not installed, InputError if it cannot load the folder.
        """
        model, tokenizer = load_peer(folder)
        return cls.of_transformers(model, tokenizer, Path(folder).name)

    @classmethod
    def of_transformers(cls, model: Any, tokenizer: Any, name: str) -> LanguageModel:
        """A loaded model of transformers."""
        model.eval()
        return cls(
            lambda ids_BT: model(ids_BT).logits,
            lambda text: tokenizer.encode(text, add_special_tokens=False),
            tokenizer.decode,
            begin_id=begin_id(tokenizer, name),
            end_id=tokenizer.eos_token_id,
            max_length=longest_input(model, tokenizer),
            name=name,
            new_reader=lambda: _CachedTransformer(model),
            device=model.device,
        )

    def log_likelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[Likelihood]:
        """The log-likelihood of each continuation after its context, (context, continuation)."""
        requests = [self._request(context, continuation) for context, continuation in pairs]
        most = self.max_length + 1  # the last token is not read
        found = self._likelihoods([(ids[-most:], min(count, self.max_length)) for ids, count in requests])
        return [replace(one, is_cut=len(ids) > most) for one, (ids, _) in zip(found, requests, strict=True)]

    def document_likelihood(self, text: str) -> Likelihood:
        """The log-likelihood of a text of any length: of windows that each predict as many tokens as the model reads.

        The last window, if it is shorter, begins among the tokens of the one before. As lm-evaluation-harness does it.
        """
        ids = list(self._encode(text))
        whole = [self.begin_id, *ids]
        requests = []
        for start in range(0, len(ids), self.max_length):
            end = min(start + self.max_length, len(ids))
            requests.append((whole[max(0, end - self.max_length) : end + 1], end - start))
        parts = self._likelihoods(requests)
        return Likelihood(math.fsum(part.nats for part in parts), len(ids), all(part.is_greedy for part in parts))

    def _likelihoods(self, requests: Sequence[tuple[list[int], int]]) -> list[Likelihood]:
        """The likelihood of the last tokens, by their number, of each list of ids."""
        found: list[Likelihood | None] = [None] * len(requests)
        order = sorted(range(len(requests)), key=lambda index: len(requests[index][0]))
        for start in range(0, len(order), BATCH_SIZE):
            chosen = order[start : start + BATCH_SIZE]
            for index, one in zip(chosen, self._score([requests[index] for index in chosen]), strict=True):
                found[index] = one
        return [one for one in found if one is not None]

    def continues(self, texts: Sequence[str], num_prompt: int, num_continued: int) -> list[bool | None]:
        """Whether the greedy continuation of the first `num_prompt` tokens of each text is its next `num_continued`.

        None for a text with fewer tokens. A continuation is exact if and only if each of its tokens is the likeliest
        after those before it, so one pass over the text decides it, and nothing is generated.

        Raises: InputError if the model does not read as many tokens.
        """
        size = num_prompt + num_continued
        if size > self.max_length:
            raise InputError(
                f"{self.name}: a prompt and its continuation have {size} tokens, it reads {self.max_length}"
            )
        encoded = [list(self._encode(text))[:size] for text in texts]
        requests = [([self.begin_id, *ids], num_continued) for ids in encoded if len(ids) == size]
        found = iter(self._likelihoods(requests))
        return [next(found).is_greedy if len(ids) == size else None for ids in encoded]

    def num_tokens(self, text: str) -> int:
        """The number of tokens of a text."""
        return len(self._encode(text))

    @torch.inference_mode()
    def generate(self, prompt: str, *, stop: Sequence[str] = (), max_tokens: int) -> str:
        """The greedy continuation of a prompt, up to the first of `stop`, the end of the document, or `max_tokens`.

        Raises: InputError if the model reads no more than `max_tokens` tokens.
        """
        if not 0 < max_tokens < self.max_length:
            raise InputError(f"{max_tokens} tokens to generate: the model reads {self.max_length}, prompt included")
        kept = list(self._encode(prompt))[-(self.max_length - max_tokens) :] or [self.begin_id]
        read, new, found = self._new_reader(), kept, list[int]()
        while len(found) < max_tokens:
            best = int(read(torch.tensor([new], device=self._device))[0, -1].argmax())
            if best == self._end_id:
                break
            found.append(best)
            new = [best]
            if stop and any(word in self._decode(found) for word in stop):
                break
        text = self._decode(found)
        return text[: min((text.index(word) for word in stop if word in text), default=len(text))]

    def _request(self, context: str, continuation: str) -> tuple[list[int], int]:
        """The ids of both, and the number of those of the continuation.

        Both are encoded apart if they are one token or fewer together than the context alone.
        """
        if not continuation:
            raise InputError("a continuation is empty")
        kept = context.rstrip()
        continuation = context[len(kept) :] + continuation
        before = list(self._encode(kept)) if kept else []
        whole = list(self._encode(kept + continuation))
        if len(whole) <= len(before):
            whole = [*before, *self._encode(continuation)]
        return whole if before else [self.begin_id, *whole], len(whole) - len(before)

    @torch.inference_mode()
    def _score(self, requests: Sequence[tuple[list[int], int]]) -> Iterator[Likelihood]:
        """The likelihood of each continuation. Padding is at the end, which causal attention ignores."""
        length = max(len(ids) for ids, _ in requests) - 1
        inputs = torch.full((len(requests), length), self.begin_id)
        for row, (ids, _) in enumerate(requests):
            inputs[row, : len(ids) - 1] = torch.tensor(ids[:-1])
        logits_BTV = self._logits(inputs.to(self._device))
        dtype = torch.promote_types(logits_BTV.dtype, torch.float32)
        for row, (ids, count) in enumerate(requests):
            end = len(ids) - 1
            nats_TV = torch.log_softmax(logits_BTV[row, end - count : end].to(dtype), dim=-1)
            targets = torch.tensor(ids[-count:], device=self._device)
            is_greedy = bool((nats_TV.argmax(dim=-1) == targets).all())
            yield Likelihood(float(nats_TV.gather(1, targets[:, None]).double().sum()), count, is_greedy)
