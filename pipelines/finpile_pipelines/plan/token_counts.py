"""The tokens of a text of any size, from tokenizers that are trained on the excerpts of the samples.

A tokenizer makes fewer tokens of the text that it is trained on than of other text of the same kind. Trained on n
bytes, it makes c - a/n tokens per byte of them, and c + a/n per byte of other text. Tokenizers of the two halves of n
bytes, each of which counts the other half, make c + 2a/n: 3a/n more than a tokenizer of all n bytes makes of these. The
two counts give c and a. A build counts the text that its tokenizer is trained on: m bytes are cm - a tokens.

Source: Amari and Murata 1993, Statistical Theory of Learning Curves under Entropic Loss Criterion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from finpile.config import TokenizerConfig
from finpile_pipelines.plan.inputs import SourceInput
from finpile_pipelines.plan.samples import Sample

#: Text of all sources that is trained on: some seconds of CPU time.
_TRAINED_BYTES = 2 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenCounts:
    """The tokens of a corpus by its bytes of text, `<|endoftext|>` not among them."""

    per_byte: float
    """Of text without bounds."""
    trained_per_byte: float
    """Of the text that was trained on."""
    trained_bytes: float = 0.0

    def tokens(self, text_bytes: float) -> float:
        """Of a corpus with this much text, on which its tokenizer is trained."""
        fewer = (self.per_byte - self.trained_per_byte) * self.trained_bytes
        return max(self.per_byte * text_bytes - fewer, self.trained_per_byte * text_bytes)


def count_samples(
    tokenizer: TokenizerConfig, inputs: Sequence[SourceInput], samples: Sequence[Sample | None]
) -> TokenCounts | None:
    """The tokens of the excerpts, each source in proportion to its clean text; None if there is no text.

    A tokenizer that is used instead of training one is taken to be like one that is trained.
    """
    read = [(source, sample.excerpt) for source, sample in zip(inputs, samples, strict=True) if sample is not None]
    clean = sum(source.clean_bytes for source, _ in read)
    parts = [_first(texts, _TRAINED_BYTES * source.clean_bytes / max(1.0, clean)) for source, texts in read]
    texts, weights = list[bytes](), list[float]()
    for (source, _), part in zip(read, parts, strict=True):
        size = sum(map(len, part))
        texts += part
        weights += [source.clean_bytes / max(1, size)] * len(part)
    if not any(texts):
        return None
    trained = _tokens_per_byte(tokenizer, texts, weights, slice(None), slice(None))
    odd, even = slice(1, None, 2), slice(None, None, 2)
    if not any(texts[odd]) or not any(texts[even]):
        return TokenCounts(per_byte=trained, trained_per_byte=trained)
    others = [_tokens_per_byte(tokenizer, texts, weights, one, other) for one, other in ((odd, even), (even, odd))]
    return TokenCounts(
        per_byte=trained + max(0.0, sum(others) / 2 - trained) / 3,
        trained_per_byte=trained,
        trained_bytes=sum(map(len, texts)),
    )


def _first(texts: Iterable[bytes], size_bytes: float) -> list[bytes]:
    """The first texts up to this size; the last one is cut."""
    found, left = list[bytes](), int(size_bytes)
    for text in texts:
        found.append(text[:left])
        left -= len(text)
        if left <= 0:
            break
    return found


def _tokens_per_byte(
    config: TokenizerConfig, texts: Sequence[bytes], weights: Sequence[float], trained: slice, counted: slice
) -> float:
    """Of the `counted` texts with a tokenizer of the `trained` ones."""
    from finpile_tokenizer import UnigramTokenizer, UnigramTrainer, count_pretokens, merge, prune_to

    trainer = UnigramTrainer(vocab_size=config.vocab_size - 1, max_piece_bytes=config.max_piece_bytes)
    model = trainer.train(count_pretokens(pa.array(texts[trained], pa.large_binary())))
    tokenizer = UnigramTokenizer(prune_to(merge([model]), config.vocab_size))
    counts = tokenizer.count_tokens(pa.array(texts[counted], pa.large_binary()))
    of_text = np.array(weights[counted])
    return float((of_text * counts).sum() / (of_text * [len(text) for text in texts[counted]]).sum())
