"""Which vocabulary size writes a text in the fewest bytes.

A larger vocabulary needs fewer tokens, and more bits for each: a token of a vocabulary of V takes log2(V) bits.

Source: Wu et al., BloombergGPT (arXiv:2303.17564), section 2.3: sizes from 25,000 to 550,000, the smallest encoding
near 125,000, hence the next power of two, 131,072.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.merging import MIN_VOCAB_SIZE, prune_to
from finpile_tokenizer.model import UnigramModel, Vocabulary
from finpile_tokenizer.tokenizer import UnigramTokenizer

#: The smallest or the largest of several sizes, or the only one.
Edge: TypeAlias = Literal["smallest", "largest", "only"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepPoint:
    """The size of the text in one vocabulary."""

    vocab_size: int
    num_tokens: int

    @property
    def encoded_bytes(self) -> float:
        """The text's size with log2(vocab_size) bits a token."""
        return self.num_tokens * math.log2(self.vocab_size) / 8


def cut_to_sizes(merged: UnigramModel, sizes: Iterable[int]) -> list[Vocabulary]:
    """The vocabularies of these sizes that a merged model gives, ascending; each holds all smaller ones.

    If a size is more than the model has pieces for, the last vocabulary has all of them.

    Raises:
        TokenizerError: a size has no room for the 256 bytes and `<|endoftext|>`.
    """
    cut = [prune_to(merged, size) for size in sorted(set(sizes))]
    return [each for index, each in enumerate(cut) if index == 0 or not cut[index - 1].num_missing]


def encoded_sizes(
    vocabularies: Sequence[Vocabulary], texts: Iterable[pa.Array], num_threads: int = 1
) -> list[SweepPoint]:
    """The text's tokens with each vocabulary, in one reading of the text."""
    tokenizers = [UnigramTokenizer(vocabulary) for vocabulary in vocabularies]
    totals = [0] * len(tokenizers)
    for array in texts:
        for index, tokenizer in enumerate(tokenizers):
            totals[index] += int(tokenizer.count_tokens(array, num_threads).sum())
    return [
        SweepPoint(vocab_size=tokenizer.vocab_size, num_tokens=total)
        for tokenizer, total in zip(tokenizers, totals, strict=True)
    ]


def smallest(points: Sequence[SweepPoint]) -> SweepPoint:
    """The point of the smallest encoding, of equals the one of the smaller vocabulary.

    Raises:
        TokenizerError: there is no point, or none with a token.
    """
    if not any(point.num_tokens for point in points):
        raise TokenizerError("there is no text to compare vocabulary sizes on: every text is empty")
    return min(points, key=lambda point: (point.encoded_bytes, point.vocab_size))


def edge_of(points: Sequence[SweepPoint]) -> Edge | None:
    """The end of the sizes tried at which the smallest encoding is; None if sizes on both sides of it are larger.

    At an end, the text may be smaller yet with a size that was not tried. `MIN_VOCAB_SIZE` has no size below it, and so
    is not an end if others were tried.

    Raises:
        TokenizerError: as `smallest`.

    >>> encoded = [SweepPoint(vocab_size=size, num_tokens=count) for size, count in ((300, 90), (600, 70), (900, 69))]
    >>> edge_of(encoded), edge_of(encoded[:2])
    (None, 'largest')
    """
    sizes, best = [point.vocab_size for point in points], smallest(points).vocab_size
    if len(set(sizes)) == 1:
        return "only"
    if best == min(sizes):
        return "smallest" if best > MIN_VOCAB_SIZE else None
    return "largest" if best == max(sizes) else None


def power_of_two_above(vocab_size: int) -> int:
    """The smallest power of two that is at least `vocab_size`: the paper's rounding.

    >>> power_of_two_above(125_000), power_of_two_above(131_072)
    (131072, 131072)
    """
    return 1 << max(vocab_size - 1, MIN_VOCAB_SIZE - 1).bit_length()
