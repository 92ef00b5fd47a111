"""The tokenizer: text to ids and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from finpile_tokenizer import _trie_kernels
from finpile_tokenizer._buffers import Int32s, Int64s, UInt8s, byte_buffers, chunks_of, lengths_of
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.export import read_tokenizer, write_tokenizer
from finpile_tokenizer.pretokenizer import PRETOKEN_CLASSES
from finpile_tokenizer.trie import build_trie
from finpile_tokenizer.unigram import END_OF_TEXT, Vocabulary

#: Documents are handed to a thread in ranges of about this size: large beside the cost of a call, small beside memory.
_RANGE_BYTES = 4 << 20

_Encoded: TypeAlias = tuple[Int32s, Int64s]


class UnigramTokenizer:
    """Encodes any byte string, and gives it back: `decode(encode(x)) == x`, invalid UTF-8 included.

    The ids are those of the most probable segmentation in which no piece crosses the edge of a pretoken. The text
    `<|endoftext|>` is ordinary text here; the special token is written by whoever joins documents, as `eot_id`.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._trie = build_trie(vocabulary.pieces, vocabulary.log_probs)
        self._piece_bytes = lengths_of(vocabulary.pieces)
        self._pieces: list[bytes] = [*vocabulary.pieces.to_pylist(), END_OF_TEXT.encode()]
        self._check_alphabet()

    @property
    def vocab_size(self) -> int:
        """Number of ids, `<|endoftext|>` included."""
        return self.vocabulary.vocab_size

    @property
    def eot_id(self) -> int:
        """The id of `<|endoftext|>`, the last one."""
        return self.vocabulary.eot_id

    def encode(self, text: str | bytes) -> list[int]:
        """The ids of one text.

        Raises:
            TokenizerError: a str that is no Unicode text (it holds a lone surrogate).
        """
        return self.encode_array(pa.array([_as_bytes(text)], pa.large_binary())).values.to_pylist()  # type: ignore[no-any-return]

    def encode_array(self, texts: pa.Array | pa.ChunkedArray, num_threads: int = 1) -> pa.LargeListArray:
        """The ids of each text, as large_list<int32>; the same for any number of threads.

        Raises:
            InputTypeError: not an array of texts, or one with nulls.
        """
        parts = list(self._encode_ranges(texts, num_threads))
        ids = np.concatenate([ids for ids, _ in parts]) if parts else np.zeros(0, np.int32)
        offsets = np.zeros(sum(len(counts) for _, counts in parts) + 1, np.int64)
        if parts:
            np.cumsum(np.concatenate([counts for _, counts in parts]), out=offsets[1:])
        return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(ids))

    def count_tokens(self, texts: pa.Array | pa.ChunkedArray, num_threads: int = 1) -> Int64s:
        """The number of ids of each text (without `<|endoftext|>`); keeps no ids.

        Raises:
            InputTypeError: not an array of texts, or one with nulls.
        """
        counts = [counts for _, counts in self._encode_ranges(texts, num_threads)]
        return np.concatenate(counts) if counts else np.zeros(0, np.int64)

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes that the ids stand for; `eot_id` stands for the text `<|endoftext|>`.

        Raises:
            TokenizerError: an id is not in the vocabulary.
        """
        wanted = np.fromiter(ids, np.int64)
        if len(wanted) and not 0 <= wanted.min() <= wanted.max() <= self.eot_id:
            bad = wanted[(wanted < 0) | (wanted > self.eot_id)][0]
            raise TokenizerError(f"there is no id {bad}: this vocabulary has ids 0 to {self.eot_id}")
        return b"".join([self._pieces[index] for index in wanted.tolist()])

    def save(self, folder: str | Path) -> None:
        """Writes `tokenizer.json`, `tokenizer_config.json` and `vocabulary.parquet`: see `export`."""
        write_tokenizer(folder, self.vocabulary)

    @classmethod
    def load(cls, path: str | Path) -> UnigramTokenizer:
        """The tokenizer of a folder that `save` wrote, or of its `tokenizer.json` alone.

        Raises:
            FormatError: the file is missing or is not of this package's form.
        """
        return cls(read_tokenizer(path))

    def _encode_ranges(self, texts: pa.Array | pa.ChunkedArray, num_threads: int) -> Iterator[_Encoded]:
        if num_threads < 1:
            raise TokenizerError(f"num_threads is {num_threads}: expected 1 or more")
        ranges = [
            (offsets, data, first, last)
            for offsets, data in map(byte_buffers, chunks_of(texts))
            for first, last in _document_ranges(offsets)
        ]
        if num_threads == 1 or len(ranges) < 2:
            yield from (self._encode_range(*each) for each in ranges)
            return
        with ThreadPoolExecutor(num_threads) as pool:
            yield from pool.map(lambda each: self._encode_range(*each), ranges)

    def _encode_range(self, offsets: Int64s, data: UInt8s, first: int, last: int) -> _Encoded:
        ring = np.full(1 << int(self._piece_bytes.max()).bit_length(), -np.inf)
        trie = self._trie
        ids, counts = _trie_kernels.encode_documents(
            offsets, data, first, last, PRETOKEN_CLASSES, trie.units, trie.scores, trie.pieces, self._piece_bytes, ring
        )
        return ids, counts

    def _check_alphabet(self) -> None:
        missing = [value for value in range(256) if not self._trie.prefixes(bytes([value]))]
        if missing:
            raise TokenizerError(
                f"bytes {missing[:8]} are no pieces: a vocabulary must hold all 256, so that any text can be encoded"
            )


def _document_ranges(offsets: Int64s) -> list[tuple[int, int]]:
    """Consecutive documents in ranges of about `_RANGE_BYTES`, a document never split."""
    num_documents = len(offsets) - 1
    num_cuts = int(offsets[-1] - offsets[0]) // _RANGE_BYTES
    targets = offsets[0] + _RANGE_BYTES * np.arange(1, num_cuts + 1)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, targets), [num_documents]]))
    return [(int(first), int(last)) for first, last in pairwise(cuts)]


def _as_bytes(text: str | bytes) -> bytes:
    try:
        return text if isinstance(text, bytes) else text.encode()
    except UnicodeEncodeError as error:
        raise TokenizerError(f"this str is no Unicode text ({error.reason}): encode it to bytes yourself") from error
