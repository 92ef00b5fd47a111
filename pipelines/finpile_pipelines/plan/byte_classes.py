"""Bytes of text by class, on which the number of its tokens depends.

A token of the Unigram tokenizer is a run of letters and spaces, of several words if they are frequent, while nearly
every digit and every punctuation mark is a token of its own. So texts of many numbers, markup or formulas have more
tokens by byte than prose, whatever the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_LETTER, _DIGIT, _OTHER = range(3)


def _table() -> npt.NDArray[np.uint8]:
    classes = np.full(256, _OTHER, np.uint8)
    for first, last in ((b"a", b"z"), (b"A", b"Z"), (b" ", b" ")):
        classes[first[0] : last[0] + 1] = _LETTER
    classes[0x80:] = _LETTER
    classes[ord("0") : ord("9") + 1] = _DIGIT
    return classes


_CLASSES = _table()


@dataclass(frozen=True, kw_only=True, slots=True)
class ByteShares:
    """Shares of the bytes of a text."""

    letter: float
    """ASCII letters and spaces, and all bytes that are not ASCII."""
    digit: float

    @property
    def other(self) -> float:
        """Punctuation, line ends, control characters."""
        return max(0.0, 1.0 - self.letter - self.digit)


def class_counts(text: bytes | memoryview) -> npt.NDArray[np.int64]:
    """The bytes of a text that are letters, digits, and others."""
    return np.bincount(_CLASSES[np.frombuffer(text, np.uint8)], minlength=3)


def byte_shares(texts: Iterable[Any]) -> ByteShares:
    """The shares in all bytes of some texts, of which one is not empty."""
    counts = sum((class_counts(text) for text in texts), np.zeros(3, np.int64))
    letter, digit = (counts[:2] / max(1, counts.sum())).tolist()
    return ByteShares(letter=letter, digit=digit)
