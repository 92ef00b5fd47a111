"""Exact substrings by suffix array, in memory: the windows of a corpus that occur earlier.

Documents are concatenated arrays of symbols, which are bytes (uint8) or token ids (uint32); document d is
`symbols[offsets[d]:offsets[d + 1]]`. A window is `min_length` consecutive symbols of one document.

    suffix_array        all suffixes in order, by induced sorting: linear time for any text
    lcp_array           length of the common prefix of neighbours in that order
    first_occurrences   for each repeated window, its first position

Memory at the peak, text and result included: 14 bytes a symbol for bytes, 17 for token ids, 26 for 32-bit symbols that
are nearly all distinct. On 20 MB of news, sorting takes 1.3 to 1.5 times as long as libdivsufsort.

Source: Lee et al. 2022, Deduplicating Training Data Makes Language Models Better, section 4.1 (exact substrings).
Nong, Zhang, Chan 2009, Linear Suffix Array Construction by Almost Pure Induced-Sorting; the signs of entries are from
Yuta Mori's sais-lite. Kärkkäinen, Manzini, Puglisi 2009, Permuted Longest-Common-Prefix Array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from finpile.dedup._hash_kernels import I64, U8, U32
from finpile.errors import InputError
from tests.support.references import suffix_kernels as kernels
from tests.support.references.suffix_kernels import Index, Text

#: More symbols than this are numbered in 64 bits.
_MAX_INT32 = 2**31 - 1
#: Symbols renumbered at once.
_BLOCK = 1 << 20


def suffix_array(symbols: U8 | U32) -> I64:
    """The start positions of all suffixes of `symbols`, in ascending order of the suffixes; an end precedes any symbol.

    >>> suffix_array(np.frombuffer(b"banana", np.uint8)).tolist()
    [5, 3, 1, 0, 4, 2]

    Raises:
        InputError: `symbols` is not a one-dimensional array of uint8 or uint32.
    """
    text = _readable(symbols)
    return _sorted_suffixes(text, _index_type(len(text))).astype(np.int64)


def lcp_array(symbols: U8 | U32, suffixes: I64) -> I64:
    """How many symbols the suffixes `suffixes[i - 1]` and `suffixes[i]` share, 0 at i = 0; same shape as `suffixes`.

    `suffixes` is the suffix array of `symbols`.

    Raises:
        InputError: `symbols` is not a one-dimensional array of uint8 or uint32, or `suffixes` not of its positions.
    """
    text = _readable(symbols)
    if suffixes.dtype != np.int64 or suffixes.shape != text.shape:
        raise InputError(
            f"suffixes is an array of {suffixes.dtype}, shape {suffixes.shape}: expected int64, shape {text.shape}; "
            "pass what suffix_array(symbols) returns"
        )
    if len(text) == 0:
        return np.empty(0, dtype=np.int64)
    if suffixes.min() < 0 or suffixes.max() >= len(text):
        raise InputError(
            f"suffixes has positions from {suffixes.min()} to {suffixes.max()}, expected 0 to {len(text) - 1}: "
            "pass what suffix_array(symbols) returns"
        )
    lengths: I64 = _permuted_lcp(text, _constant(suffixes))[suffixes].astype(np.int64, copy=False)
    return lengths


def first_occurrences(symbols: U8 | U32, offsets: I64, min_length: int) -> I64:
    """Per position, the first position of the window that begins there; -1 if none begins or it occurs only once.

    The earliest of equal windows has its own position. Occurrences may overlap, in the same document or in others; none
    crosses a document's end. Shape of `symbols`.

    >>> first_occurrences(np.frombuffer(b"abcabc", np.uint8), np.array([0, 5, 6]), 2).tolist()
    [0, -1, -1, 0, -1, -1]

    Raises:
        InputError: `symbols` is not a one-dimensional array of uint8 or uint32, `offsets` does not rise from 0 to its
            length, or `min_length` is below 1.
    """
    text = _readable(symbols)
    _check_windows(text, offsets, min_length)
    if min_length >= len(text):  # no two windows
        return np.full(len(text), -1, dtype=np.int64)
    suffixes = _sorted_suffixes(text, _index_type(len(text)))
    flags = (_permuted_lcp(text, _constant(suffixes)) >= min_length).view(np.uint8)
    flags *= kernels.EQUALS_PREVIOUS
    kernels.flag_windows(_constant(offsets), min_length, flags)
    earliest = np.full(len(text), -1, dtype=np.int64)
    kernels.earliest_of_equals(_constant(suffixes), flags, earliest)
    return earliest


def compile_kernels() -> None:
    """Compiles every kernel for up to 2^31 - 1 symbols, or loads it from Numba's cache on disk."""
    for symbol_type in (np.uint8, np.uint32):
        symbols: Text = np.frombuffer(b"banana bandana " * 4, np.uint8).astype(symbol_type)  # repeats: it recurses
        first_occurrences(symbols, np.array([0, len(symbols)]), 2)
        lcp_array(symbols, suffix_array(symbols))


def _sorted_suffixes(text: Text, index_type: type[np.int32] | type[np.int64]) -> Index:
    """The suffix array in the given type; token ids larger than the text is long are renumbered first."""
    suffixes = np.empty(len(text), dtype=index_type)
    if len(text) > 0:
        alphabet_size = 256 if text.dtype == np.uint8 else int(text.max()) + 1
        if alphabet_size > max(len(text), 256):
            text, alphabet_size = _renumbered(text)
        _sort(text, alphabet_size, suffixes)
    return suffixes


def _sort(text: Text, alphabet_size: int, suffixes: Index) -> None:
    """Fills `suffixes`: sorts the valleys, then induces the rest from them.

    To sort the valleys, their order up to the next valley is induced from any order; if that leaves ties, the sequence
    of their ranks, less than half as long as the text, is sorted in the same way, within `suffixes`.
    """
    ends = np.zeros(alphabet_size, dtype=suffixes.dtype)
    kernels.count_symbols(text, ends)
    np.cumsum(ends, out=ends)
    num_valleys = kernels.list_valleys(text, suffixes)
    valleys = suffixes[len(text) - num_valleys :].copy()
    suffixes[:] = 0
    if num_valleys > 1:
        kernels.place_at_ends(text, valleys, ends.copy(), suffixes)
        _induce(text, ends, suffixes, keep=False)
        valleys = suffixes[:num_valleys]
        _sort_valleys(text, suffixes, num_valleys)
        suffixes[num_valleys:] = 0
    kernels.place_at_ends(text, valleys, ends.copy(), suffixes)
    _induce(text, ends, suffixes, keep=True)


def _induce(text: Text, ends: Index, suffixes: Index, *, keep: bool) -> None:
    heads = np.concatenate([np.zeros(1, dtype=ends.dtype), ends[:-1]])
    kernels.induce_l(text, heads, suffixes, keep)
    kernels.induce_s(text, ends.copy(), suffixes, keep)


def _sort_valleys(text: Text, suffixes: Index, num_valleys: int) -> None:
    """Brings the valleys, sorted, to the start of `suffixes`, in which they are sorted up to the next valley."""
    kernels.compact_valleys(suffixes)
    num_names = kernels.name_valleys(text, suffixes, num_valleys)
    if num_names == num_valleys:
        return
    kernels.gather_names(suffixes, num_valleys)
    names = suffixes[len(text) - num_valleys :]
    order = suffixes[:num_valleys]
    _sort(_constant(names.view(np.uint32 if names.dtype == np.int32 else np.uint64)), num_names, order)
    kernels.list_valleys(text, suffixes)
    kernels.look_up(order, names)


def _permuted_lcp(text: Text, suffixes: Index) -> Index:
    """Per position, not per rank: how many symbols its suffix shares with the one before it in order."""
    shared = np.zeros(len(text), dtype=_index_type(len(text)))
    kernels.predecessors(suffixes, shared)
    kernels.permuted_lcp(text, shared)
    return shared


def _renumbered(text: Text) -> tuple[U32, int]:
    """The text with its symbols numbered without gaps, in the same order; and how many there are."""
    ordered = np.sort(text)  # np.unique hashes first: slower by far where most symbols are distinct
    distinct = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    del ordered
    numbers = np.empty(len(text), dtype=np.uint32)
    for start in range(0, len(text), _BLOCK):
        block = text[start : start + _BLOCK]
        order = np.argsort(block)  # sought in order, neighbours are found near each other
        numbers[start + order] = np.searchsorted(distinct, block[order])
    return _constant(numbers), len(distinct)


def _index_type(length: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if length <= _MAX_INT32 else np.int64


def _readable(symbols: npt.NDArray[Any]) -> Text:
    if symbols.dtype not in (np.uint8, np.uint32) or symbols.ndim != 1:
        raise InputError(
            f"symbols is an array of {symbols.dtype}, shape {symbols.shape}: expected one dimension of uint8 (bytes) "
            "or uint32 (token ids)"
        )
    return _constant(symbols)


def _constant(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only, contiguous view (a copy if need be): one array type, hence one compiled kernel, for all callers."""
    view = np.require(array, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return view


def _check_windows(text: Text, offsets: I64, min_length: int) -> None:
    if min_length < 1:
        raise InputError(f"min_length is {min_length}: expected at least 1 symbol")
    if offsets.dtype != np.int64 or offsets.ndim != 1 or len(offsets) == 0:
        raise InputError(
            f"offsets is an array of {offsets.dtype}, shape {offsets.shape}: expected int64, one more than documents"
        )
    if offsets[0] != 0 or offsets[-1] != len(text) or np.any(offsets[1:] < offsets[:-1]):
        raise InputError(
            f"offsets goes from {offsets[0]} to {offsets[-1]}: expected to begin at 0, never to fall, and to end at "
            f"the number of symbols, {len(text)}"
        )
