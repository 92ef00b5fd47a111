"""SentencePiece's encoder over one of our vocabularies: same pieces, same log probabilities, in its 32 bits.

It takes Unicode text alone, so each byte is written as a character; its text is made beforehand and not timed. It sees
whole documents; since no piece holds bytes of two classes, it cuts where our pretokens end.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import sentencepiece
from finpile_tokenizer import Vocabulary
from finpile_tokenizer.arrays.buffers import Int64s, byte_buffers
from finpile_tokenizer.pretokens.pretokenizer import pretoken_starts

#: Its ids are ours plus one: the unknown piece, which it insists on, comes first.
FIRST_ID = 1

Alphabet = Callable[[bytes], str]


def short_alphabet(text: bytes) -> str:
    """Each byte as the character of its number, so that ASCII takes one byte of UTF-8; only NUL is U+0100."""
    return text.decode("latin-1").replace("\0", "\u0100")


def shifted_alphabet(text: bytes) -> str:
    """Byte b as character U+0100 + b: no byte is a space or a control character, and each takes two bytes of UTF-8."""
    return text.decode("latin-1").translate(_SHIFTED)


_SHIFTED = {byte: 0x100 + byte for byte in range(256)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Mode:
    """A way to have it encode a batch."""

    name: str
    alphabet: Alphabet
    by_pretoken: bool
    """Each pretoken as a text of its own, and not each document."""
    returns: Any
    """`int`: lists of Python integers; "numpy": arrays."""


MODES = (
    Mode(name="documents to arrays", alphabet=short_alphabet, by_pretoken=False, returns="numpy"),
    Mode(name="documents to lists", alphabet=short_alphabet, by_pretoken=False, returns=int),
    Mode(name="pretokens to arrays", alphabet=short_alphabet, by_pretoken=True, returns="numpy"),
    Mode(name="pretokens to lists", alphabet=short_alphabet, by_pretoken=True, returns=int),
    Mode(name="documents to lists, bytes from U+0100 on", alphabet=shifted_alphabet, by_pretoken=False, returns=int),
)
#: The other modes were never found faster.
FAST_MODES = MODES[:2]
BY_DOCUMENT, BY_PRETOKEN = MODES[0], MODES[3]


class SentencePieceEncoder:
    """Encodes batches in any of the modes."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._processors = {
            alphabet: sentencepiece.SentencePieceProcessor(model_proto=model_proto(vocabulary, alphabet))
            for alphabet in (short_alphabet, shifted_alphabet)
        }

    def prepared(self, texts: pa.Array, mode: Mode, num_threads: int = 1) -> Callable[[], list[Any]]:
        """What encodes the texts when called; its text is ready."""
        processor = self._processors[mode.alphabet]
        batch = [mode.alphabet(unit) for unit in _units(texts, mode.by_pretoken)]
        return lambda: processor.encode(batch, return_type=mode.returns, num_threads=num_threads)

    def ids(self, texts: pa.Array, mode: Mode) -> Int64s:
        """Our ids for its pieces, one text after the other."""
        parts = [np.asarray(ids, np.int64) for ids in self.prepared(texts, mode)()]
        return np.concatenate(parts) - FIRST_ID


def _units(texts: pa.Array, by_pretoken: bool) -> list[bytes]:
    offsets, data = byte_buffers(texts)
    edges = [*pretoken_starts(texts)[0].tolist(), int(offsets[-1])] if by_pretoken else offsets.tolist()
    content = data.tobytes()
    return [content[start:stop] for start, stop in pairwise(edges)]


# --- the model file, in protobuf's wire format ------------------------------------------------------------------------
# Written by hand: the classes that the package ships refuse to load beside other versions of protobuf than theirs.
# Source: sentencepiece_model.proto for the numbers of fields, https://protobuf.dev/programming-guides/encoding.

_NORMAL, _UNKNOWN = 1, 2
_UNIGRAM = 1
_UNKNOWN_PIECE = "\u2047"


def model_proto(vocabulary: Vocabulary, alphabet: Alphabet) -> bytes:
    """A `ModelProto` with these pieces, and nothing done to the text."""
    names = (alphabet(piece) for piece in vocabulary.pieces.to_pylist())
    pieces = [_piece(name, score, _NORMAL) for name, score in zip(names, vocabulary.log_probs.tolist(), strict=True)]
    trainer = _number(3, _UNIGRAM) + _number(40, 0) + b"".join(_number(absent, -1) for absent in (41, 42, 43))
    normalizer = _bytes(1, b"identity") + b"".join(_number(off, 0) for off in (3, 4, 5))
    return b"".join([_piece(_UNKNOWN_PIECE, 0.0, _UNKNOWN), *pieces, _bytes(2, trainer), _bytes(3, normalizer)])


def _piece(name: str, score: float, kind: int) -> bytes:
    return _bytes(1, _bytes(1, name.encode()) + _varint(2 << 3 | 5) + struct.pack("<f", score) + _number(3, kind))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    value %= 1 << 64
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])
