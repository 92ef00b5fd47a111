"""The tokenizer: text to ids and back."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Float64s, Int32s, Int64s, lengths_of, list_array
from finpile_tokenizer.arrays.document_ranges import map_ranges
from finpile_tokenizer.encoding.automaton import build_automaton
from finpile_tokenizer.encoding.offsets import Unit, offsets_of_ids
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.export import Special, read_tokenizer, write_tokenizer
from finpile_tokenizer.model import END_OF_TEXT, Vocabulary
from finpile_tokenizer.segmentations import likelihood, nbest, sampling
from finpile_tokenizer.trie.hashed import PieceIndex, build_piece_index

_Encoded: TypeAlias = tuple[Int32s, Int64s]


class UnigramTokenizer:
    """Encodes any byte string, and gives it back: `decode(encode(x)) == x`, invalid UTF-8 included.

    The ids are those of the most probable segmentation in which no piece crosses the edge of a pretoken. The text
    `<|endoftext|>` is ordinary text unless `encode` is called with `special="control"`; callers that join documents
    insert `eot_id`.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._automaton = build_automaton(vocabulary.pieces, vocabulary.log_probs)
        self._pieces: list[bytes] = [*vocabulary.pieces.to_pylist(), END_OF_TEXT.encode()]

    @property
    def vocab_size(self) -> int:
        """Number of ids, `<|endoftext|>` included."""
        return self.vocabulary.vocab_size

    @property
    def eot_id(self) -> int:
        """The id of `<|endoftext|>`, the last one."""
        return self.vocabulary.eot_id

    def encode(self, text: str | bytes, special: Special = "text") -> list[int]:
        """The ids of one text.

        With `special="control"`, `<|endoftext|>` written in the text is `eot_id`, as in HF tokenizers; then a text can
        end a document that it is only a part of.

        Raises:
            TokenizerError: a str that is not Unicode text (it holds a lone surrogate), or another `special`.
        """
        if special not in get_args(Special):
            raise TokenizerError(f"special is {special!r}: expected one of {', '.join(get_args(Special))}")
        parts = [_as_bytes(text)] if special == "text" else _as_bytes(text).split(END_OF_TEXT.encode())
        encoded = self.encode_array(pa.array(parts, pa.large_binary())).to_pylist()
        return [token_id for ids in encoded for token_id in (*ids, self.eot_id)][:-1]

    def encode_array(self, texts: pa.Array | pa.ChunkedArray, num_threads: int = 1) -> pa.LargeListArray:
        """The ids of each text, as large_list<int32>; the same for any number of threads.

        Raises:
            InputTypeError: not an array of texts, or one with nulls.
        """
        return list_array(self._encode_ranges(texts, num_threads))

    def count_tokens(self, texts: pa.Array | pa.ChunkedArray, num_threads: int = 1) -> Int64s:
        """The number of ids of each text (without `<|endoftext|>`); keeps no ids.

        Raises:
            InputTypeError: not an array of texts, or one with nulls.
        """
        counts = [counts for _, counts in self._encode_ranges(texts, num_threads)]
        return np.concatenate(counts) if counts else np.zeros(0, np.int64)

    def encode_with_offsets(self, text: str | bytes, unit: Unit = "bytes") -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of one text, and `(start, stop)` of each in it.

        In characters, an id that has some bytes of a character has all of it, as in HF tokenizers; so neighbours may
        overlap.

        Raises:
            TokenizerError: a str that is not Unicode text, or bytes that are not UTF-8 with unit "characters".
        """
        ids, pairs = self.encode_array_with_offsets(pa.array([_as_bytes(text)], pa.large_binary()), unit=unit)
        return ids.values.to_pylist(), [(start, stop) for start, stop in pairs.values.to_pylist()]

    def encode_array_with_offsets(
        self, texts: pa.Array | pa.ChunkedArray, num_threads: int = 1, unit: Unit = "bytes"
    ) -> tuple[pa.LargeListArray, pa.LargeListArray]:
        """The ids of each text as `encode_array` gives them, and `(start, stop)` of each id in its text.

        The offsets are large_list<fixed_size_list<int64>[2]>, their unit that of `encode_with_offsets`.

        Raises:
            InputTypeError: not an array of texts, or one with nulls.
            TokenizerError: a text is not UTF-8 with unit "characters".
        """
        ids = self.encode_array(texts, num_threads)
        return ids, offsets_of_ids(texts, ids, self.piece_lengths(ids.values.to_numpy()), unit)

    def piece_lengths(self, ids: npt.ArrayLike) -> Int64s:
        """The bytes of each id: their running sum is the end of each in `decode(ids)`.

        Raises:
            TokenizerError: an id is not in the vocabulary.
        """
        wanted = np.asarray(ids, np.int64)
        self._check_ids(wanted)
        lengths: Int64s = self._decoded_bytes[wanted]
        return lengths

    def encode_nbest(self, text: str | bytes, n: int) -> list[tuple[list[int], float]]:
        """The n most probable segmentations of a text as `(ids, log probability)`; all of them if fewer exist.

        The order is total. A pretoken's segmentations: by falling float64 sum of log probabilities, added from left to
        right; of equal sums, that with the longer last piece; then that which comes first without the last piece.
        The text's: by the exact sum over its pretokens; of equal ones, that with the better segmentation of the last
        pretoken in which they differ. So the first is `encode(text)`. The log probability is the exact sum, rounded.

        Time and memory: as for `encode`, twice, and for the result, in addition to n paths through the few
        pretokens that differ (`32 * n * sqrt(pretoken bytes * longest piece)` bytes).

        Raises:
            TokenizerError: n is less than 1, or a str that is not Unicode text.
        """
        return nbest.encode_nbest(self._index, _as_bytes(text), self.encode(text), n)

    def sample(
        self, text: str | bytes, *, seed: int | np.random.Generator, alpha: float = 1.0, num_samples: int = 1
    ) -> list[list[int]]:
        """Segmentations drawn independently, each with a probability proportional to `P(segmentation) ** alpha`.

        P is the product of the pieces' probabilities and alpha that of Kudo 2018 (a temperature is 1 / alpha): 1 is the
        model, 0 draws all segmentations with equal probability, a large one gives `encode`. Exact but for float64's
        rounding. The same seed gives the same samples; of a generator, the next 64 bits are the seed.

        Raises:
            TokenizerError: alpha, seed or num_samples is out of range, or a str that is not Unicode text.
        """
        return sampling.sample(self._index, _as_bytes(text), alpha, seed, num_samples)

    def sample_array(
        self,
        texts: pa.Array | pa.ChunkedArray,
        *,
        seed: int | np.random.Generator,
        alpha: float = 1.0,
        first_document: int = 0,
        num_threads: int = 1,
    ) -> pa.LargeListArray:
        """One segmentation of each text, drawn as by `sample`, as large_list<int32>.

        A draw depends on the seed, the text's number and the text alone: not on threads, nor on how the texts are cut
        into arrays, if each call passes the number of its first text, `first_document`. Text 0 is drawn as by `sample`.

        Raises:
            InputTypeError: not an array of texts, or one with nulls.
            TokenizerError: alpha, seed, first_document or num_threads is out of range.
        """
        return sampling.sample_array(self._index, texts, alpha, seed, first_document, num_threads)

    def sample_without_replacement(
        self, text: str | bytes, k: int, *, seed: int | np.random.Generator, alpha: float = 1.0
    ) -> list[sampling.DistinctSample]:
        """k different segmentations, as if drawn by `sample` one after the other, each time among those not yet drawn.

        They come in the order drawn, which is that of falling `perturbed`; if fewer than k exist, all are returned.
        With the same seed, fewer of them are the first of more.

        Raises:
            TokenizerError: k is less than 1, alpha or seed is out of range, or a str that is not Unicode text.
        """
        return sampling.sample_without_replacement(self._index, _as_bytes(text), k, alpha, seed)

    def log_likelihood(self, texts: pa.Array | pa.ChunkedArray, num_threads: int = 1) -> Float64s:
        """The natural log of each text's probability: the sum over all its segmentations, not the best alone.

        Divided by `-log(2) * bytes`, bits per byte. The same for any number of threads; the relative error is that of
        float64's rounding.

        Raises:
            InputTypeError: not an array of texts, or one with nulls.
        """
        return likelihood.log_likelihood(self._index, texts, num_threads)

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes that the ids represent; `eot_id` represents the text `<|endoftext|>`.

        Raises:
            TokenizerError: an id is not in the vocabulary.
        """
        wanted = np.fromiter(ids, np.int64)
        self._check_ids(wanted)
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

    def _encode_ranges(self, texts: pa.Array | pa.ChunkedArray, num_threads: int) -> list[_Encoded]:
        encode = self._automaton.encode
        return map_ranges(lambda part: encode(part.offsets, part.data, part.first, part.last), texts, num_threads)

    @cached_property
    def _index(self) -> PieceIndex:
        return build_piece_index(self.vocabulary)

    @cached_property
    def _decoded_bytes(self) -> Int64s:
        return np.append(lengths_of(self.vocabulary.pieces), len(END_OF_TEXT))

    def _check_ids(self, ids: Int64s) -> None:
        if len(ids) and not 0 <= ids.min() <= ids.max() <= self.eot_id:
            bad = ids[(ids < 0) | (ids > self.eot_id)][0]
            raise TokenizerError(f"there is no id {bad}: this vocabulary has ids 0 to {self.eot_id}")


def _as_bytes(text: str | bytes) -> bytes:
    try:
        return text if isinstance(text, bytes) else text.encode()
    except UnicodeEncodeError as error:
        raise TokenizerError(f"this str is not Unicode text ({error.reason}): encode it to bytes yourself") from error
