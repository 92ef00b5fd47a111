"""The classifier of languages: fastText's compressed model, read by kernels of our own.

It gives the labels of the library `fasttext`, and its scores but for their last bits: rows are added in the same order
and precision. The library looks up each n-gram in a hash table and adds a product of codes; here both are tables that
are made when the model is loaded.

Source: Joulin et al. 2016, "FastText.zip", https://arxiv.org/abs/1612.03651; the form of the file is that of
https://github.com/facebookresearch/fastText, `src/fasttext.cc`, version 12.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from finpile.clean.filters.language import _kernels as kernels
from finpile.errors import ConfigError

_MAGIC, _VERSION = 793_712_314, 12
_LABEL = "__label__"
_HIERARCHICAL = 1
_CODES = 256
_Rows = npt.NDArray[np.float32]
_Numbers = npt.NDArray[np.int32]


class LanguageModel:
    """A supervised model whose rows are compressed and pruned, with a tree of labels.

    Raises: ConfigError for a file of another kind.
    """

    def __init__(self, path: Path) -> None:
        file = _File(path.read_bytes())
        if file.take("ii") != (_MAGIC, _VERSION):
            raise ConfigError(f"{path}: is not a model of fastText of version {_VERSION}")
        dim, _, _, _, _, word_ngrams, loss, _, num_buckets, shortest, longest, _ = file.take("12i")
        file.take("d")
        entries, kept = _read_dictionary(file, num_buckets)
        words = [entry.name for entry in entries if not entry.is_label]
        labels = [entry for entry in entries if entry.is_label]
        is_known = word_ngrams == 1 and loss == _HIERARCHICAL and words[0] == b"</s>" and file.take("?") == (True,)
        if not is_known:
            raise ConfigError(f"{path}: expected the compressed model of languages, lid.176.ftz")
        rows = _read_rows(file, dim)
        ngrams = np.full(num_buckets, kernels.NO_ROW, np.uint16)
        ngrams[kept[:, 0]] = len(words) + kept[:, 1]
        edges = np.cumsum([0, *map(len, words)]).astype(np.int64)
        joined = np.frombuffer(b"".join(words), np.uint8)
        slots = np.full(1 << (2 * len(words)).bit_length(), -1, np.int32)
        kernels.fill_slots(slots, joined, edges)
        if file.take("?") != (False,):
            raise ConfigError(f"{path}: expected labels that are not compressed")
        size, width = file.take("qq")
        nodes = file.array(np.float32, size * width).reshape(size, width)
        lengths = np.int64(shortest), np.int64(longest)
        tree = _tree([entry.num for entry in labels])
        self._tables = slots, joined, edges, ngrams, *lengths, rows, nodes, *tree
        self.labels = [entry.name.decode().removeprefix(_LABEL) for entry in labels]

    def best(self, text: str) -> tuple[str, float]:
        """The most probable label of a text on one line, and its probability."""
        data = np.frombuffer(text.encode(), np.uint8)
        leaf, score = kernels.classify(data, *self._tables)
        return self.labels[leaf], float(score)


class _Entry(NamedTuple):
    name: bytes
    num: int
    is_label: bool


class _File:
    """The bytes of a model, from the first one on. All numbers are little-endian."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, form: str) -> tuple[Any, ...]:
        """Numbers in the form of `struct`."""
        found = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return found

    def array(self, kind: Any, size: int) -> npt.NDArray[Any]:
        found = np.frombuffer(self._data, np.dtype(kind).newbyteorder("<"), size, self._at)
        self._at += found.nbytes
        return found.astype(kind)

    def name(self) -> bytes:
        """The bytes up to the next null byte."""
        end = self._data.index(b"\0", self._at)
        found = self._data[self._at : end]
        self._at = end + 1
        return found


def _read_dictionary(file: _File, num_buckets: int) -> tuple[list[_Entry], _Numbers]:
    """Words and labels, and the n-grams that were kept, as pairs of a bucket and a row after those of the words."""
    num_entries, _, _, _, num_kept = file.take("iiiqq")
    entries = []
    for _ in range(num_entries):
        name = file.name()
        count, kind = file.take("qb")
        entries.append(_Entry(name, count, kind == 1))
    kept = file.array(np.int32, 2 * max(0, num_kept)).reshape(-1, 2)
    if num_kept <= 0 or kept.min() < 0 or kept[:, 0].max() >= num_buckets:
        raise ConfigError("expected a model whose n-grams are pruned")
    return entries, kept


def _read_rows(file: _File, dim: int) -> _Rows:
    """The rows of words and n-grams: each is its norm times the parts that its codes name."""
    (has_norms,) = file.take("?")
    num_rows, _ = file.take("qq")
    (num_codes,) = file.take("i")
    codes = file.array(np.uint8, num_codes).reshape(num_rows, -1)
    parts = _read_parts(file)
    if not has_norms or parts.shape[0] * parts.shape[2] != dim:
        raise ConfigError("expected a model whose rows have norms and parts of equal size")
    norms = file.array(np.uint8, num_rows)
    found = parts[np.arange(parts.shape[0]), codes].reshape(num_rows, dim)
    return np.ascontiguousarray(found * _read_parts(file)[0, norms], np.float32)


def _read_parts(file: _File) -> _Rows:
    """The vectors of a product quantiser, by part and code."""
    dim, num_parts, size, _ = file.take("4i")
    return file.array(np.float32, dim * _CODES).reshape(num_parts, _CODES, size)


def _tree(counts: list[int]) -> tuple[_Numbers, _Numbers]:
    """The children of the inner nodes of a Huffman tree; `counts` descend.

    Of equal counts, the inner node is taken first.
    """
    num = len(counts)
    weights = [*counts, *[10**15] * (num - 1)]
    children = []
    leaf, node = num - 1, num
    for parent in range(num, 2 * num - 1):
        pair = []
        for _ in range(2):
            if leaf >= 0 and weights[leaf] < weights[node]:
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(node)
                node += 1
        weights[parent] = weights[pair[0]] + weights[pair[1]]
        children.append(pair)
    left, right = np.array(children, np.int32).T.copy()
    return left, right
